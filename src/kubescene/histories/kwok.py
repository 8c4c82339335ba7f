"""KWOK's recordings: a snapshot as YAML documents, then one ``ResourcePatch`` for each change.

Instants are relative to the start of the recording, which is taken for the start of virtual time.
Patches are strategic merges of what was there, so the state of the cluster is held.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from kubescene.api.builtin import builtin_scheme
from kubescene.api.patching.patches import strategic_merge
from kubescene.api.schemas.builtin_types import api_type
from kubescene.api.scheme import ResourceType, Scheme
from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.clock import format_time
from kubescene.clock.clocks import DEFAULT_START
from kubescene.errors import ApiError, SnapshotError
from kubescene.histories.history import (
    RecordedChange,
    RecordedEvent,
    RecordedHistory,
    checked_object,
    in_order,
)
from kubescene.histories.lines import MAX_LINE, NumberedLine, lines_of
from kubescene.types import JsonObject

ACTIONS = "action.kwok.x-k8s.io"
PATCH_KIND = "ResourcePatch"
OFFSET = re.compile(rb"\$\(time-offset-nanosecond (-?\d{1,19})\)")
METHODS = {
    "create": RecordedEvent.ADD,
    "patch": RecordedEvent.UPDATE,
    "delete": RecordedEvent.DELETE,
}
LONGEST = 10**18
"""Nanoseconds: thirty years."""
BOUNDS = Bounds(aliased=100_000)
Place = tuple[str, str, str, str]


class KwokRecordReader:
    name = "kwok"
    about = "kwokctl snapshot export --record (or kectl snapshot)"

    def detects(self, head: bytes) -> bool:
        return OFFSET.search(head) is not None or ACTIONS.encode() in head

    def open(self, path: Path) -> RecordedHistory:
        documents = _documents(path)
        history = RecordedHistory(self.name, DEFAULT_START, iter(()), iter(()))
        states = _States(history)
        history.objects = states.first(documents)
        history.changes = in_order(states.changes(documents))
        return history


class _States:
    """The cluster as it is while its changes are read."""

    def __init__(self, history: RecordedHistory) -> None:
        self._history = history
        self._now: dict[Place, JsonObject] = {}
        self._ahead: list[tuple[Any, str]] = []

    def first(self, documents: Iterator[tuple[Any, str]]) -> Iterator[JsonObject]:
        """Documents up to the first change."""
        for value, place in documents:
            if is_action(value):
                self._ahead.append((value, place))
                return
            obj = checked_object(value, place)
            try:
                resource_type = _scheme().of_kind(obj["apiVersion"], obj["kind"])
            except ApiError:
                self._history.left_out[f"{obj['kind']}: nobody here knows the kind"] += 1
                continue
            self._now[_place(resource_type, obj["metadata"])] = obj
            yield obj

    def changes(self, documents: Iterator[tuple[Any, str]]) -> Iterator[RecordedChange]:
        for value, place in chain(self._ahead, documents):
            if not is_action(value):
                raise SnapshotError("after the first change there are only changes", where=place)
            change = self._change(value, place)
            if change is not None:
                yield change

    def _change(self, action: JsonObject, place: str) -> RecordedChange | None:
        method, after = action.get("method"), action.get("durationNanosecond")
        if method not in METHODS:
            told = f"method is {method!r}, not one of {', '.join(METHODS)}"
            raise SnapshotError(told, where=place)
        if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after <= LONGEST:
            raise SnapshotError(f"durationNanosecond is {after!r}, and no such", where=place)
        target = action.get("target")
        if not isinstance(target, dict) or not isinstance(target.get("name"), str):
            raise SnapshotError("there is no target with a name here", where=place)
        resource_type = self._type(action, place)
        if resource_type is None:
            return None
        key, at = _place(resource_type, target), DEFAULT_START + after
        return self._played(METHODS[method], at, resource_type, key, action.get("template"), place)

    def _played(
        self,
        event: RecordedEvent,
        at: int,
        resource_type: ResourceType,
        key: Place,
        template: Any,
        place: str,
    ) -> RecordedChange | None:
        if event is RecordedEvent.DELETE:
            before = self._now.pop(key, None)
            return RecordedChange(
                at, event, before or _named(resource_type, key), place, not before
            )
        if not isinstance(template, dict):
            raise SnapshotError("there is no template here", where=place)
        if event is RecordedEvent.ADD:
            self._now[key] = checked_object({**_named(resource_type, key), **template}, place)
            return RecordedChange(at, event, self._now[key], place)
        if key not in self._now:
            self._history.left_out["a change of an object that is not there"] += 1
            return None
        try:
            merged = strategic_merge(self._now[key], template, api_type(resource_type.gvk))
        except ApiError as error:
            raise SnapshotError(
                f"the template is no patch: {error.message}", where=place
            ) from error
        self._now[key] = checked_object(merged, place)
        return RecordedChange(at, event, self._now[key], place)

    def _type(self, action: JsonObject, place: str) -> ResourceType | None:
        resource = action.get("resource")
        if not isinstance(resource, dict):
            raise SnapshotError("there is no resource here", where=place)
        group, version, plural = (
            str(resource.get(part) or "") for part in ("group", "version", "resource")
        )
        try:
            return _scheme().of_path(group, version, plural)
        except ApiError:
            self._history.left_out[f"{plural}.{group}: nobody here knows the resource"] += 1
            return None


@cache
def _scheme() -> Scheme:
    return Scheme(builtin_scheme())


def is_action(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("apiVersion")).startswith(f"{ACTIONS}/")
        and value.get("kind") == PATCH_KIND
    )


def _place(resource_type: ResourceType, metadata: JsonObject) -> Place:
    namespace = str(metadata.get("namespace") or "default") if resource_type.namespaced else ""
    return (*resource_type.gvk[::2], namespace, str(metadata["name"]))


def _named(resource_type: ResourceType, key: Place) -> JsonObject:
    metadata = {"name": key[3], **({"namespace": key[2]} if key[2] else {})}
    return {
        "apiVersion": resource_type.api_version,
        "kind": resource_type.kind,
        "metadata": metadata,
    }


def _documents(path: Path) -> Iterator[tuple[Any, str]]:
    """Document after document, and where each begins."""
    held: list[NumberedLine] = []
    size = 0
    for line in lines_of(path):
        if line.text.startswith(b"---"):
            yield from _document(held)
            held, size = [], 0
            continue
        held.append(line)
        size += len(line.text)
        if size > MAX_LINE:
            raise SnapshotError(f"a document is longer than {MAX_LINE} bytes", where=line.place)
    yield from _document(held)


def _document(held: list[NumberedLine]) -> Iterator[tuple[Any, str]]:
    if not held:
        return
    text = OFFSET.sub(_stamp, b"".join(line.text for line in held))
    try:
        documents = read_yaml(text, BOUNDS)
    except ReadingError as error:
        raise SnapshotError(f"not valid YAML: {error.problem}", where=held[0].place) from error
    for document in documents:
        if document.value is not None:
            yield document.value, held[0].place


def _stamp(offset: "re.Match[bytes]") -> bytes:
    return b'"%s"' % format_time(max(DEFAULT_START + int(offset[1]), 0)).encode()
