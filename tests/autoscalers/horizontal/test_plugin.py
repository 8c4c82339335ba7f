"""The HPA behind the autoscaler interface."""

import copy

import msgspec
import pytest

from horizontals import hpa, utilization
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.autoscalers import (
    HPA_V1,
    HPA_V2,
    HPA_V2BETA2,
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
from kubescene.autoscalers.horizontal import HorizontalPlugin
from kubescene.durations import MINUTE, SECOND
from kubescene.errors import ConfigurationError, InvalidError
from kubescene.types import JsonObject

CPU, MEMORY = MetricType.CPU_MILLIS, MetricType.MEMORY_BYTES
CONCURRENCY = MetricType.CONCURRENT_REQUESTS_MILLIS


class Run:
    """One partition of a plugin."""

    def __init__(
        self,
        source: JsonObject,
        plugin: HorizontalPlugin | None = None,
        partition: str = "1",
        type: str = HPA_V2,
    ) -> None:
        self.plugin = plugin or HorizontalPlugin()
        self.partition = partition
        self.autoscaler = Autoscaler(type, dump_yaml(source))
        self._event(0, EventType.CREATE, self.autoscaler)

    def _event(self, time: int, type: EventType, obj: Autoscaler | Pod) -> None:
        self.plugin.event(EventRequest(self.partition, time * SECOND, type, obj))

    def pods(
        self,
        names: str,
        time: int = 0,
        state: PodState = PodState.ACTIVE,
        type: EventType = EventType.CREATE,
    ) -> None:
        for name in names.split():
            self._event(time, type, Pod(name, state, time * SECOND, 1000))

    def stat(self, time: int, kind: MetricType, **values: int) -> None:
        stats = tuple(Stat(time * SECOND, pod, kind, value) for pod, value in values.items())
        self.plugin.stat(StatRequest(self.partition, stats))

    def ask(self, time: int) -> HorizontalRecommendationResponse:
        request = HorizontalRecommendationRequest(self.partition, time * SECOND)
        return self.plugin.horizontal_recommendation(request)

    def end(self) -> None:
        self._event(0, EventType.DELETE, self.autoscaler)


LATER = 10 * MINUTE // SECOND


def test_usage_above_the_target_scales_up_and_says_why() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a b")
    run.stat(LATER, CPU, a=900, b=700)
    answer = run.ask(LATER)
    assert answer.rec == 4
    assert "at 80% (target 50%) proposes 4" in answer.reason
    assert answer.details["conditions"]["ScalingActive"] == "ValidMetricFound"
    assert msgspec.json.decode(msgspec.json.encode(answer.details)) == answer.details


def test_a_launching_pod_counts_as_unready() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a")
    run.pods("b", state=PodState.LAUNCHING)
    run.stat(LATER, CPU, a=900)
    answer = run.ask(LATER)
    assert answer.rec == 2
    assert answer.details["metrics"][0]["unready"] == 1
    run.pods("b", LATER, type=EventType.UPDATE)
    run.stat(2 * LATER, CPU, a=900, b=900)
    assert run.ask(2 * LATER).rec == 4


def test_a_pod_without_stats_is_missing_but_uses_nothing_in_faithful_mode() -> None:
    answers = {}
    for faithful in (False, True):
        run = Run(hpa(utilization(50)), HorizontalPlugin(faithful=faithful))
        run.pods("a b")
        run.stat(LATER, CPU, a=900)
        answers[faithful] = run.ask(LATER).details["metrics"][0]
    assert (answers[False]["missing"], answers[False]["ratio"]) == (1, 1.8)
    assert (answers[True]["ready"], answers[True]["utilization"]) == (2, 45)


def test_a_young_pod_counts_only_in_faithful_mode() -> None:
    counts = {}
    for faithful in (False, True):
        run = Run(hpa(utilization(50)), HorizontalPlugin(faithful=faithful))
        run.pods("a b", 0)
        run.stat(5, CPU, a=900, b=900)
        counts[faithful] = run.ask(5).rec
    assert counts == {False: 2, True: 4}


def test_without_any_stats_the_count_stays_and_the_error_is_told() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a b")
    answer = run.ask(1)
    assert answer.rec == 2
    assert "no metrics returned from resource metrics API" in answer.details["error"]


def test_the_scale_is_what_was_recommended_last() -> None:
    """A pod that is replaced before its predecessor is gone is no reason to have one more."""
    run = Run(hpa(utilization(50)))
    run.pods("a b")
    run.stat(LATER, CPU, a=500, b=500)
    assert run.ask(LATER).rec == 2
    run.pods("c", LATER)
    run.stat(2 * LATER, CPU, a=500, b=500, c=500)
    assert run.ask(2 * LATER).rec == 2


def test_pods_that_are_still_to_come_belong_to_the_scale() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a b")
    run.stat(LATER, CPU, a=1000, b=1000)
    assert run.ask(LATER).rec == 4
    run.stat(LATER + 15, CPU, a=500, b=500)
    assert run.ask(LATER + 15).rec == 4


def test_a_kind_of_stat_that_nobody_knows_is_ignored() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a")
    unknown = Stat(1, "a", 99, -1)  # type: ignore[arg-type]
    run.plugin.stat(StatRequest("1", (unknown,)))


def test_faithful_mode_takes_the_pods_for_the_scale() -> None:
    run = Run(hpa(utilization(50)), HorizontalPlugin(faithful=True))
    run.pods("a b")
    run.stat(LATER, CPU, a=500, b=500)
    assert run.ask(LATER).rec == 2
    run.pods("c", LATER)
    run.stat(2 * LATER, CPU, c=500)
    assert run.ask(2 * LATER).rec == 3


def average(name: str, value: str) -> JsonObject:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def test_memory_and_concurrency_are_measured() -> None:
    concurrency = {
        "type": "Pods",
        "pods": {
            "metric": {"name": "concurrent_requests"},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
    run = Run(hpa(average("memory", "100Mi"), concurrency))
    run.pods("a b")
    run.stat(LATER, CPU, a=100, b=100)
    run.stat(LATER, MEMORY, a=200 * 2**20, b=100 * 2**20)
    run.stat(LATER, CONCURRENCY, a=25000, b=15000)
    by_memory, by_concurrency = run.ask(LATER).details["metrics"]
    assert (by_memory["proposal"], by_concurrency["proposal"]) == (3, 4)


def test_faithful_memory_is_a_mebibyte() -> None:
    run = Run(hpa(average("memory", "512Ki")), HorizontalPlugin(faithful=True))
    run.pods("a b")
    assert run.ask(LATER).rec == 4


def test_a_deleted_pod_is_forgotten_and_late_stats_are_ignored() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a b")
    run.pods("b", 1, type=EventType.DELETE)
    run.stat(LATER, CPU, a=500, b=90000)
    assert run.ask(LATER).details["metrics"][0]["utilization"] == 50


def test_partitions_do_not_show_in_each_other() -> None:
    plugin = HorizontalPlugin()
    runs = [Run(hpa(utilization(50)), plugin, f"{number}") for number in range(1, 6)]
    for number, run in enumerate(runs, 1):
        run.pods(" ".join(f"p{pod}" for pod in range(number)))
        run.stat(LATER, CPU, **{f"p{pod}": 1000 for pod in range(number)})
    assert [run.ask(LATER).rec for run in runs] == [2, 4, 6, 8, 10]
    runs[0].end()
    with pytest.raises(ConfigurationError, match="no autoscaler was created in partition '1'"):
        runs[0].ask(LATER)
    assert runs[1].ask(LATER).rec == 4


def test_a_copy_goes_on_alike() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a b")
    run.stat(LATER, CPU, a=900, b=700)
    twin = copy.deepcopy(run)
    assert run.ask(LATER) == twin.ask(LATER)


@pytest.mark.parametrize("type", [HPA_V2BETA2, HPA_V2, HPA_V1])
def test_version_kind_and_name_may_be_left_out(type: str) -> None:
    spec = hpa()["spec"]
    del spec["metrics"]
    run = Run({"spec": spec}, type=type)
    assert run.plugin.autoscaler("1").spec.metrics[0].target.average_utilization == 80


@pytest.mark.parametrize("type", [EventType.UPDATE, EventType.DELETE])
def test_an_event_about_an_unknown_pod_is_refused(type: EventType) -> None:
    run = Run(hpa(utilization(50)))
    with pytest.raises(ConfigurationError, match="there is no pod 'a'"):
        run.pods("a", type=type)


def test_a_pod_that_exists_cannot_be_created() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a")
    with pytest.raises(ConfigurationError, match="pod 'a' exists already"):
        run.pods("a")


def test_a_partition_has_one_autoscaler_that_does_not_change() -> None:
    run = Run(hpa(utilization(50)))
    with pytest.raises(ConfigurationError, match="has an autoscaler already"):
        Run(hpa(utilization(50)), run.plugin)
    event = EventRequest("1", 0, EventType.UPDATE, run.autoscaler)
    with pytest.raises(ConfigurationError, match="cannot be changed"):
        run.plugin.event(event)
    with pytest.raises(ConfigurationError, match="type 'other' is none of"):
        Run(hpa(utilization(50)), run.plugin, "2", "other")


def test_a_negative_stat_is_refused_by_name() -> None:
    run = Run(hpa(utilization(50)))
    run.pods("a")
    with pytest.raises(ConfigurationError, match="stat CPU_MILLIS of pod 'a' is negative"):
        run.stat(1, CPU, a=-5)


UNSERVED = {
    "resource": (utilization(50, "example.com/gpu"), r"spec.metrics\[0\].resource.name"),
    "external": (
        {
            "type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}},
        },
        r"spec.metrics\[0\].external.metric.name: 'q' is not measured here: there are conc",
    ),
    "pods": (
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": "rps"},
                "target": {"type": "AverageValue", "averageValue": "1"},
            },
        },
        r"spec.metrics\[0\].pods.metric.name: 'rps'",
    ),
    "container": (
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": "proxy",
                "target": {"type": "Utilization", "averageUtilization": 5},
            },
        },
        r"spec.metrics\[0\].containerResource.container",
    ),
}


@pytest.mark.parametrize(("metric", "words"), UNSERVED.values(), ids=UNSERVED)
def test_a_metric_that_the_world_does_not_have_is_refused_by_name(
    metric: JsonObject, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Run(hpa(metric))


def test_an_invalid_autoscaler_is_refused_with_its_field() -> None:
    with pytest.raises(InvalidError, match=r"spec\.maxReplicas"):
        Run(hpa(utilization(50), minimum=5, maximum=2))
