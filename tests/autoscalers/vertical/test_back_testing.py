"""A series of samples against a VerticalPodAutoscaler."""

from math import inf, nan
from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import (
    MI,
    START,
    feed,
    make_recommender,
    make_vpa,
    policies,
)
from kubescene.autoscalers.vertical import SampleError, UsageSample, back_test
from kubescene.autoscalers.vertical.back_tests import BackTestSubject
from kubescene.autoscalers.vertical.limits import amount_of
from kubescene.autoscalers.vertical.options import HOUR
from kubescene.clock import MINUTE
from kubescene.errors import ConfigurationError


def steady(minutes: int, cpu: float = 100, memory: float = 100 * MI) -> list[UsageSample]:
    return [
        UsageSample(START + number * MINUTE, cpu=cpu, memory=memory, container="app")
        for number in range(minutes)
    ]


def test_the_last_step_is_what_the_recommender_says() -> None:
    recommender = make_recommender()
    feed(recommender, cpu=100, memory=100 * MI, minutes=60)
    expected = recommender.recommend(START + 59 * MINUTE)
    result = back_test(make_vpa(), steady(60))
    assert result.steps[-1].recommended == expected.recommended
    assert result.steps[-1].explain() == expected.explain()
    assert result.rejected == 0


def test_a_step_for_every_interval_and_one_at_the_end() -> None:
    times = [step.time for step in back_test(make_vpa(), steady(61), every=HOUR // 2).steps]
    assert times == [START + HOUR // 2, START + HOUR]
    assert back_test(make_vpa(), []).steps == ()


def test_a_recommendation_knows_the_samples_of_its_own_time() -> None:
    samples = [UsageSample(START, cpu=100), UsageSample(START + MINUTE, cpu=1000)]
    samples.append(UsageSample(START + 2 * MINUTE + 1, cpu=1))
    assert [
        step.containers[0].samples for step in back_test(make_vpa(), samples).steps
    ] == [2, 2, 3]  # fmt: skip


def test_outcomes_judge_samples_by_the_target_in_force() -> None:
    """Under the target of 126m from the first minute on; then it is too little."""
    samples = [*steady(11), UsageSample(START + 11 * MINUTE, cpu=500, container="app")]
    outcome = back_test(make_vpa(), samples).outcomes[BackTestSubject("app", "cpu")]
    assert (outcome.samples, outcome.above, outcome.mean_target) == (10, 1, 126.0)
    assert outcome.mean_usage == pytest.approx((9 * 100 + 500) / 10)


def test_policies_and_kills_are_honoured() -> None:
    vpa = make_vpa(policies({"containerName": "app", "maxAllowed": {"cpu": "50m"}}))
    kill = UsageSample(START + HOUR, memory=1000 * MI, container="app", oom=True)
    last = back_test(vpa, [*steady(60), kill]).steps[-1].recommended[0]
    assert str(amount_of(last.target, "cpu")) == "50m"
    assert amount_of(last.target, "memory").value() > 1200 * MI


def test_refused_samples_are_counted() -> None:
    assert back_test(make_vpa(), [*steady(1), *steady(1)]).rejected == 1


def test_fractions_are_rounded_up() -> None:
    fraction = back_test(make_vpa(), steady(3, cpu=99.2, memory=0.5))
    whole = back_test(make_vpa(), steady(3, cpu=100, memory=1))
    assert fraction.steps == whole.steps


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"cpu": nan}, "samples[1].cpu: nan; an amount has to be finite"),
        ({"cpu": inf}, "samples[1].cpu: inf; an amount has to be finite"),
        ({"cpu": -1}, "samples[1].cpu: -1; an amount cannot be negative"),
        ({"memory": -0.5}, "samples[1].memory: -0.5; an amount cannot be negative"),
        ({"memory": nan}, "samples[1].memory: nan; an amount has to be finite"),
        ({"memory": "1Gi"}, "samples[1].memory: '1Gi' is no number"),
        ({"cpu": True}, "samples[1].cpu: True is no number"),
        ({"time": START - 1}, f"samples[1].time: {START - 1} is before {START}; sort by time"),
        ({"time": 1.5}, "samples[1].time: 1.5 is no whole number of nanoseconds"),
        ({"time": START * 10**6}, "samples[1].time: "),
    ],
)
def test_what_is_no_sample_is_named(bad: dict[str, Any], said: str) -> None:
    samples = [*steady(1), UsageSample(**({"time": START + MINUTE} | bad))]
    with pytest.raises(SampleError) as refusal:
        back_test(make_vpa(), samples)
    assert str(refusal.value).startswith(said)


def test_an_interval_has_to_be_positive() -> None:
    with pytest.raises(ConfigurationError, match="every: 0"):
        back_test(make_vpa(), steady(1), every=0)
