"""NodeResourcesFit: a node must have enough left of everything the pod requests. [F-11, F-12]

All resources that fall short are reported. If the pod asks for more than the node has
altogether, no preemption can help [PR-16]. How nodes are rated is a matter of `scoring_strategies`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from kubescene.api.records.changes import Change
from kubescene.api.resource_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Amounts,
    is_counted,
    is_extended,
    is_scalar,
    node_allocatable,
    pod_requests,
)
from kubescene.scheduler.devices.classes import DeviceClass, DeviceClasses, WatchedClasses
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    ClusterFilterPlugin,
    ClusterScorePlugin,
    Codes,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Hint,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
    SeesPods,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.plugins.scoring_strategies import (
    LeastAllocated,
    ScoringStrategy,
    make_strategy,
)
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

TOO_MANY_PODS = "Too many pods"
_ORDER = (CPU, MEMORY, EPHEMERAL_STORAGE)
_MOST_RESOURCES = 46
UNRESOLVABLE = 1 << _MOST_RESOURCES + 1
_DEFAULT_RESOURCES: Sequence[Mapping[str, Any]] = (
    {"name": CPU, "weight": 1},
    {"name": MEMORY, "weight": 1},
)


class FitChecks(Struct, frozen=True):
    """What has to be checked for a pod: resource and amount, in order of the reasons."""

    amounts: tuple[tuple[str, int], ...]

    def reasons(self, code: int) -> tuple[str, ...]:
        reasons = [TOO_MANY_PODS] if code & 1 else []
        for bit, (resource, _) in enumerate(self.amounts, 1):
            if code >> bit & 1:
                reasons.append(f"Insufficient {resource}")
        return tuple(reasons)


class Ignored(Struct, frozen=True):
    """Extended resources that somebody else looks after: by name, or by what is before the slash
    (F-13)."""

    resources: frozenset[str]
    groups: frozenset[str]

    def covers(self, resource: str) -> bool:
        if not is_extended(resource):
            return False
        return resource in self.resources or resource.partition("/")[0] in self.groups


class NodeResourcesFit(
    PreFilterPlugin,
    FilterPlugin,
    ClusterFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ClusterScorePlugin,
    EnqueueExtensions,
):
    name = "NodeResourcesFit"
    reads = Reads.NODE
    sees_pods = SeesPods.AMOUNTS
    prepares_by_class = True

    def __init__(
        self,
        weights: Sequence[tuple[str, int]],
        strategy: ScoringStrategy | None = None,
        ignored: Ignored | None = None,
        classes: DeviceClasses | None = None,
    ) -> None:
        self.weights = tuple(each for each in weights if is_counted(each[0]))
        self.strategy = strategy or LeastAllocated()
        self._ignored = ignored
        self._ignoring = Memo(self._without_ignored)
        self.classes = classes or DeviceClasses()

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return SUCCESS, None

    def _checks(self, pod: PodInfo) -> FitChecks:
        return checks_of(pod) if self._ignored is None else self._ignoring[pod.pod_class]

    def _without_ignored(self, pod_class: PodClass) -> FitChecks:
        assert self._ignored is not None
        amounts = make_checks(pod_class.requests).amounts
        return FitChecks(tuple(each for each in amounts if not self._ignored.covers(each[0])))

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        code = shortages(self._checks(pod), node.allocatable, node.requested, self.classes)
        return self.describe(state, pod, code) if code else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        used, offered = nodes.requested(PODS).take(rows), nodes.allocatable(PODS).take(rows)
        codes = (used >= offered).astype(np.int64)
        for bit, (resource, amount) in enumerate(self._checks(pod).amounts, 1):
            offered = nodes.allocatable(resource).take(rows)
            short = (amount > offered - nodes.requested(resource).take(rows)).nonzero()[0]
            if short.size and self.classes.of_resource(resource) is not None:
                short = short[offered[short] > 0]  # DynamicResources sees to the others: F-13
            if short.size:
                codes[short] |= 1 << bit
                codes[short[amount > offered[short]]] |= UNRESOLVABLE
        return codes

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        rejection = Code.UNRESOLVABLE if code & UNRESOLVABLE else Code.UNSCHEDULABLE
        return Status(rejection, self._checks(pod).reasons(code))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        strategy, total, weights = self.strategy, 0, 0
        requests, allocatable = pod.pod_class.scoring_requests, node.allocatable
        for resource, weight in self.weights:
            asked, offered = requests.get(resource, 0), allocatable.get(resource, 0)
            if offered == 0 or (asked == 0 and is_scalar(resource)):
                continue
            if resource == CPU:
                used = node.nonzero_cpu
            elif resource == MEMORY:
                used = node.nonzero_memory
            else:
                used = node.requested.get(resource, 0)
            rating = strategy.rate(used + asked, offered)
            if rating or strategy.counts_zero:
                total += weight * rating
                weights += weight
        return strategy.average(total, weights)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        strategy = self.strategy
        total = np.zeros(rows.size, dtype=np.int64)
        weights: Scores | int = 0
        for resource, weight in self.weights:
            asked = pod.pod_class.scoring_requests.get(resource, 0)
            if asked == 0 and is_scalar(resource):
                continue
            offered = nodes.allocatable(resource).take(rows)
            used = _used_column(nodes, resource).take(rows)
            used += asked
            if nodes.is_offered_everywhere(resource):
                ratings, counts = strategy.rate_nodes(used, offered), None
            else:
                counts = offered > 0
                ratings = strategy.rate_nodes(used, np.where(counts, offered, 1))
                ratings *= counts
            if not strategy.counts_zero:
                counts = ratings > 0
            weights = weights + (weight if counts is None else weight * counts)
            total += ratings if weight == 1 else ratings * weight
        return strategy.average_nodes(total, weights)

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        deleted = ClusterEvent(EventResource.POD, Action.DELETE)
        scaled_down = ClusterEvent(EventResource.POD, Action.UPDATE_POD_SCALE_DOWN)
        device_class = ClusterEvent(EventResource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
        return [
            EventRegistration(deleted, _after_pod_deletion, by_signature=True),
            EventRegistration(scaled_down, _after_scale_down, by_signature=True),
            EventRegistration(node, self._after_node_change, by_signature=True),
            EventRegistration(device_class, _after_class_change, by_signature=True),
        ]

    def _after_node_change(self, pod: PodInfo, change: Change) -> Hint:
        """A node came or offers something else: would the pod fit if the node were empty?"""
        offered = node_allocatable(change.object)
        checks = self._left(pod, offered)
        if any(amount > offered.get(name, 0) for name, amount in checks) or not offered[PODS]:
            return Hint.SKIP
        if change.previous_object is None or len(checks) < len(checks_of(pod).amounts):
            return Hint.QUEUE
        before = node_allocatable(change.previous_object)
        names = (PODS, *(name for name, _ in checks))
        grew = any(offered.get(name, 0) > before.get(name, 0) for name in names)
        return Hint.QUEUE if grew else Hint.SKIP

    def _left(self, pod: PodInfo, offered: Amounts) -> list[tuple[str, int]]:
        """What a node itself has to offer; devices stand for the rest."""
        classes = self.classes
        return [
            (name, amount)
            for name, amount in checks_of(pod).amounts
            if offered.get(name, 0) or classes.of_resource(name) is None
        ]

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.resources(signature)


def checks_of(pod: PodInfo) -> FitChecks:
    return pod.pod_class.compiled(_compile)


def compiled_checks(pod_class: PodClass) -> FitChecks:
    return pod_class.compiled(_compile)


def _compile(pod_class: PodClass) -> FitChecks:
    return make_checks(pod_class.requests)


def make_checks(requests: Amounts) -> FitChecks:
    scalars = sorted(name for name in requests if is_scalar(name))
    names = [name for name in (*_ORDER, *scalars) if requests.get(name, 0) > 0]
    if len(names) > _MOST_RESOURCES:
        raise ValueError(f"a pod can ask for {_MOST_RESOURCES} resources, not for {len(names)}")
    return FitChecks(tuple((name, requests[name]) for name in names))


def shortages(
    checks: FitChecks, allocatable: Amounts, requested: Amounts, classes: DeviceClasses
) -> int:
    """0 if the pod fits, else one bit per shortage; the highest bit says that it never will.

    A resource that the node does not offer and a class of devices backs is no shortage (F-13).
    """
    code = int(requested[PODS] >= allocatable[PODS])
    for bit, (resource, amount) in enumerate(checks.amounts, 1):
        offered = allocatable.get(resource, 0)
        if amount > offered - requested.get(resource, 0):
            if not offered and classes.of_resource(resource) is not None:
                continue
            code |= 1 << bit
            if amount > offered:
                code |= UNRESOLVABLE
    return code


def _used_column(nodes: NodeTable, resource: str) -> Scores:
    if resource == CPU:
        return nodes.nonzero_cpu
    if resource == MEMORY:
        return nodes.nonzero_memory
    return nodes.requested(resource)


def _after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """A pod left its node, or gave up the node it was nominated to."""
    gone = change.previous_object or change.object
    nominated = (gone.get("status") or {}).get("nominatedNodeName")
    return Hint.QUEUE if gone["spec"].get("nodeName") or nominated else Hint.SKIP


def _after_scale_down(pod: PodInfo, change: Change) -> Hint:
    """This pod asks for less, or one on a node does of something that this pod asks for."""
    if change.record.uid == pod.uid:
        return Hint.QUEUE
    before = change.previous_object
    if not change.record.node or before is None:
        return Hint.SKIP
    return Hint.QUEUE if _asks_less(before, change.object, pod) else Hint.SKIP


def _asks_less(before: ReadOnlyObject, after: ReadOnlyObject, pod: PodInfo) -> bool:
    old, new = pod_requests(before), pod_requests(after)
    return any(old.get(name, 0) > new.get(name, 0) for name, _ in checks_of(pod).amounts)


def _after_class_change(pod: PodInfo, change: Change) -> Hint:
    """A class of devices backs a resource that the pod asks for, and did not before."""
    after = DeviceClass(change.object)
    before = None if change.previous_object is None else DeviceClass(change.previous_object)
    names = {after.resource} if after.resource else set()
    if before is None:
        names.add(after.implicit_resource)
    elif before.resource == after.resource:
        return Hint.SKIP
    return Hint.SKIP if names.isdisjoint(pod.requests) else Hint.QUEUE


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    strategy = arguments.get("scoringStrategy") or {}
    resources = strategy.get("resources") or _DEFAULT_RESOURCES
    ignored = Ignored(
        frozenset(arguments.get("ignoredResources") or ()),
        frozenset(arguments.get("ignoredResourceGroups") or ()),
    )
    return NodeResourcesFit(
        [(each["name"], each.get("weight") or 1) for each in resources],
        make_strategy(strategy),
        ignored if ignored.resources or ignored.groups else None,
        handle.shared(WatchedClasses),
    )
