"""The loop of the cluster autoscaler: look, scale up, scale down, tell."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from kubescene.client.interfaces import Client
from kubescene.clock import Clock
from kubescene.durations import HOUR, SECOND, parse_duration
from kubescene.node_autoscaling.actuation import (
    Actuator,
    Bucket,
    ClusterWriter,
    DeleteResult,
    WriteRefusedError,
    remove_taint,
    update_soft_taints,
)
from kubescene.node_autoscaling.cluster_state import ClusterState
from kubescene.node_autoscaling.drainability import Budgets
from kubescene.node_autoscaling.expanders import expander_chain
from kubescene.node_autoscaling.flags import Flags, GroupFlags
from kubescene.node_autoscaling.nodes import TO_BE_DELETED, SeenNode, TaintKinds
from kubescene.node_autoscaling.packing import Packing
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provider import NodeGroup, Provider, ProviderError
from kubescene.node_autoscaling.provisioning.process import ProvisioningRequests, RequestWorld
from kubescene.node_autoscaling.scale_down import (
    InProgress,
    NodeUtilization,
    ScaleDownPlanner,
    utilization,
)
from kubescene.node_autoscaling.scale_up import (
    ScaleUp,
    ScaleUpPlanner,
    ScaleUpResult,
    Unhelped,
    tell_pods,
)
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.node_autoscaling.status import AutoscalerStatus
from kubescene.node_autoscaling.telling import Teller
from kubescene.node_autoscaling.templates import NodeTemplate, NodeTemplates
from kubescene.scheduler.options import SchedulerOptions
from kubescene.types import JsonObject

NEW_POD = 2 * SECOND
"""While all waiting pods are younger than this, nothing is decided: more may be coming."""
SCALE_UP_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"


class AutoscalerWorld(ClusterWriter, Teller, Protocol):
    """What the autoscaler sees, and how it acts. Everything is as it is at this moment."""

    def nodes(self) -> Sequence[SeenNode]:
        """All nodes, in order of first appearance."""

    def daemon_sets(self) -> Sequence[JsonObject]: ...

    def controller(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """The owner of pods, if it exists."""

    def config_map(self, name: str) -> JsonObject | None:
        """A ConfigMap of the autoscaler's namespace."""

    def warn(self, config_map: str, reason: str, message: str) -> None:
        """Record an Event about a ConfigMap."""


class DeletedNode(Struct, frozen=True):
    """A node whose deletion began."""

    node: str
    group: str
    utilization: NodeUtilization
    evicted: tuple[SeenPod, ...] | None = None
    """Of nodes that are drained."""


class ScaleDown(Struct):
    """What came of a scale-down."""

    result: str = "NotTried"
    nodes: Sequence[DeletedNode] = ()
    results: Mapping[str, DeleteResult] = field(default_factory=dict)


class LoopReport(Struct):
    """All that one loop decided."""

    now: int
    error: str = ""
    is_cut_off: bool = False
    """Whether the provider did not answer, so that nothing was decided and no status is known."""
    pending: Sequence[SeenPod] | None = None
    """Pods that fit on no node that is there or coming."""
    scale_ups: list[ScaleUp] = field(default_factory=list)
    candidates: Sequence[str] = ()
    scale_down: ScaleDown = field(default_factory=ScaleDown)


class ClusterAutoscaler:
    """One process of the autoscaler. What it remembers is lost with it."""

    def __init__(
        self,
        flags: Flags,
        provider: Provider,
        world: AutoscalerWorld,
        client: Client,
        clock: Clock,
        started: int,
        options: SchedulerOptions | None = None,
        *,
        immediate: bool = False,
        requests: RequestWorld | None = None,
    ) -> None:
        """``requests`` are where ProvisioningRequests are found, if they are to be answered."""
        self.flags = flags
        self.immediate = immediate
        """Whether ages of pods do not matter, and nodes only come."""
        self.provider = provider
        self._world = world
        self._flags_by_group: dict[str, tuple[Mapping[str, object], GroupFlags]] = {}
        self._expanders = expander_chain(flags.expander)
        self._taints = TaintKinds(
            flags.startup_taint, flags.startup_taint_prefix, flags.status_taint
        )
        self._templates = NodeTemplates(
            self._taints,
            force_daemons=flags.force_ds,
            kept_for=flags.node_info_cache_expire_time,
        )
        self._packing = Packing()
        self.requests = None if requests is None else ProvisioningRequests(flags, requests, world)
        self._is_new = True
        self.snapshot = ClusterSnapshot(client, clock, options or SchedulerOptions())
        self.state = ClusterState(provider, world, flags, self.flags_of)
        self.status = AutoscalerStatus(self.state, provider)
        self.planner = ScaleDownPlanner(
            flags, self.flags_of, provider, self.snapshot, world.controller
        )
        self.actuator = Actuator(
            flags, self.flags_of, provider, self.state, world, world, world.controller
        )
        self.templates: Mapping[str, NodeTemplate] = {}
        self.last_scale_up = self.last_scale_down = self.last_failure = started - HOUR

    def flags_of(self, group: NodeGroup) -> GroupFlags:
        known = self._flags_by_group.get(group.id)
        if known is None or known[0] != group.options:
            known = (dict(group.options), self.flags.for_group(group.options, group.id))
            self._flags_by_group[group.id] = known
        return known[1]

    # -- one loop --------------------------------------------------------------------------

    def run_once(self, now: int) -> LoopReport:
        """Look at the cluster and act on it.

        A provider that does not even answer ends the loop; it is asked again in the next one.
        """
        loop = _Loop(self, self._world, now)
        try:
            if self._is_new:
                self._clean_up()
                self._is_new = False
            loop.run()
        except ProviderError as error:
            loop.report.error, loop.report.is_cut_off = str(error), True
        self.snapshot.forget_suppositions()
        return loop.report

    def _clean_up(self) -> None:
        """A process that was there before may have left taints."""
        for node in self._world.nodes():
            if self.provider.group_of(node.provider_id, node.name) is None:
                continue
            if not node.has_taint(TO_BE_DELETED):
                continue
            cordoned = self.flags.cordon_node_before_terminating
            try:
                remove_taint(self._world, node.name, TO_BE_DELETED, cordoned=cordoned)
            except WriteRefusedError as error:
                message = f"failed to clean {TO_BE_DELETED} on node {node.name}: {error}"
                self._world.about_node(node.name, "Warning", "ClusterAutoscalerCleanup", message)
                continue
            message = f"removed {TO_BE_DELETED} taint from node {node.name}"
            self._world.about_node(node.name, "Normal", "ClusterAutoscalerCleanup", message)

    def seen(self, nodes: Sequence[SeenNode]) -> list[SeenNode]:
        return [self._taints.seen(each) for each in nodes]

    def recompute_templates(self, nodes: Sequence[SeenNode], now: int) -> None:
        self.templates = self._templates.recompute(
            self.snapshot, nodes, self.provider, self._world.daemon_sets(), now
        )
        self.state.templates = frozenset(self.templates)

    def left_by_packing(self, pods: Sequence[SeenPod]) -> list[SeenPod]:
        return self._packing.leftover(self.snapshot, pods)

    def scale_up_planner(self, nodes: int, now: int) -> ScaleUpPlanner:
        return ScaleUpPlanner(
            self.flags,
            self.flags_of,
            self.provider,
            self.state,
            self.snapshot,
            self.templates,
            self._world,
            self._expanders,
            _Options(self._world, self.provider, nodes),
            now,
        )


class _Options(Struct, frozen=True):
    """What expanders look at."""

    _world: AutoscalerWorld
    provider: Provider
    _nodes: int

    def config_map(self, name: str) -> JsonObject | None:
        return self._world.config_map(name)

    def node_count(self) -> int:
        return self._nodes

    def warn(self, config_map: str, reason: str, message: str) -> None:
        self._world.warn(config_map, reason, message)


class _Loop:
    """One run through all that is to be done."""

    def __init__(self, autoscaler: ClusterAutoscaler, world: AutoscalerWorld, now: int) -> None:
        self._own = autoscaler
        self._world = world
        self._now = now
        self._flags = autoscaler.flags
        self._hold_scale_down = False
        self._nodes: list[SeenNode] = []
        self._ready = 0
        self._not_tried = ScaleUp(ScaleUpResult.NOT_TRIED)
        self._going: InProgress = autoscaler.actuator.in_progress
        self.report = LoopReport(now)

    def run(self) -> None:
        own = self._own
        self._nodes = own.seen(self._world.nodes())
        self._ready = sum(each.is_ready and not each.is_cordoned for each in self._nodes)
        self._listed = len(self._nodes)
        if own.requests is not None:
            own.requests.expire(self._now)
        waiting = self._show_cluster()
        own.recompute_templates(self._nodes, self._now)
        own.state.update(self._nodes, self._now)
        try:
            self._repair_and_scale(waiting)
        except ProviderError as error:
            self.report.error = str(error)
        self._finish()

    def _show_cluster(self) -> list[SeenPod]:
        """Fill the snapshot; the pods that wait for a node."""
        cutoff = self._flags.expendable_pods_priority_cutoff
        bound, nominated, waiting = [], [], []
        for pod in self._world.pods():
            if pod.is_expendable(cutoff):
                continue
            if pod.info.node:
                bound.append(pod)
            elif pod.deleted is not None:
                continue
            elif pod.info.nominated_node:
                nominated.append(pod)
            elif pod.is_unschedulable or (self._own.immediate and not pod.is_gated):
                waiting.append(pod)
        self._own.snapshot.show(self._nodes, [*bound, *nominated])
        self._budgets = Budgets(self._world.budgets())
        return waiting

    def _repair_and_scale(self, waiting: list[SeenPod]) -> None:
        own, state = self._own, self._own.state
        self._remove_unregistered()
        if not state.is_healthy:
            own.planner.forget_unneeded()
            self._world.about_status("Warning", "ClusterUnhealthy", "Cluster is unhealthy")
            return
        self._remove_failed()
        if self._fix_sizes():
            return
        self._show_upcoming()
        pending = self._pending(waiting)
        self.report.pending = pending
        self._scale_up(self._old_enough(pending))
        if self._flags.scale_down_enabled and not self._own.immediate:
            self._scale_down()
        if self._flags.enforce_node_group_min_size and not self.report.error:
            self._tried(self._planner().to_least_sizes())

    def _finish(self) -> None:
        self._own.status.update(self._now)
        if not self.report.scale_ups:
            self.report.scale_ups.append(self._not_tried)
            tell_pods(self._world, self._not_tried)
        self.report.scale_down.results = self._own.actuator.taken_results()

    # -- repairs ---------------------------------------------------------------------------

    def _remove_unregistered(self) -> None:
        """Give back machines that should have had a node long ago."""
        state, groups = self._own.state, {each.id: each for each in self._own.provider.groups()}
        overdue: dict[str, list[str]] = {}
        for each in sorted(state.unregistered.values(), key=lambda it: it.id):
            group = self._own.provider.group_of(each.id, each.id)
            if group is not None and state.is_overdue(each, group, self._now):
                overdue.setdefault(group.id, []).append(each.id)
        for name in sorted(overdue):
            group = groups[name]
            possible = group.target_size() - group.min_size
            if possible <= 0:
                continue
            ids = self._all_or_these(group, overdue[name][:possible])
            if ids and not self._removed(group, ids):
                return

    def _removed(self, group: NodeGroup, ids: Sequence[str]) -> bool:
        error = ""
        try:
            group.delete(ids)
        except ProviderError as refusal:
            error = str(refusal)
        self._own.state.forget_instances(group.id)
        for each in ids:
            if error:
                message = f"Failed to remove node {each}: {error}"
                self._world.about_status("Warning", "DeleteUnregisteredFailed", message)
            else:
                message = f"Removed unregistered node {each}"
                self._world.about_status("Normal", "DeleteUnregistered", message)
        return not error

    def _all_or_these(self, group: NodeGroup, ids: Sequence[str]) -> Sequence[str]:
        if self._own.flags_of(group).zero_or_max:
            return [each.id for each in group.instances()]
        return ids

    def _remove_failed(self) -> None:
        """Give back machines that cannot be made."""
        state, groups = self._own.state, {each.id: each for each in self._own.provider.groups()}
        removed = False
        for name, failed in sorted(state.failed_instances().items()):
            ids = self._all_or_these(groups[name], failed)
            try:
                if ids:
                    groups[name].delete(ids)
                    state.forget_instances(name)
                    removed = True
            except ProviderError:
                continue  # Tried again in the next loop.
        if removed:
            state.recalculate()

    def _fix_sizes(self) -> bool:
        """No longer wait for machines that nobody makes."""
        fixed = False
        for group in self._own.provider.groups():
            wrong = self._own.state.wrong_sizes.get(group.id)
            if wrong is None or wrong.current >= wrong.expected:
                continue
            if wrong.since + self._own.flags_of(group).max_node_provision_time < self._now:
                try:
                    group.decrease_target(wrong.expected - wrong.current)
                except ProviderError as error:
                    raise ProviderError(f"failed to decrease {group.id}: {error}") from None
                fixed = True
        return fixed

    def _show_upcoming(self) -> None:
        """Nodes that are on their way take pods, too."""
        own, state = self._own, self._own.state
        upcoming = state.upcoming(self._now)
        for group, count in sorted(upcoming.items()):
            for at in range(count if group in own.templates else 0):
                fresh = own.templates[group].another(f"upcoming-{at}")
                own.snapshot.add_node(fresh.node, fresh.pods)
        gone = {name for group in upcoming for name in state.not_started(group)}
        self._nodes = [each for each in self._nodes if each.name not in gone]
        for name in sorted(gone):
            if name in own.snapshot:
                own.snapshot.remove_node(name)

    # -- scale-up --------------------------------------------------------------------------

    def _pending(self, waiting: list[SeenPod]) -> list[SeenPod]:
        """The pods that fit nowhere, those of nodes being drained included."""
        snapshot = self._own.snapshot
        leaving = [
            pod.unbound()
            for name in self._going.drained
            if name in snapshot
            for pod in snapshot.pods_on(name)
            if pod.deleted is None and pod.comes_back
        ]
        packed = self._own.left_by_packing([*waiting, *leaving])
        left = [pod for pod in packed if not pod.is_daemon]
        requests = self._own.requests
        return left if requests is None else requests.join(left, snapshot, self._now)

    def _old_enough(self, pods: Sequence[SeenPod]) -> list[SeenPod]:
        if self._own.immediate:
            return [*pods]
        return [pod for pod in pods if self._now - pod.created > self._delay_of(pod)]

    def _delay_of(self, pod: SeenPod) -> int:
        delay, asked = self._flags.new_pod_scale_up_delay, pod.annotations.get(SCALE_UP_DELAY)
        if asked is None:
            return delay
        try:
            return max(delay, parse_duration(asked))
        except ValueError:
            return delay

    def _scale_up(self, pods: list[SeenPod]) -> None:
        requests = self._own.requests
        refused = self._put_off(pods)
        if refused is not None and not (requests is not None and requests.insist(pods)):
            self._not_tried = refused
            return
        planner = self._planner()
        done = planner.for_pods(pods) if requests is None else requests.scale_up(pods, planner)
        self._tried(done)
        if done.result is ScaleUpResult.SUCCESSFUL:
            self.report.scale_down.result = "InCooldown"

    def _put_off(self, pods: Sequence[SeenPod]) -> ScaleUp | None:
        """Why nothing is ordered in this loop; None if it may be."""
        most = self._flags.max_nodes_total
        if not pods:
            return ScaleUp(ScaleUpResult.NOT_NEEDED)
        if most > 0 and self._ready >= most:
            message = f"Max total nodes in cluster reached: {most}"
            self._world.about_status("Warning", "MaxNodesTotalReached", message)
            unhelped = [Unhelped(pod, {}, {}) for pod in pods]
            return ScaleUp(ScaleUpResult.AT_MOST_NODES, remaining=unhelped)
        if not self._own.immediate and self._are_new(pods):
            self._hold_scale_down = True
            return ScaleUp(ScaleUpResult.IN_COOLDOWN)
        return None

    def _are_new(self, pods: Sequence[SeenPod]) -> bool:
        return min(pod.created for pod in pods) + NEW_POD > self._now

    def _tried(self, done: ScaleUp) -> None:
        self.report.scale_ups.append(done)
        tell_pods(self._world, done)
        if done.result is ScaleUpResult.SUCCESSFUL:
            self._own.last_scale_up = self._now

    def _planner(self) -> ScaleUpPlanner:
        return self._own.scale_up_planner(self._listed, self._now)

    # -- scale-down ------------------------------------------------------------------------

    def _scale_down(self) -> None:
        own, report = self._own, self.report.scale_down
        candidates = own.planner.candidates(self._nodes, self._is_held, self._now)
        self.report.candidates = [each.name for each in candidates]
        places = [each.name for each in self._nodes]
        own.planner.update(candidates, places, self._budgets, self._going, self._now)
        own.planner.note_candidates()
        own.status.note_candidates(self._groups_of_unneeded(), self._now)
        if self._is_in_cooldown():
            report.result = "InCooldown"
        elif not candidates:
            report.result = "NoCandidates"
        else:
            self._delete_nodes()
        if self._flags.max_bulk_soft_taint_count:
            self._update_soft_taints()
        if self.report.error:
            own.last_failure = self._now

    def _groups_of_unneeded(self) -> list[str]:
        groups = (
            self._own.provider.group_of(each.node.provider_id, each.node.name)
            for each in self._own.planner.unneeded.values()
        )
        return [group.id for group in groups if group is not None]

    def _is_held(self, group: str) -> bool:
        """Whether a group was resized only lately; asked only with delays by group."""
        flags, state = self._flags, self._own.state
        if not flags.scale_down_delay_type_local:
            return False
        delays = (
            (state.scaled_up, flags.scale_down_delay_after_add),
            (state.scaled_down, flags.scale_down_delay_after_delete),
            (state.scale_down_failed, flags.scale_down_delay_after_failure),
        )
        return any(group in at and at[group] + delay > self._now for at, delay in delays)

    def _is_in_cooldown(self) -> bool:
        own, flags = self._own, self._flags
        if self._hold_scale_down or flags.scale_down_delay_type_local:
            return self._hold_scale_down
        delays = (
            (own.last_scale_up, flags.scale_down_delay_after_add),
            (own.last_failure, flags.scale_down_delay_after_failure),
            (own.last_scale_down, flags.scale_down_delay_after_delete),
        )
        return any(at + delay > self._now for at, delay in delays)

    def _delete_nodes(self) -> None:
        own, report = self._own, self.report.scale_down
        empty, drained = own.planner.nodes_to_delete(self._going, self._now)
        own.actuator.forget_failures()
        buckets = own.actuator.cropped(own.snapshot, empty, drained)
        report.result = "NoNodeDeleted"
        for each, drain in zip(buckets, (False, True), strict=True):
            if each and not self.report.error:
                self._delete(each, drain)
        if report.result == "NodeDeleteStarted":
            own.last_scale_down = self._now
            own.state.recalculate()

    def _delete(self, buckets: list[Bucket], drain: bool) -> None:
        report = self.report.scale_down
        if not self._own.actuator.taint(buckets, self._now):
            # The real autoscaler counts those that failed after it has read them.
            self.report.error = "couldn't taint 0 nodes with ToBeDeleted"
            report.result = "Error"
            return
        deleted = [
            self._deleted(node, bucket.group, drain) for bucket in buckets for node in bucket.nodes
        ]
        self._own.actuator.start(buckets, self._now, drain=drain)
        report.nodes = [*report.nodes, *deleted]
        report.result = "NodeDeleteStarted"

    def _deleted(self, node: SeenNode, group: NodeGroup, drain: bool) -> DeletedNode:
        own = self._own
        pods = own.snapshot.pods_on(node.name)
        used = utilization(node, pods, own.flags_of(group), self._flags, self._now)
        used = used or NodeUtilization(0.0, 0.0)
        if not drain:
            message = f'Scale-down: removing empty node "{node.name}"'
            self._world.about_status("Normal", "ScaleDownEmpty", message)
            return DeletedNode(node.name, group.id, used)
        evicted = tuple(pod for pod in pods if not (pod.is_mirror or pod.is_daemon))
        message = (
            f"Scale-down: removing node {node.name}, utilization: {_shown(used)}, "
            f"pods to reschedule: {','.join(pod.name for pod in evicted)}"
        )
        self._world.about_status("Normal", "ScaleDown", message)
        return DeletedNode(node.name, group.id, used, evicted)

    def _update_soft_taints(self) -> None:
        own = self._own
        nodes = [
            each
            for each in self._nodes
            if own.provider.group_of(each.provider_id, each.name) is not None
        ]
        most = self._flags.max_bulk_soft_taint_count
        update_soft_taints(self._world, nodes, own.planner.unneeded, most, self._now)


def _shown(used: NodeUtilization) -> str:
    cpu, memory = _number(used.cpu), _number(used.memory)
    return f"{{{cpu} {memory} 0 0 {used.resource} {_number(used.most)}}}"


def _number(share: float) -> str:
    return repr(share).removesuffix(".0")
