"""Samples of replicas: what their CPU, concurrency and memory were since the last one.

Each replica is sampled at marks of its own: some seconds after it became active, and then at even
intervals. A sample tells of the window since the mark before, not of one instant. Marks are known
beforehand, so nobody has to wake for them: when a batch of requests is served, each replica
is cut at the marks that lie in it.
"""

from bisect import bisect_left
from typing import NamedTuple

from kubescene.clock import SECOND


class MetricsTimes(NamedTuple):
    """When replicas are sampled, and how long a sample takes to reach autoscalers.

    Each has marks of its own, or all have the marks that are ``phase`` after whole intervals.
    """

    first: int
    interval: int
    lag: int
    phase: int | None = None

    def first_mark(self, now: int) -> int:
        """Of a replica that became active now."""
        if self.phase is None:
            return now + self.first
        return now + self.interval - (now - self.phase) % self.interval


class ReplicaSample(NamedTuple):
    """One replica over one window that ends at ``instant``; means, except ``held``."""

    instant: int
    replica: int
    cpu_millis: int
    concurrent_millis: int
    held: int
    arrived_millis: int
    """Requests that came, a second."""


class ReplicaMeter:
    """Counts what one replica does, and makes samples of it.

    The integral of the number of requests over a window is the sum of departures minus the sum of
    arrivals in it, plus number times instant at its end, minus the same at its start.
    """

    __slots__ = ("_arrivals", "_at", "_ends", "_held", "_used", "interval", "next_mark", "replica")

    def __init__(self, replica: int, now: int, times: MetricsTimes, used: int) -> None:
        self.replica = replica
        self.next_mark = times.first_mark(now)
        self.interval = times.interval
        self._at = now
        self._used = used
        self._held = 0
        self._arrivals: list[int] = []
        self._ends: list[int] = []

    def arrive(self, arrivals: list[int]) -> None:
        self._arrivals += arrivals

    def leave(self, ends: list[int]) -> None:
        """Requests that will have left by these instants, CPU and waiting included."""
        self._ends += ends

    def resume(self, held: int, ends: list[int]) -> None:
        """So many are inside from the beginning, and others that will have left by these."""
        self._held = held + len(ends)
        self._ends += ends

    def sample(self, used: int) -> ReplicaSample:
        """The window up to `next_mark`, and the next mark after it."""
        now, width = self.next_mark, self.next_mark - self._at
        held, area, came = self._held, 0, 0
        if self._arrivals or held:
            held, area, came = self._counted(now)
        work, self._used, self._held, self._at = used - self._used, used, held, now
        self.next_mark = now + self.interval
        if not width:  # the first mark may be the activation itself
            return ReplicaSample(now, self.replica, 0, held * 1000, held, 0)
        arrived = came * 1000 * SECOND // width
        return ReplicaSample(now, self.replica, work // width, area * 1000 // width, held, arrived)

    def _counted(self, now: int) -> tuple[int, int, int]:
        """How many are there at the end of the window, the integral over it, how many came."""
        self._ends.sort()
        came, went = bisect_left(self._arrivals, now), bisect_left(self._ends, now)
        held = self._held + came - went
        area = sum(self._ends[:went]) - sum(self._arrivals[:came])
        area += held * now - self._held * self._at
        del self._arrivals[:came], self._ends[:went]
        return held, area, came
