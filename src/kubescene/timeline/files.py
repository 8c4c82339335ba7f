"""``timeline.jsonl``: a header, then one fact a line.

The header names the schema and its version, and what the run was: scenario, seed, Kubescene. A file
is written as facts come and may be read while it grows; a last line without its end is not there
yet.
"""

from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.timeline.facts import Fact
from kubescene.timeline.lines import LineReader, LineWriter
from kubescene.timeline.log import TimelineLog
from kubescene.version import __version__

SCHEMA = "kubescene.dev/timeline"
VERSION = 1


class Header(msgspec.Struct, frozen=True):
    """The first line."""

    schema: str = SCHEMA
    version: int = VERSION
    kubescene: str = __version__
    scenario: str = ""
    seed: int = 0


class TimelineWriter:
    """Follows a log and writes it to an open file."""

    def __init__(self, file: BinaryIO, header: Header) -> None:
        self._file = file
        self._lines = LineWriter()
        self._write(msgspec.json.encode(header))

    def write(self, fact: Fact) -> None:
        self._write(self._lines.line(fact))

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.write(b"\n")


class TimelineFile(TimelineLog):
    """The log in a file. `refresh` takes in what was written since."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)
        self.header = Header()
        self._reader = LineReader(self._facts)
        self._offset = 0
        self._line = 0
        self.refresh()

    def refresh(self) -> int:
        """Read the lines that were completed since; returns how many facts came."""
        before = len(self)
        for line in self._complete_lines():
            self._line += 1
            try:
                self._take(line)
            except msgspec.DecodeError as error:
                raise self._damaged(str(error)) from error
            self._offset += len(line) + 1
        return len(self) - before

    def _complete_lines(self) -> list[bytes]:
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                *lines, _ = file.read().split(b"\n")
        except OSError as error:
            raise ConfigurationError(
                f"cannot read {self.path}: {error.strerror}; name the --out directory of a run"
            ) from error
        return lines

    def _take(self, line: bytes) -> None:
        if self._line == 1:
            self.header = self._checked(msgspec.json.decode(line, type=_FirstLine))
        else:
            self.append(self._reader.read(line))

    def _checked(self, first: "_FirstLine") -> Header:
        if first.schema != SCHEMA:
            raise self._damaged(f"this is no timeline: its schema should be {SCHEMA}")
        if first.version != VERSION:
            raise self._damaged(
                f"the timeline has version {first.version}, this Kubescene reads {VERSION}; "
                f"it was written by Kubescene {first.kubescene}"
            )
        return Header(first.schema, first.version, first.kubescene, first.scenario, first.seed)

    def _damaged(self, fault: str) -> ConfigurationError:
        return ConfigurationError(f"{self.path}, line {self._line}: {fault}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise TypeError("a log that follows a file is not copied; copy TimelineLog(log) instead")


class _FirstLine(msgspec.Struct, frozen=True):
    schema: str = ""
    version: int = 0
    kubescene: str = "unknown"
    scenario: str = ""
    seed: int = 0
