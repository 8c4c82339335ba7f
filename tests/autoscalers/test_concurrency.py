"""The concurrency autoscaler: windows, panic, rates, scale to zero."""

from copy import deepcopy
from typing import Any

import pytest

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.autoscalers import (
    Autoscaler,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    PodState,
    Stat,
    StatRequest,
)
from kubescene.autoscalers.concurrency import (
    ROUTER,
    TYPE,
    ConcurrencyPlugin,
    ConcurrencySpec,
    Load,
    read_spec,
)
from kubescene.clock import SECOND
from kubescene.errors import ConfigurationError


def yaml(**spec: Any) -> str:
    return dump_yaml(
        {
            "apiVersion": "autoscaling.kubescene.dev/v1alpha1",
            "kind": "ConcurrencyAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"targetConcurrency": 10} | spec,
        }
    )


class Run:
    """A run in which time is told in seconds and concurrency in requests."""

    def __init__(self, *, pods: int = 1, **spec: Any) -> None:
        self.plugin = ConcurrencyPlugin()
        self.count = 0
        self.event(EventType.CREATE, Autoscaler(TYPE, yaml(**spec)))
        self.grow(pods)

    def event(self, kind: EventType, obj: Autoscaler | Pod, at: float = 0) -> None:
        self.plugin.event(EventRequest("1", int(at * SECOND), kind, obj))

    def grow(self, pods: int, at: float = 0) -> None:
        while self.count < pods:
            self.event(EventType.CREATE, Pod(f"p{self.count}", PodState.ACTIVE), at)
            self.count += 1

    def load(self, value: float, at: float, pod: str = "p0") -> None:
        kind = MetricType.CONCURRENT_REQUESTS_MILLIS
        stat = Stat(int(at * SECOND), pod, kind, int(value * 1000))
        self.plugin.stat(StatRequest("1", (stat,)))

    def ask(self, at: float) -> int:
        return self.answer(at).rec

    def answer(self, at: float) -> HorizontalRecommendationResponse:
        request = HorizontalRecommendationRequest("1", int(at * SECOND))
        return self.plugin.horizontal_recommendation(request)


def test_a_steady_load_gets_its_share_of_pods() -> None:
    run = Run(pods=3)
    run.load(25, 0)
    assert run.ask(60) == 3
    assert run.answer(60).reason == "stable window: 3 pods"


def test_the_average_is_that_of_a_step_function() -> None:
    """Half a window at 40, half at 0: 20 on average."""
    run = Run(pods=2)
    run.load(40, 0)
    run.load(0, 30)
    assert run.ask(60) == 2
    assert run.answer(60).details["panic"] == 0


def test_a_burst_panics_and_panic_never_shrinks() -> None:
    run = Run(pods=1)
    run.load(1, 0)
    assert run.ask(50) == 1
    run.load(100, 54)
    assert run.ask(60) == 10
    assert run.answer(60).details["window"] == "panic window"
    run.grow(10, 61)
    run.load(1, 62)
    assert run.ask(100) == 10, "still in panic"
    assert run.ask(121) < 10, "a stable window later it is calm"


@pytest.mark.parametrize(("threshold", "window"), [(2.0, "panic window"), (2.001, "stable window")])
def test_a_need_of_just_the_threshold_is_an_alarm(threshold: float, window: str) -> None:
    run = Run(pods=1, panicThreshold=threshold)
    run.load(20, 54)
    details = run.answer(60).details
    assert (details["panic"], details["window"]) == (2, window)


def test_panic_lasts_from_the_last_alarm() -> None:
    run = Run(pods=1)
    run.load(100, 0)
    assert run.ask(6) == 10
    assert run.ask(30) == 10
    run.load(0, 31)
    assert run.ask(89) == 10
    assert run.ask(91) == 1


@pytest.mark.parametrize(
    ("pods", "load", "spec", "expected", "limit"),
    [
        (2, 1000, {"maxScaleUpRate": 3.0}, 6, "the rate of change"),
        (8, 1, {}, 4, "the rate of change"),
        (1, 1000, {"maxReplicas": 7}, 7, "maxReplicas"),
        (1, 0, {"minReplicas": 2}, 2, "minReplicas"),
    ],
)
def test_limits(pods: int, load: float, spec: dict[str, Any], expected: int, limit: str) -> None:
    run = Run(pods=pods, **spec)
    run.load(load, 0)
    answer = run.answer(60)
    assert (answer.rec, answer.details["limit"]) == (expected, limit)


def test_the_last_pod_goes_after_window_and_grace() -> None:
    run = Run(pods=1, minReplicas=0)
    run.load(5, 0)
    run.load(0, 10)
    assert run.ask(99) == 1
    assert run.answer(99).details["limit"] == "the grace period"
    assert run.ask(100) == 0


def test_requests_at_the_router_bring_the_first_pod_back() -> None:
    run = Run(pods=0, minReplicas=0)
    assert run.ask(1) == 0
    run.load(3, 2, ROUTER)
    assert run.ask(4) == 1


def test_without_a_measurement_pods_stay() -> None:
    run = Run(pods=4)
    run.load(0, 1, ROUTER)
    assert (run.ask(15), run.answer(15).reason) == (4, "no measurement yet: 4 pods")
    run.load(0, 16)
    assert run.ask(30) == 2


def test_without_scale_to_zero_one_pod_stays() -> None:
    run = Run(pods=1)
    run.load(0, 0)
    assert run.ask(3600) == 1


def test_a_pod_that_is_gone_has_no_load() -> None:
    run = Run(pods=2)
    run.load(10, 0, "p0")
    run.load(10, 0, "p1")
    run.event(EventType.DELETE, Pod("p1"), 60)
    run.load(1000, 61, "p1")
    assert run.ask(120) == 1


def test_launching_pods_are_not_ready() -> None:
    run = Run(pods=1)
    run.event(EventType.CREATE, Pod("new", PodState.LAUNCHING), 0)
    assert run.answer(1).details["ready"] == 1


def test_other_metrics_are_ignored_and_negative_ones_refused() -> None:
    run = Run()
    run.plugin.stat(StatRequest("1", (Stat(0, "p0", MetricType.CPU_MILLIS, -1),)))
    with pytest.raises(ConfigurationError, match="pod 'p0' is negative"):
        run.load(-1, 0)


def test_a_late_stat_counts_from_the_latest_on() -> None:
    load = Load(60)
    load.set("a", 1000, 100)
    load.set("b", 1000, 90)
    assert list(load.steps) == [(100, 2000)]
    assert load.average(60, 110) == (20000, 10)


def test_steps_are_kept_for_the_stable_window_only() -> None:
    load = Load(60)
    for time in range(0, 1000, 10):
        load.set("a", time, time)
    assert len(load.steps) == 7
    assert load.average(60, 990)[1] == 60


def test_runs_and_copies_are_kept_apart() -> None:
    run = Run(pods=1)
    run.load(10, 0)
    other = deepcopy(run)
    other.load(500, 10)
    assert (run.ask(60), other.ask(60)) == (1, 50)
    run.event(EventType.DELETE, Autoscaler(TYPE, yaml()))
    with pytest.raises(ConfigurationError, match="no autoscaler was created"):
        run.ask(61)


def test_a_spec_can_be_updated_but_not_created_twice() -> None:
    run = Run(pods=1)
    run.load(40, 0)
    run.event(EventType.UPDATE, Autoscaler(TYPE, yaml(targetConcurrency=40)))
    assert run.ask(60) == 1
    with pytest.raises(ConfigurationError, match="already"):
        run.event(EventType.CREATE, Autoscaler(TYPE, yaml()))


def test_the_object_is_read_with_its_defaults() -> None:
    assert read_spec(yaml()) == ConcurrencySpec(target_concurrency=10.0)
    assert read_spec(yaml(stableWindow="2m")).stable_window == 120 * SECOND


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"targetConcurrency": 0}, "spec.targetConcurrency: has to be more than 0"),
        ({"targetConcurrency": "ten"}, "spec.targetConcurrency: Expected `float`"),
        ({"stableWindow": "soon"}, "spec.stableWindow: "),
        ({"stableWindow": 60}, "spec.stableWindow: "),
        ({"stableWindow": "1s"}, "spec.panicWindow: cannot be longer"),
        ({"panicThreshold": 1}, "spec.panicThreshold: has to be more than 1"),
        ({"maxScaleDownRate": 0.5}, "spec.maxScaleDownRate: has to be more than 1"),
        ({"minReplicas": -1}, "spec.minReplicas: cannot be negative"),
        ({"maxReplicas": 0}, "spec.maxReplicas: cannot be less"),
        ({"target": 5}, "spec: Object contains unknown field `target`"),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read_spec(yaml(**spec))
    assert str(refusal.value).startswith(said)


def test_a_target_has_to_be_finite() -> None:
    for number in (float("nan"), float("inf")):
        assert ConcurrencySpec(target_concurrency=number).faults()


@pytest.mark.parametrize("text", ["", "{", "[]", "kind: Pod"])
def test_what_is_no_such_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        read_spec(text)
