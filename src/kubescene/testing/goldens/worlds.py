"""One recorded case as a world: a store, a clock, and the scheduler that is compared.

The scheduler is the real one; a `Witness` only remembers what it decided, because what
an attempt reports to instruments is less than what was recorded.
"""

from dataclasses import dataclass, field, replace
from functools import partial
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
from kubescene.scheduler.attempts import Attempts
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.groups.attempts import GroupAttempts
from kubescene.scheduler.groups.trials import GroupTrial, final_decision
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.scheduler import Parts, Scheduler
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling.attempt_reports import AttemptReports
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


class Witness:
    """A list of what a scheduler decided."""

    def __init__(self, client: ReplayClient, asked: RecordedExtenders) -> None:
        self.made: list[Attempt | GroupAttempt] = []
        self.chosen: dict[str, str] = {}
        self._popped = ""
        self._in_group: set[str] = set()
        self._client = client
        self._asked = asked

    def scheduler_of(self, context: ControllerContext, options: SchedulerOptions) -> Scheduler:
        """A scheduler that is witnessed."""
        self.scheduler = Scheduler(
            context,
            options,
            Parts(
                partial(WitnessedReports, self),
                partial(WitnessedAttempts, self),
                partial(WitnessedGroups, self),
            ),
        )
        return self.scheduler

    def group_popped(self, entry: QueuedPod) -> None:
        self._popped = entry.pod.key
        self._client.take_calls()  # Evictions of the attempt before, which was told without them.

    def group_decided(self, trial: GroupTrial) -> tuple[int, tuple[str, ...]]:
        self._in_group.update(member.entry.pod.uid for member in trial.members)
        return self.scheduler.start_index.index, tuple(self.scheduler.nodes.names)

    def group_ended(self, trial: GroupTrial, start: int, order: tuple[str, ...]) -> None:
        """The decisions as the verdict leaves them, and the writes that followed."""
        calls = self._client.take_calls()
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

    def ended(self, pod: PodInfo, decision: Decision) -> None:
        """An attempt is over; a pod of a group is told with its group."""
        node = self.chosen.pop(pod.uid, "")
        if pod.uid in self._in_group:
            self._in_group.discard(pod.uid)
            return
        calls, start = self._client.take_calls(), self.scheduler.start_index.index
        claims = claims_written(self._client, calls)
        order, asked = tuple(self.scheduler.nodes.names), self._asked.take()
        self.made.append(Attempt(pod.key, decision, node, start, order, calls, claims, asked))


class WitnessedReports(AttemptReports):
    def __init__(self, witness: Witness, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._witness = witness

    def tell(self, pod: PodInfo, decision: Decision, record: Record) -> None:
        self._witness.ended(pod, decision)
        super().tell(pod, decision, record)


class WitnessedAttempts(Attempts):
    def __init__(self, witness: Witness, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._witness = witness

    def assume(self, entry: QueuedPod, decision: Decision) -> Binding:
        self._witness.chosen[entry.pod.uid] = decision.node
        return super().assume(entry, decision)


class WitnessedGroups(GroupAttempts):
    def __init__(self, witness: Witness, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._witness = witness

    def attempt(self, entry: QueuedPod) -> bool:
        self._witness.group_popped(entry)
        return super().attempt(entry)

    def submit(self, trial: GroupTrial) -> bool:
        start, order = self._witness.group_decided(trial)
        wrote = super().submit(trial)
        self._witness.group_ended(trial, start, order)
        return wrote


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
        self._witness = Witness(self.client, self.extenders)
        self.scheduler = self._witness.scheduler_of(context, options)
        for profile in options.profiles:
            self.scheduler.cycle_of(profile.scheduler_name).random = First(0)
        for obj in case["objects"]:
            self.create(obj)

    # -- objects ---------------------------------------------------------------------------

    def create(self, obj: JsonObject) -> None:
        self.store.create(self.client.resource(_gvk(obj)), obj)

    def update(self, obj: JsonObject) -> None:
        self.store.update(self.client.resource(_gvk(obj)), obj)

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
        made, self._witness.made = self._witness.made, []
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
