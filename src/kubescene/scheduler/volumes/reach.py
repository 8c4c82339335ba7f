"""Which nodes a volume, a topology or a storage pool can be reached from, as masks over all rows.

Volumes share few different node affinities (none, a zone, a host), and nodes seldom change their
labels: a mask is made once per affinity and kept until they do.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.api.selectors.node_selectors import NodeSelector, NodeSelectorTerm, node_selector
from kubescene.api.selectors.requirements import Operator, Requirement, SelectorError
from kubescene.scheduler.state.node_selectors import Mask, select_label
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import ReadOnlyObject

Stamp: TypeAlias = tuple[int, int]


class Reach:
    """Masks over the rows of one node table."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self.stamp: Stamp = (-1, -1)
        """Masks hold for one stamp, see `renew`."""
        self._masks: dict[Hashable, Mask] = {}
        self._rows: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def renew(self) -> None:
        """Forget all masks, and change the stamp, if nodes or their labels may have changed."""
        nodes = self._nodes
        stamp = (nodes.layout, nodes.newest_spec)
        if self.stamp != stamp:
            self.stamp = stamp
            self._masks.clear()
            self._rows = np.arange(len(nodes), dtype=np.intp)

    @property
    def rows(self) -> int:
        """How many rows the masks have."""
        return self._rows.size

    def affinity(self, required: bytes) -> Mask | None:
        """Where a volume's node affinity holds; None if it has none. See `affinity_key`."""
        if not required:
            return None
        return self._kept(required, self._by_affinity, required)

    def topologies(self, terms: Sequence[ReadOnlyObject]) -> Mask | None:
        """Where a class may provision; None if anywhere."""
        if not terms:
            return None
        key = orjson.dumps(terms)
        return self._kept(("terms", key), self._by_topologies, key)

    def labels(self, selector: ReadOnlyObject) -> Mask:
        """Where a label selector holds."""
        key = orjson.dumps(selector)
        return self._kept(("labels", key), self._by_labels, key)

    def _kept(self, key: Hashable, make: Callable[[bytes], Mask], written: bytes) -> Mask:
        found = self._masks.get(key)
        if found is None:
            if len(self._masks) * (self._rows.size + 1) > POLICY.reach_cells_kept:
                self._masks.clear()
            found = self._masks[key] = make(written)
        return found

    def _by_affinity(self, written: bytes) -> Mask:
        selector: NodeSelector = node_selector(orjson.loads(written))
        mask = np.zeros(self._rows.size, dtype=np.bool_)
        for term in selector.terms:
            mask |= self._by_term(term)
        return mask

    def _by_term(self, term: NodeSelectorTerm) -> Mask:
        # Upstream holds the selector against the labels alone, so the node has no name.
        nameless = all(_holds_without_name(each) for each in term.fields)
        if term.never_matches or not nameless:
            return np.zeros(self._rows.size, dtype=np.bool_)
        return self._all(term.expressions)

    def _by_topologies(self, written: bytes) -> Mask:
        mask = np.zeros(self._rows.size, dtype=np.bool_)
        for term in orjson.loads(written):
            listed = term.get("matchLabelExpressions") or ()
            if listed:
                mask |= self._all([_requirement(each) for each in listed])
        return mask

    def _by_labels(self, written: bytes) -> Mask:
        try:
            selector = from_label_selector(orjson.loads(written))
        except SelectorError:
            return np.zeros(self._rows.size, dtype=np.bool_)
        return self._all([_listed(each) for each in selector.requirements])

    def _all(self, requirements: Sequence[Requirement]) -> Mask:
        mask = np.ones(self._rows.size, dtype=np.bool_)
        for requirement in requirements:
            mask &= select_label(requirement, self._nodes, self._rows)
        return mask


def _requirement(written: ReadOnlyObject) -> Requirement:
    return Requirement(written["key"], Operator.IN, tuple(written.get("values") or ()))


def _listed(requirement: Requirement) -> Requirement:
    """The same in the form that is looked up rather than tried on every value."""
    if requirement.operator is not Operator.EQUALS:
        return requirement
    return Requirement(requirement.key, Operator.IN, requirement.values)


def _holds_without_name(requirement: Requirement) -> bool:
    return ("" in requirement.values) == (requirement.operator is Operator.IN)
