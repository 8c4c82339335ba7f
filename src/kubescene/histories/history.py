"""What a history is: a first state, then changes in the order of their instants."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappop, heappush
from typing import Any, NamedTuple

from kubescene.clock import format_micro_time, parse_time
from kubescene.errors import SnapshotError
from kubescene.types import JsonObject

OUT_OF_ORDER = 1024
"""So many changes are held back to be put in order: what is late by more is an error."""
NAMED_AT_MOST = 253
PARTS: dict[str, type] = {"spec": dict, "status": dict}
PARTS_OF_METADATA: dict[str, type] = {
    "annotations": dict,
    "finalizers": list,
    "labels": dict,
    "namespace": str,
    "ownerReferences": list,
    "uid": str,
}


class RecordedEvent(StrEnum):
    """What became of an object, in the words of kube-scheduler-simulator's recordings."""

    ADD = "Add"
    UPDATE = "Update"
    DELETE = "Delete"


class RecordedChange(NamedTuple):
    """One object as it was after something had happened to it, or last before it was deleted.

    ``is_partial`` says that a deletion names the object and tells nothing else of it. ``place`` is
    where it stands in its file.
    """

    at: int
    event: RecordedEvent
    object: JsonObject
    place: str
    is_partial: bool = False


@dataclass(slots=True)
class RecordedHistory:
    """A file that is read while one iterates: first ``objects``, then ``changes``.

    ``left_out`` counts what is in the file and no change here, by reason; it is complete when
    everything was read. ``remarks`` are sentences about what the form cannot hold.
    """

    form: str
    began_at: int
    objects: Iterator[JsonObject]
    """The state at its beginning."""
    changes: Iterator[RecordedChange]
    ended_at: int | None = None
    """When the recording ended; None where the form does not say: with its last change."""
    left_out: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)


def in_order(
    changes: Iterable[RecordedChange], held: int = OUT_OF_ORDER
) -> Iterator[RecordedChange]:
    """Changes by their instants; raises `SnapshotError` for one that comes too late for that."""
    waiting: list[tuple[int, int, RecordedChange]] = []
    newest, before = 0, "the first change"
    for number, change in enumerate(changes):
        if change.at < newest:
            raise SnapshotError(
                f"time goes back from {format_micro_time(newest)} ({before}) to "
                f"{format_micro_time(change.at)}, by more than {held} changes: put the changes in "
                "the order of their times",
                where=change.place,
            )
        heappush(waiting, (change.at, number, change))
        if len(waiting) > held:
            newest, _, first = heappop(waiting)
            before = first.place
            yield first
    while waiting:
        yield heappop(waiting)[2]


def checked_object(value: Any, place: str) -> JsonObject:
    """An object whose parts are what everybody takes them for; raises `SnapshotError`."""
    if not isinstance(value, dict):
        raise SnapshotError("there must be an object here", where=place)
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name), str) or not value[name]:
            raise SnapshotError(f"the object has no {name}", where=place)
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise SnapshotError("the object has no metadata.name", where=place)
    if not 0 < len(metadata["name"]) <= NAMED_AT_MOST:
        told = f"a name of {len(metadata['name'])} characters: no object has one"
        raise SnapshotError(told, where=place)
    for parts, of, path in ((PARTS, value, ""), (PARTS_OF_METADATA, metadata, "metadata.")):
        for part, kind in parts.items():
            if of.get(part) is not None and not isinstance(of[part], kind):
                raise SnapshotError(f"{path}{part} is of the wrong type", where=place)
    if any(not isinstance(each, dict) for each in metadata.get("ownerReferences") or ()):
        raise SnapshotError("metadata.ownerReferences is of the wrong type", where=place)
    return value


def instant_of(text: Any, place: str) -> int:
    """An instant as Kubernetes writes it; raises `SnapshotError`."""
    if not isinstance(text, str):
        raise SnapshotError("there is no time here", where=place)
    try:
        return parse_time(text)
    except ValueError as error:
        raise SnapshotError(str(error), where=place) from error
