"""``kubescene run``."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from rich.console import Console

from kubescene.cli.components import (
    autoscalers_named,
    controllers_named,
    measures_named,
    names_in,
    scheduler_with,
    waiters_named,
)
from kubescene.cli.files import ScenarioFile, complain, one_line, read_scenario
from kubescene.cli.run.junit import JunitFile, told_to
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.reports.progress import ProgressReporter
from kubescene.reports.remedies import NONE_FOUND, print_best
from kubescene.reports.tallies import ScenarioSize
from kubescene.reports.terminal import print_summary
from kubescene.results import Summary
from kubescene.results.output import REPORT_FILE, SUMMARY_FILE, holds_run
from kubescene.runs.catalogue import FAILED, Runs
from kubescene.runs.local import Run, run
from kubescene.runs.requests import RunRequest
from kubescene.scenario.documents import with_simulation
from kubescene.scenario.phases import ResultsStrategy
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.shortcuts import ALL, PLAIN
from kubescene.types import JsonObject

FINE, RUN_FAILED, BAD_INPUT, UNMET = 0, 1, 2, 3
REMEDIED = 5
"""So many waiting pods are asked about in a summary: each costs a copy of the world."""
INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """What the command line says beside the file."""

    out: str | None = None
    data_dir: Path | None = None
    seed: int | None = None
    full_status: bool = False
    quiet: bool = False
    strict: bool = False
    plugins: Sequence[str] = ()
    controllers: Sequence[str] = ()
    scheduler_configs: Sequence[Path] = ()
    feature_gates: str = ""
    interactive: bool = False
    plugin_errors: Literal["fail", "stop"] = "fail"
    remedies: bool = False
    annotate: bool = False
    junit: Path | None = None
    report: bool = False
    waiters: Sequence[str] = ()
    outside: Sequence[str] = ()
    measures: Sequence[str] = ()
    plain: bool = False
    without: Sequence[str] = ()
    snapshot: Path | None = None
    compare_recorded: bool = False
    autoscalers: Sequence[str] = ()
    autoscaler_processes: Sequence[str] = ()

    @property
    def has_autoscalers(self) -> bool:
        return bool(self.autoscalers or self.autoscaler_processes)

    def scheduler(self) -> SchedulerOptions:
        return scheduler_with(
            self.plugins,
            self.scheduler_configs[0] if self.scheduler_configs else None,
            self.feature_gates,
            PluginErrors(self.plugin_errors),
        )


def run_scenario(path: Path, arguments: RunArguments) -> int:
    """Play one file; returns the exit code."""
    if arguments.waiters:
        waiters_named(arguments.waiters)  # nobody waits here; what cannot be had is told anyway
    out = output_path(arguments.out)
    is_kept = out is None and arguments.data_dir is not None and not arguments.interactive
    if arguments.report and out is None and not is_kept:
        raise ConfigurationError(
            "--report writes into the directory of results: give it with --out"
        )
    if arguments.remedies and arguments.autoscaler_processes:
        raise ConfigurationError(
            "--remedies tries changes in copies of the world, and a process cannot be copied: "
            "leave --autoscaler-process away"
        )
    results = ResultsStrategy.of_environment(os.environ)
    with told_to(arguments.junit, path) as junit:
        file = with_annotations(read_scenario(path), wanted=arguments.annotate)
        if arguments.interactive:
            return by_hand(file, arguments, out)
        if is_kept:
            return by_an_id(file, arguments, partial(by_itself, results=results, junit=junit))
        return by_itself(file, arguments, out, results, junit)


def by_itself(
    file: ScenarioFile,
    arguments: RunArguments,
    out: Path | None,
    results: ResultsStrategy,
    junit: JunitFile,
) -> int:
    """Play a scenario from its beginning to its end."""
    quiet = arguments.quiet
    errors = Console(stderr=True, quiet=quiet)
    was_there = out is not None and holds_run(out)
    progress = ProgressReporter(errors, amounts_of(file.scenario))
    try:
        with progress:
            result = played(file, arguments, out, results, progress)
    except ScenarioError as error:
        complain([file.line(error)], "kubescene: ")
        junit.tell_fault(file.name, file.line(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        complain([interrupted(progress, out)], "kubescene: ")
        return INTERRUPTED
    junit.tell(result.summary, file.scenario)
    if arguments.report and out is not None and not result.bad_input:
        # Nobody pays for the page who does not want it.
        from kubescene.cli.report.page import write_beside

        write_beside(result, out)
    code = report(result, file, quiet=quiet)
    if out is not None and not (quiet or result.bad_input):
        Console().print(
            f"\n{told_where(out, was_there=was_there, page=arguments.report)}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if arguments.remedies and not quiet and result.ok:
        report_remedies(result)
    if arguments.compare_recorded and result.ok:
        report_agreement(result, file)
    return code


def played(
    file: ScenarioFile,
    arguments: RunArguments,
    out: Path | None,
    results: ResultsStrategy,
    progress: ProgressReporter,
) -> Run:
    """The run that the command line asks for."""
    return run(
        file.scenario,
        out=out,
        seed=arguments.seed,
        instruments=(progress,),
        results=results,
        full_status=arguments.full_status,
        scheduler=arguments.scheduler(),
        reconcilers=controllers_named(arguments.controllers),
        folder=None if file.path is None else file.path.parent,
        source=file.path,
        strict=arguments.strict,
        thorough=True,
        measures=measures_named(arguments.measures),
        plain=arguments.plain,
        without=names_in(arguments.without),
        snapshot=arguments.snapshot,
        autoscalers=autoscalers_named(arguments.autoscalers),
        autoscaler_processes=arguments.autoscaler_processes,
    )


def with_annotations(file: ScenarioFile, *, wanted: bool) -> ScenarioFile:
    """A scenario that asks for annotations itself, so that its result can be played again."""
    if not wanted:
        return file
    return replace(file, scenario=with_simulation(file.scenario, annotations=True))


def by_hand(file: ScenarioFile, arguments: RunArguments, out: Path | None) -> int:
    """Let a person play the scenario."""
    from kubescene.cli.run.interactive import play_by_hand

    if out is not None:
        raise ConfigurationError("--interactive writes no results: leave --out away")
    if arguments.junit is not None:
        raise ConfigurationError("--interactive writes no results: leave --junit away")
    if arguments.autoscaler_processes:
        raise ConfigurationError(
            "--interactive goes back by copies of the world, and a process cannot be copied: leave "
            "--autoscaler-process away"
        )
    if file.path is None:
        raise ConfigurationError("--interactive reads commands from standard input: name a file")
    request = RunRequest(
        scenario=file.scenario,
        seed=arguments.seed,
        scheduler=arguments.scheduler(),
        reconcilers=controllers_named(arguments.controllers),
        folder=file.path.parent,
        strict=arguments.strict,
        thorough=True,
        measures=measures_named(arguments.measures),
        shortcuts=PLAIN if arguments.plain else ALL,
        without=names_in(arguments.without),
        snapshot=arguments.snapshot,
        autoscalers=autoscalers_named(arguments.autoscalers),
    )
    return play_by_hand(request)


def told_where(out: Path, *, was_there: bool, page: bool) -> str:
    """Where everything is, and what it replaced."""
    told = f"Results are in {out}"
    if was_there:
        told += ", instead of those of an earlier run"
    return f"{told}\nThe page is {out / REPORT_FILE}" if page else told


def report(result: Run, file: ScenarioFile, *, quiet: bool) -> int:
    """The summary for people on standard output; what failed in one line on standard error."""
    console = Console(quiet=quiet)
    if not result.bad_input:
        print_summary(result.summary, console)
    if result.message:
        error = ScenarioError(result.message, path=result.failed_at)
        complain([file.line(error)], "kubescene: ")
    elif quiet:
        complain(map(one_line, result.summary.warnings), f"kubescene: {file.name}: warning: ")
    complain_of_unmet(file, result.summary, shown=console.is_terminal and not quiet)
    return exit_code(result)


def complain_of_unmet(file: ScenarioFile, summary: Summary, *, shown: bool = False) -> None:
    """A line on standard error for each expectation that does not hold, also if it is quiet.

    Why not is left out if a terminal has just ``shown`` it.
    """
    listed = [each.name for each in summary.expectations]
    for each in summary.unmet:
        path = ("spec", "expectations", listed.index(each.name))
        why = f": {each.why}" if each.why and not shown else ""
        error = ScenarioError(f"expectation {each.name!r} does not hold{why}", path=path)
        complain([file.line(error)], "kubescene: ")


def report_remedies(result: Run) -> None:
    """What it would take for the first of the pods that wait."""
    pending = [each.pod for each in result.summary.pending]
    if pending:
        best = [(pod, best_remedy(result, pod)) for pod in pending[:REMEDIED]]
        print_best(best, len(pending) - REMEDIED, Console())


def report_agreement(result: Run, file: ScenarioFile) -> None:
    """What was asked for, so it is told however quiet the rest is."""
    from kubescene.results import open_run
    from kubescene.results.agreement import agreement

    folder = Path() if file.path is None else file.path.parent
    found = agreement(open_run(result).ledger, recordings_of(file.scenario, folder))
    sys.stdout.write("\n".join(("", "Compared with the recording", *found.lines(), "")))


def recordings_of(scenario: JsonObject, folder: Path) -> list[tuple[Path, str]]:
    """The histories that a scenario replays; raises `ConfigurationError` if there is none."""
    bodies = [each.get("replayOperation") for each in operations_of(scenario)[1]]
    found = [
        (folder / each["file"], str(each.get("format") or ""))
        for each in bodies
        if isinstance(each, dict)
    ]
    if not found:
        raise ConfigurationError("--compare-recorded is for scenarios with a replayOperation")
    return found


def best_remedy(result: Run, pod: str) -> str:
    """In words; why not, for a pod that waits for something else than a node."""
    try:
        remedies = result.remedies(pod)
    except ConfigurationError as error:
        return str(error).removeprefix(f"{pod} ")
    return remedies[0].text if remedies else NONE_FOUND


def output_path(out: str | None) -> Path | None:
    if out == "":
        raise ConfigurationError("--out is empty: name a directory for the results")
    return None if out is None else Path(out)


def interrupted(progress: ProgressReporter, out: Path | None) -> str:
    """What was reached when somebody pressed Ctrl-C, and what is left of it."""
    kept = f"; {out} holds what happened until then, without a summary" if out is not None else ""
    return f"interrupted at {progress.reached}{kept}"


def amounts_of(scenario: JsonObject) -> ScenarioSize:
    """How much there is to do, as far as an unchecked scenario can tell."""
    _, operations = operations_of(scenario)
    steps, objects, pods = set(), 0, 0
    for each in operations:
        if isinstance(each, dict) and isinstance(each.get("step"), int):
            steps.add(each["step"])
            given = each.get("createOperation")
            creation: JsonObject = given if isinstance(given, dict) else {}
            count = creation.get("count")
            number = count if isinstance(count, int) else 1
            if not any(name in each for name in ("doneOperation", "advanceOperation")):
                objects += number
                pods += number if makes_pods(creation) else 0
    return ScenarioSize(len(steps), objects, pods)


def makes_pods(creation: JsonObject) -> bool:
    """Whether an operation creates pods; those of its file are not looked at."""
    obj = creation.get("object")
    return isinstance(obj, dict) and obj.get("kind") == "Pod" and "subresource" not in creation


def exit_code(result: Run) -> int:
    if result.ok:
        return UNMET if result.summary.unmet else FINE
    return BAD_INPUT if result.bad_input else RUN_FAILED


class PlayInto(Protocol):
    """Plays a scenario into a directory; returns the exit code."""

    def __call__(self, file: ScenarioFile, arguments: RunArguments, out: Path) -> int: ...


class SummaryEnding(msgspec.Struct):
    """What a summary says of how a run ended."""

    phase: str = FAILED
    message: str = "it was interrupted"
    seed: int | None = None


def by_an_id(file: ScenarioFile, arguments: RunArguments, play: PlayInto) -> int:
    """Play it where the catalogue says, and write down how it ended; bad input leaves no run."""
    assert arguments.data_dir is not None
    runs = Runs(arguments.data_dir)
    id = runs.begin(file.scenario["metadata"]["name"])
    out = runs.path(id)
    try:
        code = play(file, arguments, out)
    except ConfigurationError:
        runs.discard(id)
        raise
    except BaseException as error:
        runs.end(id, FAILED, str(error) or repr(error))
        raise
    if code == BAD_INPUT:
        runs.discard(id)
    else:
        ending = ending_of(out)
        runs.end(id, ending.phase, ending.message, ending.seed)
    return code


def ending_of(out: Path) -> SummaryEnding:
    try:
        return msgspec.json.decode((out / SUMMARY_FILE).read_bytes(), type=SummaryEnding)
    except FileNotFoundError:
        return SummaryEnding()
