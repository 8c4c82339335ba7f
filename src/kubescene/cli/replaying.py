"""A finished run, played once more: its directory holds the scenario and the seed, not the world.

The same input gives the same world. That it did is checked: the timeline of the second time must be
that of the first, byte for byte, up to what came of its expectations; a run with other plugins or
settings is not mistaken for it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, cast

from rich.console import Console

from kubescene.cli.components import controllers_named, scheduler_with
from kubescene.cli.run.playing import amounts_of
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.reports.progress import ProgressReporter
from kubescene.results.opening import open_run
from kubescene.results.output import RESULT_FILE, TIMELINE_FILE
from kubescene.runs.local import Run, run
from kubescene.scenario.documents import with_simulation
from kubescene.scenario.reading.files import load_scenario
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.timeline import ExpectationsEvaluated, OperationsIgnored, ScenarioEnded
from kubescene.timeline.files import Header, TimelineWriter
from kubescene.types import JsonObject

VERDICTS = (ExpectationsEvaluated, OperationsIgnored, ScenarioEnded)
"""Facts at the end of a run that tell of the scenario, not of its world."""
VERDICT_LINES = tuple(b'{"fact":"%s",' % kind.__name__.encode() for kind in VERDICTS)
HINT = (
    "name the --plugin, --controller, --feature-gates and --folder it was played with, and use the "
    "same version of kubescene"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedWith:
    """What a run was given beside its scenario; the directory does not hold it."""

    plugins: Sequence[str] = ()
    controllers: Sequence[str] = ()
    scheduler_config: Path | None = None
    feature_gates: str = ""
    folder: Path | None = None


class Digest:
    """A file that remembers no more of what is written than its hash."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def value(self) -> str:
        return self._hash.hexdigest()


def replay(directory: Path, given: PlayedWith) -> Run:
    """The run of a directory with its last world; raises if it is not that run."""
    scheduler = scheduler_with(
        given.plugins, given.scheduler_config, given.feature_gates, PluginErrors.FAIL
    )
    scenario = scenario_of(directory)
    played = play_again(directory, scenario, given, scheduler, "to ask its last world")
    if digest_of(played) != digest_of_file(directory / TIMELINE_FILE):
        raise went_elsewhere(directory)
    return played


def replay_explained(directory: Path, given: PlayedWith, pods: frozenset[str]) -> Run:
    """The run of a directory with everything about some pods explained.

    Its plugins stand where the configuration in the directory has them. What it explains is no part
    of the course of a run, so that is compared attempt by attempt.
    """
    options = scheduler_with(given.plugins, None, given.feature_gates, PluginErrors.FAIL)
    plain = SchedulerOptions(feature_gates=options.feature_gates)
    scenario = with_simulation(scenario_of(directory), explain=Explain.FULL.value)
    scheduler = replace(plain, plugins=options.plugins)
    played = play_again(directory, scenario, given, scheduler, "to have it explained", pods)
    if any(a != b for a, b in zip_longest(course_of(played), course_of(directory))):
        raise went_elsewhere(directory)
    return played


def scenario_of(directory: Path) -> JsonObject:
    """The Scenario of a directory, to be played again.

    Nothing is expected of it a second time: its expectations may name measures of somebody's own.
    """
    file = directory / RESULT_FILE
    if not file.exists():
        raise ConfigurationError(
            f"{directory} has no {RESULT_FILE}: the run did not come to its end"
        )
    scenario = without(load_scenario(file), "status")
    return scenario | {"spec": without(scenario.get("spec") or {}, "expectations")}


def without(obj: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in obj.items() if key != name}


def play_again(
    directory: Path,
    scenario: JsonObject,
    given: PlayedWith,
    scheduler: SchedulerOptions,
    why: str,
    explained: frozenset[str] | None = None,
) -> Run:
    errors = Console(stderr=True)
    errors.print(f"playing {directory} again, {why}", style="dim", highlight=False)
    with ProgressReporter(errors, amounts_of(scenario)) as progress:
        try:
            return run(
                scenario,
                instruments=(progress,),
                scheduler=scheduler,
                reconcilers=controllers_named(given.controllers),
                folder=given.folder,
                explained=explained,
            )
        except ScenarioError as error:
            raise ConfigurationError(
                f"{directory} cannot be played again: {error}; {HINT}"
            ) from error


def went_elsewhere(directory: Path) -> ConfigurationError:
    return ConfigurationError(f"played again, {directory} goes another way: {HINT}")


def course_of(where: object) -> Iterator[tuple[object, ...]]:
    """Every attempt of a run: when, at whom, and how it ended."""
    for each in open_run(where).attempts():
        yield tuple(each.step), each.time, each.namespace, each.name, each.node, each.message


def digest_of(played: Run) -> str:
    """The hash of the timeline file that a run would have written, up to its verdicts."""
    digest = Digest()
    header = Header(scenario=played.summary.scenario, seed=played.summary.seed)
    writer = TimelineWriter(cast("BinaryIO", digest), header)
    for fact in played.log.read(0, len(played.log)):
        if not isinstance(fact, VERDICTS):
            writer.write(fact)
    return digest.value()


def digest_of_file(path: Path) -> str:
    """The same of the file itself."""
    digest = Digest()
    with path.open("rb") as file:
        for line in file:
            if not line.startswith(VERDICT_LINES):
                digest.write(line)
    return digest.value()
