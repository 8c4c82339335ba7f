"""The VPA behind the autoscaler interface."""

from copy import deepcopy
from typing import Any

import msgspec
import orjson
import pytest

from autoscalers.vertical.vertical_worlds import in_mode, make_object, policies
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.autoscalers import (
    VPA_TYPES,
    VPA_V1,
    Autoscaler,
    EventRequest,
    EventType,
    MetricType,
    Pod,
    PodState,
    Stat,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.vertical import VerticalPlugin
from kubescene.autoscalers.vertical.options import HOUR, UpdaterOptions
from kubescene.clock import MINUTE, SECOND
from kubescene.errors import ConfigurationError


class Run:
    """One run as a world would tell it."""

    def __init__(self, plugin: VerticalPlugin, spec: Any = None, partition: str = "1") -> None:
        self.plugin = plugin
        self.partition = partition
        self.told = 0
        self.yaml = dump_yaml(make_object(spec))
        self.event(EventType.CREATE, Autoscaler(VPA_V1, self.yaml))

    def event(self, kind: EventType, obj: Autoscaler | Pod, time: int = 0) -> None:
        self.plugin.event(EventRequest(self.partition, time, kind, obj))

    def pods(self, *names: str, cpu: int = 1000, time: int = 0, memory: int = 0) -> "Run":
        for name in names:
            pod = Pod(name, PodState.ACTIVE, time, cpu, memory)
            self.event(EventType.CREATE, pod, time)
        return self

    def stats(
        self, value: int, *names: str, times: range, kind: MetricType = MetricType.CPU_MILLIS
    ) -> "Run":
        for time in times:
            for name in names:
                stats = (Stat(time, name, kind, value),)
                self.plugin.stat(StatRequest(self.partition, stats))
        return self

    def ask(self, time: int) -> VerticalRecommendationResponse:
        request = VerticalRecommendationRequest(self.partition, time)
        return self.plugin.vertical_recommendation(request)


def minutes(count: int, start: int = 0) -> range:
    return range(start, start + count * MINUTE, MINUTE)


def entries(response: VerticalRecommendationResponse) -> dict[str, tuple[int, int, int]]:
    return {
        each.resource_name: (each.lower_bound, each.target, each.upper_bound)
        for each in response.rec
    }


def test_it_takes_both_versions_of_the_object() -> None:
    assert VerticalPlugin.types == VPA_TYPES
    assert VPA_V1 == "vpa.v1.autoscaling.k8s.io"


@pytest.mark.parametrize(
    ("usage", "target"), [(0, 25), (100, 126), (500, 587), (833, 977), (976, 1168), (1000, 1168)]
)
def test_one_usage_over_and_over(usage: int, target: int) -> None:
    """The vectors of the plugin's reference."""
    run = Run(VerticalPlugin()).pods("a").stats(usage, "a", times=minutes(3))
    assert entries(run.ask(3 * MINUTE))["cpu"][1] == target


def test_nothing_is_said_before_something_was_measured() -> None:
    run = Run(VerticalPlugin()).pods("a", "b")
    response = run.ask(MINUTE)
    assert (response.rec, response.evict, response.admit) == ((), (), False)
    assert response.reason == "nothing was measured yet"


def test_memory_is_recommended_where_it_is_measured() -> None:
    run = Run(VerticalPlugin()).pods("a", memory=1 << 30)
    run.stats(500, "a", times=minutes(60))
    assert set(entries(run.ask(HOUR))) == {"cpu"}
    run.stats(1 << 29, "a", times=minutes(60), kind=MetricType.MEMORY_BYTES)
    assert entries(run.ask(HOUR))["memory"][1] == 628694953


def test_the_updater_replaces_half_of_the_pods_at_a_time() -> None:
    run = Run(VerticalPlugin()).pods("a", "b", "c", "d", cpu=125)
    run.stats(100, "a", "b", "c", "d", times=minutes(60))
    assert run.ask(HOUR).evict == (), "within the bounds, and young"
    high = Run(VerticalPlugin()).pods("a", "b", "c", "d", cpu=100)
    high.stats(1000, "a", "b", "c", "d", times=minutes(60))
    response = high.ask(HOUR)
    assert response.evict == ("a", "b")
    assert response.reason == "target cpu 1168m; evicting a, b"
    assert response.details["pods"]["c"] == "the disruption budget of its controller is used up"


def test_a_launching_pod_is_pending_to_the_updater() -> None:
    run = Run(VerticalPlugin(updater=UpdaterOptions(eviction_tolerance=0.25)))
    run.pods("a", "b", "c", cpu=100)
    run.stats(1000, "a", "b", "c", times=minutes(60))
    run.event(EventType.CREATE, Pod("d", PodState.LAUNCHING, HOUR, 100), HOUR)
    assert run.ask(HOUR).evict == ("d",)
    run.event(EventType.UPDATE, Pod("d", PodState.ACTIVE, HOUR, 1168), HOUR)
    assert run.ask(HOUR).evict == ("a",)


def test_a_launching_pod_is_not_known_to_the_recommender() -> None:
    run = Run(VerticalPlugin())
    run.event(EventType.CREATE, Pod("a", PodState.LAUNCHING, 0, 100))
    assert not run.plugin.recommender("1").usage.pods
    run.event(EventType.UPDATE, Pod("a", PodState.ACTIVE, SECOND, 100), SECOND)
    assert list(run.plugin.recommender("1").usage.pods) == ["a"]


@pytest.mark.parametrize(
    ("mode", "evict", "resize", "admit"),
    [
        ("Off", (), (), False),
        ("Initial", (), (), True),
        ("Recreate", ("a",), (), True),
        ("Auto", ("a",), (), True),
        ("InPlaceOrRecreate", (), ("a",), True),
    ],
)
def test_update_modes(
    mode: str, evict: tuple[str, ...], resize: tuple[str, ...], admit: bool
) -> None:
    run = Run(VerticalPlugin(), in_mode(mode)).pods("a", "b", cpu=100)
    response = run.stats(1000, "a", "b", times=minutes(60)).ask(HOUR)
    assert (response.evict, response.resize, response.admit) == (evict, resize, admit)
    assert response.rec


@pytest.mark.parametrize(
    ("mode", "evict", "admit"),
    [("Recreate", None, True), ("Initial", (), True), ("Off", (), False)],
)
def test_the_seed_rule_leaves_it_to_the_world(
    mode: str, evict: tuple[str, ...] | None, admit: bool
) -> None:
    run = Run(VerticalPlugin(rule="seed"), in_mode(mode)).pods("a", cpu=100)
    response = run.stats(1000, "a", times=minutes(60)).ask(HOUR)
    assert (response.evict, response.admit) == (evict, admit)


def test_faithful_samples_once_for_each_request() -> None:
    run = Run(VerticalPlugin(faithful=True), in_mode("Off")).pods("a")
    run.stats(500, "a", times=minutes(1))
    for number in range(1, 61):
        response = run.ask(number * MINUTE)
    assert run.plugin.recommender("1").histories(0)["container"].count == 60
    assert entries(response)["cpu"][1] == 587
    assert entries(response)["memory"][1] == 262144000
    assert (response.evict, response.admit) == (None, True)


def test_policies_are_told_in_the_reason() -> None:
    spec = policies({"containerName": "container", "maxAllowed": {"cpu": "300m"}})
    run = Run(VerticalPlugin(), spec).pods("a").stats(1000, "a", times=minutes(10))
    assert run.ask(HOUR).reason == "target cpu 300m, limited by maxAllowed"


def test_a_bound_that_is_limited_is_not_a_target_that_is() -> None:
    spec = policies({"containerName": "container", "maxAllowed": {"cpu": "1500m"}})
    run = Run(VerticalPlugin(), spec).pods("a").stats(1000, "a", times=minutes(10))
    answer = run.ask(HOUR)
    assert entries(answer)["cpu"][1] < entries(answer)["cpu"][2] == 1500
    assert answer.reason.endswith("m; its upper bound limited by maxAllowed")


def test_stats_of_others_and_of_the_dead_are_ignored() -> None:
    run = Run(VerticalPlugin()).pods("a")
    run.event(EventType.DELETE, Pod("a"), SECOND)
    run.stats(500, "a", "RoutingStock", times=minutes(1))
    run.pods("b").stats(500, "b", times=minutes(1), kind=MetricType.CONCURRENT_REQUESTS_MILLIS)
    assert run.ask(MINUTE).rec == ()


def test_answers_are_json() -> None:
    run = Run(VerticalPlugin()).pods("a").stats(500, "a", times=minutes(1))
    answer = run.ask(MINUTE)
    details = orjson.loads(orjson.dumps(answer.details))
    upper = details["containers"][0]["estimates"][2]
    assert (upper["bound"], upper["factor"], upper["amount"]) == ("upperBound", None, 10**14)
    assert msgspec.convert(msgspec.to_builtins(answer), VerticalRecommendationResponse) == answer


def test_partitions_are_kept_apart() -> None:
    plugin = VerticalPlugin()
    one, two = Run(plugin, partition="1"), Run(plugin, partition="2")
    one.pods("a").stats(100, "a", times=minutes(5))
    two.pods("a").stats(1000, "a", times=minutes(5))
    assert entries(one.ask(HOUR))["cpu"][1] == 126
    assert entries(two.ask(HOUR))["cpu"][1] == 1168
    one.event(EventType.DELETE, Autoscaler(VPA_V1, one.yaml))
    assert entries(two.ask(HOUR))["cpu"][1] == 1168
    with pytest.raises(ConfigurationError, match="partition '1'"):
        one.ask(HOUR)


def test_a_copied_plugin_goes_on_by_itself() -> None:
    run = Run(VerticalPlugin()).pods("a").stats(100, "a", times=minutes(60))
    before = run.ask(HOUR)
    other = deepcopy(run)
    other.stats(4000, "a", times=minutes(600, HOUR))
    assert other.ask(11 * HOUR) != before
    assert run.ask(HOUR) == before


def test_the_object_can_be_updated() -> None:
    run = Run(VerticalPlugin()).pods("a").stats(1000, "a", times=minutes(60))
    capped = make_object(policies({"containerName": "*", "maxAllowed": {"cpu": "200m"}}))
    run.event(EventType.UPDATE, Autoscaler(VPA_V1, dump_yaml(capped)))
    assert entries(run.ask(HOUR))["cpu"][1] == 200


def test_what_cannot_be_is_refused() -> None:
    run = Run(VerticalPlugin()).pods("a")
    with pytest.raises(ConfigurationError, match="'a' exists already"):
        run.pods("a")
    with pytest.raises(ConfigurationError, match="no pod 'b'"):
        run.event(EventType.DELETE, Pod("b"))
    with pytest.raises(ConfigurationError, match="CPU_MILLIS of pod 'a' is negative: -5"):
        run.stats(-5, "a", times=minutes(1))
    with pytest.raises(ConfigurationError, match="has an autoscaler already"):
        run.event(EventType.CREATE, Autoscaler(VPA_V1, run.yaml))
    with pytest.raises(ConfigurationError, match=r"spec\.targetRef: Required value"):
        Run(run.plugin, {"targetRef": None}, partition="2")


def test_a_vpa_of_another_recommender_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"spec.recommenders\[0\].name: .* 'custom' here"):
        Run(VerticalPlugin(), {"recommenders": [{"name": "custom"}]})
    Run(VerticalPlugin(), {"recommenders": [{"name": "default"}]})


def test_mode_in_place_is_served_where_its_gate_is_on() -> None:
    with pytest.raises(ConfigurationError, match="feature gate InPlace is disabled"):
        Run(VerticalPlugin(), in_mode("InPlace"))
    plugin = VerticalPlugin(updater=UpdaterOptions(in_place=True))
    run = Run(plugin, in_mode("InPlace")).pods("a", "b", "c", "d", cpu=10_000)
    for minute in range(60 * 48):
        told = Stat(minute * MINUTE, "a", MetricType.CPU_MILLIS, 100)
        plugin.stat(StatRequest("1", (told,)))
    answer = plugin.vertical_recommendation(VerticalRecommendationRequest("1", 48 * HOUR))
    assert (answer.resize, answer.evict) == (("a", "b", "c", "d"), ())
    assert run.plugin is plugin
