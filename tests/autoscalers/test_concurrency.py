"""The concurrency autoscaler: windows, panic, rates, scale to zero, names old and new."""

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
from kubescene.autoscalers.kpa import Buckets
from kubescene.clock import SECOND
from kubescene.errors import ConfigurationError


def yaml(**spec: Any) -> str:
    return yaml_with({"target": 10, "targetUtilizationPercentage": 100} | spec)


def yaml_with(spec: Any) -> str:
    return dump_yaml(
        {
            "apiVersion": "autoscaling.kubescene.dev/v1alpha1",
            "kind": "ConcurrencyAutoscaler",
            "metadata": {"name": "web"},
            "spec": spec,
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
    run = Run(pods=1)
    run.load(7, 0)
    assert run.ask(60) == 1
    assert run.answer(60).reason == "stable window: 1 pods"


def test_several_pods_at_the_beginning_stay_for_a_stable_window() -> None:
    run = Run(pods=5)
    run.load(7, 0)
    assert run.answer(2).reason == "panic window: 1 pods, the panic so far makes it 5"
    assert run.ask(62) == 5
    assert run.ask(63) == 2
    assert run.ask(64) == 2, "the rate is of ready pods, which are five still"


def test_a_pod_should_have_its_share_of_the_target() -> None:
    run = Run(targetUtilizationPercentage=80)
    run.load(8, 0)
    assert run.ask(60) == 1
    run.event(EventType.UPDATE, Autoscaler(TYPE, yaml(targetUtilizationPercentage=70)), 60)
    assert run.ask(61) == 2


def test_a_rate_below_two_still_leaves_one_pod() -> None:
    run = Run(pods=1, maxScaleUpRate=1.1)
    run.load(1000, 0)
    counts = []
    for second in range(2, 12, 2):
        counts.append(run.ask(second))
        run.grow(counts[-1], second)
    assert counts == [2, 3, 4, 5, 6]


def test_a_delay_keeps_the_most_of_its_time() -> None:
    run = Run(pods=1, stableWindow="6s", panicThresholdPercentage=1000, scaleDownDelay="20s")
    run.load(30, 0)
    assert run.ask(6) == 3
    run.load(5, 7)
    assert run.answer(24).reason == "stable window: 1 pods, scaleDownDelay makes it 3"
    assert run.ask(26) == 1


def test_whoever_is_activated_begins_with_more() -> None:
    run = Run(pods=0, minScale=0, activationScale=4)
    run.load(1, 1, ROUTER)
    assert run.answer(2).reason == "stable window: 1 pods, activationScale makes it 4"
    assert Run(pods=0, minScale=0, activationScale=4).ask(2) == 0


def test_the_initial_scale_is_reached_once() -> None:
    run = Run(pods=1, initialScale=3)
    run.load(1, 0)
    assert run.answer(2).reason == "stable window: 1 pods, initialScale makes it 3"
    run.grow(3, 3)
    assert run.ask(4) == 1


def test_later_seconds_weigh_more_if_asked_for() -> None:
    spec = {"panicThresholdPercentage": 1000, "metric": "concurrency"}
    weighted = Run(pods=1, metricAggregationAlgorithm="weighted-exponential", **spec)
    linear = Run(pods=1, metricAggregationAlgorithm="linear", **spec)
    for run in (weighted, linear):
        run.load(0, 0)
        run.load(90, 50)
    assert (weighted.answer(59).details["stable"], linear.answer(59).details["stable"]) == (9, 2)


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


@pytest.mark.parametrize(("threshold", "window"), [(200, "panic window"), (200.1, "stable window")])
def test_a_need_of_just_the_threshold_is_an_alarm(threshold: float, window: str) -> None:
    run = Run(pods=1, panicThresholdPercentage=threshold)
    run.load(20, 54)
    details = run.answer(60).details
    assert (details["panic"], details["window"]) == (2, window)


def test_panic_lasts_from_the_last_alarm() -> None:
    run = Run(pods=1)
    run.load(100, 0)
    assert run.ask(6) == 10
    assert run.ask(30) == 10
    run.load(0, 31)
    assert run.ask(90) == 10
    assert run.ask(91) == 1


@pytest.mark.parametrize(
    ("pods", "load", "spec", "expected", "limit"),
    [
        (2, 1000, {"maxScaleUpRate": 3.0}, 6, "the rate of change"),
        (8, 1, {}, 4, "the rate of change"),
        (7, 1, {}, 3, "the rate of change"),
        (1, 1000, {"maxScale": 7}, 7, "maxScale"),
        (1, 0, {"minScale": 2}, 2, "minScale"),
    ],
)
def test_limits(pods: int, load: float, spec: dict[str, Any], expected: int, limit: str) -> None:
    run = Run(pods=pods, **spec)
    run.ask(0)
    run.load(load, 0)
    answer = run.answer(61)
    assert (answer.rec, answer.details["limit"]) == (expected, limit)


def test_the_last_pod_goes_after_window_and_grace() -> None:
    run = Run(pods=1, minScale=0)
    run.load(5, 0)
    run.load(0, 10)
    assert run.ask(99) == 1
    assert run.answer(99).details["limit"] == "the grace period"
    assert run.ask(100) == 0


def test_requests_at_the_router_bring_the_first_pod_back() -> None:
    run = Run(pods=0, minScale=0)
    assert run.ask(1) == 0
    run.load(3, 2, ROUTER)
    assert run.ask(4) == 1


def test_without_a_measurement_pods_stay() -> None:
    run = Run(pods=4)
    run.load(0, 1, ROUTER)
    assert (run.ask(15), run.answer(15).reason) == (4, "no measurement yet: 4 pods")
    run.load(0, 16)
    assert run.ask(76) == 2


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


def test_requests_a_second_are_another_metric() -> None:
    run = Run(metric="rps")
    rate = MetricType.REQUESTS_PER_SECOND_MILLIS
    run.load(500, 0)
    run.plugin.stat(StatRequest("1", (Stat(0, "p0", rate, 25_000),)))
    assert run.answer(60).reason == "panic window: 3 pods"


def test_where_requests_a_second_are_not_measured_they_are_refused() -> None:
    plugin, obj = ConcurrencyPlugin(rates=False), Autoscaler(TYPE, yaml(metric="rps"))
    with pytest.raises(ConfigurationError, match="rps is not measured here"):
        plugin.event(EventRequest("1", 0, EventType.CREATE, obj))


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


def test_steps_are_kept_for_the_stable_window_only() -> None:
    load = Load(60)
    for time in range(0, 1000, 10):
        load.set("a", time, time)
    assert len(load.steps) == 7


def test_a_bucket_has_what_its_second_ended_with() -> None:
    load = Load(60 * SECOND)
    assert load.average(Buckets(6 * SECOND), 0) == 0
    load.set("a", 3000, SECOND // 2)
    load.set("a", 1000, 2 * SECOND + SECOND // 4)
    assert load.average(Buckets(6 * SECOND), SECOND // 2) == 3
    assert load.average(Buckets(6 * SECOND), 3 * SECOND) == 2
    assert load.average(Buckets(2 * SECOND), 3 * SECOND) == 1


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
    run.event(EventType.UPDATE, Autoscaler(TYPE, yaml(target=40)))
    assert run.ask(60) == 1
    with pytest.raises(ConfigurationError, match="already"):
        run.event(EventType.CREATE, Autoscaler(TYPE, yaml()))


def read(**spec: Any) -> ConcurrencySpec:
    """An object that says this and nothing else."""
    kind = {"apiVersion": "autoscaling.kubescene.dev/v1alpha1", "kind": "ConcurrencyAutoscaler"}
    return read_spec(dump_yaml(kind | {"spec": spec}))


def test_the_object_is_read_with_its_defaults() -> None:
    assert read(target=10) == ConcurrencySpec(target=10.0)
    assert read(target=10).rule().target == 7
    assert read(target=10, stableWindow="2m").stable_window == 120 * SECOND
    assert read(target=0.001).rule().target == 0.01, "no less, as in Knative"


@pytest.mark.parametrize(("percentage", "seconds"), [(10, 6), (11, 7), (1, 1), (0.1, 1), (100, 60)])
def test_the_panic_window_has_whole_seconds(percentage: float, seconds: int) -> None:
    assert read(target=1, panicWindowPercentage=percentage).panic_window == seconds * SECOND


def test_older_names_mean_what_they_meant() -> None:
    older = {
        "targetConcurrency": 10,
        "stableWindow": "30s",
        "panicWindow": "6s",
        "panicThreshold": 1.5,
        "minReplicas": 0,
        "maxReplicas": 20,
    }
    newer = {
        "target": 10,
        "targetUtilizationPercentage": 100,
        "stableWindow": "30s",
        "panicWindowPercentage": 20,
        "panicThresholdPercentage": 150,
        "minScale": 0,
        "maxScale": 20,
    }
    assert read(**older) == read(**newer)
    assert read(targetConcurrency=10, maxReplicas=None).max_scale == 0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"target": 0}, "spec.target: has to be more than 0"),
        ({"target": "ten"}, "spec.target: must be a finite number, not text ('ten')"),
        ({"target": {}}, "spec.target: must be a finite number, not an object"),
        ({"Target": 5}, "spec.Target: there is no such field: did you mean target?"),
        ({"stableWindow": "soon"}, "spec.stableWindow: "),
        ({"stableWindow": 60}, "spec.stableWindow: "),
        ({"stableWindow": "0s"}, "spec.stableWindow: has to be more than 0"),
        ({"stableWindow": "1s", "panicWindow": "6s"}, "spec.panicWindow: has to be more than 0"),
        ({"panicWindowPercentage": 101}, "spec.panicWindowPercentage: has to be more than 0, and"),
        ({"targetUtilizationPercentage": 0}, "spec.targetUtilizationPercentage: has to be more"),
        ({"panicThresholdPercentage": 100}, "spec.panicThresholdPercentage: has to be more than"),
        ({"maxScaleDownRate": 0.5}, "spec.maxScaleDownRate: has to be more than 1"),
        ({"scaleDownDelay": "-1s"}, "spec.scaleDownDelay: "),
        ({"activationScale": 0}, "spec.activationScale: cannot be less than 1"),
        ({"minScale": -1}, "spec.minScale: cannot be less than 0"),
        ({"minScale": 3, "maxScale": 2}, "spec.maxScale: cannot be less than spec.minScale"),
        ({"maxReplicas": 0}, "spec.maxReplicas: has to be 1 or more"),
        ({"minReplicas": 1, "minScale": 1}, "spec.minReplicas: is spec.minScale by its older name"),
        ({"minReplicas": "two"}, "spec.minReplicas: must be a whole number, not text ('two')"),
        ({"metric": "cpu"}, "spec.metric: Invalid enum value 'cpu': known are concurrency, rps"),
        ({"goal": 5}, "spec.goal: there is no such field: known are target, metric, "),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read_spec(yaml(**spec))
    assert str(refusal.value).startswith(said)


@pytest.mark.parametrize("spec", [{}, None, [1], "x", 3])
def test_a_spec_that_says_nothing_is_refused_in_words(spec: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^spec(\.target: is required|: must be)"):
        read_spec(yaml_with(spec))


def test_a_target_has_to_be_finite() -> None:
    for number in (float("nan"), float("inf")):
        assert ConcurrencySpec(target=number).faults()


@pytest.mark.parametrize("text", ["", "{", "[]", "kind: Pod"])
def test_what_is_no_such_object_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        read_spec(text)
