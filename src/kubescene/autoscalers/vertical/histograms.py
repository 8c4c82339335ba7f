"""Histograms that forget: what the vertical pod autoscaler remembers of the past.

A sample falls into a bucket and adds its weight there. In a decaying histogram a sample's weight
doubles with every half-life that it is younger, which is the same as halving all older ones;
weights are told relative to a reference time, and when they would grow too large the reference
moves on. Times are nanoseconds since 1970; the first reference is the year 1, as upstream.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import ceil, floor, ldexp
from typing import Any

from kubescene.autoscalers.exact_math import exp2, log, power
from kubescene.clock import SECOND

YEAR_ONE = -62_135_596_800 * SECOND
"""The zero of Go's time: half-lives are counted from here."""

MAX_DECAY_EXPONENT = 100
MAX_CHECKPOINT_WEIGHT = 10_000

# Far more than what the logarithm can err, far less than the width of a bucket.
_UNSURE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class HistogramBuckets:
    """Where buckets begin. One of these is shared by all histograms of its kind.

    A bucket lighter than ``epsilon`` counts as empty. Compared by identity.
    """

    starts: tuple[float, ...]
    epsilon: float

    @property
    def count(self) -> int:
        return len(self.starts)

    def find(self, value: float) -> int:
        """The bucket of a value; what is too small or too large is in the first or last one."""
        raise NotImplementedError

    def end(self, bucket: int) -> float:
        """Where a bucket ends; of the last one, which has no end, where it begins."""
        return self.starts[min(bucket + 1, len(self.starts) - 1)]

    def __deepcopy__(self, memo: dict[int, Any]) -> "HistogramBuckets":
        return self


@dataclass(frozen=True, slots=True, eq=False)
class _ExponentialBuckets(HistogramBuckets):
    first: float
    ratio: float

    def find(self, value: float) -> int:
        if value < self.first:
            return 0
        starts = self.starts
        bucket = bisect_right(starts, value) - 1
        if value * (1 - _UNSURE) >= starts[bucket] and (
            bucket + 1 == len(starts) or value * (1 + _UNSURE) < starts[bucket + 1]
        ):
            return bucket
        return self._computed(value)

    def _computed(self, value: float) -> int:
        """By the logarithm, whose rounding decides right at the start of a bucket."""
        place = log(value * (self.ratio - 1) / self.first + 1) / log(self.ratio)
        return min(int(place), len(self.starts) - 1)


def exponential_buckets(
    maximum: float, first: float, ratio: float, epsilon: float
) -> HistogramBuckets:
    """Buckets that grow: the first of size ``first``, each ``ratio`` times as large as before."""
    count = ceil(log(maximum * (ratio - 1) / first + 1) / log(ratio)) + 1
    starts = (first * (power(ratio, bucket) - 1) / (ratio - 1) for bucket in range(1, count))
    return _ExponentialBuckets((0.0, *starts), epsilon, first, ratio)


class Histogram:
    """Weights by bucket. ``low`` and ``high`` are the outermost buckets that are not empty."""

    __slots__ = ("buckets", "high", "low", "total", "weights")

    def __init__(self, buckets: HistogramBuckets) -> None:
        self.buckets = buckets
        self.weights = [0.0] * buckets.count
        self.total = 0.0
        self.low = buckets.count - 1
        self.high = 0

    @property
    def is_empty(self) -> bool:
        return self.weights[self.low] < self.buckets.epsilon

    def add(self, value: float, weight: float) -> None:
        bucket = self.buckets.find(value)
        self.weights[bucket] += weight
        self.total += weight
        if (bucket < self.low or bucket > self.high) and (
            self.weights[bucket] >= self.buckets.epsilon
        ):
            self.low = min(self.low, bucket)
            self.high = max(self.high, bucket)

    def subtract(self, value: float, weight: float) -> None:
        """Take a sample back; what is left below epsilon is nothing."""
        bucket = self.buckets.find(value)
        self.total = self._left(self.total, weight)
        self.weights[bucket] = self._left(self.weights[bucket], weight)
        self._shrink()

    def percentile(self, share: float) -> float:
        """The end of the bucket up to which ``share`` of the weight lies; 0 when empty."""
        if self.is_empty:
            return 0.0
        threshold = share * self.total
        reached = 0.0
        bucket = self.low
        while bucket < self.high:
            reached += self.weights[bucket]
            if reached >= threshold:
                break
            bucket += 1
        return self.buckets.end(bucket)

    def _left(self, weight: float, taken: float) -> float:
        left = weight - taken
        return 0.0 if left < self.buckets.epsilon else left

    def _shrink(self) -> None:
        weights, epsilon, last = self.weights, self.buckets.epsilon, self.buckets.count - 1
        while weights[self.low] < epsilon and self.low < last:
            self.low += 1
        while weights[self.high] < epsilon and self.high > 0:
            self.high -= 1

    def _take_in(self, other: "Histogram") -> None:
        for bucket in range(other.low, other.high + 1):
            self.weights[bucket] += other.weights[bucket]
        self.total += other.total
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)

    def _scale(self, factor: float) -> None:
        for bucket in range(self.low, self.high + 1):
            self.weights[bucket] *= factor
        self.total *= factor
        self._shrink()


class DecayingHistogram(Histogram):
    """A histogram of samples with a time, younger ones weighing more."""

    __slots__ = ("_factor", "_factor_time", "half_life", "reference")

    def __init__(self, buckets: HistogramBuckets, half_life: int) -> None:
        super().__init__(buckets)
        self.half_life = half_life
        self.reference = YEAR_ONE
        self._factor_time: int | None = None
        self._factor = 0.0

    def add_at(self, value: float, weight: float, time: int) -> None:
        self.add(value, weight * self.decay_factor(time))

    def subtract_at(self, value: float, weight: float, time: int) -> None:
        self.subtract(value, weight * self.decay_factor(time))

    def merge(self, other: "DecayingHistogram") -> None:
        """Add another histogram, which is moved to the later of both references, as is this."""
        self.move_to(other.reference)
        other.move_to(self.reference)
        self._take_in(other)

    def move_to(self, reference: int) -> None:
        """Tell weights relative to this reference time, if it is later than the own."""
        if self.reference < reference:
            self._move_reference(reference)

    def decay_factor(self, time: int) -> float:
        """What a sample of this time weighs, compared with one at the reference time."""
        if time == self._factor_time:
            return self._factor
        if time > self.reference + MAX_DECAY_EXPONENT * self.half_life:
            self._move_reference(time)
        self._factor_time = time
        self._factor = exp2(float(time - self.reference) / float(self.half_life))
        return self._factor

    def _move_reference(self, time: int) -> None:
        """To the nearest whole half-life since the year 1, keeping what weights mean."""
        reference = _rounded(time, self.half_life)
        halvings = _round(float(self.reference - reference) / float(self.half_life))
        self._scale(ldexp(1.0, halvings))
        self.reference = reference
        self._factor_time = None

    def restore(self, weights: dict[int, int], total: float, reference: int) -> None:
        """Fill this new histogram with what `checkpoint_weights` gave."""
        self.reference = reference
        self._factor_time = None
        whole = sum(weights.values())
        if not whole:
            return
        ratio = total / float(whole)
        for bucket in sorted(weights):
            self.weights[bucket] += float(weights[bucket]) * ratio
        self.low = min(self.low, *weights)
        self.high = max(self.high, *weights)
        self.total += total
        self._shrink()


def checkpoint_weights(histogram: Histogram) -> dict[int, int]:
    """Weights as small integers, the largest 10000; what would be 0 is dropped."""
    buckets = range(histogram.low, histogram.high + 1)
    largest = max((histogram.weights[bucket] for bucket in buckets), default=0.0)
    if largest <= 0:
        return {}
    ratio = MAX_CHECKPOINT_WEIGHT / largest
    scaled = ((bucket, _round(histogram.weights[bucket] * ratio)) for bucket in buckets)
    return {bucket: weight for bucket, weight in scaled if weight > 0}


def _round(x: float) -> int:
    return floor(x + 0.5)


def _rounded(time: int, unit: int) -> int:
    """The multiple of ``unit`` since the year 1 that is nearest to ``time``; ties go up."""
    since = time - YEAR_ONE
    rest = since % unit
    return time - rest if rest + rest < unit else time + unit - rest
