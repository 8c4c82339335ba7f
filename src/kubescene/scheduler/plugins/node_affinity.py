"""NodeAffinity: ``nodeSelector`` and required node affinity choose nodes, preferred affinity rates
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubescene.api.changes import Change
from kubescene.api.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    aggregate,
    node_selector,
    node_selector_term,
)
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.interfaces import (
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
    NormalizePlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
    SeesPods,
)
from kubescene.scheduler.node_info import NodeInfo
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.normalizing import normalize_by_maximum
from kubescene.scheduler.pods import PodClass, PodInfo
from kubescene.scheduler.selection import select, select_label, select_term
from kubescene.scheduler.status import SKIP, SUCCESS, Status

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Affinity:
    """What a pod asks of its node. ``preferred`` is None if it has no preferred terms at all."""

    labels: tuple[Requirement, ...]
    required: NodeSelector | None
    preferred: tuple[tuple[int, NodeSelectorTerm], ...] | None
    errors: tuple[str, ...]

    @property
    def requires_something(self) -> bool:
        return bool(self.labels) or self.required is not None

    def admits(self, labels: Mapping[str, str], name: str) -> bool:
        if not all(each.matches(labels) for each in self.labels):
            return False
        return self.required is None or self.required.matches(labels, name)

    def preference(self, labels: Mapping[str, str], name: str) -> int:
        return sum(weight for weight, term in self.preferred or () if term.matches(labels, name))


class NodeAffinity(
    PreFilterPlugin,
    FilterPlugin,
    ClusterFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ClusterScorePlugin,
    NormalizePlugin,
    EnqueueExtensions,
):
    name = "NodeAffinity"
    reads = Reads.NODE
    sees_pods = SeesPods.NOTHING
    prepares_by_class = True
    normalizes_alone = True
    REASON = "node(s) didn't match Pod's node affinity/selector"
    REASON_CONFLICT = "pod affinity terms conflict"
    REFUSED = Status.unresolvable(REASON)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        affinity = affinity_of(pod)
        if not affinity.requires_something:
            return SKIP, None
        names = affinity.required.node_names() if affinity.required is not None else None
        if names is None:
            return SUCCESS, None
        if not names:
            return Status.unresolvable(self.REASON_CONFLICT), None
        return SUCCESS, frozenset(names)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if affinity_of(pod).admits(node.labels, node.name) else self.REFUSED

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        affinity = affinity_of(pod)
        admitted = np.ones(rows.size, dtype=np.bool_)
        for requirement in affinity.labels:
            admitted &= select_label(requirement, nodes, rows)
        if affinity.required is not None:
            admitted &= select(affinity.required, nodes, rows)
        return (~admitted).astype(np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        affinity = affinity_of(pod)
        if affinity.preferred is None:
            return SKIP
        return Status.error(aggregate(affinity.errors)) if affinity.errors else SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return affinity_of(pod).preference(node.labels, node.name)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        scores = np.zeros(rows.size, dtype=np.int64)
        for weight, term in affinity_of(pod).preferred or ():
            scores += select_term(term, nodes, rows) * np.int64(weight)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return normalize_by_maximum(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return [EventRegistration(node, _after_node_change, by_signature=True)]


def affinity_of(pod: PodInfo) -> Affinity:
    return pod.pod_class.compiled(compile_affinity)


def compile_affinity(pod_class: PodClass) -> Affinity:
    spec = pod_class.spec
    asked = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = asked.get(REQUIRED)
    labels = spec.get("nodeSelector") or {}
    terms: list[tuple[int, NodeSelectorTerm]] = []
    for index, each in enumerate(asked.get(PREFERRED) or ()):
        term = node_selector_term(each.get("preference") or {}, path=f"[{index}]")
        if each.get("weight") and not term.is_empty:
            terms.append((each["weight"], term))
    return Affinity(
        labels=tuple(Requirement(key, Operator.IN, (text,)) for key, text in labels.items()),
        required=None if required is None else node_selector(required),
        preferred=tuple(terms) if asked.get(PREFERRED) else None,
        errors=tuple(error for _, term in terms for error in term.errors),
    )


def _after_node_change(pod: PodInfo, change: Change) -> Hint:
    affinity = affinity_of(pod)
    if not affinity.admits(change.record.labels, change.record.name):
        return Hint.SKIP
    before = change.previous
    if before is not None and affinity.admits(before.labels, before.name):
        return Hint.SKIP
    return Hint.QUEUE


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return NodeAffinity()
