"""Turns what instruments see into facts.

Which writes are recorded follows the table "What counts" of the Scenario API: everything that
operations and controllers do, except status written by the kubelet stand-in, node status, and
objects that are bookkeeping rather than cluster state (Events, Leases, reviews).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self, TypeAlias

import msgspec

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.gates import role_without_scenario
from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.clock import Clock, ScenarioStep
from kubescene.instruments import Instrument, ObjectWrite, StepPhaseChange
from kubescene.instruments.attempts import Explanation, Preemption, SchedulingAttempt
from kubescene.timeline.custom_facts import CustomKinds
from kubescene.timeline.facts import (
    GENERATED_ID,
    Advanced,
    Done,
    Envelope,
    Fact,
    ScenarioEnded,
    operation_of,
)
from kubescene.timeline.log import TimelineLog
from kubescene.timeline.net_changes import NetChanges
from kubescene.timeline.object_facts import (
    ObjectCreated,
    ObjectDeleted,
    ObjectFact,
    ObjectKept,
    ObjectPatched,
    sent_body,
)
from kubescene.timeline.pod_facts import (
    PodAttempt,
    PodEnded,
    PodFinished,
    PodPreempted,
    PodRestarted,
    PodScheduled,
    PodUnscheduled,
)
from kubescene.timeline.pod_lives import (
    FINAL_PHASES,
    final_state,
    has_finished,
    named,
    restarted_containers,
    told_containers,
)
from kubescene.timeline.schedule_results import NODES_LISTED, PutOff, encoded_result
from kubescene.timeline.significance import is_significant
from kubescene.types import JsonObject

MERGE = PatchType.MERGE.value
PATCH = "patch"
"""What changes most often, and tells a pod's history nothing."""
STATUS = "status"

RoleOf: TypeAlias = Callable[[Actor], Role]
Cut: TypeAlias = Callable[[Explanation, str], PutOff | msgspec.Raw]
"""Makes the bounded part of an explanation that a fact holds."""


class TimelineRecorder(Instrument):
    """Appends to ``log``. ``role_of`` says what an actor is in the scenario that runs now.

    ``puts_off`` says that explanations are kept in memory, so that facts may refer to them.
    """

    goes_with_fork = True
    in_lane = True

    def __init__(
        self,
        clock: Clock,
        log: TimelineLog | None = None,
        *,
        role_of: RoleOf = role_without_scenario,
        puts_off: bool = False,
    ) -> None:
        self.log = TimelineLog() if log is None else log
        self.step = ScenarioStep(0, 0)
        self._clock = clock
        self._role_of = role_of
        self._cut: Cut = PutOff if puts_off else encoded_result
        self._pods = PodHistories()
        self._leaving: dict[str, None] = {}
        """Pods, by uid, whose deletion was told and that are still there."""
        self._ordinal = 0
        self._ordinal_step: ScenarioStep | None = None
        self._id_begins = ""
        self._custom = CustomKinds()
        self._netted: frozenset[str] = frozenset()
        self._net = NetChanges()

    # -- hooks -----------------------------------------------------------------------------

    def phase_changed(self, change: StepPhaseChange) -> None:
        self.step = change.step

    def object_written(self, write: ObjectWrite) -> None:
        if write.verb != PATCH:
            self._pods.observe(write, self.step)
        asked, is_told = write.origin is not None, False
        if is_significant(write.actor, write.record.resource, write.subresource, asked=asked):
            if write.actor.name in self._netted:
                self._net.add(write)
            else:
                self.log.append(self._object_fact(write))
                is_told = True
        if write.gvk == POD:
            self._lived(write, is_told=is_told)

    def object_removed(self, actor: Actor, record: Record) -> None:
        self._ended(actor, record)

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        fact = self._attempt_fact(attempt)
        self._pods.attempted(fact)
        self.log.append(fact)

    def pod_preempted(self, preemption: Preemption) -> None:
        pod = preemption.pod
        history = self._pods.of(pod.uid, self.step)
        self.record(
            PodPreempted,
            preemption.actor,
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            record=pod,
            created_at=history.created_at,
            bound_at=history.bound_at,
            node=pod.node,
            preempted_by=preemption.preemptor,
        )

    def run_ended(self, phase: str, message: str) -> None:
        self.record(ScenarioEnded, ENGINE, phase=phase, message=message)

    def fact_told(self, actor: Actor, fact: msgspec.Struct) -> None:
        self.log.append(self._custom.fact(fact, partial(self._envelope, actor)))

    # -- for the engine, and for those who bring facts of their own --------------------------

    def done(self, origin: OperationOrigin) -> None:
        """A done operation was reached."""
        self.record(Done, ENGINE, id=origin.id, operation=operation_of(origin))

    def advanced(self, origin: OperationOrigin) -> None:
        """An advance operation was reached."""
        self.record(Advanced, ENGINE, id=origin.id, operation=operation_of(origin))

    def kept(self, fields: Mapping[str, Any]) -> None:
        """An object was there before the scenario, and stays, though perhaps not for long."""
        self.record(ObjectKept, ENGINE, **fields)
        if fields["record"].deleting:
            self._leaving[fields["uid"]] = None

    def tell_net_of(self, actors: Iterable[str]) -> None:
        """Of these actors only what `tell_net` finds is told from now on."""
        self._netted = frozenset(actors)
        self._net = NetChanges()

    def tell_net(self) -> None:
        """Their turn is over: tell what they have changed since the last one."""
        for write in self._net.take():
            self.log.append(self._object_fact(write))

    def record(self, kind: type[Fact], actor: Actor, *, id: str = "", **fields: Any) -> None:
        """Append a fact of any kind, at the current step and time."""
        self.log.append(
            kind(
                id=id or self._next_id(),
                step=self.step,
                time=self._clock.now(),
                actor=actor.name,
                role=self._role_of(actor),
                **fields,
            )
        )

    # -- for the lane ------------------------------------------------------------------------

    def tells_all_of(self, actor: Actor) -> bool:
        """Whether every write of an actor is told as it comes."""
        return actor.name not in self._netted

    def created(self, actor: Actor, role: Role, pod: Record, origin: OperationOrigin) -> None:
        """An operation has created a pod: as the hook would tell it."""
        self._pods.by_uid[pod.uid] = PodHistory(self.step)
        self.log.append(
            ObjectCreated(
                origin.id,
                self.step,
                self._clock.now(),
                actor.name,
                role,
                POD,
                pod.namespace,
                pod.name,
                pod.uid,
                "",
                origin,
                pod,
                b"",
            )
        )

    def bound(
        self,
        step: ScenarioStep,
        actor: Actor,
        role: Role,
        pod: Record,
        profile: str,
        evaluated: int,
        feasible: int,
        explanation: Explanation | None,
    ) -> None:
        """An attempt bound a pod, in a step of its own: both facts, as hooks would tell them."""
        self.step = self._ordinal_step = step
        self._id_begins = begins = f"{GENERATED_ID}{step}-"
        self._ordinal = 2
        now, name, node, uid = self._clock.now(), actor.name, pod.node, pod.uid
        histories = self._pods.by_uid
        before = histories.get(uid) or PodHistory(step)
        body = sent_body({"spec": {"nodeName": node}})
        self.log.append(
            ObjectPatched(
                begins + "1",
                step,
                now,
                name,
                role,
                POD,
                pod.namespace,
                pod.name,
                uid,
                "binding",
                None,
                pod,
                body,
                MERGE,
            )
        )
        attempts = before.attempts + 1
        histories[uid] = PodHistory(before.created_at, step, attempts)
        self.log.append(
            PodScheduled(
                begins + "2",
                step,
                now,
                name,
                role,
                pod.namespace,
                pod.name,
                uid,
                pod,
                before.created_at,
                step,
                node,
                profile=profile,
                attempt=attempts,
                evaluated=evaluated,
                feasible=feasible,
                explained=None if explanation is None else self._cut(explanation, node),
                previous=before.waiting,
            )
        )

    def counted(
        self, actor: Actor, role: Role, gvk: GroupVersionKind, owner: Record, body: JsonObject
    ) -> None:
        """A controller has patched counts in a status: as the hook would tell it."""
        self.log.append(
            ObjectPatched(
                self._next_id(),
                self.step,
                self._clock.now(),
                actor.name,
                role,
                gvk,
                owner.namespace,
                owner.name,
                owner.uid,
                "status",
                None,
                owner,
                sent_body(body),
                MERGE,
            )
        )

    def _envelope(self, actor: Actor, kind: str) -> Envelope:
        now, role = self._clock.now(), self._role_of(actor)
        return Envelope(kind, self._next_id(), self.step, now, actor.name, role)

    # -- pods that end, and those that leave ------------------------------------------------

    def _lived(self, write: ObjectWrite, *, is_told: bool) -> None:
        """A pod was written: it may have ended, or a container of it begun once more."""
        pod = write.record
        if write.subresource == STATUS and (told := told_containers(write)):
            for container in restarted_containers(write, told):
                self.record(PodRestarted, write.actor, **named(pod), **container)
        if pod.deleting:
            self._left(write)
        elif pod.phase in FINAL_PHASES and not is_told and has_finished(write):
            self.record(PodFinished, write.actor, **named(pod), **final_state(pod))

    def _left(self, write: ObjectWrite) -> None:
        """A pod that is being deleted was written: marked just now, or stopped by its kubelet."""
        if write.verb == "delete":
            self._leaving[write.record.uid] = None
        elif write.record.phase in FINAL_PHASES:
            self._ended(write.actor, write.record)

    def _ended(self, actor: Actor, pod: Record) -> None:
        if pod.uid in self._leaving:
            del self._leaving[pod.uid]
            self.record(PodEnded, actor, **named(pod))

    # -- inside ----------------------------------------------------------------------------

    def _object_fact(self, write: ObjectWrite) -> ObjectFact:
        origin, record, verb = write.origin, write.record, write.verb
        told = (
            self._next_id() if origin is None else origin.id,
            self.step,
            self._clock.now(),
            write.actor.name,
            write.role,
            write.gvk,
            record.namespace,
            record.name,
            record.uid,
            write.subresource,
            origin,
        )
        if verb == "delete":
            return ObjectDeleted(*told, record.deleting)
        if verb == "update" and write.previous is not None:
            return ObjectPatched(*told, record, b"", MERGE, write.previous)
        body = sent_body(write.body) if origin is None else b""
        if verb == "create":
            return ObjectCreated(*told, record, body)
        return ObjectPatched(*told, record, body, str(write.patch_type))

    def _attempt_fact(self, attempt: SchedulingAttempt) -> PodAttempt:
        pod, node, explanation = attempt.pod, attempt.node, attempt.explanation
        preemption = attempt.preemption
        history = self._pods.of(pod.uid, self.step)
        kind = PodScheduled if node else PodUnscheduled
        return kind(
            self._next_id(),
            self.step,
            self._clock.now(),
            attempt.actor.name,
            self._role_of(attempt.actor),
            pod.namespace,
            pod.name,
            pod.uid,
            pod,
            history.created_at,
            history.bound_at,
            node,
            profile=attempt.profile,
            attempt=history.attempts + 1,
            evaluated=attempt.evaluated,
            feasible=attempt.feasible,
            message=attempt.message,
            reason=attempt.reason,
            nominated=attempt.nominated,
            plugins=attempt.plugins,
            explained=None if explanation is None else self._cut(explanation, node),
            preemption=None if preemption is None else preemption.cut(NODES_LISTED),
            previous=history.waiting,
        )

    def _next_id(self) -> str:
        if self._ordinal_step != self.step:
            self._ordinal_step = self.step
            self._id_begins = f"{GENERATED_ID}{self.step}-"
            self._ordinal = 0
        self._ordinal += 1
        return f"{self._id_begins}{self._ordinal}"


class PodHistory(msgspec.Struct, frozen=True, gc=False):
    """``waiting`` is the last attempt, as long as none has bound the pod."""

    created_at: ScenarioStep
    bound_at: ScenarioStep | None = None
    attempts: int = 0
    waiting: PodAttempt | None = None


class PodHistories:
    """Histories by uid; values are replaced, never changed, so that a fork copies one dict."""

    def __init__(self) -> None:
        self.by_uid: dict[str, PodHistory] = {}

    def observe(self, write: ObjectWrite, step: ScenarioStep) -> None:
        if write.gvk != POD:
            return
        uid = write.record.uid
        if write.verb == "create" and not write.subresource:
            self.by_uid[uid] = PodHistory(step)
        elif write.verb == "bind":
            old = self.of(uid, step)
            self.by_uid[uid] = PodHistory(old.created_at, step, old.attempts, old.waiting)
        elif write.verb == "delete" and not write.record.node:
            self.by_uid.pop(uid, None)

    def of(self, uid: str, step: ScenarioStep) -> PodHistory:
        """What is known; a pod that was never seen is taken to have been created now."""
        return self.by_uid.get(uid) or PodHistory(step)

    def attempted(self, fact: PodAttempt) -> None:
        """An attempt is over."""
        waiting = None if fact.node else fact
        self.by_uid[fact.uid] = PodHistory(fact.created_at, fact.bound_at, fact.attempt, waiting)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = type(self)()
        copy.by_uid = dict(self.by_uid)
        return copy
