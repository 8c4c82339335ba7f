"""Runs that were written down: a run directory, a timeline file, or the pages of a server.

What is there can be read while the run goes on, and after one that was cut short: up to the last
complete line, with a warning.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.results.explaining import ExplainedAttempt, read_attempts
from kubescene.results.ledger import Ledger
from kubescene.results.line_entries import (
    Known,
    LineEntries,
    Other,
    PodScheduled,
    told,
)
from kubescene.results.output import RESULT_FILE, SUMMARY_FILE, TIMELINE_FILE
from kubescene.results.sources import AttemptTold, RunSource
from kubescene.timeline import Fact
from kubescene.timeline.files import read_header
from kubescene.timeline.log import from_lines
from kubescene.types import JsonObject

TAIL = 1 << 16


class _Ended(msgspec.Struct, frozen=True):
    """What a summary says of the end."""

    phase: str = ""


class LinesSource(RunSource):
    """A timeline as lines: ``read`` opens it from its beginning."""

    def __init__(self, read: Callable[[], BinaryIO], place: str) -> None:
        self._open = read
        self.place = place
        with self._open() as file:
            header = read_header(file.readline(), Path(place))
        self.scenario, self.seed, self.version = header.scenario, header.seed, header.kubescene

    @property
    def phase(self) -> str:
        return self.ledger.phase

    @property
    def complete(self) -> bool:
        return bool(self.phase)

    @property
    def spec(self) -> JsonObject | None:
        return None

    def lines(self) -> Iterator[bytes]:
        """The complete lines after the header."""
        with self._open() as file:
            file.readline()
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield line

    def facts(self) -> Iterator[Fact]:
        return iter(from_lines(self.lines()))

    def told(self) -> Iterator[Known | Other]:
        return told(self.lines(), self.place)

    def attempts(self) -> Iterator[AttemptTold]:
        return (line for line in self.told() if isinstance(line, PodScheduled))

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        raise ConfigurationError(
            f"{self.place} is a timeline alone: name the run directory to have attempts explained"
        )

    def _read(self) -> Ledger:
        return LineEntries().all(self.told())


class DirectorySource(LinesSource):
    """What ``kubescene run --out DIR`` leaves behind."""

    def __init__(self, path: Path) -> None:
        self.path = path
        timeline = path / TIMELINE_FILE
        super().__init__(lambda: timeline.open("rb"), str(timeline))

    @cached_property
    def _phase(self) -> str:
        try:
            data = (self.path / SUMMARY_FILE).read_bytes()
        except FileNotFoundError:
            return ""
        return msgspec.json.decode(data, type=_Ended).phase

    @property
    def phase(self) -> str:
        return self._phase

    @property
    def spec(self) -> JsonObject | None:
        return self._spec

    @cached_property
    def _spec(self) -> JsonObject | None:
        path = self.path / RESULT_FILE
        if not path.exists():
            return None
        # Scenarios know schedulers: much to load for those who want numbers.
        from kubescene.scenario.loading import load_yaml

        spec: JsonObject = load_yaml(path.read_bytes(), str(path))[0].get("spec") or {}
        return spec

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        return read_attempts(self.path, pod)


def open_path(where: str | Path) -> RunSource:
    """The run at a path."""
    path = Path(where)
    if path.is_dir():
        if not (path / TIMELINE_FILE).is_file():
            raise ConfigurationError(
                f"{path} is no run directory: it has no {TIMELINE_FILE}; name what --out was given"
            )
        return DirectorySource(path)
    if path.is_file():
        return LinesSource(lambda: path.open("rb"), str(path))
    raise ConfigurationError(f"there is no run at {path}: name what --out was given")
