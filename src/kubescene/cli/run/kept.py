"""``kubescene run --data-dir``: a run that the catalogue keeps by its id."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from kubescene.cli.files import ScenarioFile
from kubescene.cli.run.playing import BAD_INPUT
from kubescene.errors import ConfigurationError
from kubescene.results.output import SUMMARY_FILE
from kubescene.runs.catalogue import FAILED, Runs

if TYPE_CHECKING:
    from kubescene.cli.run.playing import RunArguments

INTERRUPTED = "it was interrupted"


class PlayInto(Protocol):
    """Plays a scenario into a directory; returns the exit code."""

    def __call__(self, file: ScenarioFile, arguments: "RunArguments", out: Path) -> int: ...


class SummaryEnding(msgspec.Struct):
    """What a summary says of how a run ended."""

    phase: str = FAILED
    message: str = INTERRUPTED
    seed: int | None = None


def by_an_id(file: ScenarioFile, arguments: "RunArguments", play: PlayInto) -> int:
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
