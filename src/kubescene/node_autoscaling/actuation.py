"""Actuation: taints, evictions and deletions, over time.

What is started in a loop goes on between loops: each step is due at an instant (`next_due`), and
done by `run`.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from kubescene.durations import SECOND
from kubescene.errors import KubesceneError
from kubescene.node_autoscaling.cluster_state import ClusterState
from kubescene.node_autoscaling.drainability import Budgets, DrainRules, FindController
from kubescene.node_autoscaling.flags import Flags, GroupFlags
from kubescene.node_autoscaling.nodes import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    SeenNode,
    candidate_taint,
    deletion_taint,
)
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provider import NodeGroup, Provider, ProviderError
from kubescene.node_autoscaling.scale_down import InProgress, registered
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.node_autoscaling.telling import Teller
from kubescene.types import JsonObject

EVICTION_RETRY = 10 * SECOND
POD_POLL = 5 * SECOND
POD_HEADROOM = 30 * SECOND
WHOLE_GROUP = "couldn't scale down other nodes in this node group"
DAEMON_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"


class ClusterWriter(Protocol):
    """How the autoscaler changes what the API server holds; refusals are `WriteRefusedError`."""

    def change_node(self, name: str, change: Callable[[JsonObject], JsonObject | None]) -> bool:
        """Write what ``change`` makes of the node as it is now; False if it leaves it."""

    def evict(self, pod: SeenPod, grace: int) -> None:
        """Evict a pod; one that is gone is evicted."""

    def node_of(self, pod: SeenPod) -> str | None:
        """Where a pod of this name is now; None if there is none."""

    def pods(self) -> Sequence[SeenPod]:
        """All pods that have not ended."""

    def budgets(self) -> Iterable[JsonObject]:
        """All PodDisruptionBudgets."""


class WriteRefusedError(KubesceneError):
    """The API server did not carry out a write; the text is what it said."""


class DeletionOutcome(StrEnum):
    """What became of a deletion."""

    OK = "Ok"
    EVICTION = "FailedToEvictPods"
    DELETION = "FailedToDelete"
    INTERNAL = "Internal"


class DeleteResult(Struct, frozen=True):
    outcome: DeletionOutcome
    error: str = ""


class Bucket(Struct):
    """Nodes of a group that go together; ``batch``: as many as have to be ready first."""

    group: NodeGroup
    nodes: list[SeenNode]
    batch: int = 0


class _Task(Struct, order=True):
    due: int
    number: int
    run: Callable[[int], None]


class _Eviction(Struct):
    """The drain of a node. ``full`` have to go, ``daemons`` are only asked to."""

    node: SeenNode
    group: NodeGroup
    batch: int
    is_drain: bool
    full: list[SeenPod]
    daemons: list[SeenPod]
    retry_until: int
    waiting: list[SeenPod] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    wait_until: int = 0


class Actuator:
    """Deletions under way, and what became of those that ended."""

    def __init__(
        self,
        flags: Flags,
        flags_of: Callable[[NodeGroup], GroupFlags],
        provider: Provider,
        state: ClusterState,
        writer: ClusterWriter,
        teller: Teller,
        controllers: FindController,
    ) -> None:
        self._flags = flags
        self._flags_of = flags_of
        self._provider = provider
        self._state = state
        self._writer = writer
        self._teller = teller
        self._controllers = controllers
        self._empty: dict[str, str] = {}
        self._drained: dict[str, str] = {}
        self._tasks: list[_Task] = []
        self._number = 0
        self._queues: dict[str, list[SeenNode]] = {}
        self._failed_groups: set[str] = set()
        self._batches: dict[str, list[tuple[SeenNode, bool]]] = {}
        self.results: dict[str, DeleteResult] = {}

    @property
    def in_progress(self) -> InProgress:
        by_group: dict[str, int] = {}
        for group in (*self._empty.values(), *self._drained.values()):
            by_group[group] = by_group.get(group, 0) + 1
        return InProgress(sorted(self._empty), sorted(self._drained), by_group)

    @property
    def next_due(self) -> int | None:
        return self._tasks[0].due if self._tasks else None

    def run(self, now: int) -> None:
        """Do all that is due."""
        while self._tasks and self._tasks[0].due <= now:
            task = heapq.heappop(self._tasks)
            task.run(task.due)

    def _later(self, due: int, run: Callable[[int], None]) -> None:
        self._number += 1
        heapq.heappush(self._tasks, _Task(due, self._number, run))

    # -- starting --------------------------------------------------------------------------

    def cropped(
        self, snapshot: ClusterSnapshot, empty: Sequence[SeenNode], drained: Sequence[SeenNode]
    ) -> tuple[list[Bucket], list[Bucket]]:
        """As many of them as may go at once, by group."""
        return _Crop(self._flags, self._flags_of, snapshot, self.in_progress).run(
            self._buckets(empty), self._buckets(drained)
        )

    def _buckets(self, nodes: Iterable[SeenNode]) -> list[Bucket]:
        buckets: dict[str, Bucket] = {}
        for node in nodes:
            group = self._provider.group_of(node.provider_id, node.name)
            if group is not None:
                buckets.setdefault(group.id, Bucket(group, [])).nodes.append(node)
        return [*buckets.values()]

    def forget_failures(self) -> None:
        self._failed_groups.clear()

    def taint(self, buckets: Sequence[Bucket], now: int) -> bool:
        """Mark nodes so that no pods come any more; all of them, or none."""
        nodes = [node for bucket in buckets for node in bucket.nodes]
        marked, failed = [], []
        for node in nodes:
            error = self._mark(node.name, now)
            if error:
                failed.append((node.name, error))
            else:
                marked.append(node.name)
        for name, error in failed:
            self._tell_refused(name, error)
        if failed:
            for name in marked:
                self._unmark(name)
        return not failed

    def _mark(self, name: str, now: int) -> str:
        cordon = self._flags.cordon_node_before_terminating
        try:
            add_taint(self._writer, name, deletion_taint(now), cordon=cordon)
        except WriteRefusedError as error:
            self._tell_refused(name, str(error))
            return str(error)
        told = "marked the node as toBeDeleted/unschedulable"
        self._teller.about_node(name, "Normal", "ScaleDown", told)
        return ""

    def _tell_refused(self, name: str, error: str) -> None:
        message = f"failed to mark the node as toBeDeleted/unschedulable: {error}"
        self._teller.about_node(name, "Warning", "ScaleDownFailed", message)

    def _unmark(self, name: str) -> None:
        cordoned = self._flags.cordon_node_before_terminating
        with suppress(WriteRefusedError):  # It keeps its taint then; nobody is told.
            remove_taint(self._writer, name, TO_BE_DELETED, cordoned=cordoned)

    def start(self, buckets: Sequence[Bucket], now: int, *, drain: bool) -> None:
        """Begin to delete nodes that are marked."""
        under_way = self._drained if drain else self._empty
        for bucket in buckets:
            under_way |= {node.name: bucket.group.id for node in bucket.nodes}
            look = _Look(self, bucket, drain)
            self._later(now + self._flags.node_delete_delay_after_taint, look)

    # -- some seconds later ----------------------------------------------------------------

    def look_again(self, bucket: Bucket, drain: bool, now: int) -> None:
        """Look at marked nodes again: pods may have come meanwhile."""
        budgets = Budgets(self._writer.budgets() if drain else ())
        controllers = self._controllers if drain else None
        rules = DrainRules(self._flags, budgets, controllers, now)
        cutoff = self._flags.expendable_pods_priority_cutoff
        pods = [each for each in self._writer.pods() if not each.is_expendable(cutoff)]
        batch = bucket.batch or len(bucket.nodes)
        for node in bucket.nodes:
            there = [pod for pod in pods if pod.info.node == node.name]
            error = _obstacle(node.name, rules, there, drain)
            if error:
                result = DeleteResult(DeletionOutcome.INTERNAL, error)
                self._abort(node, bucket.group, result, drain=drain)
            else:
                self._evict(node, bucket.group, batch, there, now, drain=drain)

    def _evict(
        self,
        node: SeenNode,
        group: NodeGroup,
        batch: int,
        pods: Sequence[SeenPod],
        now: int,
        *,
        drain: bool,
    ) -> None:
        flags = self._flags
        by_default = (
            flags.daemonset_eviction_for_occupied_nodes
            if drain
            else flags.daemonset_eviction_for_empty_nodes
        )
        there = [pod for pod in pods if not pod.is_mirror]
        daemons = [pod for pod in there if pod.is_daemon and _is_evicted(pod, by_default)]
        full = [pod for pod in there if not pod.is_daemon] if drain else []
        retry_until = now + flags.max_pod_eviction_time
        eviction = _Eviction(node, group, batch, drain, full, daemons, retry_until)
        eviction.waiting = [*full, *daemons]
        for pod in eviction.waiting:
            told = "deleting pod for node scale down"
            self._teller.about_pod(pod, "Normal", "ScaleDown", told)
        _TryEvictions(self, eviction)(now)

    def try_evictions(self, eviction: _Eviction, now: int) -> None:
        """Ask for all evictions that were refused so far; give up after a while."""
        if eviction.errors and now >= eviction.retry_until:
            self._give_up(eviction, now)
            return
        refused = []
        for pod in sorted(eviction.waiting, key=lambda it: it.key):
            try:
                self._writer.evict(pod, self._grace(pod))
            except WriteRefusedError as error:
                eviction.errors[pod.uid] = str(error)
                refused.append(pod)
        eviction.waiting = refused
        if refused:
            self._later(now + EVICTION_RETRY, _TryEvictions(self, eviction))
        else:
            self._await(eviction, now)

    def _grace(self, pod: SeenPod) -> int:
        most = self._flags.max_graceful_termination_sec
        return min(pod.grace, most) if most > 0 else pod.grace

    def _give_up(self, eviction: _Eviction, now: int) -> None:
        waiting = {pod.uid for pod in eviction.waiting}
        errors = []
        for pod in eviction.full:
            if pod.uid in waiting:
                told = "failed to delete pod for ScaleDown"
                self._teller.about_pod(pod, "Warning", "ScaleDownFailed", told)
                last = f"(last error: {eviction.errors[pod.uid]})"
                errors.append(f"failed to evict pod {pod.key} within allowed timeout {last}")
        if not errors:
            self._await(eviction, now)
            return
        text = (
            f"Failed to drain node /{eviction.node.name}, due to following errors: "
            f"[{' '.join(errors)}]"
        )
        self._not_drained(eviction, text)

    def _not_drained(self, eviction: _Eviction, text: str) -> None:
        result = DeleteResult(DeletionOutcome.EVICTION, text)
        self._abort(eviction.node, eviction.group, result, drain=eviction.is_drain)

    def _await(self, eviction: _Eviction, now: int) -> None:
        most = self._flags.max_graceful_termination_sec * SECOND
        eviction.wait_until = now + most + POD_HEADROOM
        self.poll(eviction, now)

    def poll(self, eviction: _Eviction, now: int) -> None:
        """Go on once all pods are gone, or it has taken too long."""
        name = eviction.node.name
        if now >= eviction.wait_until and eviction.full:
            text = f"Failed to drain node /{name}: pods remaining after timeout"
            self._not_drained(eviction, text)
        elif any(self._writer.node_of(pod) == name for pod in eviction.full):
            self._later(now + POD_POLL, _Poll(self, eviction))
        else:
            self._hand_over(eviction, now)

    # -- deleting --------------------------------------------------------------------------

    def _hand_over(self, eviction: _Eviction, now: int) -> None:
        """A node is ready to be deleted."""
        node, group, drain = eviction.node, eviction.group, eviction.is_drain
        queue = self._queues.setdefault(group.id, [])
        queue.append(node)
        if self._flags_of(group).zero_or_max:
            if group.id in self._failed_groups:
                self._fail(node, DeleteResult(DeletionOutcome.DELETION, WHOLE_GROUP), drain=drain)
                self._queues.pop(group.id)
                return
            if len(queue) < eviction.batch:
                return
        self._queues[group.id] = []
        ready = [(each, drain) for each in queue]
        interval = self._flags.node_deletion_batcher_interval
        if not interval:
            self._delete(ready, now)
        elif group.id in self._batches:
            self._batches[group.id] += ready
        else:
            self._batches[group.id] = ready
            self._later(now + interval, _DeleteBatch(self, group.id))

    def delete_batch(self, group: str, now: int) -> None:
        self._delete(self._batches.pop(group), now)

    def _delete(self, ready: list[tuple[SeenNode, bool]], now: int) -> None:
        ready.sort(key=lambda each: each[0].name)
        first = ready[0][0]
        group = self._provider.group_of(first.provider_id, first.name)
        error = ""
        if group is None:
            error = f"picked node that doesn't belong to a node group: {first.name}"
        else:
            try:
                group.delete([node.name for node, _ in ready])
            except ProviderError as refusal:
                self._state.scale_down_failed[group.id] = now
                error = f"failed to delete nodes from group {group.id}: {refusal}"
        for node, drain in ready:
            if error or group is None:
                self._fail(node, DeleteResult(DeletionOutcome.DELETION, error), drain=drain)
            else:
                self._state.scaled_down[group.id] = now
                self._succeed(node, drain=drain)

    def _succeed(self, node: SeenNode, *, drain: bool) -> None:
        told = "nodes removed by cluster autoscaler"
        self._teller.about_node(node.name, "Normal", "ScaleDown", told)
        if drain:
            message = f"Scale-down: node {node.name} removed with drain"
            self._teller.about_status("Normal", "ScaleDown", message)
        else:
            message = f"Scale-down: empty node {node.name} removed"
            self._teller.about_status("Normal", "ScaleDownEmpty", message)
        self._end(node, DeleteResult(DeletionOutcome.OK))

    def _abort(
        self, node: SeenNode, group: NodeGroup, result: DeleteResult, *, drain: bool
    ) -> None:
        """A deletion failed; those of its group that wait for others fail with it."""
        self._failed_groups.add(group.id)
        self._fail(node, result, drain=drain)
        for other in self._queues.pop(group.id, []):
            if other.name != node.name:
                self._fail(other, DeleteResult(DeletionOutcome.DELETION, WHOLE_GROUP), drain=drain)

    def _fail(self, node: SeenNode, result: DeleteResult, *, drain: bool) -> None:
        what = "failed to drain and delete node" if drain else "failed to delete empty node"
        message = f"{what}: {result.error}"
        self._teller.about_node(node.name, "Warning", "ScaleDownFailed", message)
        self._unmark(node.name)
        self._end(node, result)

    def _end(self, node: SeenNode, result: DeleteResult) -> None:
        self.results[node.name] = result
        self._empty.pop(node.name, None)
        self._drained.pop(node.name, None)

    def taken_results(self) -> dict[str, DeleteResult]:
        """What became of deletions since this was asked last."""
        results, self.results = self.results, {}
        return dict(sorted(results.items()))


class _Look(Struct):
    actuator: Actuator
    bucket: Bucket
    drain: bool

    def __call__(self, now: int) -> None:
        self.actuator.look_again(self.bucket, self.drain, now)


class _TryEvictions(Struct):
    actuator: Actuator
    eviction: _Eviction

    def __call__(self, now: int) -> None:
        self.actuator.try_evictions(self.eviction, now)


class _Poll(Struct):
    actuator: Actuator
    eviction: _Eviction

    def __call__(self, now: int) -> None:
        self.actuator.poll(self.eviction, now)


class _DeleteBatch(Struct):
    actuator: Actuator
    group: str

    def __call__(self, now: int) -> None:
        self.actuator.delete_batch(self.group, now)


def _is_evicted(daemon: SeenPod, by_default: bool) -> bool:
    said = daemon.annotations.get(DAEMON_EVICTION)
    return by_default if said is None else said == "true"


def _obstacle(node: str, rules: DrainRules, pods: Sequence[SeenPod], drain: bool) -> str:
    """Why a marked node cannot go after all; empty if it can."""
    found = rules.drain(pods)
    if found.blocking is not None:
        return f'GetPodsToMove for "{node}" returned error: {found.blocking.message}'
    if drain:
        return ""
    if found.moved:
        return f'failed to delete empty node "{node}", new pods scheduled'
    if found.awaited:
        return f'failed to delete empty node "{node}", active on-completion pods present'
    return ""


# -- how many at once ----------------------------------------------------------------------


class _Crop:
    """Budgets for deletions at the same time; groups of all or none may go beyond them once."""

    def __init__(
        self,
        flags: Flags,
        flags_of: Callable[[NodeGroup], GroupFlags],
        snapshot: ClusterSnapshot,
        going: InProgress,
    ) -> None:
        drained = len(going.drained)
        self._flags_of = flags_of
        self._snapshot = snapshot
        self._parallel = flags.max_scale_down_parallelism - len(going.empty) - drained
        self._drains = flags.max_drain_parallelism - drained
        self._may_overflow = True

    def run(
        self, empty: Sequence[Bucket], drained: Sequence[Bucket]
    ) -> tuple[list[Bucket], list[Bucket]]:
        whole = {each.group.id: each for each in drained if self._is_atomic(each)}
        chosen_empty, chosen_drained = self._whole_empty(empty, whole)
        done = {each.group.id for each in empty if self._is_atomic(each)}
        chosen_drained += self._whole_drained(
            [it for it in whole.values() if it.group.id not in done]
        )
        singles = [each for each in empty if not self._is_atomic(each)]
        taken = _first(singles, self._parallel)
        self._parallel -= sum(len(each.nodes) for each in taken)
        self._drains = min(self._parallel, self._drains)
        singles = [each for each in drained if not self._is_atomic(each)]
        return [*chosen_empty, *taken], [*chosen_drained, *_first(singles, self._drains)]

    def _is_atomic(self, bucket: Bucket) -> bool:
        return self._flags_of(bucket.group).zero_or_max

    def _whole_empty(
        self, empty: Sequence[Bucket], whole: dict[str, Bucket]
    ) -> tuple[list[Bucket], list[Bucket]]:
        chosen_empty, chosen_drained = [], []
        for bucket in [each for each in empty if self._is_atomic(each)]:
            partner = whole.get(bucket.group.id)
            drains = 0 if partner is None else len(partner.nodes)
            count = len(bucket.nodes) + drains
            if self._parallel < count or self._drains < drains:
                nothing_left = self._parallel == 0 or (drains > 0 and self._drains == 0)
                if nothing_left or not self._may_overflow:
                    break
            if not self._is_complete(bucket, count):
                continue
            chosen_empty.append(bucket)
            if partner is not None:
                partner.batch = bucket.batch
                chosen_drained.append(partner)
            self._use(count, drains)
        self._drains = min(self._parallel, self._drains)
        return chosen_empty, chosen_drained

    def _whole_drained(self, drained: Sequence[Bucket]) -> list[Bucket]:
        chosen = []
        for bucket in drained:
            count = len(bucket.nodes)
            if self._drains < count and (self._drains == 0 or not self._may_overflow):
                break
            if self._is_complete(bucket, count):
                chosen.append(bucket)
                self._use(count, count)
        return chosen

    def _is_complete(self, bucket: Bucket, count: int) -> bool:
        """Whether these are all nodes of their group; tells how many have to be ready first."""
        target, there = bucket.group.target_size(), registered(self._snapshot, bucket.group)
        bucket.batch = there if len(bucket.nodes) == there else target
        return count in (target, there)

    def _use(self, count: int, drains: int) -> None:
        self._parallel -= count
        self._drains -= drains
        self._may_overflow = False


def _first(buckets: Sequence[Bucket], budget: int) -> list[Bucket]:
    taken = []
    for bucket in buckets:
        if budget < 1:
            break
        taken.append(Bucket(bucket.group, bucket.nodes[:budget], bucket.batch))
        budget -= len(taken[-1].nodes)
    return taken


# -- taints --------------------------------------------------------------------------------


def add_taint(writer: ClusterWriter, name: str, taint: JsonObject, *, cordon: bool = False) -> bool:
    """Add a taint unless there is one with its key; with it, keep new pods away."""

    def change(node: JsonObject) -> JsonObject | None:
        spec = node.get("spec") or {}
        taints = spec.get("taints") or []
        if any(each["key"] == taint["key"] for each in taints):
            return None
        spec = {**spec, "taints": [*taints, taint]}
        return {**node, "spec": {**spec, "unschedulable": True} if cordon else spec}

    return writer.change_node(name, change)


def remove_taint(writer: ClusterWriter, name: str, key: str, *, cordoned: bool = False) -> bool:
    """Remove the taints with a key, and let pods come again."""

    def change(node: JsonObject) -> JsonObject | None:
        spec = node.get("spec") or {}
        kept = [each for each in spec.get("taints") or () if each["key"] != key]
        if len(kept) == len(spec.get("taints") or ()):
            return None
        spec = {field: value for field, value in spec.items() if field != "taints"}
        if kept:
            spec["taints"] = kept
        if cordoned:
            spec.pop("unschedulable", None)
        return {**node, "spec": spec}

    return writer.change_node(name, change)


def update_soft_taints(
    writer: ClusterWriter,
    nodes: Sequence[SeenNode],
    unneeded: Iterable[str],
    most: int,
    now: int,
) -> None:
    """Let pods avoid the nodes that are not needed; at most so many writes at once."""
    names = set(unneeded)
    for node in nodes:
        if node.name in names or node.has_taint(TO_BE_DELETED):
            continue
        if most > 0 and node.has_taint(DELETION_CANDIDATE):
            most -= 1
            _quietly(lambda it: remove_taint(writer, it, DELETION_CANDIDATE), node.name)
    for node in nodes:
        if node.name not in names or node.has_taint(TO_BE_DELETED):
            continue
        if most > 0 and not node.has_taint(DELETION_CANDIDATE):
            most -= 1
            _quietly(lambda it: add_taint(writer, it, candidate_taint(now)), node.name)


def _quietly(write: Callable[[str], bool], node: str) -> None:
    with suppress(WriteRefusedError):  # Tried again in the next loop.
        write(node)
