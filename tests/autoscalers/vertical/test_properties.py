"""What holds for any history."""

from copy import deepcopy
from itertools import accumulate, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscalers.vertical.vertical_worlds import START, make_recommender, make_vpa
from kubescene.autoscalers.vertical import Recommender, RecommenderOptions
from kubescene.autoscalers.vertical.histograms import DecayingHistogram, HistogramBuckets
from kubescene.autoscalers.vertical.histories import (
    CPU_BUCKETS,
    MEMORY_BUCKETS,
    Aggregate,
    ContainerUsage,
)
from kubescene.autoscalers.vertical.options import DAY
from kubescene.autoscalers.vertical.recommendations import Bound
from kubescene.clock import MINUTE

SHARES = (0.0, 0.1, 0.5, 0.9, 0.95, 1.0)
TIMES = st.integers(0, 60 * 24 * 40).map(lambda minute: START + minute * MINUTE)
SAMPLES = st.lists(st.tuples(st.integers(0, 20_000), TIMES), min_size=1, max_size=60)
VALUES = st.floats(0, 1e13, allow_nan=False)


def histogram_of(samples: list[tuple[int, int]]) -> DecayingHistogram:
    histogram = DecayingHistogram(CPU_BUCKETS, DAY)
    for millicores, time in samples:
        histogram.add_at(millicores / 1000, 0.1, time)
    return histogram


def percentiles(histogram: DecayingHistogram) -> list[float]:
    return [histogram.percentile(share) for share in SHARES]


def naive(samples: list[tuple[int, int]], share: float) -> float:
    """By the definition: weights relative to the latest sample, samples in order of value."""
    latest = max(time for _, time in samples)
    weighed = sorted((CPU_BUCKETS.find(m / 1000), 2.0 ** ((t - latest) / DAY)) for m, t in samples)
    total = sum(weight for _, weight in weighed)
    reached = accumulate(weight for _, weight in weighed)
    enough = share * total * (1 - 1e-12)
    place = next(at for at, weight in enumerate(reached) if weight >= enough)
    return CPU_BUCKETS.end(weighed[place][0])


@given(SAMPLES)
def test_percentiles_are_those_of_the_weighed_samples(samples: list[tuple[int, int]]) -> None:
    """But for a tie, which the last bit decides, and for what is lighter than epsilon."""
    ours = histogram_of(samples)
    for share in (0.3, 0.62, 0.9, 0.95):
        near = {naive(samples, share * (1 + sign * 1e-9)) for sign in (-1, 1)}
        assert ours.percentile(share) in near


@given(SAMPLES)
def test_percentiles_rise_with_the_share(samples: list[tuple[int, int]]) -> None:
    found = percentiles(histogram_of(samples))
    assert all(low <= high for low, high in pairwise(found))


@given(SAMPLES, SAMPLES)
def test_a_merged_history_is_that_of_all_samples(
    one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:
    merged = histogram_of(one)
    merged.merge(histogram_of(two))
    together = histogram_of(one + two)
    if merged.reference == together.reference:
        difference = max(abs(a - b) for a, b in zip(merged.weights, together.weights, strict=True))
        assert difference <= 1e-9 * together.total + CPU_BUCKETS.epsilon


@given(SAMPLES)
def test_what_is_added_and_taken_back_leaves_no_trace(samples: list[tuple[int, int]]) -> None:
    histogram = DecayingHistogram(CPU_BUCKETS, 50 * DAY)
    for millicores, time in samples:
        histogram.add_at(millicores / 1000, 1.0, time)
    for millicores, time in samples:
        histogram.subtract_at(millicores / 1000, 1.0, time)
    assert histogram.is_empty
    assert histogram.total == 0.0


@given(st.sampled_from([CPU_BUCKETS, MEMORY_BUCKETS]), VALUES)
def test_a_value_is_in_its_bucket(buckets: HistogramBuckets, value: float) -> None:
    bucket = buckets.find(value)
    assert buckets.starts[bucket] <= value * (1 + 1e-9)
    assert bucket == buckets.count - 1 or value * (1 - 1e-9) < buckets.end(bucket)
    assert bucket == 0 or bucket == buckets._computed(value)  # type: ignore[attr-defined]


@given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(0, 10**6)), min_size=1, max_size=40))
def test_memory_has_one_peak_for_each_interval(samples: list[tuple[int, int]]) -> None:
    container, aggregate = ContainerUsage(), Aggregate(RecommenderOptions(), START)
    times = sorted(time for _, time in samples)
    peaks: dict[int, int] = {}
    for (size, _), second in zip(samples, times, strict=True):
        time = START + second * 10**9
        assert container.add_memory(aggregate, size, time, DAY)
        day = (time - START - times[0] * 10**9) // DAY
        peaks[day] = max(peaks.get(day, 0), size)
    expected = DecayingHistogram(MEMORY_BUCKETS, DAY)
    first = START + times[0] * 10**9
    for day, size in peaks.items():
        expected.add_at(float(size), 1.0, first + (day + 1) * DAY)
    assert [aggregate.memory.percentile(share) for share in (0.0, 0.5001, 1.0)] == [
        expected.percentile(share) for share in (0.0, 0.5001, 1.0)
    ]


@settings(max_examples=40)
@given(SAMPLES)
def test_bounds_embrace_the_target_and_a_restart_keeps_it_near(
    samples: list[tuple[int, int]],
) -> None:
    recommender = make_recommender()
    for millicores, time in sorted(samples, key=lambda each: each[1]):
        recommender.usage.add_cpu("pod", "app", millicores, time)
    now = START + 40 * DAY
    [container] = recommender.recommend(now).containers
    lower, target, upper = (container.amounts(bound)["cpu"] for bound in Bound)
    assert lower <= target <= upper
    again = Recommender(make_vpa())
    again.load(recommender.checkpoints(now), now)
    [restarted] = again.recommend(now).containers
    # Weights are saved in ten-thousandths: a percentile moves by one sample at most.
    assert restarted.samples == container.samples
    copied = deepcopy(again)
    assert copied.recommend(now) == again.recommend(now)
