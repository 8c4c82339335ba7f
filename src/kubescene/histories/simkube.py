"""SimKube's traces (``.sktrace``, version 2): what was applied and deleted, second by second.

The file is one map of msgpack (or its twin in JSON) and is read whole, so it is bounded; its events
become objects one by one. A trace has no nodes, no statuses and no uids: the first event is what
was there at its beginning and is played as creations. How long pods ran is told per owner.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kubescene.controllers.kubelet.behaviour import PREFIX
from kubescene.durations import SECOND, go_duration
from kubescene.errors import SnapshotError
from kubescene.histories.history import (
    RecordedChange,
    RecordedEvent,
    RecordedHistory,
    checked_object,
    in_order,
)
from kubescene.histories.lines import damaged, opened
from kubescene.types import JsonObject

VERSION = 2
MAX_BYTES = 512 * 1024 * 1024
READ_BYTES = 1024 * 1024
MARKS = (b"pod_lifecycles", b"trackedObjects", b"applied_objs")
LAST_SECOND = 253_402_300_799
RUN_TIME = f"{PREFIX}run-time"
Name = tuple[str, str]
"""Such as ``v1.Pod`` and ``shop/web``."""


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[msgspec.Raw] = []
    deleted_objs: list[msgspec.Raw] = []


class _Trace(msgspec.Struct):
    version: int
    events: list[_Event]
    pod_lifecycles: dict[Any, Any] = {}


class SimKubeReader:
    name = "simkube"
    about = "skctl export: SimKube's traces"

    def detects(self, head: bytes) -> bool:
        is_map = bool(head) and (0x80 <= head[0] <= 0x8F or head[:1] in (b"\xde", b"\xdf", b"{"))
        return is_map and b"version" in head and any(each in head for each in MARKS)

    def open(self, path: Path) -> RecordedHistory:
        data = _bytes(path)
        is_json = data.lstrip()[:1] == b"{"
        codec: Any = msgspec.json if is_json else msgspec.msgpack
        try:
            version = codec.decode(data, type=_VersionOf).version
            if version != VERSION:
                told = f"it is of version {version}, and {VERSION} can be read here"
                raise SnapshotError(f"{told}: export it anew", where=str(path))
            trace = codec.decode(data, type=_Trace)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise SnapshotError(f"no trace of SimKube: {error}", where=str(path)) from error
        if not trace.events:
            raise SnapshotError("there is no event in it", where=str(path))
        first = _second(trace.events[0].ts, f"{path}: events[0]")
        history = RecordedHistory(self.name, first, iter(()), iter(()))
        history.remarks.append(
            "a trace of SimKube has no nodes: give some, by a snapshot or by operations"
        )
        read = _Events(path, codec, _run_times(trace.pod_lifecycles, history, str(path)))
        history.changes = in_order(read.changes(trace.events))
        return history


class _VersionOf(msgspec.Struct):
    version: int


class _Events:
    def __init__(self, path: Path, codec: Any, run_times: Mapping[Name, int]) -> None:
        self._path = path
        self._codec = codec
        self._run_times = run_times
        self._there: set[Name] = set()

    def changes(self, events: list[_Event]) -> Iterator[RecordedChange]:
        for number, event in enumerate(events):
            place = f"{self._path}: events[{number}]"
            at = _second(event.ts, place)
            for raw in event.deleted_objs:
                obj = self._object(raw, place)
                self._there.discard(_name_of(obj))
                yield RecordedChange(at, RecordedEvent.DELETE, obj, place, is_partial=True)
            for raw in event.applied_objs:
                obj = self._object(raw, place)
                name = _name_of(obj)
                known = name in self._there
                self._there.add(name)
                if (run_time := self._run_times.get(name)) is not None:
                    obj = _running_for(obj, run_time)
                event_of = RecordedEvent.UPDATE if known else RecordedEvent.ADD
                yield RecordedChange(at, event_of, obj, place)

    def _object(self, raw: msgspec.Raw, place: str) -> JsonObject:
        try:
            return checked_object(self._codec.decode(raw), place)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise SnapshotError(f"an object cannot be read: {error}", where=place) from error


def _bytes(path: Path) -> bytes:
    parts: list[bytes] = []
    size = 0
    with opened(path) as file:
        while True:
            try:
                part = file.read(READ_BYTES)
            except (EOFError, OSError, ValueError) as error:
                raise damaged(error, str(path)) from error
            if not part:
                return b"".join(parts)
            size += len(part)
            if size > MAX_BYTES:
                raise SnapshotError(f"it is longer than {MAX_BYTES} bytes", where=str(path))
            parts.append(part)


def _second(ts: int, place: str) -> int:
    if not 0 <= ts <= LAST_SECOND:
        raise SnapshotError(f"ts is {ts}: no second of any year", where=place)
    return ts * SECOND


def _name_of(obj: JsonObject) -> Name:
    group_version, metadata = obj["apiVersion"], obj["metadata"]
    return f"{group_version}.{obj['kind']}", f"{metadata.get('namespace') or ''}/{metadata['name']}"


def _run_times(told: Mapping[Any, Any], history: RecordedHistory, where: str) -> dict[Name, int]:
    """How long the pods of an object ran: the mean of those that ended.

    Keys are pairs, which in JSON are texts.
    """
    found: dict[Name, int] = {}
    for key, lists in told.items():
        pair = key if isinstance(key, tuple) else str(key).strip("()[]").replace('"', "").split(",")
        if len(pair) != 2 or not isinstance(lists, Mapping):
            raise SnapshotError(f"pod_lifecycles: {key!r} is no pair of names", where=where)
        kind, name = (str(each).strip() for each in pair)
        times = [
            time
            for states in lists.values()
            for state in (states if isinstance(states, list) else ())
            if (time := _time_of(state)) is not None
        ]
        if times:
            found[kind.removeprefix("/"), name] = sum(times) // len(times)
        else:
            history.left_out["a lifecycle of pods that had not ended"] += 1
    return found


def _time_of(state: Any) -> int | None:
    """``{"Finished": [start, end]}``; otherwise it had not ended."""
    ended = state.get("Finished") if isinstance(state, Mapping) else None
    if not isinstance(ended, list) or len(ended) != 2:
        return None
    begin, end = ended
    if not (isinstance(begin, int) and isinstance(end, int) and begin <= end):
        return None
    return (end - begin) * SECOND


def _running_for(obj: JsonObject, run_time: int) -> JsonObject:
    """The pod, or the pods of the Job, end by themselves; those of others run on.

    A pod that ended is not one that is always started anew, unless it says so.
    """
    spec = obj.get("spec") or {}
    if obj["kind"] == "Pod":
        return _annotated({**obj, "spec": {"restartPolicy": "Never", **spec}}, run_time)
    template = spec.get("template")
    if obj["kind"] != "Job" or not isinstance(template, dict):
        return obj
    return {**obj, "spec": {**spec, "template": _annotated(template, run_time)}}


def _annotated(pod: JsonObject, run_time: int) -> JsonObject:
    metadata = pod.get("metadata") or {}
    annotations = {RUN_TIME: go_duration(run_time), **(metadata.get("annotations") or {})}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}
