"""Facts about pods: attempts that bound one or did not, preemptions, and how pods end.

An attempt refers to the one before at the same pod, and to the object that the bind left.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from kubescene.api.kinds import POD
from kubescene.clock import ScenarioStep
from kubescene.instruments.attempts import PreemptionRecord
from kubescene.timeline.facts import Fact, FactObject, LineReader, LineWriter
from kubescene.timeline.lines import NOTHING, Line, ReferringFact, Teller
from kubescene.timeline.object_facts import (
    OBJECT,
    ObjectState,
    ObjectStored,
    state_of,
)
from kubescene.timeline.schedule_results import PutOff, ScheduleResult, result_of


class PodLine(Line, frozen=True, kw_only=True):
    """What a line about a pod says instead of what its fact refers to."""

    object: msgspec.Raw = NOTHING
    object_of: int | None = None


def _tell_pod(fact: "PodFact", writer: LineWriter, members: dict[str, Any]) -> None:
    record = fact.record
    place = writer.place_of(OBJECT, record)
    if place is not None:
        members["objectOf"] = place
        return
    writer.note(OBJECT, record)
    members["object"] = msgspec.Raw(record.unversioned_data)


def _tell_result(fact: "PodAttempt", writer: LineWriter, members: dict[str, Any]) -> None:
    explained = fact.explained
    if explained is not None:
        members["result"] = explained.text if isinstance(explained, PutOff) else explained


def _tell_previous(fact: "PodAttempt", writer: LineWriter, members: dict[str, Any]) -> None:
    """Where the attempt before stands; the next one may refer to this."""
    slot = f"attempt/{fact.uid}"
    if fact.previous is not None:
        members["previous"] = writer.place_of(slot, fact.previous)
    if fact.ends_waiting:
        writer.forget(slot)
    else:
        writer.note(slot, fact)


class PodFact(ReferringFact, frozen=True):
    """``record`` is the pod afterwards. ``bound_at`` is None as long as nobody bound it."""

    refers: ClassVar[Mapping[str, Teller]] = {"record": _tell_pod}
    sparse = frozenset({"bound_at", "node"})
    line = PodLine

    namespace: str
    name: str
    uid: str
    record: ObjectState
    created_at: ScenarioStep
    bound_at: ScenarioStep | None
    node: str

    def objects(self) -> Iterable[FactObject]:
        return (FactObject(POD.api_version, POD.kind, self.namespace, self.name, self.uid),)

    @classmethod
    def referred(cls, line: PodLine, reader: LineReader) -> dict[str, Any]:
        return {"record": _record(line, reader)}


class AttemptLine(PodLine, frozen=True, kw_only=True):
    """Likewise about an attempt."""

    result: msgspec.Raw = NOTHING
    previous: int | None = None


class PodAttempt(PodFact, frozen=True, kw_only=True):
    """One attempt of a scheduler at one pod.

    ``attempt`` counts from 1; ``previous`` is the one before, as long as the pod waits.
    ``evaluated`` and ``feasible`` count nodes. `result` says why, if that was asked for, and
    ``preemption`` whether others had to make room.
    """

    refers: ClassVar[Mapping[str, Teller]] = {
        **PodFact.refers,
        "explained": _tell_result,
        "previous": _tell_previous,
    }
    line = AttemptLine
    ends_waiting: ClassVar[bool] = False

    profile: str
    attempt: int
    evaluated: int
    feasible: int
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

    @classmethod
    def referred(cls, line: Any, reader: LineReader) -> dict[str, Any]:
        previous = line.previous
        return {
            **super().referred(line, reader),
            "explained": read_result(line),
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


class PodLifeFact(Fact, frozen=True, kw_only=True):
    """What became of a pod on its node."""

    namespace: str
    name: str
    uid: str
    node: str = ""

    def objects(self) -> Iterable[FactObject]:
        return (FactObject(POD.api_version, POD.kind, self.namespace, self.name, self.uid),)


class PodEnded(PodLifeFact, frozen=True, kw_only=True):
    """The pod is through, and its room is free: its deletion, marked earlier, is carried out."""


class PodFinished(PodLifeFact, frozen=True, kw_only=True):
    """The pod has ended by itself, and its room is free; the object stays.

    Told where no other fact tells of the write. ``exit_code`` is that of the first container that
    ended badly, 0 if none did, None if none was started; ``restarts`` counts those of all.
    """

    phase: str
    reason: str = ""
    exit_code: int | None = None
    restarts: int = 0


class PodRestarted(PodLifeFact, frozen=True, kw_only=True):
    """A container of the pod has begun once more, after it had ended with ``exit_code``.

    ``restarts`` counts those of all containers of the pod until now.
    """

    container: str
    restarts: int
    exit_code: int | None = None
    reason: str = ""


def read_result(line: AttemptLine) -> ScheduleResult | None:
    """Why, if the line says so; `msgspec.DecodeError` if that is damaged."""
    return result_of(line.result) if bytes(line.result) else None


def _record(line: PodLine, reader: LineReader) -> ObjectState:
    if line.object_of is None:
        return state_of(line.object, POD)
    holder = reader.fact(line.object_of, Fact)
    if isinstance(holder, ObjectStored | PodFact):
        return holder.record
    raise msgspec.ValidationError(f"fact {line.object_of} holds no object")
