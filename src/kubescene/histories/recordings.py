"""JSON lines: what `kubescene record` writes, and what kube-scheduler-simulator's recorder writes.

Both have a line ``{"time": ..., "event": "Add", "resource": {...}}`` for each change. Ours begins
with a line about itself, which says how many of the lines after it are the first state, and ends
with one that says how many changes there were: so a recording that was cut off is known. Theirs has
neither. There the first state are the Adds up to the first Update or Delete, or up to an Add of a
pod that comes after a gap.
"""

import gzip
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import orjson

from kubescene.api.own_kinds import GROUP, VERSION
from kubescene.clock import SECOND, format_micro_time, format_time
from kubescene.errors import SnapshotError
from kubescene.histories.history import (
    RecordedChange,
    RecordedEvent,
    RecordedHistory,
    checked_object,
    in_order,
    instant_of,
)
from kubescene.histories.lines import NumberedLine, lines_of, value_of
from kubescene.types import JsonObject
from kubescene.version import __version__

API_VERSION = f"{GROUP}/{VERSION}"
RECORDING, END = "Recording", "RecordingEnd"
GAP = SECOND
"""What comes so long after the first state is not of it."""
COMPRESSION = 6
EVENTS = {event.value: event for event in RecordedEvent}
IN_ORDER_ALREADY = 0
"""Our own recorder has one clock that never goes back."""


class RecordingReader:
    name = "recording"
    about = "kubescene record"

    def detects(self, head: bytes) -> bool:
        first = head.partition(b"\n")[0]
        return b'"%s"' % RECORDING.encode() in first and API_VERSION.encode() in first

    def open(self, path: Path) -> RecordedHistory:
        lines = lines_of(path)
        header = _header(next(lines, None), path)
        place = f"{path}:1"
        left = header.get("objects")
        if not isinstance(left, int) or left < 0:
            raise SnapshotError("it does not say how many objects there are at first", where=place)
        history = RecordedHistory(
            self.name, instant_of(header.get("takenAt"), place), iter(()), iter(()), None
        )
        history.remarks += [each for each in header.get("remarks") or () if isinstance(each, str)]
        history.objects = self._objects(lines, left, path)
        history.changes = in_order(self._changes(lines, history, path), IN_ORDER_ALREADY)
        return history

    def _objects(
        self, lines: Iterator[NumberedLine], number: int, path: Path
    ) -> Iterator[JsonObject]:
        for each in range(number):
            line = next(lines, None)
            if line is None:
                raise cut_off(path, f"{each} of the {number} objects that it begins with are there")
            yield _change(line).object

    def _changes(
        self, lines: Iterator[NumberedLine], history: RecordedHistory, path: Path
    ) -> Iterator[RecordedChange]:
        found = 0
        for line in lines:
            value = value_of(line)
            if isinstance(value, dict) and value.get("kind") == END:
                self._check_end(value, found, line.place)
                history.ended_at = instant_of(value.get("time"), line.place)
                history.remarks += [
                    each for each in value.get("remarks") or () if isinstance(each, str)
                ]
                for after in lines:
                    raise SnapshotError("there is more after the last line", where=after.place)
                return
            found += 1
            yield _change_of(value, line.place)
        raise cut_off(path, f"there are {found} changes, and no last line")

    def _check_end(self, end: JsonObject, found: int, place: str) -> None:
        if end.get("changes") != found:
            raise SnapshotError(
                f"there are {found} changes, but there were {end.get('changes')!r} when it was "
                "recorded: lines are missing or were added",
                where=place,
            )


class SimulatorRecordReader:
    name = "kube-scheduler-simulator"
    about = "the recorder of kube-scheduler-simulator (JSON lines)"

    def detects(self, head: bytes) -> bool:
        first = head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and all(
            b'"%s"' % each in first for each in (b"time", b"event", b"resource")
        )

    def open(self, path: Path) -> RecordedHistory:
        lines = lines_of(path)
        first, rest = self._first_state(lines)
        if not first and rest is None:
            raise SnapshotError("there is no change in it", where=str(path))
        began = max((each.at for each in first), default=0) or (rest.at if rest else 0)
        history = RecordedHistory(self.name, began, (each.object for each in first), iter(()))
        history.remarks.append(
            "kube-scheduler-simulator records pods, nodes, volumes, claims, classes and "
            "namespaces: there is no controller, so its pods are played themselves"
        )
        more = chain([] if rest is None else [rest], map(_change, lines))
        history.changes = in_order(more)
        return history

    def _first_state(
        self, lines: Iterator[NumberedLine]
    ) -> tuple[list[RecordedChange], RecordedChange | None]:
        """The Adds at the beginning, and the change after them."""
        first: list[RecordedChange] = []
        for line in lines:
            change = _change(line)
            late = bool(first) and change.at - first[-1].at > GAP
            is_pod = change.object["kind"] == "Pod"
            if change.event is not RecordedEvent.ADD or (late and is_pod):
                return first, change
            first.append(change)
        return first, None


def _header(line: NumberedLine | None, path: Path) -> JsonObject:
    if line is None:
        raise SnapshotError("it is empty", where=str(path))
    header = value_of(line)
    if not isinstance(header, dict) or header.get("kind") != RECORDING:
        raise SnapshotError(f"a recording begins with a line of kind {RECORDING}", where=line.place)
    if header.get("apiVersion") != API_VERSION:
        raise SnapshotError(
            f"it is of version {header.get('apiVersion')!r}, and {API_VERSION} can be read here",
            where=line.place,
        )
    return header


def _change(line: NumberedLine) -> RecordedChange:
    return _change_of(value_of(line), line.place)


def _change_of(value: Any, place: str) -> RecordedChange:
    if not isinstance(value, dict):
        raise SnapshotError("a line must be an object with time, event and resource", where=place)
    event = EVENTS.get(str(value.get("event")))
    if event is None:
        raise SnapshotError(
            f"event is {value.get('event')!r}, not one of {', '.join(EVENTS)}", where=place
        )
    at = instant_of(value.get("time"), place)
    obj = checked_object(value.get("resource"), place)
    is_partial = event is RecordedEvent.DELETE and not obj.keys() & {"spec", "status"}
    return RecordedChange(at, event, obj, place, is_partial)


def cut_off(path: Path, why: str) -> SnapshotError:
    return SnapshotError(
        f"the recording was cut off: {why}; what ends it is written when `kubescene record` ends, "
        "by itself or by Ctrl-C",
        where=str(path),
    )


class RecordingWriter:
    """Writes our own form to a new file: packed if its name ends with ``.gz``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes]
        try:
            raw = path.open("xb")
        except FileExistsError:
            raise SnapshotError(
                "it exists: choose another --out, or remove it", where=str(path)
            ) from None
        except OSError as error:
            raise SnapshotError(f"cannot be written: {error.strerror}", where=str(path)) from error
        self._raw = raw
        if path.suffix == ".gz":
            self._file = gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=0)  # type: ignore[assignment]
        else:
            self._file = raw
        self.changes = 0

    def abandon(self) -> None:
        """Nothing came of it: no file is left."""
        self._file.close()
        self._raw.close()
        self._path.unlink(missing_ok=True)

    def begin(self, taken_at: int, objects: Iterable[JsonObject], **about: Any) -> int:
        """The first state; returns how many objects it has."""
        listed = list(objects)
        self._write(
            {
                "apiVersion": API_VERSION,
                "kind": RECORDING,
                "tool": f"kubescene {__version__}",
                "takenAt": format_time(taken_at),
                "objects": len(listed),
                **about,
            }
        )
        for obj in listed:
            self._write_change(taken_at, RecordedEvent.ADD, obj)
        return len(listed)

    def add(self, at: int, event: RecordedEvent, obj: JsonObject) -> None:
        self.changes += 1
        self._write_change(at, event, obj)

    def flush(self) -> None:
        """What was written so far can be read, whatever happens."""
        self._file.flush()

    def end(self, at: int, remarks: Iterable[str] = ()) -> None:
        """The last line: without it the recording is known to be cut off."""
        self._write(
            {
                "apiVersion": API_VERSION,
                "kind": END,
                "time": format_micro_time(at),
                "changes": self.changes,
                "remarks": list(remarks),
            }
        )
        self._file.close()
        self._raw.close()

    def _write_change(self, at: int, event: RecordedEvent, obj: JsonObject) -> None:
        self._write({"time": format_micro_time(at), "event": event.value, "resource": obj})

    def _write(self, value: JsonObject) -> None:
        self._file.write(orjson.dumps(value) + b"\n")
