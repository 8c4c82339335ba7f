"""Soft constraints: the fewer matching pods around a node, the better (SC-6).

Domains of a large topology hold fewer pods each; so that a hostname does not weigh less than a
zone, counts are multiplied by the logarithm of the number of domains.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Rows, Scores
from kubescene.scheduler.framework.normalization import highest
from kubescene.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME
from kubescene.scheduler.plugins.pod_topology_spread.filtering import CountedConstraint
from kubescene.scheduler.state.node_columns import LabelColumn
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_policy import POLICY

_COUNTS_RATED = 1 << 12


class SoftConstraints:
    """The soft constraints of pods of one signature.

    With ``require_all``, nodes that lack a topology key are left out. The system defaults do not
    require it, so that nodes without a zone are at least spread by hostname.
    """

    __slots__ = ("constraints", "require_all")

    def __init__(self, constraints: Sequence[CountedConstraint], *, require_all: bool) -> None:
        self.constraints = constraints
        self.require_all = require_all


class SpreadScores:
    """Score of one attempt, for the nodes that passed Filter."""

    __slots__ = ("_columns", "_ignored", "_parts", "_require_all")

    def __init__(
        self, soft: SoftConstraints, census: PodCensus, nodes: NodeTable, rows: Rows
    ) -> None:
        self._require_all = soft.require_all
        self._columns = [nodes.label(each.constraint.topology_key) for each in soft.constraints]
        self._ignored: NDArray[np.bool_] | None = None
        rated = self._leave_out(rows)
        # Where nodes may lack keys, one that none of them has says nothing about any.
        self._parts = [
            _Part(each, column, census, rated)
            for each, column in zip(soft.constraints, self._columns, strict=True)
            if column.values or soft.require_all
        ]

    def rate(self, rows: Rows, *, bare: bool = False) -> Scores:
        """The higher, the more matching pods there are; ignored nodes get 0.

        With ``bare``, nothing is known of what runs on the nodes themselves (X-5).
        """
        self._leave_out(rows)
        if not self._parts:
            return np.zeros(rows.size, dtype=np.int64)
        scores = self._parts[0].scores(rows, bare=bare) if len(self._parts) == 1 else None
        if scores is None:
            total = self._parts[0].rate(rows, bare=bare)
            for part in self._parts[1:]:
                total += part.rate(rows, bare=bare)
            scores = _rounded(total)
        if self._ignored is not None:
            scores[self._ignored] = 0
        return scores

    def rate_one(self, node: NodeInfo) -> int:
        """The same for one node, in plain words."""
        if self._require_all and not all(part.key in node.labels for part in self._parts):
            return 0
        total = sum(part.rate_one(node) for part in self._parts if part.key in node.labels)
        whole = math.floor(total)
        return whole + (total - whole >= 0.5)

    def normalized(self, scores: Scores) -> Scores:
        """The fewest pods become 100."""
        ignored = self._ignored
        rated = scores if ignored is None else scores[~ignored]
        most = highest(rated) if rated.size else 0
        if most == 0:
            final = np.full(scores.size, MAX_NODE_SCORE, dtype=np.int64)
        else:
            fewest: int = rated.item(rated.argmin())
            final = (most + fewest - scores) * MAX_NODE_SCORE // most
        if ignored is not None:
            final[ignored] = 0
        return final

    def _leave_out(self, rows: Rows) -> Rows:
        """Note which rows are ignored; returns the others."""
        self._ignored = None
        if not self._require_all:
            return rows
        ignored = self._columns[0].ids.take(rows) < 0
        for column in self._columns[1:]:
            ignored |= column.ids.take(rows) < 0
        if not ignored.any():
            return rows
        self._ignored = ignored
        return rows[~ignored]


class _Part:
    """What one constraint adds. Of a hostname, only the node itself matters: counts by row."""

    __slots__ = ("_column", "_counts", "_offset", "_weight", "key")

    def __init__(
        self, each: CountedConstraint, column: LabelColumn, census: PodCensus, rows: Rows
    ) -> None:
        self.key = each.constraint.topology_key
        self._column = column
        self._offset = float(each.constraint.max_skew - 1)
        self._counts: NDArray[Any]
        if self.key == HOSTNAME:
            self._counts = each.counter(census).amounts
            size = int(rows.size)
        else:
            self._counts = _by_domain(each, census)
            size = _domains(column, rows)
        self._weight = math.log(size + 2)

    def scores(self, rows: Rows, *, bare: bool) -> Scores | None:
        """Rounded, where it is the only part and all nodes have its key; None elsewhere.

        Many nodes have equally many pods: each number is rated once.
        """
        if not self._column.is_complete or not rows.size:
            return None
        counts = self._counts_at(rows, bare=bare)
        most = highest(counts)
        if most >= _COUNTS_RATED:
            return None
        return _scores_of(most.bit_length(), self._weight, self._offset).take(counts)

    def rate(self, rows: Rows, *, bare: bool) -> NDArray[np.float64]:
        rated: NDArray[np.float64] = self._counts_at(rows, bare=bare) * self._weight
        rated += self._offset
        if not self._column.is_complete:
            rated[self._column.ids.take(rows) < 0] = 0.0
        return rated

    def _counts_at(self, rows: Rows, *, bare: bool) -> NDArray[Any]:
        if self.key != HOSTNAME:
            return self._counts.take(self._column.ids.take(rows))
        return np.zeros(rows.size, self._counts.dtype) if bare else self._counts.take(rows)

    def rate_one(self, node: NodeInfo) -> float:
        own = self.key == HOSTNAME
        at = node.row if own else self._column.numbers[node.labels[self.key]]
        return float(self._counts.item(at)) * self._weight + self._offset


@lru_cache(POLICY.spread_scores_kept)
def _scores_of(bits: int, weight: float, offset: float) -> Scores:
    """The scores of all counts of so many bits."""
    rated = np.arange(1 << bits, dtype=np.float64) * weight + offset
    return _rounded(rated)


def _by_domain(each: CountedConstraint, census: PodCensus) -> NDArray[np.int64]:
    tally = each.tally(census)
    empty = tally.column.numbers.get("")
    if empty is None or not tally.unlabelled:
        return tally.amounts
    # A node without the label counts as one whose label is empty.
    amounts = tally.amounts.copy()
    amounts[empty] += tally.unlabelled
    return amounts


def _domains(column: LabelColumn, rows: Rows) -> int:
    """How many domains the rows have; that of nodes without the label is the empty one."""
    found = np.bincount(column.ids.take(rows) + 1, minlength=len(column.values) + 1)
    empty = column.numbers.get("")
    if empty is not None and found[0]:
        found[empty + 1] = 0
    return int(np.count_nonzero(found))


def _rounded(values: NDArray[np.float64]) -> Scores:
    """To the nearest integer, halves up; values are not negative."""
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)
