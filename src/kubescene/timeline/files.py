"""``timeline.jsonl``: a header, then one fact a line.

The header names the schema and its version, and what the run was: scenario, seed, Kubescene. A file
is written as facts come and may be read while it grows; a last line without its end is not there
yet. `StreamReader` reads lines one after the other and does not keep them all: a line refers to the
newest one that holds its operation or its object, or to the attempt before at the same pod.
"""

from collections.abc import Iterator
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.timeline.facts import DAMAGED, Fact, LineReader, LineWriter
from kubescene.timeline.log import TimelineLog
from kubescene.timeline.object_facts import ObjectFact, ObjectStored
from kubescene.timeline.pod_facts import PodAttempt, PodFact
from kubescene.version import __version__

F = TypeVar("F", bound=Fact)
Place = tuple[int, Fact]

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
    """Follows a log and writes it to an open file; ``position`` is where the next line begins."""

    def __init__(self, file: BinaryIO, header: Header) -> None:
        self._file = file
        self._lines = LineWriter()
        self.position = file.write(msgspec.json.encode(header) + b"\n")

    def write(self, fact: Fact) -> None:
        line = self._lines.line(fact) + b"\n"
        self._file.write(line)
        self.position += len(line)


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
        try:
            with self.path.open("rb") as file:
                self._read_on(file)
        except OSError as error:
            raise ConfigurationError(
                f"cannot read {self.path}: {error.strerror}; name the --out directory of a run"
            ) from error
        return len(self) - before

    def _read_on(self, file: BinaryIO) -> None:
        if file.seek(0, SEEK_END) < self._offset:
            raise ConfigurationError(f"{self.path} was written anew meanwhile; open it again")
        file.seek(self._offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            self._line += 1
            self._take(line)
            self._offset += len(line)

    def _take(self, line: bytes) -> None:
        if self._line == 1:
            self.header = read_header(line, self.path)
            return
        try:
            self.append(self._reader.read(line))
        except DAMAGED as error:
            raise ConfigurationError(f"{self.path}, line {self._line}: {error}") from error

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise TypeError("a log that follows a file is not copied; copy TimelineLog(log) instead")


def read_header(line: bytes, path: Path) -> Header:
    """The header of a timeline that this Kubescene can read; nothing if its line has no end."""
    if not line:
        raise ConfigurationError(
            f"{path}, line 1: it has no end: the run was cut short before it began; play it again"
        )
    try:
        seen = msgspec.json.decode(line, type=_Schema)
    except DAMAGED:
        seen = _Schema()
    if seen.schema != SCHEMA:
        raise ConfigurationError(f"{path}, line 1: this is no timeline: its schema is not {SCHEMA}")
    if seen.version != VERSION:
        raise ConfigurationError(
            f"{path}, line 1: the timeline has version {seen.version}, this Kubescene reads "
            f"{VERSION}; it was written by Kubescene {seen.kubescene}"
        )
    try:
        return msgspec.json.decode(line, type=Header)
    except DAMAGED as error:
        raise ConfigurationError(f"{path}, line 1: {error}") from error


class _Schema(msgspec.Struct, frozen=True):
    """What every version's first line has."""

    schema: str = ""
    version: int = 0
    kubescene: str = "unknown"


class StreamReader(LineReader):
    """Decodes lines in order and forgets what no later line can refer to."""

    def __init__(self) -> None:
        super().__init__([])
        self._position = 0
        self._operation: tuple[int, ObjectFact] | None = None
        self._object: tuple[int, ObjectStored | PodFact] | None = None
        self._attempts: dict[str, tuple[int, PodAttempt]] = {}

    def read(self, line: bytes) -> Fact:
        fact = super().read(line)
        self._remember(fact)
        self._position += 1
        return fact

    def fact(self, position: int, kind: type[F]) -> F:
        for place in self._places():
            if place[0] == position and isinstance(place[1], kind):
                return place[1]
        raise msgspec.ValidationError(
            f"it refers to fact {position}, which is not a {kind.__name__} shortly before it"
        )

    def _places(self) -> Iterator[Place]:
        if self._operation is not None:
            yield self._operation
        if self._object is not None:
            yield self._object
        yield from self._attempts.values()

    def _remember(self, fact: Fact) -> None:
        if isinstance(fact, ObjectFact) and fact.origin is not None:
            held = self._operation[1].origin if self._operation is not None else None
            if held is None or fact.origin.operation is not held.operation:
                self._operation = self._position, fact
        if isinstance(fact, ObjectStored | PodFact) and (
            self._object is None or fact.record is not self._object[1].record
        ):
            self._object = self._position, fact
        if isinstance(fact, PodAttempt):
            if fact.ends_waiting:
                self._attempts.pop(fact.uid, None)
            else:
                self._attempts[fact.uid] = self._position, fact
