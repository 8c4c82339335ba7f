"""What holds for any load: bounds, rates, direction, and that nothing depends on order."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from horizontals import NOW, hpa, observed, utilization
from kubescene.autoscalers.horizontal import (
    HorizontalAutoscaler,
    HorizontalOptions,
    Observation,
    RecordedMetrics,
    Result,
    ScalingHistory,
)
from kubescene.autoscalers.horizontal.behavior import down_rate, up_rate
from kubescene.autoscalers.horizontal.proposals import Groups, by_average, by_utilization, by_value
from kubescene.autoscalers.horizontal.specs import Policy, ScalingRules, Tolerances
from kubescene.durations import SECOND
from kubescene.types import JsonObject

usages = st.lists(st.integers(0, 5000), min_size=1, max_size=12)
targets = st.integers(1, 200)
tolerances = st.builds(Tolerances, st.floats(0, 0.9), st.floats(0, 2))


def named(values: list[int]) -> dict[str, int]:
    return {f"p{number}": value for number, value in enumerate(values)}


@given(usages, targets, tolerances, st.integers(1, 50), st.integers(0, 3), st.integers(0, 3))
def test_utilization_is_monotone(
    usage: list[int], target: int, band: Tolerances, current: int, missing: int, unready: int
) -> None:
    """More usage never asks for fewer pods, once more than the tolerance is at stake."""
    groups = Groups(
        len(usage),
        tuple(f"u{number}" for number in range(unready)),
        tuple(f"m{number}" for number in range(missing)),
    )
    names = (*named(usage), *groups.unready, *groups.missing)
    requests = dict.fromkeys(names, 1000)

    def replicas(factor: int) -> int:
        values = {name: value * factor for name, value in named(usage).items()}
        return by_utilization(
            values, groups, requests, target=target, current=current, tolerances=band
        ).replicas

    low, high = replicas(1), replicas(3)
    assert low <= high or current in (low, high)


@given(usages, st.integers(1, 5000), tolerances, st.integers(1, 50))
def test_an_average_within_tolerance_stays_and_else_meets_the_target(
    usage: list[int], target: int, band: Tolerances, current: int
) -> None:
    found = by_average(
        named(usage), Groups(len(usage)), target=target, current=current, tolerances=band
    )
    if band.holds(found.ratio):
        assert found.replicas == current
    else:
        # One pod fewer would be above the target, by the average as it is shown.
        assert found.average is not None
        needed = found.average * len(usage)
        assert found.replicas * target >= needed * (1 - 1e-12)
        assert (found.replicas - 1) * target < needed * (1 + 1e-12) or not needed


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(1, 1000), tolerances)
def test_a_value_is_monotone(usage: int, target: int, ready: int, band: Tolerances) -> None:
    """Beyond the band on the same side; inside it the count stays."""
    counts = [
        by_value(each, target=target, current=ready, ready=ready, tolerances=band).replicas
        for each in (usage, usage * 2)
    ]
    assert counts == sorted(counts)


policies = st.lists(
    st.builds(
        Policy,
        st.sampled_from(["Pods", "Percent"]),
        st.integers(1, 300),
        st.integers(1, 1800).map(lambda seconds: seconds * SECOND),
    ),
    min_size=1,
    max_size=4,
)


@given(policies, st.integers(1, 1000))
def test_the_smallest_change_is_never_larger_than_the_largest(
    given_policies: list[Policy], current: int
) -> None:
    least, most = (ScalingRules(tuple(given_policies), select) for select in ("Min", "Max"))
    empty = ScalingHistory()
    up = [up_rate(each, empty, current=current, now=NOW).replicas for each in (least, most)]
    down = [down_rate(each, empty, current=current, now=NOW).replicas for each in (most, least)]
    assert current < up[0] <= up[1]
    assert down[0] <= down[1] < current or down[1] == current


behaviors = st.none() | st.fixed_dictionaries(
    {
        direction: st.fixed_dictionaries(
            {
                "stabilizationWindowSeconds": st.integers(0, 120),
                "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
                "policies": st.lists(
                    st.fixed_dictionaries(
                        {
                            "type": st.sampled_from(["Pods", "Percent"]),
                            "value": st.integers(1, 200),
                            "periodSeconds": st.integers(1, 120),
                        }
                    ),
                    min_size=1,
                    max_size=3,
                ),
            }
        )
        for direction in ("scaleUp", "scaleDown")
    }
)


def object_with(behavior: JsonObject | None) -> JsonObject:
    more = {} if behavior is None else {"behavior": behavior}
    return hpa(utilization(50), minimum=2, maximum=30, **more)


@given(behaviors, st.lists(st.integers(0, 20_000), min_size=1, max_size=40))
def test_every_pass_stays_in_bounds_and_within_its_policies(
    behavior: JsonObject | None, loads: list[int]
) -> None:
    subject = HorizontalAutoscaler(
        object_with(behavior), HorizontalOptions(downscale_stabilization=60 * SECOND)
    )
    count, now = 2, NOW
    for load in loads:
        result = subject.run(observed(count, (load // count,) * count), now)
        assert 2 <= result.desired <= 30
        _check_direction(result, count)
        if behavior is None:
            assert result.desired <= max(2 * count, 4)
        else:
            _check_rate(result, count, behavior)
        count, now = result.desired, now + 15 * SECOND


def _check_direction(result: Result, count: int) -> None:
    """Between the count and what was proposed or remembered, never beyond."""
    counts = [each.replicas for each in result.history.recommendations]
    assert min(*counts, count, 2) <= result.desired <= max(*counts, count)


def _check_rate(result: Result, count: int, behavior: JsonObject) -> None:
    limit = result.explanation.limited
    if result.desired > count:
        assert behavior["scaleUp"]["selectPolicy"] != "Disabled"
        assert limit is not None
        assert limit.rate is not None
        assert result.desired <= limit.rate.replicas
    if result.desired < count:
        assert behavior["scaleDown"]["selectPolicy"] != "Disabled"
        assert limit is not None
        assert limit.rate is not None
        assert result.desired >= limit.rate.replicas


@given(
    behaviors,
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 30)), min_size=2, max_size=12),
    st.randoms(use_true_random=False),
)
def test_order_of_pods_and_metrics_does_not_matter(
    behavior: JsonObject | None, loads: list[tuple[int, int]], random: object
) -> None:
    one = HorizontalAutoscaler(object_with(behavior))
    other = copy.deepcopy(one)
    for number, (load, count) in enumerate(loads):
        seen = observed(count, [load // (pod + 1) for pod in range(count)])
        assert isinstance(seen.metrics, RecordedMetrics)
        pods, items = list(seen.pods), list(seen.metrics.resource())
        random.shuffle(pods)  # type: ignore[attr-defined]
        random.shuffle(items)  # type: ignore[attr-defined]
        shuffled = Observation(seen.scale, pods, RecordedMetrics(tuple(items)))
        now = NOW + number * 15 * SECOND
        assert one.run(seen, now).status == other.run(shuffled, now).status
