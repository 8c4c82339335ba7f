"""Facts about scheduling: attempts that bound a pod or did not, and preemptions.

An attempt refers to the one before at the same pod, and to the object that the bind left.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import msgspec
import orjson

from kubescene.actors import Role
from kubescene.api.kinds import POD
from kubescene.clock import ScenarioStep
from kubescene.timeline.attempts import PreemptionRecord
from kubescene.timeline.facts import Fact, ObjectKey
from kubescene.timeline.lines import LineReader, LineWriter
from kubescene.timeline.object_facts import (
    OBJECT,
    ObjectCreated,
    ObjectPatched,
    ObjectState,
    state_of,
)
from kubescene.timeline.schedule_results import PutOff, ScheduleResult


class PodFact(Fact, frozen=True):
    """``record`` is the pod afterwards. ``bound_at`` is None as long as nobody bound it."""

    namespace: str
    name: str
    uid: str
    record: ObjectState
    created_at: ScenarioStep
    bound_at: ScenarioStep | None
    node: str

    def objects(self) -> Iterable[ObjectKey]:
        return (ObjectKey(POD.api_version, POD.kind, self.namespace, self.name, self.uid),)

    def to_line(self, writer: LineWriter) -> bytes:
        line = self.envelope() | {"namespace": self.namespace, "name": self.name, "uid": self.uid}
        line["createdAt"] = list(self.created_at)
        if self.bound_at is not None:
            line["boundAt"] = list(self.bound_at)
        if self.node:
            line["node"] = self.node
        line |= self._told(writer)
        place = writer.place_of(OBJECT, self.record)
        if place is None:
            writer.note(OBJECT, self.record)
            line[OBJECT] = orjson.Fragment(self.record.unversioned_data)
        else:
            line["objectOf"] = place
        return orjson.dumps(line)

    def _told(self, writer: LineWriter) -> dict[str, Any]:
        """What the kind adds to its line."""
        del writer
        return {}

    @classmethod
    def from_line(cls, line: bytes, reader: LineReader) -> Self:
        seen = msgspec.json.decode(line, type=PodLine)
        return cls(
            id=seen.id,
            step=seen.step,
            time=seen.time,
            actor=seen.actor,
            role=seen.role,
            namespace=seen.namespace,
            name=seen.name,
            uid=seen.uid,
            record=_record(seen, reader),
            created_at=seen.created_at,
            bound_at=seen.bound_at,
            node=seen.node,
            **cls._seen(seen, reader),
        )

    @classmethod
    def _seen(cls, line: "PodLine", reader: LineReader) -> dict[str, Any]:
        """The inverse of `_told`."""
        raise NotImplementedError


class PodAttempt(PodFact, frozen=True, kw_only=True):
    """One attempt of a scheduler at one pod.

    ``attempt`` counts from 1; ``previous`` is the one before, as long as the pod waits.
    ``evaluated`` and ``feasible`` count nodes. `result` says why, if that was asked for, and
    ``preemption`` whether others had to make room.
    """

    ends_waiting: ClassVar[bool] = False

    profile: str
    attempt: int
    evaluated: int = 0
    feasible: int = 0
    message: str = ""
    reason: str = ""
    nominated: str = ""
    plugins: tuple[str, ...] = ()
    explained: ScheduleResult | PutOff | None = None
    preemption: PreemptionRecord | None = None
    previous: "PodAttempt | None" = None

    @property
    def result(self) -> ScheduleResult | None:
        explained = self.explained
        return explained() if isinstance(explained, PutOff) else explained

    def _told(self, writer: LineWriter) -> dict[str, Any]:
        line: dict[str, Any] = {"profile": self.profile, "attempt": self.attempt}
        line |= {"evaluated": self.evaluated, "feasible": self.feasible}
        for name in ("message", "reason", "nominated", "plugins"):
            if value := getattr(self, name):
                line[name] = value
        if (result := self.result) is not None:
            line["result"] = orjson.Fragment(msgspec.json.encode(result))
        if self.preemption is not None:
            line["preemption"] = orjson.Fragment(msgspec.json.encode(self.preemption))
        slot = f"attempt/{self.uid}"
        if self.previous is not None:
            line["previous"] = writer.place_of(slot, self.previous)
        if self.ends_waiting:
            writer.forget(slot)
        else:
            writer.note(slot, self)
        return line

    @classmethod
    def _seen(cls, line: "PodLine", reader: LineReader) -> dict[str, Any]:
        previous = line.previous
        return {
            "profile": line.profile,
            "attempt": line.attempt,
            "evaluated": line.evaluated,
            "feasible": line.feasible,
            "message": line.message,
            "reason": line.reason,
            "nominated": line.nominated,
            "plugins": line.plugins,
            "explained": line.result,
            "preemption": line.preemption,
            "previous": None if previous is None else reader.fact(previous, PodAttempt),
        }


class PodScheduled(PodAttempt, frozen=True, kw_only=True):
    """The pod was bound to ``node``."""

    ends_waiting = True


class PodUnscheduled(PodAttempt, frozen=True, kw_only=True):
    """No node took the pod; ``message`` is what its condition got."""


class PodPreempted(PodFact, frozen=True, kw_only=True):
    """The pod had to leave ``node`` for the pod ``preempted_by``."""

    preempted_by: str

    def _told(self, writer: LineWriter) -> dict[str, Any]:
        del writer
        return {"preemptedBy": self.preempted_by}

    @classmethod
    def _seen(cls, line: "PodLine", reader: LineReader) -> dict[str, Any]:
        del reader
        return {"preempted_by": line.preempted_by}


class PodEnded(Fact, frozen=True, kw_only=True):
    """The pod is through, and its room is free: its deletion, marked earlier, is carried out."""

    namespace: str
    name: str
    uid: str
    node: str = ""

    def objects(self) -> Iterable[ObjectKey]:
        return (ObjectKey(POD.api_version, POD.kind, self.namespace, self.name, self.uid),)


class PodLine(msgspec.Struct, frozen=True, rename="camel"):
    """A line about a pod, as it is read."""

    id: str
    step: ScenarioStep
    time: int
    actor: str
    role: Role
    namespace: str
    name: str
    uid: str
    created_at: ScenarioStep
    bound_at: ScenarioStep | None = None
    node: str = ""
    profile: str = ""
    attempt: int = 1
    evaluated: int = 0
    feasible: int = 0
    message: str = ""
    reason: str = ""
    nominated: str = ""
    plugins: tuple[str, ...] = ()
    result: ScheduleResult | None = None
    preemption: PreemptionRecord | None = None
    previous: int | None = None
    preempted_by: str = ""
    object: msgspec.Raw = msgspec.Raw()
    object_of: int | None = None


def _record(line: PodLine, reader: LineReader) -> ObjectState:
    if line.object_of is None:
        return state_of(line.object, POD)
    holder = reader.fact(line.object_of, Fact)
    if isinstance(holder, ObjectCreated | ObjectPatched | PodFact):
        return holder.record
    raise msgspec.ValidationError(f"fact {line.object_of} holds no object")
