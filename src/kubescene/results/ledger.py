"""The ledger: what the cluster looked like, kept by following a run once.

Whoever reads a run (facts in memory, lines of a file, events of a Scenario) makes the entries; see
`entries`. Tables and measures read the ledger. Amounts are integers (cpu in thousandths, the rest
in whole units), so sums are exact in any order.

A pod is in one of five states: *pending* until it has a node, then *bound*; *terminating* from its
deletion until that is carried out, then *deleted*; *finished* once its phase is Succeeded or
Failed. Pods that are bound or terminating take room of their node, as long as it exists.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

from kubescene.api.resource_requests import PODS
from kubescene.clock import ScenarioStep
from kubescene.results.cost.machines import MachineEntries
from kubescene.results.devices import NO_NODE, Devices
from kubescene.results.ledger_entries import (
    BOUND,
    DELETED,
    FINISHED,
    PENDING,
    STATES,
    TERMINATING,
    NodeEntry,
    OutcomeEntry,
    Peak,
    PodEntry,
    PodKey,
    PreemptionEntry,
    Room,
    StepEntry,
    StepNodeUse,
    Totals,
    add_amounts,
)
from kubescene.results.over_time.entries import BudgetEntry, WorkloadEntry, WrittenAt
from kubescene.results.over_time.instants import Instants
from kubescene.results.states import Amounts, NodeState, PodState, is_broken
from kubescene.timeline import Outcome
from kubescene.timeline.facts import GENERATED_ID
from kubescene.timeline.pod_lives import FINAL_PHASES

if TYPE_CHECKING:
    from kubescene.results.over_time.following import WorkloadFollower

CLUSTER = ""
"""No node has an empty name."""
FAILED = "Failed"
NOWHERE = ScenarioStep(0, 0)
Text: TypeAlias = bytes | msgspec.Raw
Told: TypeAlias = tuple[str, tuple[object, ...], ScenarioStep, int]
"""The name of a method of `WorkloadFollower`, what it is told, and when that was."""


class Ledger:
    """Entries are made in the order of the run; `close` says that there are no more."""

    def __init__(self, *, puts_off: bool = False) -> None:
        """``puts_off`` says that nobody asks for workloads before the end, if at all, and that all
        that is written of them can be read until then."""
        self.phase = self.message = ""
        self.started_time: int | None = None
        self.time = self.facts = 0
        """``facts``: all that were told, also those that belong to no step."""
        self.custom_facts: dict[str, int] = {}
        """How many custom facts there are, by kind; what they tell is not here."""
        self.step = NOWHERE
        self.steps: list[StepEntry] = []
        self.pods: list[PodEntry] = []
        """All that ever were, in the order of their creation."""
        self.nodes: list[NodeEntry] = []
        self.preemptions: list[PreemptionEntry] = []
        self.outcomes: list[OutcomeEntry] = []
        """What was told of operations."""
        self.ignored: list[str] = []
        self.warnings: list[str] = []
        self.expectations: tuple[Outcome, ...] = ()
        """What came of them at the end; nothing is expected of a scenario that failed."""
        self.totals = Totals()
        self.states = dict.fromkeys(STATES, 0)
        """How many pods are in which state."""
        self.node_time = 0
        """Nanoseconds, summed over nodes."""
        self.allocatable_time: dict[str, int] = {}
        self.requested_time: dict[str, int] = {}
        """Amounts times nanoseconds, summed over the nodes that existed."""
        self.rooms: dict[str, Room] = {}
        """What pods take of nodes, by name, whether a node of that name exists or not."""
        self._followed = FollowedWorkloads(puts_off=puts_off)
        self.machines = MachineEntries()
        """All that were ever ordered, and resizes of pods."""
        self.instants = Instants()
        self._nodes_ready = 0
        self._pods: dict[PodKey, PodEntry] = {}
        """The newest of every name."""
        self._standing: dict[str, NodeEntry] = {}
        self._devices = Devices()
        self._current: StepEntry | None = None
        self._moments = Moments(self._standing, self.totals)
        self._refused: dict[PodKey, PodEntry] = {}
        """Pods for which a scheduler found no node in the current step."""
        self._operation = ""
        """The last that was played in it."""
        self._several: set[str] = set()
        """Operations of which single objects were written; some go on while others are played."""

    # -- reading ---------------------------------------------------------------------------

    def pod(self, namespace: str, name: str) -> PodEntry | None:
        """The pod of that name that exists now."""
        pod = self._pods.get((namespace, name))
        return None if pod is None or pod.state == DELETED else pod

    def node(self, name: str) -> NodeEntry | None:
        """The node of that name that exists now."""
        return self._standing.get(name)

    def standing(self) -> list[NodeEntry]:
        """The nodes that exist now, by name."""
        return [self._standing[name] for name in sorted(self._standing)]

    @property
    def workloads(self) -> list[WorkloadEntry]:
        """All that ever were and that no other owns, in the order of their creation."""
        return self._followed.read().workloads

    @workloads.setter
    def workloads(self, entries: list[WorkloadEntry]) -> None:
        self._followed.workloads = entries

    @property
    def budgets(self) -> list[BudgetEntry]:
        return self._followed.read().budgets

    @budgets.setter
    def budgets(self, entries: list[BudgetEntry]) -> None:
        self._followed.budgets = entries

    @property
    def owners(self) -> dict[str, str]:
        """Of workloads that another one owns: ``NAMESPACE/Kind/name`` to ``Kind/name``."""
        return self._followed.read().owners

    @owners.setter
    def owners(self, owners: dict[str, str]) -> None:
        self._followed.owners = owners

    @property
    def duration(self) -> int:
        """Nanoseconds of virtual time from the first entry to the last."""
        return 0 if self.started_time is None else self.time - self.started_time

    # -- entries: when ---------------------------------------------------------------------

    def at(self, step: ScenarioStep, time: int) -> None:
        """Something happened at that step and time; what it was is entered next."""
        current = self._current
        if step is self.step and time == self.time and current is not None:
            current.facts += 1  # as of most facts
            return
        if current is None or step[0] != current.major:
            current = self._begin(step[0], time)
        elif step[1] != current.minor or time != self.time:
            self._look()
        if time != self.time:
            self._pass(time)
        self.step = step
        current.facts += 1
        current.minor = step[1]  # steps only go forward

    def begin(self, time: int) -> None:
        """The run begins, before its first step: what is entered next was there already."""
        if self.started_time is None:
            self.started_time = self.time = time

    def wait_until(self, time: int) -> None:
        """Time went on to at least then, and nothing happened that belongs to a step."""
        if time > self.time and self._current is not None:
            self._look()
            self._pass(time)

    def close(self) -> None:
        """The last step is at rest."""
        self._rest()

    def reopen(self) -> None:
        """Find everything by name again, where the lists were filled from elsewhere."""
        self._pods = {(pod.namespace, pod.name): pod for pod in self.pods}
        self._standing = {node.name: node for node in self.nodes if node.ended_step is None}
        self._current = self.steps[-1] if self.steps else None
        self._moments = Moments(self._standing, self.totals)
        if self._current is not None:
            self._moments.begin(self._current.peak)

    def _begin(self, major: int, time: int) -> StepEntry:
        self.begin(time)
        self._pass(time)
        self._rest()
        self.phase = self.message = ""  # a scenario that paused goes on
        self._current = StepEntry(major, started_time=time, ended_time=time)
        self.steps.append(self._current)
        self._moments.begin(self._current.peak)
        self._refused, self._operation = {}, ""
        return self._current

    def _look(self) -> None:
        """A moment is over."""
        self._moments.end()
        self.instants.look(self.states[PENDING], self.totals.requested)

    def _sample(self, current: StepEntry) -> None:
        """Keep what the cluster is at this instant."""
        totals = self.totals
        self.instants.add(
            (self.time, current.major),
            (totals.nodes, self._nodes_ready),
            (self.states[PENDING], self.states[BOUND]),
            totals.requested,
            totals.allocatable,
        )

    def _pass(self, time: int) -> None:
        """Virtual time goes on; until now everything was as it is."""
        span = time - self.time
        if span and self._current is not None:
            self._sample(self._current)
        self.time = time
        if span:
            self.node_time += span * self.totals.nodes
            add_amounts(self.allocatable_time, self.totals.allocatable, span)
            add_amounts(self.requested_time, self.totals.requested, span)

    def _rest(self) -> None:
        """Note how a step leaves the cluster."""
        step = self._current
        if step is None:
            return
        self._moments.rest(step)
        self._sample(step)
        step.ended_time = self.time
        step.pending, step.bound = self.states[PENDING], self.states[BOUND]
        step.unschedulable = sum(pod.state == PENDING for pod in self._refused.values())
        step.totals = self.totals.copy()

    # -- entries: what ---------------------------------------------------------------------

    def asked(self, id: str, *, written: bool = False) -> None:
        """An operation was played, or one object of it ``written``: ``nodes``, ``nodes[0]``."""
        operation, is_new = id, id != self._operation
        if id.endswith("]"):
            operation = id[: id.rindex("[")]
            is_new = operation != self._operation and operation not in self._several
            self._several.add(operation)
        if (current := self._current) is not None:
            current.operations += is_new
            current.written += written
        self._operation = operation

    def wrote(self, id: str) -> None:
        """An object was written: by the operation of that id, or by a controller."""
        if not id.startswith(GENERATED_ID):
            self.asked(id, written=True)
        elif (current := self._current) is not None:
            current.controller_writes += 1

    def told(self, outcome: OutcomeEntry) -> None:
        """Something came of an operation."""
        self.outcomes.append(outcome)

    def end(self, phase: str, message: str) -> None:
        """The scenario ended, or paused."""
        self.phase, self.message = phase, message
        if phase == FAILED:
            self.expectations = ()

    def node_written(self, name: str, state: NodeState) -> None:
        """A node was created or changed."""
        node = self._standing.get(name)
        if is_new := node is None:
            node = self._add_node(name)
        if node.stated != state.allocatable or node.marks != state.marks:
            if not is_new:
                self._moments.touch(name)
            self._nodes_ready += is_broken(node.marks) - is_broken(state.marks)
            node.stated, node.marks = state.allocatable, state.marks
            self._offer(node)
        node.labels, node.capacity = state.labels, state.capacity

    def _offer(self, node: NodeEntry) -> None:
        """What a node offers may be something else now."""
        devices = self._devices.published(node.name)
        offered = {**node.stated, **devices} if devices else node.stated
        add_amounts(self.totals.allocatable, node.allocatable, -1)
        add_amounts(self.totals.allocatable, offered, 1)
        node.allocatable = offered

    def machine_written(self, name: str, uid: str, text: Text) -> None:
        """An Instance is as its text says."""
        self.machines.written(name, uid, text, self.step, self.time)

    def machine_patched(self, name: str, body: bytes) -> None:
        """What was written of an Instance, which its text does not say."""
        self.machines.patched(name, body, self.step, self.time)

    def machine_removed(self, name: str) -> None:
        """The object of an Instance is gone."""
        self.machines.removed(name, self.step, self.time)

    def slice_written(self, name: str, text: Text) -> None:
        """A ResourceSlice is as its text says."""
        self._devices.slice_written(self, name, text)

    def slice_removed(self, name: str) -> None:
        self._devices.slice_removed(self, name)

    def claim_written(self, namespace: str, name: str, text: Text) -> None:
        """A ResourceClaim is as its text says."""
        self._devices.claim_written(self, (namespace, name), text)

    def claim_removed(self, namespace: str, name: str) -> None:
        self._devices.claim_removed(self, (namespace, name))

    def _follow(self, event: str, *told: object) -> None:
        self._followed.take((event, told, self.step, self.time))

    def workload_written(
        self, kind: str, namespace: str, name: str, uid: str, fact: object
    ) -> None:
        """A workload was written, as a fact or its line says."""
        self._follow("written", kind, namespace, name, uid, fact)

    def workload_removed(self, kind: str, namespace: str, name: str) -> None:
        self._follow("removed", kind, namespace, name)

    def budget_written(self, namespace: str, name: str, text: Text) -> None:
        """A PodDisruptionBudget is as its text says."""
        self._follow("budget_written", namespace, name, text)

    def budget_removed(self, namespace: str, name: str) -> None:
        self._follow("budget_removed", namespace, name)

    def pod_restarted(self, namespace: str, name: str, restarts: int) -> PodEntry | None:
        """A container of a pod, whose entry this returns, began once more; so often they did."""
        pod = self.pod(namespace, name)
        if pod is not None:
            times = restarts - pod.restarts
            self._follow("restarted", namespace, pod.owner, times)
        return pod

    def publish(self, name: str, devices: Amounts) -> None:
        """So many more devices are on a node, or on none in particular."""
        node = self._standing.get(name)
        if name == NO_NODE:
            self._moments.touch_all()
            add_amounts(self.totals.allocatable, devices, 1)
        elif node is not None:
            self._moments.touch(name)
            self._offer(node)

    def occupy(self, name: str, devices: Amounts, sign: int) -> None:
        """Devices of a node, or of none in particular, are allocated, or no more."""
        is_standing = name in self._standing
        if name == NO_NODE:
            if sign > 0:
                self._moments.grow_all()
            else:
                self._moments.touch_all()
        else:
            room = self._room(name).requested
            if is_standing and sign > 0:
                self._moments.grow(name, room)
            elif is_standing:
                self._moments.touch(name)
            add_amounts(room, devices, sign)
        if is_standing or name == NO_NODE:
            add_amounts(self.totals.requested, devices, sign)

    def _add_node(self, name: str) -> NodeEntry:
        self._moments.touch(name)
        self._moments.forget(name)
        node = NodeEntry(name, self.step, self.time, room=self._room(name))
        self._standing[name] = node
        self.nodes.append(node)
        self._count(node, 1)
        self._nodes_ready += 1
        return node

    def node_removed(self, name: str) -> None:
        """A node is gone. Pods that were on it still say so, but take nothing."""
        node = self._standing.get(name)
        if node is None:
            return
        self._moments.touch(name)
        del self._standing[name]
        node.reach(self._moments.peak(name))
        node.last_use = node.use
        node.ended_step, node.ended_time = self.step, self.time
        self._count(node, -1)
        self._nodes_ready -= not is_broken(node.marks)
        add_amounts(self.totals.allocatable, node.allocatable, -1)

    def _count(self, node: NodeEntry, sign: int) -> None:
        """A node comes or goes, with what pods take of it."""
        self.totals.nodes += sign
        add_amounts(self.totals.requested, node.room.requested, sign)

    def _room(self, name: str) -> Room:
        room = self.rooms.get(name)
        if room is None:
            room = self.rooms[name] = Room()
        return room

    def pod_created(self, namespace: str, name: str, uid: str, state: PodState) -> None:
        """A pod came. One that came with its node never waits for a scheduler."""
        key = (namespace, name)
        pod = self._add_pod(key, uid)
        pod.came_with_node, pod.owner = bool(state.node), state.owner
        pod.labels, pod.ask, pod.phase = state.labels, state.ask, state.phase
        if state.node or state.phase in FINAL_PHASES:
            self._take(pod, state)

    def pod_written(self, namespace: str, name: str, uid: str, state: PodState) -> None:
        """A pod was changed."""
        pod = self._pods.get((namespace, name))
        if pod is None or pod.uid != uid:
            pod = self._add_pod((namespace, name), uid)
        self._take(pod, state)

    def pod_finished(self, namespace: str, name: str, phase: str) -> PodEntry | None:
        """A pod, whose entry this returns, has ended by itself; its object stays."""
        pod = self.pod(namespace, name)
        if pod is not None:
            self._come_to(pod, phase)
        return pod

    def pod_bound(self, namespace: str, name: str, node: str) -> None:
        """A pod got its node; nothing else about it changed."""
        pod = self._pods.get((namespace, name))
        if pod is not None and pod.state == PENDING:
            self._bind(pod, node)

    def _add_pod(self, key: PodKey, uid: str) -> PodEntry:
        before = self._pods.get(key)
        if before is not None and before.state != DELETED:
            self._end(before, DELETED)
        pod = self._pods[key] = PodEntry(*key, uid, self.step, self.time)
        self.pods.append(pod)
        self.states[PENDING] += 1
        if self._current is not None:
            self._current.created_pods += 1
        return pod

    def _take(self, pod: PodEntry, state: PodState) -> None:
        pod.labels = state.labels
        self._come_to(pod, state.phase)
        if pod.holds_room:
            if pod.ask.requests is not state.ask.requests:
                self._settle(pod, -1)
                self.machines.resized(pod, self.time)
                pod.ask = state.ask
                self._settle(pod, 1)
            return
        pod.ask = state.ask
        if pod.state == PENDING and state.node:
            self._bind(pod, state.node)

    def _come_to(self, pod: PodEntry, phase: str) -> None:
        pod.phase = phase
        if phase in FINAL_PHASES and pod.state in (PENDING, BOUND):
            self._end(pod, FINISHED)

    def _bind(self, pod: PodEntry, node: str) -> None:
        pod.node = node
        if pod.bound_time is None:
            pod.bound_step, pod.bound_time = self.step, self.time
        self._move(pod, BOUND)
        self._settle(pod, 1)

    def _settle(self, pod: PodEntry, sign: int) -> None:
        """A pod takes its room, or leaves it."""
        node, requests = pod.node, pod.ask.requests
        room = (self.rooms.get(node) or self._room(node)).requested
        if is_standing := node in self._standing:
            if sign > 0:
                self._moments.grow(node, room)
            else:
                self._moments.touch(node)
        add_amounts(room, requests, sign)
        room[PODS] += sign
        if is_standing:
            total = self.totals.requested
            add_amounts(total, requests, sign)
            total[PODS] += sign

    def _move(self, pod: PodEntry, state: str) -> None:
        self.states[pod.state] -= 1
        self.states[state] += 1
        pod.state = state

    def _end(self, pod: PodEntry, state: str) -> None:
        if pod.holds_room:
            self._settle(pod, -1)
        if pod.ended_time is None:
            pod.ended_step, pod.ended_time = self.step, self.time
        self._move(pod, state)

    def deleted(self) -> None:
        """An object was deleted, of whatever kind."""
        if self._current is not None:
            self._current.deleted += 1

    def pod_deleted(self, namespace: str, name: str, *, marked: bool) -> None:
        """The deletion of a pod was accepted; if it is only marked, `pod_ended` comes later."""
        pod = self.pod(namespace, name)
        if pod is None:
            return
        if marked and pod.state in (PENDING, BOUND):
            self._move(pod, TERMINATING)
        elif not marked:
            self._end(pod, DELETED)

    def pod_ended(self, namespace: str, name: str) -> None:
        """The deletion of a pod is carried out."""
        pod = self.pod(namespace, name)
        if pod is not None:
            self._end(pod, DELETED)

    def attempted(self, namespace: str, name: str, node: str) -> PodEntry | None:
        """A scheduler ended an attempt at a pod, whose entry this returns.

        The node is empty if it found none.
        """
        if self._current is not None:
            if node:
                self._current.scheduled += 1
            else:
                self._current.failed_attempts += 1
        pod = self._pods.get((namespace, name))
        if pod is not None:
            pod.attempts += 1
            if not node:
                pod.failed_attempts += 1
                self._refused[namespace, name] = pod
        return pod

    def preempted(self, namespace: str, name: str, node: str, preemptor: str) -> PodEntry | None:
        """A pod, whose entry this returns, had to leave; its deletion was entered before."""
        if self._current is not None:
            self._current.preempted += 1
        pod = f"{namespace}/{name}"
        self.preemptions.append(PreemptionEntry(pod, node, preemptor, self.step, self.time))
        return self._pods.get((namespace, name))


class FollowedWorkloads:
    """Workloads and budgets, as far as somebody has asked for them.

    With ``puts_off``, what is told of them is read for the first who asks; it keeps until then.
    """

    def __init__(self, *, puts_off: bool) -> None:
        self.workloads: list[WorkloadEntry] = []
        self.budgets: list[BudgetEntry] = []
        self.owners: dict[str, str] = {}
        self._puts_off = puts_off
        self._unread: list[Told] = []
        self._follower: WorkloadFollower | None = None

    def take(self, told: Told) -> None:
        """Something was told of a workload, or of a budget."""
        self._unread.append(told)
        if not self._puts_off:
            self.read()

    def read(self) -> Self:
        """Everything that was told."""
        unread, self._unread = self._unread, []
        for event, told, step, time in unread:
            getattr(self._following, event)(*told, WrittenAt(step, time))
        return self

    @property
    def _following(self) -> "WorkloadFollower":
        """Who reads workloads; loaded with the first of them."""
        if self._follower is None:
            from kubescene.results.over_time.following import WorkloadFollower

            self._follower = WorkloadFollower(self.workloads, self.budgets, self.owners)
        return self._follower


class Moments:
    """The moments of a step, and how full nodes and cluster were at most.

    A *moment* is the end of a minor step, or an instant at which virtual time goes on: what is
    written together, such as the operations of a step, is not looked at halfway. What only grows is
    fullest at the end: so it looks at what was when something is about to shrink, and at the end of
    the step. Say beforehand what is about to change.
    """

    def __init__(self, standing: Mapping[str, NodeEntry], totals: Totals) -> None:
        self._standing = standing
        self._totals = totals
        self._cluster = Peak()
        self._peaks: dict[str, Peak | None] = {}
        """Of the nodes that changed since the step began; None of one that has only grown."""
        self._before: dict[str, Amounts | None] = {}
        """What was asked of those that have grown in this moment until then, `CLUSTER` for all of
        them; None if it need not be looked at."""
        self._is_first = True
        """Whether no moment of the step is over."""

    def begin(self, peak: Peak) -> None:
        """A step begins, with the cluster as it is, the peak of which is to be told."""
        self._cluster, self._peaks, self._before = peak, {}, {}
        self._is_first = True

    def end(self) -> None:
        """A moment is over."""
        self._is_first = False
        if self._before:
            self._before = {}

    def grow(self, name: str, requested: Amounts) -> None:
        """More is about to be asked of a node than these amounts."""
        if name not in self._peaks:
            self._peaks[name] = None
        if not self._is_first:
            self.grow_all()
            if name not in self._before:
                self._before[name] = {**requested}

    def grow_all(self) -> None:
        """The same of the cluster, perhaps of something that belongs to no single node."""
        if not self._is_first and CLUSTER not in self._before:
            self._before[CLUSTER] = {**self._totals.requested}

    def touch(self, name: str) -> None:
        """Something else about a node is about to change; until now it was as it is."""
        self.touch_all()
        peak = self._peaks.get(name)
        if peak is None:
            peak = self._peaks[name] = Peak()
        node = self._standing.get(name)
        if node is not None and not self._is_first:
            self._look(name, peak, node.room.requested, node.allocatable)

    def touch_all(self) -> None:
        """The same about the cluster, perhaps about something that belongs to no single node."""
        if not self._is_first:
            totals = self._totals
            self._look(CLUSTER, self._cluster, totals.requested, totals.allocatable)

    def _look(self, name: str, peak: Peak, requested: Amounts, allocatable: Amounts) -> None:
        """At what was when this moment began, once."""
        was = self._before.get(name, requested)
        self._before[name] = None
        if was is not None:
            peak.look(was, allocatable)

    def forget(self, name: str) -> None:
        """Another node has that name from now on."""
        self._peaks[name] = self._before[name] = None

    def peak(self, name: str) -> Peak:
        """Of a node that is about to go."""
        return self._peaks[name] or Peak()

    def rest(self, step: StepEntry) -> None:
        """The step is over: note how it leaves the nodes, and what they were at most."""
        totals = self._totals
        self._cluster.look(totals.requested, totals.allocatable)
        for name, seen in self._peaks.items():
            node = self._standing.get(name)
            if node is None:
                step.nodes[name] = None
                if seen is not None and seen.allocatable:
                    step.peaks[name] = use_of(seen)
                continue
            step.nodes[name] = node.use
            requested, allocatable = node.room.requested, node.allocatable
            if seen is None or not seen.allocatable:
                now = self._peaks[name] = Peak.of(requested, allocatable)
                node.reach(now)
                continue
            seen.look(requested, allocatable)
            node.reach(seen)
            if not seen.is_now(requested, allocatable):
                step.peaks[name] = use_of(seen)


def use_of(peak: Peak) -> StepNodeUse:
    return StepNodeUse({**peak.allocatable}, {**peak.requested})
