"""What became of the requests of a window of time: counts, percentiles and a histogram.

Requests are counted where they are completed, so that a window is final once it is over.
"""

import numpy as np
from msgspec import Struct

from kubescene.clock.batches import Integers
from kubescene.flows.percentiles import nearest_rank, percentile_of_all
from kubescene.flows.records import RequestColumns, RequestOutcome

PERCENTS = (50, 95, 99)
_KEPT_BITS = 48
"""Of a double, what is left of these are its exponent and the first four bits after its one."""


class WindowCounts(Struct, frozen=True):
    """Requests that came, or were completed, in a window; times in nanoseconds.

    ``served`` are p50, p95, p99 and the largest of those that succeeded, ``all`` p50, p95 and p99
    where those that failed took their time-out; None where nobody knows. ``times`` are lower bounds
    of response times and how many succeeded with one of at most a sixteenth more.
    """

    arrived: int
    succeeded: int
    timed_out: int
    refused: int
    killed: int
    inside: int
    good: int
    served: tuple[int | None, ...]
    all: tuple[int | None, ...]
    times: tuple[tuple[int, int], ...]

    @property
    def failed(self) -> int:
        return self.timed_out + self.refused + self.killed


class WindowCounter:
    """Cuts columns into windows."""

    def __init__(self, columns: RequestColumns, timeout: int, objective: int) -> None:
        """``timeout`` is negative if there is none; within ``objective`` a response is good."""
        self._columns = columns
        self._timeout = timeout
        self._objective = objective
        self._since = 0
        self._first = 0
        """All rows before have been counted."""
        self._arrived = 0

    def count(self, now: int) -> WindowCounts:
        """The window that ends now. All that happens before has happened, perhaps more."""
        columns, first, since = self._columns, self._first, self._since
        outcome, completed = columns.outcome[first:], columns.completed[first:]
        is_open = (outcome == RequestOutcome.OPEN) | (completed >= now)
        here = ~is_open & (completed >= since)
        came = int(columns.arrived.searchsorted(now))
        arrived, self._arrived = came - self._arrived, came
        kept = np.flatnonzero(is_open)
        self._first = first + int(kept[0]) if len(kept) else columns.count
        self._since = now
        by_outcome = np.bincount(outcome[here], minlength=len(RequestOutcome)).tolist()
        is_ok = here & (outcome == RequestOutcome.OK)
        served = np.sort(completed[is_ok] - columns.arrived[first:][is_ok])
        failed = sum(by_outcome[RequestOutcome.TIMEOUT :])
        return WindowCounts(
            arrived,
            by_outcome[RequestOutcome.OK],
            by_outcome[RequestOutcome.TIMEOUT],
            by_outcome[RequestOutcome.REFUSED],
            by_outcome[RequestOutcome.KILLED],
            int((columns.arrived[first:][kept] < now).sum()),
            int(served.searchsorted(self._objective, side="right")),
            (*(percentile(served, each) for each in PERCENTS), percentile(served, 100)),
            tuple(percentile_of_all(served, failed, self._timeout, each) for each in PERCENTS),
            histogram(served),
        )


def percentile(served: Integers, percent: float) -> int | None:
    """Of sorted times, of the nearest rank."""
    return int(served[nearest_rank(len(served), percent) - 1]) if len(served) else None


def histogram(served: Integers) -> tuple[tuple[int, int], ...]:
    """Lower bounds and counts of sorted times: their first bit and the next four are kept."""
    # Exact: whole numbers below 2^53 are doubles, and what is cut off is cut off of both.
    kept = served.astype(np.float64).view(np.int64) >> _KEPT_BITS << _KEPT_BITS
    bounds, counts = np.unique(kept, return_counts=True)
    lower = np.ceil(bounds.view(np.float64)).astype(np.int64)
    return tuple(zip(lower.tolist(), counts.tolist(), strict=True))
