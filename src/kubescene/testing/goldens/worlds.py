"""The world of a case.

Device claims: what would be allocated on each node, and what was written.

A plugin that allocates devices tells of it by a method ``allocations``: for a state on which
Filter has run, a pod and a node, one list per claim of ``request=driver/pool/device``.

Extenders that say again what they said when kube-scheduler was recorded.

One recorded case as a world: a store, a clock, and the scheduler that is compared.

The scheduler is the real one; a `Witness` only remembers what it decided, because what
an attempt reports to instruments is less than what was recorded.

The recorded effects of a cycle, done to a world in which our scheduler decided otherwise.

Isolated mode judges every cycle by itself. Where ours differed, the world is made anew and all
recorded outcomes up to there are applied to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson

from kubescene.api.kinds import POD_GROUP
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import EventQueue, Stream, Streams, VirtualClock
from kubescene.control.loops import ControllerContext, nothing
from kubescene.control.timers import Timers
from kubescene.instruments import Instrument, Instruments
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler.attempts import Attempts
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.extenders.extenders import ExtenderAnswer, ExtenderCall, PendingCall
from kubescene.scheduler.extenders.wire import TOO_LATE, no_answer, read_answer, request_body
from kubescene.scheduler.groups.attempts import GroupAttempts
from kubescene.scheduler.groups.trials import GroupTrial, final_decision
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.scheduler import PartMakers, Scheduler
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling.attempt_reports import AttemptReports
from kubescene.store import Store
from kubescene.testing.goldens.environment import CLAIM, POD, RecordedCall, ReplayClient
from kubescene.types import JsonObject

RESOURCE_CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
_STATUS = ("allocation", "reservedFor", "devices")


def claims_written(client: ReplayClient, calls: Sequence[RecordedCall]) -> JsonObject:
    """The writes on claims in order, and each claim as they left it; empty if there are none."""
    written = [call for call in calls if call.ref.gvk == RESOURCE_CLAIM]
    if not written:
        return {}
    created = {call.ref for call in written if call.verb == "create"}
    found: JsonObject = {
        "calls": [f"{call.verb} {call.key}" for call in written],
        "after": {call.key: _after(client, call.ref, created) for call in written},
    }
    for call in calls:
        if call.ref.gvk == POD and call.verb == "patchStatus":
            status = call.body.get("status", {}).get("extendedResourceClaimStatus")
            found |= {"extendedResourceClaimStatus": status} if status else {}
    return found


def _after(client: ReplayClient, ref: ObjectRef, created: set[ObjectRef]) -> JsonObject:
    claim = client.find(ref)
    after: JsonObject = {"created": True} if ref in created else {}
    if claim is None:
        claim = client.last_state(ref)
        after["deleted"] = True
    after |= {"spec": claim["spec"]} if ref in created else {}
    status = claim.get("status") or {}
    after |= {name: status[name] for name in _STATUS if name in status}
    return after | {"finalizers": claim["metadata"].get("finalizers")}


def plain(value: Any) -> Any:
    """A value without what is empty, and without the wall clock."""
    if isinstance(value, dict):
        kept = {key: plain(each) for key, each in value.items() if key != "allocationTimestamp"}
        return {key: each for key, each in kept.items() if each not in (None, {}, [])}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


_NOT_RECORDED = frozenset(
    {"resourceVersion", "lastTransitionTime", "lastHeartbeatTime", "lastProbeTime"}
)


class RecordedExtenders:
    """Answers calls to a URL with what was recorded for it, in order, and notes them."""

    def __init__(self) -> None:
        self._recorded: list[Mapping[str, Any]] = []
        self._made: list[dict[str, Any]] = []

    def expect(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """The calls of the attempts that come next."""
        self._recorded = [*calls]

    def take(self) -> list[dict[str, Any]]:
        """The calls since the last look."""
        made, self._made = self._made, []
        return made

    def call(self, pending: PendingCall) -> None:
        call = pending.call
        assert call.extender.address is not None
        url = call.extender.address.url_for(call.verb)
        self._made.append({"url": url, "request": orjson.loads(request_body(call))})
        found = next((each for each in self._recorded if each["url"] == url), None)
        if found is not None:
            self._recorded.remove(found)
        pending.answer(_answer(call, found))


class First(Stream):
    """Where kube-scheduler rolls dice, the recording takes the first."""

    __slots__ = ()

    def below(self, bound: int) -> int:
        del bound
        return 0


def _answer(call: ExtenderCall, recorded: Mapping[str, Any] | None) -> ExtenderAnswer:
    if recorded is None:
        return no_answer(call, "nobody called this when it was recorded")
    if recorded.get("timedOut"):
        return no_answer(call, TOO_LATE)
    text = recorded.get("text")
    body = orjson.dumps(recorded.get("response")) if text is None else text.encode()
    return read_answer(call, recorded["status"], body)


def comparable(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls without what differs between Go and us, and without what was not recorded."""
    return [{"url": each["url"], "request": _pruned(each["request"])} for each in calls]


def _pruned(value: Any) -> Any:
    """Go writes down what is zero, too."""
    if isinstance(value, dict):
        members = {key: _pruned(each) for key, each in value.items() if key not in _NOT_RECORDED}
        return {key: each for key, each in members.items() if each not in (None, {}, [], "", 0)}
    return [_pruned(each) for each in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Attempt:
    """What our scheduler did with one pod."""

    pod: str
    decision: Decision
    node: str
    """The node that was chosen, also if binding went wrong."""
    next_start: int
    node_order: tuple[str, ...]
    calls: list[RecordedCall]
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


class _Explains(Instrument):
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
            PartMakers(
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


class GoldenWorld:
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
            Instruments(_Explains()),
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
        made, self._witness.made = self._witness.made, []
        return made


def group_condition_of(calls: list[RecordedCall]) -> JsonObject | None:
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


DISRUPTION = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
"""The condition of a victim that is about to be deleted."""


class Effects:
    """What kube-scheduler did to one world."""

    def __init__(self, world: GoldenWorld) -> None:
        self._world = world
        self._client = world.client

    def apply(self, key: str, outcome: Mapping[str, Any]) -> None:
        if not outcome:
            return
        if "nextStart" in outcome:
            self._world.scheduler.start_index.index = outcome["nextStart"]
        self._write_claims(key, outcome.get("claims") or {})
        if "node" in outcome:
            self._place(key, outcome)
        else:
            self._fail(key, outcome)
        self._client.take_calls()

    def _place(self, key: str, outcome: Mapping[str, Any]) -> None:
        volumes = outcome.get("volumes") or {}
        for claim, volume in (volumes.get("bound") or {}).items():
            self._client.volumes.bind(_claim(claim), volume)
        for claim, node in (volumes.get("provisioned") or {}).items():
            self._client.volumes.provision(_claim(claim), node)
        if "bindError" in outcome:
            self.hold(key, outcome)
        else:
            self._client.bind(pod_ref(key), outcome["node"])

    def hold(self, key: str, outcome: Mapping[str, Any]) -> None:
        """A pod that failed in PreBind keeps the nomination that it got before it (E-7)."""
        if not outcome["bindError"].startswith("running PreBind plugin"):
            return
        pod = self._world.pod(key)
        _nominate(pod.setdefault("status", {}), outcome["node"])
        self._world.update(pod)

    def _fail(self, key: str, outcome: Mapping[str, Any]) -> None:
        if victims := (outcome.get("preemption") or {}).get("victims"):
            self._preempt(key, outcome["preemption"]["node"], victims)
        pod = self._world.pod(key)
        status = pod.setdefault("status", {})
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": outcome["reason"],
                "message": outcome["message"],
            }
        ]
        if "nominated" in outcome:
            _nominate(status, outcome["nominated"])
        self._world.update(pod)

    def _preempt(self, key: str, node: str, victims: list[str]) -> None:
        running = [
            victim
            for victim in victims
            if "deletionTimestamp" not in self._world.pod(victim)["metadata"]
        ]
        if running:
            self._clear_nominations(node, self._world.pod(key)["spec"].get("priority") or 0)
        for victim in running:
            # The condition comes before the deletion, and moves the pod in its node's list.
            if self._world.case.get("gracefulVictims"):
                obj = self._world.pod(victim)
                obj.setdefault("status", {}).setdefault("conditions", []).append(DISRUPTION)
                self._world.update(obj)
            self._client.delete(pod_ref(victim))

    def _clear_nominations(self, node: str, priority: int) -> None:
        for pod in self._world.scheduler.nominations.on(node):
            if pod.priority < priority:
                obj = self._world.pod(pod.key)
                _nominate(obj.setdefault("status", {}), "")
                self._world.update(obj)

    def _write_claims(self, key: str, claims: Mapping[str, Any]) -> None:
        for name, after in (claims.get("after") or {}).items():
            self._write_claim(_resource_claim(name), after)
        if status := claims.get("extendedResourceClaimStatus"):
            pod = self._world.pod(key)
            pod.setdefault("status", {})["extendedResourceClaimStatus"] = status
            self._world.update(pod)

    def _write_claim(self, ref: ObjectRef, after: Mapping[str, Any]) -> None:
        if after.get("created"):
            self._client.create(_new_claim(ref, after))
        if after.get("deleted"):
            if self._client.find(ref) is not None:
                self._world.remove(ref)
            return
        claim = self._client.get(ref)
        status = claim.setdefault("status", {})
        for name in ("allocation", "reservedFor", "devices"):
            status.pop(name, None)
            if name in after:
                status[name] = after[name]
        claim["metadata"]["finalizers"] = after.get("finalizers") or []
        self._world.update(claim)


def _nominate(status: JsonObject, node: str) -> None:
    status.pop("nominatedNodeName", None)
    if node:
        status["nominatedNodeName"] = node


def _claim(key: str) -> ObjectRef:
    namespace, name = key.split("/")
    return ObjectRef(CLAIM, name, namespace)


def _resource_claim(key: str) -> ObjectRef:
    namespace, name = key.split("/")
    return ObjectRef(RESOURCE_CLAIM, name, namespace)


def _new_claim(ref: ObjectRef, after: Mapping[str, Any]) -> JsonObject:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "spec": after.get("spec") or {},
    }
