"""Hard constraints: what PreFilter prepares and Filter reads.

With the pod on a node, no domain may hold more than ``maxSkew`` pods more than the emptiest one.
Which nodes count is said by an `Eligibility`.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubescene.api.selectors import find_untolerated
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.groups import RowCounter
from kubescene.scheduler.domains.tallies import DomainTally
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.plugins.node_affinity import compile_affinity
from kubescene.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint, SpreadPods
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.node_selectors import select, select_label
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo


class Eligibility(NamedTuple):
    """Nodes that have all these labels; with ``affinity``, that the node affinity of these pods
    admits; with ``tolerating``, that they tolerate the taints of (PTS-3).
    """

    keys: tuple[str, ...] = ()
    affinity: PodClass | None = None
    tolerating: PodClass | None = None

    def admits(self, node: NodeInfo) -> bool:
        if not all(key in node.labels for key in self.keys):
            return False
        if self.affinity is not None:
            affinity = self.affinity.compiled(compile_affinity)
            if not affinity.admits(node.labels, node.name):
                return False
        if self.tolerating is None:
            return True
        return find_untolerated(node.taints, self.tolerating.tolerations) is None

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_] | None:
        """The same for all nodes at once; None if all count."""
        mask = np.ones(len(nodes), dtype=np.bool_)
        for key in self.keys:
            mask &= nodes.label(key).ids >= 0
        if self.affinity is not None:
            mask &= _admitted(self.affinity, nodes)
        if self.tolerating is not None:
            mask &= _tolerated(self.tolerating, nodes)
        return None if mask.all() else mask


def _admitted(pod_class: PodClass, nodes: NodeTable) -> NDArray[np.bool_]:
    affinity, rows = pod_class.compiled(compile_affinity), np.arange(len(nodes), dtype=np.intp)
    mask = np.ones(rows.size, dtype=np.bool_)
    for requirement in affinity.labels:
        mask &= select_label(requirement, nodes, rows)
    return mask if affinity.required is None else mask & select(affinity.required, nodes, rows)


def _tolerated(pod_class: PodClass, nodes: NodeTable) -> NDArray[np.bool_]:
    tolerations = pod_class.tolerations
    each = [find_untolerated(taints, tolerations) is None for taints in nodes.taint_sets]
    return np.array(each, dtype=np.bool_).take(nodes.taint_ids)


MISSING_LABEL, SKEWED = 1, 2
_FEW_DOMAINS = 128


class CountedConstraint:
    """A constraint of pods of one signature: which pods and nodes it counts."""

    __slots__ = ("_counter", "constraint", "counted", "limit", "pods")

    def __init__(
        self, constraint: SpreadConstraint, signature: PodSignature, keys: tuple[str, ...]
    ) -> None:
        pod_class = signature.pod_class
        affine = constraint.honors_affinity and compile_affinity(pod_class).requires_something
        self.constraint = constraint
        self.pods = SpreadPods(signature.namespace, constraint.selector)
        self.counted = Eligibility(
            keys,
            pod_class if affine else None,
            pod_class if constraint.honors_taints else None,
        )
        self.limit = constraint.max_skew - constraint.matches(signature.labels)
        """How far above the emptiest domain a domain may be before the pod comes (PTS-5)."""
        self._counter: RowCounter | None = None

    def counter(self, census: PodCensus) -> RowCounter:
        self._counter = counter = census.counter(self._counter, self.pods)
        return counter

    def tally(self, census: PodCensus) -> DomainTally:
        return census.tally(self.counter(census), self.constraint.topology_key, self.counted)


def counted_constraints(
    constraints: Sequence[SpreadConstraint], signature: PodSignature, *, require_all: bool = True
) -> tuple[CountedConstraint, ...]:
    """With ``require_all``, only nodes count that have the keys of all constraints (PTS-3)."""
    keys = tuple(dict.fromkeys(each.topology_key for each in constraints)) if require_all else ()
    return tuple(CountedConstraint(each, signature, keys) for each in constraints)


class SpreadState:
    """Counts of one attempt; what is supposed beside them is in small overlays by domain."""

    __slots__ = ("_constraints", "_refused", "_supposed", "_tallies")

    def __init__(self, constraints: Sequence[CountedConstraint], census: PodCensus) -> None:
        self._constraints = constraints
        self._tallies = [each.tally(census) for each in constraints]
        self._supposed: list[dict[str, int]] | None = None
        self._refused: list[NDArray[np.int64] | None] | None = None

    def clone(self) -> "SpreadState":
        copy: SpreadState = object.__new__(SpreadState)
        copy._constraints = self._constraints
        copy._tallies = self._tallies
        supposed = self._supposed
        copy._supposed = None if supposed is None else [each.copy() for each in supposed]
        copy._refused = None
        return copy

    def suppose(self, pod: PodInfo, namespace: str, node: NodeInfo, sign: int) -> None:
        """A pod came to a node, or left it. Any pod that the selector matches counts (PTS-7)."""
        if pod.namespace != namespace:
            return
        if self._supposed is None:
            self._supposed = [{} for _ in self._constraints]
        for each, supposed in zip(self._constraints, self._supposed, strict=True):
            if each.constraint.matches(pod.labels) and each.counted.admits(node):
                value = node.labels[each.constraint.topology_key]
                supposed[value] = supposed.get(value, 0) + sign

    # -- one node --------------------------------------------------------------------------

    def judge(self, node: NodeInfo) -> int:
        """0, or what speaks against the node: the first constraint that fails decides (PTS-5)."""
        for at, (each, tally) in enumerate(zip(self._constraints, self._tallies, strict=True)):
            value = node.labels.get(each.constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            supposed = self._supposed[at] if self._supposed else {}
            count = tally.amounts.item(tally.domain(value)) + supposed.get(value, 0)
            if count - _lowest(tally, supposed, each.constraint.min_domains) > each.limit:
                return SKEWED
        return 0

    # -- all nodes -------------------------------------------------------------------------

    def key(self) -> Hashable:
        """Different whenever an answer may be."""
        return tuple(
            tally.version if refused is None else refused.tobytes()
            for tally, refused in zip(self._tallies, self._by_domain(), strict=True)
        )

    def judge_rows(self, nodes: NodeTable, rows: Rows) -> Codes:
        if self._supposed is not None:
            return np.array([self.judge(nodes.infos[row]) for row in rows.tolist()], dtype=np.int64)
        codes: Codes | None = None
        for at, refused in enumerate(self._by_domain()):
            tally = self._tallies[at]
            ids = tally.ids.take(rows)
            if refused is not None:
                found = refused.take(ids)
            else:
                found = self._skewed(at, tally.amounts.take(ids))
                if tally.lacks_label:
                    found[ids < 0] = MISSING_LABEL
            codes = found if codes is None else np.where(codes, codes, found)
        assert codes is not None
        return codes

    def _by_domain(self) -> list[NDArray[np.int64] | None]:
        """For each constraint with few domains, the code of each of them."""
        if self._refused is None:
            self._refused = [self._table(at) for at in range(len(self._tallies))]
        return self._refused

    def _table(self, at: int) -> NDArray[np.int64] | None:
        tally = self._tallies[at]
        if tally.amounts.size > _FEW_DOMAINS:
            return None
        codes = self._skewed(at, tally.amounts)
        codes[-1] = MISSING_LABEL
        return codes

    def _skewed(self, at: int, amounts: NDArray[np.int64]) -> Codes:
        each = self._constraints[at]
        most = each.limit + _lowest(self._tallies[at], {}, each.constraint.min_domains)
        return (amounts > most) * np.int64(SKEWED)


def _lowest(tally: DomainTally, supposed: dict[str, int], min_domains: int) -> int:
    """The count of the emptiest domain; 0 if there are too few of them (PTS-4)."""
    if tally.domains < min_domains:
        return 0
    if not supposed:
        return tally.lowest()
    return tally.lowest_with({tally.domain(value): more for value, more in supposed.items()})
