"""The strategies of NodeResourcesFit: how good a node is that would be used to such a share.

Each resource is rated by itself, 0 to 100, and enters the result with its weight (SC-3). Whoever
rates one node and whoever rates a column of nodes gets the same numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.api.quantity import MAX_INT64
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Scores
from kubescene.scheduler.framework.normalization import lowest

MAX_SHAPE_SCORE = 10
_FULL = 100


class ScoringStrategy(Protocol):
    """``used`` counts the pod itself; ``offered`` is never 0. Columns may be written over."""

    def rate(self, used: int, offered: int) -> int: ...

    def rate_nodes(self, used: Scores, offered: Scores) -> Scores: ...

    def average(self, total: int, weights: int) -> int:
        """The score of a node from the sums over the resources that count."""
        ...

    def average_nodes(self, total: Scores, weights: Scores | int) -> Scores: ...

    counts_zero: bool
    """Whether a resource that is rated 0 enters the average."""


class _Average:
    """The weighted average over all resources, rounded down."""

    counts_zero = True

    def average(self, total: int, weights: int) -> int:
        if total >= 0:
            return total // weights if weights else 0
        return _truncated(total, weights)

    def average_nodes(self, total: Scores, weights: Scores | int) -> Scores:
        divisors = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
        return _truncated_nodes(total, divisors)


class LeastAllocated(_Average):
    """The share that stays free, in percent."""

    def rate(self, used: int, offered: int) -> int:
        if used > offered:
            return 0
        product = (offered - used) * _FULL
        if product <= MAX_INT64:
            return product // offered
        return _percent(offered - used, offered)

    def rate_nodes(self, used: Scores, offered: Scores) -> Scores:
        free = offered - used
        np.maximum(free, 0, out=free)
        return _percent_nodes(free, offered)


class MostAllocated(_Average):
    """The share that is used, in percent."""

    def rate(self, used: int, offered: int) -> int:
        return _percent(min(used, offered), offered)

    def rate_nodes(self, used: Scores, offered: Scores) -> Scores:
        return _percent_nodes(np.minimum(used, offered), offered)


class RequestedToCapacityRatio:
    """A line through given points says what a share is worth; 0 is as good as not configured."""

    counts_zero = False

    def __init__(self, shape: Sequence[tuple[int, int]]) -> None:
        scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
        points = [(utilization, score * scale) for utilization, score in shape]
        self._worth = tuple(worth(share, points) for share in range(_FULL + 1))
        self._column: NDArray[np.int64] = np.array(self._worth, dtype=np.int64)

    def rate(self, used: int, offered: int) -> int:
        return self._worth[_FULL if used > offered else max(_percent(used, offered), 0)]

    def rate_nodes(self, used: Scores, offered: Scores) -> Scores:
        shares = np.maximum(_percent_nodes(np.minimum(used, offered), offered), 0)
        return self._column.take(np.where(used > offered, _FULL, shares))

    def average(self, total: int, weights: int) -> int:
        # To the nearest number; halves are rounded up.
        return (2 * total + weights) // (2 * weights) if weights else 0

    def average_nodes(self, total: Scores, weights: Scores | int) -> Scores:
        # Without weights the total is 0, too.
        rounded: Scores = (2 * total + weights) // (2 * np.maximum(weights, 1))
        return rounded


def worth(share: int, points: Sequence[tuple[int, int]]) -> int:
    """The height of the line at ``share``; flat before the first and after the last point."""
    before: tuple[int, int] | None = None
    for utilization, score in points:
        if share <= utilization:
            if before is None:
                return score
            rise, run = score - before[1], utilization - before[0]
            return before[1] + _truncated(rise * (share - before[0]), run)
        before = utilization, score
    return points[-1][1]


def _percent(part: int, whole: int) -> int:
    """In Go the product has 64 bits: from 92 P on it wraps around."""
    product = part * _FULL
    if product > MAX_INT64:
        product = (product + MAX_INT64 + 1) % (1 << 64) - MAX_INT64 - 1
    return _truncated(product, whole)


def _percent_nodes(parts: Scores, wholes: Scores) -> Scores:
    parts *= _FULL
    return _truncated_nodes(parts, wholes)


def _truncated_nodes(dividends: Scores, divisors: Scores | int) -> Scores:
    quotients: Scores = dividends // divisors
    if quotients.size and lowest(quotients) < 0:
        quotients += (quotients < 0) & (quotients * divisors != dividends)
    return quotients


def _truncated(dividend: int, divisor: int) -> int:
    """A quotient rounded towards zero, as in Go (S-3)."""
    quotient = abs(dividend) // divisor
    return quotient if dividend >= 0 else -quotient


def make_strategy(given: Mapping[str, Any]) -> ScoringStrategy:
    """The strategy that ``scoringStrategy`` asks for; it has been checked."""
    kind = given.get("type", "LeastAllocated")
    if kind == "RequestedToCapacityRatio":
        shape = given["requestedToCapacityRatio"]["shape"]
        points = [(each.get("utilization", 0), each.get("score", 0)) for each in shape]
        return RequestedToCapacityRatio(points)
    return MostAllocated() if kind == "MostAllocated" else LeastAllocated()
