"""Facts about scheduling: attempts that bound a pod or did not, and preemptions.

An attempt refers to the one before at the same pod, and to the object that the bind left.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, Self

import msgspec
import orjson

from kubescene.actors import Role
from kubescene.api.kinds import POD
from kubescene.clock import ScenarioStep
from kubescene.instruments.attempts import PreemptionRecord
from kubescene.timeline.facts import Fact, ObjectKey
from kubescene.timeline.lines import LineReader, LineWriter
from kubescene.timeline.object_facts import (
    OBJECT,
    OBJECT_BEGINS,
    ObjectCreated,
    ObjectPatched,
    ObjectState,
    state_of,
)
from kubescene.timeline.result_texts import result_of
from kubescene.timeline.schedule_results import PutOff, ScheduleResult

_SAID = ("message", "reason", "nominated", "plugins")
"""Members of an attempt that are told where there is something to tell."""


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
        line = writer.begin(self)
        namespace, name = orjson.dumps(self.namespace), orjson.dumps(self.name)
        line += (b',"namespace":', namespace, b',"name":', name, b',"uid":', orjson.dumps(self.uid))
        line.append(_step(b',"createdAt":', self.created_at))
        if self.bound_at is not None:
            line.append(_step(b',"boundAt":', self.bound_at))
        if self.node:
            line += (b',"node":', orjson.dumps(self.node))
        line += self._told(writer)
        place = writer.place_of(OBJECT, self.record)
        if place is None:
            writer.note(OBJECT, self.record)
            line += (OBJECT_BEGINS, self.record.unversioned_data, b"}")
        else:
            line.append(f',"objectOf":{place}}}'.encode())
        return b"".join(line)

    def _told(self, writer: LineWriter) -> list[bytes]:
        """What the kind adds to its line, in parts."""
        del writer
        return []

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
    explained: ScheduleResult | PutOff | msgspec.Raw | None = None
    preemption: PreemptionRecord | None = None
    previous: "PodAttempt | None" = None

    @property
    def result(self) -> ScheduleResult | None:
        explained = self.explained
        if isinstance(explained, msgspec.Raw):
            return result_of(explained)
        return explained() if isinstance(explained, PutOff) else explained

    def _told(self, writer: LineWriter) -> list[bytes]:
        counts = (
            f',"attempt":{self.attempt},"evaluated":{self.evaluated},"feasible":{self.feasible}'
        )
        line = [b',"profile":', orjson.dumps(self.profile), counts.encode()]
        if self.message or self.reason or self.nominated or self.plugins:
            said = {name: value for name in _SAID if (value := getattr(self, name))}
            line += (b",", orjson.dumps(said)[1:-1])
        if self.explained is not None:
            line += (b',"result":', self._result_text())
        if self.preemption is not None:
            line += (b',"preemption":', msgspec.json.encode(self.preemption))
        if self.previous is not None or not self.ends_waiting:
            line += self._waited(writer)
        return line

    def _waited(self, writer: LineWriter) -> tuple[bytes, ...]:
        """Where the attempt before stands; the next one may refer to this."""
        slot = f"attempt/{self.uid}"
        place = writer.place_of(slot, self.previous)
        if self.ends_waiting:
            writer.forget(slot)
        else:
            writer.note(slot, self)
        return () if self.previous is None else (b',"previous":', orjson.dumps(place))

    def _result_text(self) -> bytes | msgspec.Raw:
        explained = self.explained
        return explained if isinstance(explained, msgspec.Raw) else msgspec.json.encode(self.result)

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

    def _told(self, writer: LineWriter) -> list[bytes]:
        del writer
        return [b',"preemptedBy":', orjson.dumps(self.preempted_by)]

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


@lru_cache(1024)
def _step(name: bytes, step: ScenarioStep) -> bytes:
    return name + orjson.dumps([*step])


def _record(line: PodLine, reader: LineReader) -> ObjectState:
    if line.object_of is None:
        return state_of(line.object, POD)
    holder = reader.fact(line.object_of, Fact)
    if isinstance(holder, ObjectCreated | ObjectPatched | PodFact):
        return holder.record
    raise msgspec.ValidationError(f"fact {line.object_of} holds no object")
