"""One recorded case as a world: a store, a clock, and the scheduler that is compared.

The scheduler is the real one; `WitnessedScheduler` only remembers what it decided, because what
an attempt reports to instruments is less than what was recorded.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from kubescene.api.kinds import POD_GROUP
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import EventQueue, Streams, VirtualClock
from kubescene.control.loops import ControllerContext, nothing
from kubescene.control.timers import Timers
from kubescene.instruments import Instrument, Instruments
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.groups.trials import GroupTrial, final_decision
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.scheduler import Scheduler
from kubescene.scheduler.state.pods import PodInfo
from kubescene.store import Store
from kubescene.testing.goldens.acting import POD, Call, ReplayClient
from kubescene.testing.goldens.claims import claims_written
from kubescene.testing.goldens.extender_calls import First, RecordedExtenders
from kubescene.types import JsonObject


@dataclass(slots=True)
class Attempt:
    """What our scheduler did with one pod."""

    pod: str
    decision: Decision
    node: str
    """The node that was chosen, also if binding went wrong."""
    next_start: int
    node_order: tuple[str, ...]
    calls: list[Call]
    claims: JsonObject
    extender_calls: list[dict[str, Any]] = field(default_factory=list)
    in_group: bool = False
    """One of a group: its victims are told with the group."""


@dataclass(slots=True)
class GroupAttempt:
    """What our scheduler did with a pod group, whose member ``pod`` was popped."""

    pod: str
    group: str
    members: list[Attempt]
    condition: JsonObject | None
    deleted: list[str]
    next_start: int
    node_order: tuple[str, ...]


class _Listener(Instrument):
    """Makes the scheduler explain: it does so only if somebody listens."""

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        pass


class WitnessedScheduler(Scheduler):
    """The scheduler, and a list of what it decided."""

    def __init__(
        self,
        context: ControllerContext,
        options: SchedulerOptions,
        client: ReplayClient,
        asked: RecordedExtenders,
    ) -> None:
        self.made: list[Attempt | GroupAttempt] = []
        self._popped = ""
        self._in_group: set[str] = set()
        self._witness = client
        self._asked = asked
        self._chosen: dict[str, str] = {}
        super().__init__(context, options)

    def _place(self, entry: QueuedPod, decision: Decision) -> bool:
        self._chosen[entry.pod.uid] = decision.node
        return super()._place(entry, decision)

    def _attempt_group(self, entry: QueuedPod) -> bool:
        self._popped = entry.pod.key
        self._witness.take_calls()  # Evictions of the attempt before, which was told without them.
        return super()._attempt_group(entry)

    def _submit_group(self, trial: GroupTrial) -> bool:
        """The decisions as the verdict leaves them, and the writes that follow."""
        order, start = tuple(self.nodes.names), self.start_index.index
        self._in_group.update(member.entry.pod.uid for member in trial.members)
        wrote = super()._submit_group(trial)
        calls = self._witness.take_calls()
        members = [
            Attempt(
                member.entry.pod.key,
                decision := final_decision(member, trial.verdict),
                decision.node,
                member.next_start,
                order,
                [],
                {},
                in_group=True,
            )
            for member in trial.members
        ]
        group = f"{trial.entry.pod.namespace}/{trial.entry.pod.group}"
        deleted = sorted(call.key for call in calls if call.verb == "delete")
        condition = group_condition_of(calls)
        self.made.append(
            GroupAttempt(self._popped, group, members, condition, deleted, start, order)
        )
        return wrote

    def _report(self, pod: PodInfo, decision: Decision, record: Record) -> None:
        if pod.uid in self._in_group:
            # Told with its group.
            self._in_group.discard(pod.uid)
            super()._report(pod, decision, record)
            return
        node = self._chosen.pop(pod.uid, "")
        order = tuple(self.nodes.names)
        calls = self._witness.take_calls()
        start = self.start_index.index
        claims = claims_written(self._witness, calls)
        asked = self._asked.take()
        self.made.append(Attempt(pod.key, decision, node, start, order, calls, claims, asked))
        super()._report(pod, decision, record)


class World:
    """A case that is being replayed."""

    def __init__(self, case: JsonObject, options: SchedulerOptions) -> None:
        self.case = case
        self.store = Store()
        self.clock = VirtualClock()
        self.timers = EventQueue(self.clock)
        self.client = ReplayClient(self.store, case)
        context = ControllerContext(
            self.client,
            self.clock,
            Timers(self.timers, nothing),
            Streams(),
            Instruments(_Listener()),
        )
        self.extenders = RecordedExtenders()
        options = replace(options, extender_caller=self.extenders)
        self.scheduler = WitnessedScheduler(context, options, self.client, self.extenders)
        for profile in options.profiles:
            self.scheduler.cycle_of(profile.scheduler_name).random = First(0)
        for obj in case["objects"]:
            self.create(obj)

    # -- objects ---------------------------------------------------------------------------

    def create(self, obj: JsonObject) -> None:
        self.store.put(self.client.resource(_gvk(obj)), obj, expected=0)

    def update(self, obj: JsonObject) -> None:
        self.store.put(self.client.resource(_gvk(obj)), obj)

    def remove(self, ref: ObjectRef) -> None:
        self.store.remove(self.client.resource(ref.gvk), ref.namespace, ref.name)

    def pod(self, key: str) -> JsonObject:
        return self.client.get(pod_ref(key))

    def entry(self, key: str) -> QueuedPod | None:
        """The pod in the queue, if it is there."""
        return self.scheduler.queue.get(self.pod(key)["metadata"]["uid"])

    # -- turning the crank -----------------------------------------------------------------

    def attempt(self, key: str) -> list[Attempt | GroupAttempt]:
        """One cycle for one pod, and all that follows from it."""
        uid = self.pod(key)["metadata"]["uid"]
        self.scheduler.attempt(uid)
        while self.client.settle() or self.scheduler.resume() is not None:
            pass
        return self.take()

    def work(self) -> None:
        """The scheduler works until it is idle."""
        while self.scheduler.run_once().more | self.client.settle():
            pass

    def take(self) -> list[Attempt | GroupAttempt]:
        """The attempts since the last look."""
        made, self.scheduler.made = self.scheduler.made, []
        return made


def group_condition_of(calls: list[Call]) -> JsonObject | None:
    """The condition that was written into the group; None if none was."""
    for call in calls:
        if call.ref.gvk == POD_GROUP:
            condition = call.body["status"]["conditions"][0]
            kept = {key: condition[key] for key in ("status", "reason", "message")}
            return {key: value for key, value in kept.items() if value}
    return None


def pod_ref(key: str) -> ObjectRef:
    namespace, name = key.split("/")
    return ObjectRef(POD, name, namespace)


def _gvk(obj: Any) -> GroupVersionKind:
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])
