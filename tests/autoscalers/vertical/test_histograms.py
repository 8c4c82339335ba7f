"""Histograms against the published vectors V2 to V20."""

from copy import deepcopy
from dataclasses import dataclass
from math import ceil

import pytest

from kubescene.autoscalers.vertical.histograms import (
    YEAR_ONE,
    DecayingHistogram,
    Histogram,
    HistogramBuckets,
    checkpoint_weights,
    exponential_buckets,
)
from kubescene.autoscalers.vertical.histories import CPU_BUCKETS, MEMORY_BUCKETS, Aggregate
from kubescene.autoscalers.vertical.options import DAY, HOUR, RecommenderOptions
from kubescene.clock import SECOND, parse_time

START = parse_time("2026-03-01T00:00:00Z")
EPSILON = 0.001
MI = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class LinearBuckets(HistogramBuckets):
    """Buckets of one size, in which the vectors are told."""

    size: float

    def find(self, value: float) -> int:
        return max(0, min(int(value / self.size), len(self.starts) - 1))


def linear_buckets(maximum: float, size: float, epsilon: float) -> HistogramBuckets:
    """``maximum`` falls into the last."""
    starts = tuple(bucket * size for bucket in range(ceil(maximum / size) + 1))
    return LinearBuckets(starts, epsilon, size)


TENS = linear_buckets(10.0, 1.0, EPSILON)


def weighted(buckets_of: dict[int, float]) -> Histogram:
    histogram = Histogram(TENS)
    for value, weight in buckets_of.items():
        histogram.add(value, weight)
    return histogram


def hourly() -> DecayingHistogram:
    return DecayingHistogram(TENS, HOUR)


def test_v2_exponential_buckets() -> None:
    buckets = exponential_buckets(500.0, 40.0, 1.5, EPSILON)
    assert buckets.starts == (0.0, 40.0, 100.0, 190.0, 325.0, 527.5)
    found = [buckets.find(value) for value in (-1.0, 39.99, 40.0, 100.0, 900.0)]
    assert found == [0, 0, 1, 2, 5]


@pytest.mark.parametrize(
    ("share", "value"),
    [(0, 2), (0.1, 2), (0.2, 3), (0.3, 3), (0.4, 4), (0.5, 4), (0.6, 4), (0.7, 5), (1, 5)],
)
def test_v3_percentiles(share: float, value: float) -> None:
    histogram = weighted({1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0})
    assert histogram.percentile(share) == value


def test_v4_percentiles_out_of_bounds() -> None:
    histogram = Histogram(linear_buckets(1.0, 0.1, EPSILON))
    histogram.add(0.1, 0.1)
    histogram.add(0.2, 0.2)
    assert histogram.percentile(-0.1) == pytest.approx(0.2)
    assert histogram.percentile(1.1) == pytest.approx(0.3)
    histogram.add(0.0, 0.1)
    histogram.add(1.0, 0.2)
    assert histogram.percentile(-0.1) == pytest.approx(0.1)
    assert histogram.percentile(1.1) == pytest.approx(1.0)


def test_v5_a_later_sample_outweighs_a_thousand_older_ones() -> None:
    histogram = hourly()
    histogram.add_at(2.0, 1000.0, START)
    histogram.add_at(1.0, 1.0, START + 20 * HOUR)
    assert histogram.percentile(0.999) == 2.0
    assert histogram.percentile(1.0) == 3.0


def test_v6_old_weight_vanishes_when_the_reference_moves() -> None:
    histogram = hourly()
    histogram.add_at(2.0, 1.0, START)
    histogram.add_at(1.0, 1.0, START + 101 * HOUR)
    assert histogram.percentile(1.0) == 2.0


@pytest.mark.parametrize(
    ("share", "value"),
    [(0, 2), (0.02, 2), (0.03, 3), (0.10, 3), (0.11, 4), (0.34, 4), (0.35, 5), (1, 5)],
)
def test_v7_decaying_percentiles(share: float, value: float) -> None:
    histogram = hourly()
    for number in (1, 2, 3, 4):
        histogram.add_at(float(number), float(number), START + number * HOUR)
    assert histogram.percentile(share) == value


@pytest.mark.parametrize(
    ("weights", "saved", "total"),
    [
        pytest.param({1: 1.0}, {1: 10000}, 1.0, id="V8"),
        pytest.param({1: 1.0, 2: 100000.0}, {2: 10000}, 100001.0, id="V9"),
        pytest.param({1: 1.0, 2: 10000.0, 3: 50.0}, {1: 1, 2: 10000, 3: 50}, 10051.0, id="V10"),
    ],
)
def test_checkpoint_weights(weights: dict[int, float], saved: dict[int, int], total: float) -> None:
    histogram = weighted(weights)
    assert checkpoint_weights(histogram) == saved
    assert histogram.total == total


def test_v11_weights_come_back() -> None:
    histogram = hourly()
    histogram.restore({0: 1, 1: 2}, 6.0, START)
    assert histogram.weights[:3] == [2.0, 4.0, 0.0]
    assert (histogram.total, histogram.reference) == (6.0, START)


def test_v12_the_smallest_weight_survives_a_checkpoint() -> None:
    before = weighted({1: EPSILON, 2: 10000 * EPSILON - EPSILON})
    assert not before.is_empty
    after = hourly()
    after.restore(checkpoint_weights(before), before.total, START)
    assert not after.is_empty


def test_v13_what_is_taken_back_leaves_nothing() -> None:
    histogram = weighted({1: 2.5 * EPSILON})
    emptiness = [histogram.is_empty]
    for _ in range(2):
        histogram.subtract(1.0, EPSILON)
        emptiness.append(histogram.is_empty)
    assert emptiness == [False, False, True]


def test_v14_cpu_and_memory_have_176_buckets() -> None:
    assert (CPU_BUCKETS.count, MEMORY_BUCKETS.count) == (176, 176)


@pytest.mark.parametrize(
    ("cores", "bucket", "end"),
    [
        (0.005, 0, 10),
        (0.01, 1, 20),
        (0.1, 8, 110),
        (0.25, 16, 258),
        (0.5, 25, 511),
        (1.0, 36, 1016),
        (2.0, 49, 2093),
        (4.0, 62, 4124),
    ],
)
def test_v15_cpu_buckets(cores: float, bucket: int, end: int) -> None:
    assert CPU_BUCKETS.find(cores) == bucket
    assert int(CPU_BUCKETS.end(bucket) * 1000) == end


@pytest.mark.parametrize(
    ("size", "end"),
    [
        (10**8, 110265643),
        (128 * MI, 142067871),
        (256 * MI, 281323846),
        (512 * MI, 546691264),
        (1024 * MI, 1077095457),
        (4096 * MI, 4340933439),
    ],
)
def test_v16_memory_buckets(size: int, end: int) -> None:
    assert int(MEMORY_BUCKETS.end(MEMORY_BUCKETS.find(float(size)))) == end


def test_memory_bucket_4_begins_a_byte_below_what_c_would_say() -> None:
    assert int(MEMORY_BUCKETS.starts[4]) == 43101249


@pytest.mark.parametrize("buckets", [CPU_BUCKETS, MEMORY_BUCKETS], ids=["cpu", "memory"])
def test_the_table_finds_what_the_logarithm_would(buckets: object) -> None:
    """Just below, at and just above every start."""
    for start in buckets.starts[1:]:  # type: ignore[attr-defined]
        for value in (start * (1 - 1e-8), start * (1 - 1e-12), start, start * (1 + 1e-8)):
            assert buckets.find(value) == max(buckets._computed(value), 0)  # type: ignore[attr-defined]


def test_v17_percentiles_of_equal_weights() -> None:
    cpu, memory = Histogram(CPU_BUCKETS), Histogram(MEMORY_BUCKETS)
    for number in (1.0, 2.0, 3.0):
        cpu.add(number, 1.0)
        memory.add(number * 1e9, 1.0)
    assert int(cpu.percentile(0.2) * 1000) == 1016
    assert int(memory.percentile(0.5)) == 2093479957


@pytest.mark.parametrize(
    ("hour", "total", "reference"),
    [(0, 0.1, 0), (6, 0.118921, 0), (12, 0.070711, 1), (18, 0.084090, 1)],
)
def test_v18_the_first_sample_sets_the_reference_to_the_nearest_midnight(
    hour: int, total: float, reference: int
) -> None:
    aggregate = Aggregate(RecommenderOptions(), START)
    aggregate.add_cpu(100, START + hour * HOUR)
    assert aggregate.cpu.total == pytest.approx(total, abs=1e-6)
    assert aggregate.cpu.reference == START + reference * DAY


def cpu_percentile(aggregate: Aggregate, share: float) -> int:
    return int(aggregate.cpu.percentile(share) * 1000)


@pytest.mark.parametrize(
    ("days", "expected"),
    [(1, {0.5: 110, 0.66: 110, 0.67: 1016}), (4, {0.94: 110, 0.95: 1016})],
)
def test_v19_a_day_halves(days: int, expected: dict[float, int]) -> None:
    aggregate = Aggregate(RecommenderOptions(), START)
    for number in range(100):
        aggregate.add_cpu(1000, START + number * SECOND)
    for number in range(100):
        aggregate.add_cpu(100, START + days * DAY + number * SECOND)
    assert {share: cpu_percentile(aggregate, share) for share in expected} == expected


def test_v20_later_samples_weigh_a_little_more() -> None:
    aggregate = Aggregate(RecommenderOptions(), START)
    for number in range(100):
        aggregate.add_cpu(100 if number < 90 else 1000, START + number * SECOND)
    assert [cpu_percentile(aggregate, share) for share in (0.5, 0.9, 0.95)] == [110, 1016, 1016]


@pytest.mark.parametrize(("beyond", "moved"), [(0, False), (1, True)])
def test_the_reference_moves_beyond_a_hundred_half_lives(beyond: int, moved: bool) -> None:
    histogram = hourly()
    histogram.add_at(1.0, 1.0, START)
    histogram.add_at(1.0, 1.0, START + 100 * HOUR + beyond)
    assert (histogram.reference != START) is moved


def test_merging_moves_the_older_reference() -> None:
    older, younger = hourly(), hourly()
    older.add_at(1.0, 8.0, START)
    younger.add_at(2.0, 1.0, START + 103 * HOUR)
    younger.merge(older)
    assert older.reference == younger.reference == START + 103 * HOUR
    assert younger.percentile(0.0) == 3.0, "what weighs less than epsilon is gone"


def test_a_new_histogram_is_empty_and_refers_to_the_year_one() -> None:
    histogram = hourly()
    assert histogram.is_empty
    assert histogram.percentile(0.5) == 0.0
    assert histogram.reference == YEAR_ONE


def test_a_copy_goes_on_by_itself() -> None:
    histogram = hourly()
    histogram.add_at(1.0, 1.0, START)
    copied = deepcopy(histogram)
    copied.add_at(5.0, 100.0, START + HOUR)
    assert histogram.percentile(1.0) == 2.0
    assert copied.percentile(1.0) == 6.0
    assert copied.buckets is histogram.buckets
