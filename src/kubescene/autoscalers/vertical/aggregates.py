"""What is remembered of all containers of one name in pods of the same labels."""

from collections.abc import Sequence

from kubescene.autoscalers.histograms import Buckets, DecayingHistogram, exponential_buckets
from kubescene.autoscalers.vertical.options import RecommenderOptions

MIN_SAMPLE_WEIGHT = 0.1
PEAK_WEIGHT = 1.0
EPSILON = 0.001 * MIN_SAMPLE_WEIGHT
GROWTH = 1.0 + 0.05

CPU_BUCKETS: Buckets = exponential_buckets(1000.0, 0.01, GROWTH, EPSILON)
"""Cores."""
MEMORY_BUCKETS: Buckets = exponential_buckets(1e12, 1e7, GROWTH, EPSILON)
"""Bytes."""


class Aggregate:
    """Histograms of CPU usage and of memory peaks.

    ``first``, ``last`` and ``count`` are of CPU samples alone; None: there was none yet.
    """

    __slots__ = ("count", "cpu", "created", "first", "last", "memory")

    def __init__(self, options: RecommenderOptions, created: int) -> None:
        self.cpu = DecayingHistogram(CPU_BUCKETS, options.cpu_histogram_decay_half_life)
        self.memory = DecayingHistogram(MEMORY_BUCKETS, options.memory_histogram_decay_half_life)
        self.first: int | None = None
        self.last: int | None = None
        self.count = 0
        self.created = created

    def add_cpu(self, millicores: int, time: int) -> None:
        self.cpu.add_at(float(millicores) / 1000.0, MIN_SAMPLE_WEIGHT, time)
        if self.last is None or time > self.last:
            self.last = time
        if self.first is None or time < self.first:
            self.first = time
        self.count += 1

    def add_peak(self, size: int, time: int) -> None:
        self.memory.add_at(float(size), PEAK_WEIGHT, time)

    def subtract_peak(self, size: int, time: int) -> None:
        self.memory.subtract_at(float(size), PEAK_WEIGHT, time)

    def merge(self, other: "Aggregate") -> None:
        """Add another. Both move to the later reference time; its meaning does not change."""
        self.cpu.merge(other.cpu)
        self.memory.merge(other.memory)
        if other.first is not None and (self.first is None or other.first < self.first):
            self.first = other.first
        if other.last is not None and (self.last is None or other.last > self.last):
            self.last = other.last
        self.count += other.count

    def is_expired(self, now: int, window: int) -> bool:
        """Whether the last CPU sample, or the beginning if there is none, is too long ago."""
        since = self.created if self.last is None else self.last
        return now - since >= window


def align(aggregates: Sequence[Aggregate]) -> None:
    """Move histograms that are merged together to the youngest reference time among them.

    Upstream merges in the random order of a map, and merging moves whoever is older; so after a few
    rounds all of them have moved, in whatever order. Here they do at once.
    """
    for histograms in ([each.cpu for each in aggregates], [each.memory for each in aggregates]):
        youngest = max(each.reference for each in histograms)
        for each in histograms:
            each.move_to(youngest)
