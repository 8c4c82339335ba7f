"""``kubescene run --server``: a file is played by a server, and looks as if it were played here."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec
import orjson
from rich.console import Console

from kubescene.actors import Actor
from kubescene.api.kinds import SCENARIO
from kubescene.cli.files import ScenarioFile, complain, one_line, read_scenario
from kubescene.cli.run.junit import NO_JUNIT, JunitFile, told_to
from kubescene.cli.run.playing import (
    RunArguments,
    amounts_of,
    complain_of_unmet,
    output_path,
    with_annotations,
)
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.client.http.rows import TableRow
from kubescene.clock import SECOND, ScenarioStep, WallClock
from kubescene.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConfigurationError,
    InvalidError,
    NotFoundError,
    ScenarioError,
    UnreachableError,
)
from kubescene.reports.progress import ProgressReporter
from kubescene.reports.tallies import ScenarioSize
from kubescene.reports.terminal import print_summary
from kubescene.results import Summary
from kubescene.results.output import refuse_to_overwrite, write_results
from kubescene.scenario.documents import with_seed, without_status
from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.validation.objects import told
from kubescene.types import JsonObject

Rows: TypeAlias = Generator[TableRow | None, None, None]
ACTOR = Actor("kubescene-run")
PAGES = "/simulator/v1/scenarios"
FINE, RUN_FAILED, BAD_INPUT, UNMET, INTERRUPTED = 0, 1, 2, 3, 130
ASK_EVERY = SECOND
"""How often a busy server is asked for its counts; one that says nothing is asked as well."""
ENDS = (ScenarioPhase.SUCCEEDED, ScenarioPhase.FAILED, ScenarioPhase.PAUSED)


class RunCounts(msgspec.Struct, rename="camel"):
    """What the server's page ``progress`` says."""

    phase: str
    message: str
    bad_input: bool
    failed_at: tuple[str | int, ...]
    written: int
    bound: int
    failed_attempts: int
    step: dict[str, int]


class RemoteProgress(ProgressReporter):
    """The progress of a scenario that somebody else counts."""

    def take(self, counts: RunCounts) -> None:
        self._written = counts.written
        self._bound = counts.bound
        self._failed = counts.failed_attempts

    def refresh(self, counts: RunCounts) -> None:
        """The same in the middle of a step."""
        self._step = ScenarioStep(counts.step["major"], counts.step["minor"])
        self.take(counts)
        self._tell()


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """One scenario on one server."""

    client: HttpClient
    url: str
    name: str

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(SCENARIO, self.name)

    def page(self, name: str, **query: str) -> bytes:
        return self.client.read_page(f"{PAGES}/{self.name}/{name}", **query)

    def counts(self, step: int | None = None) -> RunCounts:
        query = {} if step is None else {"step": str(step)}
        return msgspec.json.decode(self.page("progress", **query), type=RunCounts)

    def summary(self) -> Summary:
        return msgspec.json.decode(self.page("summary"), type=Summary)

    def delete(self) -> None:
        """Take it away, unless somebody else has."""
        try:
            self.client.delete(self.ref)
        except NotFoundError:
            return


def run_on_server(
    file: ScenarioFile,
    url: str,
    *,
    out: Path | None,
    seed: int | None,
    quiet: bool,
    delete: bool,
    junit: JunitFile = NO_JUNIT,
) -> int:
    """Play a scenario there; returns the exit code that a run of its own would have."""
    scenario = file.scenario
    if out is not None and file.path is not None:
        refuse_to_overwrite([file.path], out)
    client = HttpClient(url, ACTOR)
    run = RemoteRun(client, url.rstrip("/"), scenario["metadata"]["name"])
    errors = Console(stderr=True, quiet=quiet)
    with closing(client), closing(watched(run)) as rows:
        create(run, with_seed(without_status(scenario), seed), file)
        try:
            code = Follower(run, errors, amounts_of(scenario)).follow(rows)
            if code is not None:
                return code
            return finish(run, file, out, quiet=quiet, delete=delete, junit=junit)
        except KeyboardInterrupt:
            say(errors, interrupted(run, delete=delete))
            return INTERRUPTED
        finally:
            if delete:
                run.delete()


def watched(run: RemoteRun) -> Rows:
    """The rows of a scenario that is still to be created: none of its steps is missed."""
    try:
        rows = run.client.follow_row(run.ref)
        next(rows)
    except UnreachableError:
        raise
    except ApiError as error:
        raise ConfigurationError(f"{run.url} shows no scenarios: {error.message}") from error
    return rows


def run_file_on_server(path: Path, arguments: RunArguments, url: str, *, delete: bool) -> int:
    """Play a file there; returns the exit code."""
    check_local_options(arguments)
    out = output_path(arguments.out)
    with told_to(arguments.junit, path) as junit:
        file = with_annotations(read_scenario(path), wanted=arguments.annotate)
        return run_on_server(
            file,
            url,
            out=out,
            seed=arguments.seed,
            quiet=arguments.quiet,
            delete=delete,
            junit=junit,
        )


def check_local_options(arguments: RunArguments) -> None:
    """Refuse what only works where the scenario is played."""
    given = {
        "--full-status": arguments.full_status,
        "--plugin": arguments.plugins,
        "--controller": arguments.controllers,
        "--strict": arguments.strict,
        "--interactive": arguments.interactive,
        "--remedies": arguments.remedies,
        "--scheduler-config": arguments.scheduler_configs,
        "--feature-gates": arguments.feature_gates,
        "--plugin-errors stop": arguments.plugin_errors == "stop",
        "--report": arguments.report,
        "--outside": arguments.outside,
        "--waiter": arguments.waiters,
        "--measure": arguments.measures,
        "--from": arguments.snapshot,
    }
    if wrong := [name for name, value in given.items() if value]:
        raise ConfigurationError(
            f"{', '.join(wrong)} cannot be used with --server: the server plays with what it was "
            "started with"
        )


def create(run: RemoteRun, scenario: JsonObject, file: ScenarioFile) -> None:
    """Hand the scenario over; what the server answers is said in words that help."""
    try:
        run.client.create(scenario)
    except AlreadyExistsError:
        raise ConfigurationError(
            f"{run.url} has a scenario {run.name!r} already: delete it "
            f"(kubectl delete scenario {run.name}), or give this one another name"
        ) from None
    except BadRequestError as error:
        raise ConfigurationError(f"{run.url}: {error.message}") from error
    except UnreachableError:
        raise
    except InvalidError as error:
        if faults := [fault.error for fault in told(error) if fault.path]:
            raise ScenarioError(file.line(faults[0])) from error
        raise ConfigurationError(f"{run.url} refused the scenario: {error.message}") from error
    except ApiError as error:
        raise ConfigurationError(f"{run.url} refused the scenario: {error.message}") from error


class Follower:
    """Shows what a watch of the scenario tells."""

    def __init__(self, run: RemoteRun, console: Console, amounts: ScenarioSize) -> None:
        self._run = run
        self._console = console
        self._amounts = amounts
        self._at_rest: ScenarioStep | None = None
        self._is_waiting = False
        self._clock = WallClock()
        self._asked_at = self._clock.now()

    def follow(self, rows: Rows) -> int | None:
        """Until the scenario ends; an exit code only if it cannot."""
        with RemoteProgress(self._console, self._amounts) as progress:
            for row in rows:
                if row is None:
                    self._refresh(progress)
                elif row.is_gone:
                    say(self._console, f"{self._run.name} was deleted by somebody else")
                    return RUN_FAILED
                elif self._take(row, progress):
                    return None
                elif self._clock.now() - self._asked_at > ASK_EVERY:
                    self._refresh(progress)
        raise AssertionError("a row is followed without end")

    def _refresh(self, progress: RemoteProgress) -> None:
        if not self._is_waiting:
            self._asked_at = self._clock.now()
            try:
                progress.refresh(self._run.counts())
            except NotFoundError:
                return

    def _take(self, row: TableRow, progress: RemoteProgress) -> bool:
        """Whether this is the end."""
        phase, step = row.cells.get("Phase", ""), step_of(row.cells.get("Step", ""))
        if phase in ("", ScenarioPhase.PENDING):
            self._tell_waiting(phase)
            return False
        self._is_waiting = False
        # A step may be Finished several times while time passes; the last is when another begins.
        if step is not None and self._at_rest is not None and step.major > self._at_rest.major:
            self._tell_at_rest(progress)
        if row.cells.get("StepPhase") == "Finished":
            self._at_rest = step
        if phase in ENDS:
            self._tell_at_rest(progress)
        return phase in ENDS

    def _tell_at_rest(self, progress: RemoteProgress) -> None:
        if (step := self._at_rest) is not None:
            self._at_rest = None
            progress.take(self._run.counts(step.major))
            progress.step_finished(step)

    def _tell_waiting(self, phase: str) -> None:
        if phase and not self._is_waiting:
            self._is_waiting = True
            status = self._run.client.get(self._run.ref).get("status") or {}
            if message := status.get("message"):
                say(self._console, f"{self._run.name} waits: {message}")


def finish(
    run: RemoteRun,
    file: ScenarioFile,
    out: Path | None,
    *,
    quiet: bool,
    delete: bool,
    junit: JunitFile,
) -> int:
    """The summary, the files, and what becomes of the object."""
    console, counts, summary = Console(quiet=quiet), run.counts(), run.summary()
    junit.tell(summary, file.scenario)
    if not counts.bad_input:
        print_summary(summary, console)
        if out is not None:
            save(run, out)
            console.print(f"\nResults are in {out}", highlight=False, markup=False)
    if counts.phase == ScenarioPhase.PAUSED and not delete:
        say(console, f"\n{left_behind(run)}")
    if counts.message:
        complain([file.line(ScenarioError(counts.message, path=counts.failed_at))], "kubescene: ")
    elif quiet:
        complain(map(one_line, summary.warnings), f"kubescene: {file.name}: warning: ")
    complain_of_unmet(file, summary, shown=console.is_terminal and not quiet)
    if counts.phase != ScenarioPhase.FAILED:
        return UNMET if summary.unmet else FINE
    return BAD_INPUT if counts.bad_input else RUN_FAILED


def save(run: RemoteRun, out: Path) -> None:
    """Write what a run of its own would have written."""
    write_results(
        out,
        orjson.loads(run.page("result")),
        timeline=run.page("timeline"),
        explanations=run.page("explanations"),
        summary=run.page("summary"),
    )


def interrupted(run: RemoteRun, *, delete: bool) -> str:
    if delete:
        return f"interrupted: {run.name} is deleted at {run.url}, and so it stops; its objects stay"
    return (
        f"interrupted: {run.name} goes on at {run.url}; "
        f"kubectl delete scenario {run.name} would stop it"
    )


def left_behind(run: RemoteRun) -> str:
    return (
        f"{run.name} is paused at {run.url} and has the world to itself: add operations, or "
        f"kubectl delete scenario {run.name}"
    )


def step_of(text: str) -> ScenarioStep | None:
    major, dot, minor = text.partition(".")
    is_step = dot and major.isdecimal() and minor.isdecimal()
    return ScenarioStep(int(major), int(minor)) if is_step else None


def say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
