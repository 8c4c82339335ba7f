"""NodeAffinity: ``nodeSelector`` and required node affinity choose nodes, preferred affinity rates
them. [F-5, F-6, F-8, F-9]

A profile may ask more of the nodes of all its pods: its ``addedAffinity`` comes first.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct

from kubescene.api.records.changes import Change
from kubescene.api.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
    aggregate,
    node_selector,
    node_selector_term,
)
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
from kubescene.scheduler.framework.normalization import normalize_by_maximum
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.node_selectors import Mask, select, select_label, select_term
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REFUSED_ADDED = 2


class Affinity(Struct, frozen=True):
    """What a pod asks of its node. ``preferred`` is None if it has no preferred terms at all."""

    labels: tuple[Requirement, ...]
    required: NodeSelector | None
    preferred: tuple[tuple[int, NodeSelectorTerm], ...] | None
    errors: tuple[str, ...]

    @property
    def requires_something(self) -> bool:
        return bool(self.labels) or self.required is not None

    @property
    def is_faulty(self) -> bool:
        """Whether some required term cannot be understood."""
        return self.required is not None and any(term.errors for term in self.required.terms)

    def admits(self, labels: Mapping[str, str], name: str) -> bool:
        if not all(each.matches(labels) for each in self.labels):
            return False
        return self.required is None or self.required.matches(labels, name)

    def preference(self, labels: Mapping[str, str], name: str) -> int:
        return sum(weight for weight, term in self.preferred or () if term.matches(labels, name))


class AddedAffinity(Struct, frozen=True):
    """What a profile asks of every node. ``required`` None: nothing."""

    required: NodeSelector | None = None
    preferred: tuple[tuple[int, NodeSelectorTerm], ...] | None = None

    def admits(self, labels: Mapping[str, str], name: str) -> bool:
        return self.required is None or self.required.matches(labels, name)

    def preference(self, labels: Mapping[str, str], name: str) -> int:
        return sum(weight for weight, term in self.preferred or () if term.matches(labels, name))


NOTHING_ADDED = AddedAffinity()


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
    rates_by_spec = True
    prepares_by_class = True
    normalizes_alone = True
    REASON = "node(s) didn't match Pod's node affinity/selector"
    REASON_CONFLICT = "pod affinity terms conflict"
    REASON_ADDED = "node(s) didn't match scheduler-enforced node affinity"
    REFUSED = Status.unresolvable(REASON)
    REFUSED_ADDED = Status.unresolvable(REASON_ADDED)

    def __init__(self, added: AddedAffinity = NOTHING_ADDED) -> None:
        self._added = added

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        affinity = affinity_of(pod)
        if not affinity.requires_something and self._added.required is None:  # F-5
            return SKIP, None
        names = affinity.required.node_names() if affinity.required is not None else None
        if names is None:
            return SUCCESS, None
        if not names:
            return Status.unresolvable(self.REASON_CONFLICT), None
        return SUCCESS, frozenset(names)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not self._added.admits(node.labels, node.name):  # F-7
            return self.REFUSED_ADDED
        return SUCCESS if affinity_of(pod).admits(node.labels, node.name) else self.REFUSED

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        codes = (~self._admitted(affinity_of(pod), nodes, rows)).astype(np.int64)
        if self._added.required is not None:
            codes[~select(self._added.required, nodes, rows)] = _REFUSED_ADDED
        return codes

    def _admitted(self, affinity: Affinity, nodes: NodeTable, rows: Rows) -> Mask:
        admitted = np.ones(rows.size, dtype=np.bool_)
        for requirement in affinity.labels:
            admitted &= select_label(requirement, nodes, rows)
        if affinity.required is not None:
            admitted &= select(affinity.required, nodes, rows)
        return admitted

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED_ADDED if code == _REFUSED_ADDED else self.REFUSED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        affinity = affinity_of(pod)
        if affinity.preferred is None and self._added.preferred is None:  # SC-2
            return SKIP
        return Status.error(aggregate(affinity.errors)) if affinity.errors else SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        labels, name = node.labels, node.name
        return affinity_of(pod).preference(labels, name) + self._added.preference(labels, name)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        scores = np.zeros(rows.size, dtype=np.int64)
        for weight, term in (*(affinity_of(pod).preferred or ()), *(self._added.preferred or ())):
            scores += select_term(term, nodes, rows) * np.int64(weight)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return normalize_by_maximum(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return [
            EventRegistration(node, partial(_after_node_change, self._added), by_signature=True)
        ]

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.node_affinity(signature)


def affinity_of(pod: PodInfo) -> Affinity:
    return pod.pod_class.compiled(compile_affinity)


def compile_affinity(pod_class: PodClass) -> Affinity:
    spec = pod_class.spec
    asked = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = asked.get(REQUIRED)
    labels = spec.get("nodeSelector") or {}
    terms = _preferred(asked.get(PREFERRED) or ())
    return Affinity(
        labels=tuple(Requirement(key, Operator.IN, (text,)) for key, text in labels.items()),
        required=None if required is None else node_selector(required),
        preferred=terms if asked.get(PREFERRED) else None,
        errors=tuple(error for _, term in terms for error in term.errors),
    )


def _preferred(given: Iterable[Mapping[str, Any]]) -> tuple[tuple[int, NodeSelectorTerm], ...]:
    """Weights and terms; those without a weight or a requirement do not count."""
    terms = []
    for index, each in enumerate(given):
        term = node_selector_term(each.get("preference") or {}, path=f"[{index}]")
        if each.get("weight") and not term.is_empty:
            terms.append((each["weight"], term))
    return tuple(terms)


def _after_node_change(added: AddedAffinity, pod: PodInfo, change: Change) -> Hint:
    affinity, record, before = affinity_of(pod), change.record, change.previous
    if not added.admits(record.labels, record.name):
        return Hint.SKIP
    if not affinity.admits(record.labels, record.name):
        return _unless_faulty(affinity, record.labels)
    # What was added is not held against the node as it was.
    if before is not None and affinity.admits(before.labels, before.name):
        return Hint.SKIP
    return Hint.QUEUE


def _unless_faulty(affinity: Affinity, labels: Mapping[str, str]) -> Hint:
    """No node is refused for sure as long as a term cannot be understood: an error wakes. [Q-11]"""
    selected = all(each.matches(labels) for each in affinity.labels)
    return Hint.QUEUE if selected and affinity.is_faulty else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del handle
    asked = arguments.get("addedAffinity") or {}
    required, preferred = asked.get(REQUIRED), asked.get(PREFERRED)
    added = AddedAffinity(
        None if required is None else node_selector(required),
        _preferred(preferred) if preferred else None,
    )
    return NodeAffinity(added)
