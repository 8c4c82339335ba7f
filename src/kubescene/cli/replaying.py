"""A finished run, played once more: its directory holds the scenario and the seed, not the world.

The same input gives the same world. That it did is checked: the timeline of the second time must be
that of the first, byte for byte; a run with other plugins or settings is not mistaken for it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from rich.console import Console

from kubescene.cli.controllers import controllers_named
from kubescene.cli.run import amounts_of
from kubescene.cli.scheduler import scheduler_with
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.reports.progress import ProgressReporter
from kubescene.results.output import RESULT_FILE, TIMELINE_FILE
from kubescene.running import Run, run
from kubescene.scenario.loading import load_scenario
from kubescene.scheduler.guarding import PluginErrors
from kubescene.timeline.files import Header, TimelineWriter

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
    file = directory / RESULT_FILE
    if not file.exists():
        raise ConfigurationError(
            f"{directory} has no {RESULT_FILE}: the run did not come to its end"
        )
    scenario = load_scenario(file)
    errors = Console(stderr=True)
    errors.print(f"playing {directory} again, to ask its last world", style="dim", highlight=False)
    with ProgressReporter(errors, amounts_of(scenario)) as progress:
        try:
            played = run(
                {name: value for name, value in scenario.items() if name != "status"},
                instruments=(progress,),
                scheduler=scheduler_with(
                    given.plugins, given.scheduler_config, given.feature_gates, PluginErrors.FAIL
                ),
                reconcilers=controllers_named(given.controllers),
                folder=given.folder,
            )
        except ScenarioError as error:
            raise ConfigurationError(
                f"{directory} cannot be played again: {error}; {HINT}"
            ) from error
    if digest_of(played) != digest_of_file(directory / TIMELINE_FILE):
        raise ConfigurationError(f"played again, {directory} goes another way: {HINT}")
    return played


def digest_of(played: Run) -> str:
    """The hash of the timeline file that a run would have written."""
    digest = Digest()
    header = Header(scenario=played.summary.scenario, seed=played.summary.seed)
    writer = TimelineWriter(cast("BinaryIO", digest), header)
    for fact in played.log.read(0, len(played.log)):
        writer.write(fact)
    return digest.value()


def digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
