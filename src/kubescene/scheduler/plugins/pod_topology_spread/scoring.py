"""Soft constraints: the fewer matching pods around a node, the better (SC-6).

Domains of a large topology hold fewer pods each; so that a hostname does not weigh less than a
zone, counts are multiplied by the logarithm of the number of domains.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.interfaces import MAX_NODE_SCORE, Rows, Scores
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME
from kubescene.scheduler.plugins.pod_topology_spread.filtering import CountedConstraint


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

    __slots__ = ("_constraints", "_ignored", "_nodes", "_require_all", "_sources", "_weights")

    def __init__(
        self, soft: SoftConstraints, census: PodCensus, nodes: NodeTable, rows: Rows
    ) -> None:
        self._constraints = soft.constraints
        self._require_all = soft.require_all
        self._sources = [_source(each, census) for each in soft.constraints]
        self._ignored: NDArray[np.bool_] | None = None
        kept = self._leave_out(nodes, rows)
        self._weights = [math.log(_size(each, nodes, kept) + 2) for each in soft.constraints]

    def rate(self, nodes: NodeTable, rows: Rows) -> Scores:
        """The higher, the more matching pods there are; ignored nodes get 0."""
        self._leave_out(nodes, rows)
        total = np.zeros(rows.size, dtype=np.float64)
        for each, source, weight in zip(
            self._constraints, self._sources, self._weights, strict=True
        ):
            constraint = each.constraint
            ids = nodes.label(constraint.topology_key).ids.take(rows)
            by_row = constraint.topology_key == HOSTNAME
            counts = source.take(rows if by_row else ids)
            part = counts * weight + float(constraint.max_skew - 1)
            absent = ids < 0
            if absent.any():
                part[absent] = 0.0
            total += part
        scores = _rounded(total)
        if self._ignored is not None:
            scores[self._ignored] = 0
        return scores

    def normalized(self, scores: Scores) -> Scores:
        """The fewest pods become 100."""
        ignored = self._ignored
        rated = scores if ignored is None else scores[~ignored]
        most = int(rated.max()) if rated.size else 0
        if most == 0:
            final = np.full(scores.size, MAX_NODE_SCORE, dtype=np.int64)
        else:
            final = MAX_NODE_SCORE * (most + int(rated.min()) - scores) // most
        if ignored is not None:
            final[ignored] = 0
        return final

    def _leave_out(self, nodes: NodeTable, rows: Rows) -> Rows:
        """Note which rows are ignored; returns the others."""
        self._ignored = None
        if not self._require_all:
            return rows
        ignored = np.zeros(rows.size, dtype=np.bool_)
        for each in self._constraints:
            ignored |= nodes.label(each.constraint.topology_key).ids.take(rows) < 0
        if not ignored.any():
            return rows
        self._ignored = ignored
        return rows[~ignored]


def _source(each: CountedConstraint, census: PodCensus) -> NDArray[np.integer]:
    """Counts by row for hostnames, where only the node itself matters, else by domain."""
    if each.constraint.topology_key == HOSTNAME:
        return each.counter(census).amounts
    tally = each.tally(census)
    empty = tally.column.numbers.get("")
    if empty is None or not tally.unlabelled:
        return tally.amounts
    # A node without the label counts as one whose label is empty.
    amounts = tally.amounts.copy()
    amounts[empty] += tally.unlabelled
    return amounts


def _size(each: CountedConstraint, nodes: NodeTable, rows: Rows) -> int:
    """How many domains the rows have."""
    key = each.constraint.topology_key
    if key == HOSTNAME:
        return int(rows.size)
    column = nodes.label(key)
    found = np.bincount(column.ids.take(rows) + 1, minlength=1)
    size = int((found > 0).sum())
    empty = column.numbers.get("")
    both = found[0] and empty is not None and empty + 1 < found.size and found[empty + 1]
    return size - 1 if both else size


def _rounded(values: NDArray[np.float64]) -> Scores:
    """To the nearest integer, halves up; values are not negative."""
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)
