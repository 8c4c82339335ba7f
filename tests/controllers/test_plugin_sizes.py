"""Autoscalers behind the interface that say how large pods should be, on real Deployments."""

import json
from copy import deepcopy
from typing import Any

import pytest

from controllers.test_plugin_autoscaler import PLUGINS, condition, plugin
from controllers.test_traffic import constant, deployment, traffic, world
from controllers.test_vertical_autoscaler import deployment as vertical_deployment
from controllers.test_vertical_autoscaler import load, requests, vpa
from kubescene.api.quantity import parse
from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    Pod,
    RecommendedPodResources,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.autoscaling.facts import SizesDecided
from kubescene.controllers.builtin.autoscaling.flags import (
    AutoscalingSettings,
    read_horizontal,
    read_vertical,
)
from kubescene.instruments import Instrument
from kubescene.shortcuts import PLAIN
from kubescene.testing import make_node
from kubescene.types import JsonObject

MIB = 1024 * 1024
SIZER = "sizer.example.com"


class Sizer(AutoscalerPlugin):
    """Answers what its object says, one answer after the other; the last one again and again."""

    types = (SIZER,)
    capabilities = frozenset({Capability.EVENT, Capability.VERTICAL_RECOMMENDATION})

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.pods: dict[str, None] = {}
        self.answers: list[Any] = []

    def event(self, request: EventRequest) -> None:
        told = request.object
        if isinstance(told, Autoscaler):
            text = told.yaml.partition("answers:")[2].strip().strip("'")
            self.answers = json.loads(text.replace("\n", "")) if text else []
            return
        assert isinstance(told, Pod)
        self.told.append((EventType(request.type).name, told.name, told.cpu_request))
        if request.type is EventType.DELETE:
            self.pods.pop(told.name)
        else:
            self.pods[told.name] = None

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        every = tuple(sorted(self.pods))
        named = {name: every if answer.get(name) == "all" else None for name in ("evict", "resize")}
        if isinstance(answer.get("evict"), int):
            named["evict"] = every[: answer["evict"]]
        if answer.get("evict") == "none":
            named["evict"] = ()
        return VerticalRecommendationResponse(
            tuple(
                RecommendedPodResources(low, high, target, name)
                for name, (low, target, high) in answer.get("rec", {}).items()
            ),
            named["evict"],
            named["resize"] or (),
            answer.get("admit", True),
            "as its object says",
        )


class Told(Instrument):
    """Sizes as they are decided."""

    def __init__(self) -> None:
        self.facts: list[SizesDecided] = []

    def fact_told(self, actor: object, fact: object) -> None:
        del actor
        if isinstance(fact, SizesDecided):
            self.facts.append(fact)


def sizer(*answers: JsonObject, interval: str = "10s", **spec: Any) -> JsonObject:
    text = json.dumps(answers)
    return plugin(SIZER, {"answers": text}, verticalInterval=interval, **spec)


def rec(cpu: Any = None, memory: Any = None, **more: Any) -> JsonObject:
    given = {"cpu": cpu, "memory": memory}
    found = {name: [each] * 3 if isinstance(each, int) else each for name, each in given.items()}
    return {"rec": {name: each for name, each in found.items() if each is not None}, **more}


def started(*objects: JsonObject, **options: Any) -> ClusterWorld:
    cluster = world(autoscaler_plugins=(Sizer,), **options)
    for each in objects:
        cluster.create(each)
    return cluster.settle()


def sizes(cluster: ClusterWorld, container: int = 0) -> list[tuple[str, str]]:
    """Requests and limits of CPU of those that are not on their way out."""
    found = [
        each["spec"]["containers"][container]["resources"]
        for each in cluster.list("pods")
        if not each["metadata"].get("deletionTimestamp")
    ]
    return sorted((each["requests"]["cpu"], each.get("limits", {}).get("cpu")) for each in found)


def names(cluster: ClusterWorld) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.list("pods")}


def test_pods_that_it_names_are_evicted_and_the_next_ones_have_the_target() -> None:
    """Limits stay the double of requests, as with a VerticalPodAutoscaler."""
    cluster = started(deployment(3, cpu="500m", limit="1"), sizer(rec(200, 64 * MIB, evict=1)))
    before = names(cluster)
    cluster.advance("9s")
    assert sizes(cluster) == [("500m", "1")] * 3
    cluster.advance("1s")
    assert sizes(cluster) == [("200m", "400m"), ("500m", "1"), ("500m", "1")]
    assert len(before & names(cluster)) == 2
    status = cluster.get(PLUGINS, "web")["status"]
    assert status["recommendation"] == {
        each: {"cpu": "200m", "memory": "64Mi"} for each in ("target", "lowerBound", "upperBound")
    }
    assert (status["admit"], status["sizeReason"]) == (True, "as its object says")
    assert condition(cluster)[:2] == ("True", "Asked")


def test_pods_that_it_names_are_resized_where_they_are_and_it_hears_of_it() -> None:
    cluster = started(
        deployment(2, cpu="500m", limit="500m"),
        sizer(rec(700, evict="none", resize="all", admit=False), rec(900, evict="none")),
        events=True,
    )
    before, told = names(cluster), Told()
    cluster.instruments.attach(told)
    cluster.advance("10s")
    assert names(cluster) == before
    assert sizes(cluster) == [("700m", "700m")] * 2
    statuses = [each["status"]["containerStatuses"][0] for each in cluster.list("pods")]
    assert [each["restartCount"] for each in statuses] == [0, 0]
    first = told.facts[0]
    assert (first.action, first.pod, first.target) == ("resized", min(before), "Deployment/web")
    assert first.before["app"]["cpu"] == "500m"
    assert first.after["app"] == {"cpu": "700m"}
    assert first.reason == "as its object says"
    said = [each["reason"] for each in cluster.list("events")]
    assert said.count("ResizedPod") == 2
    cluster.advance("10s")
    updates = [one for one in plugin_of(cluster).told if one[0] == "UPDATE" and one[2] == 700]
    assert [one[1] for one in updates] == sorted(before)
    assert len(told.facts) == 2


def plugin_of(cluster: ClusterWorld) -> Sizer:
    slot = next(each for each in cluster.manager.slots if each.name == "pluginautoscaler")
    awake: Any = slot.controller
    found = awake._awake.reconciler._dispatcher._by_type[SIZER]
    assert isinstance(found, Sizer)
    return found


@pytest.mark.parametrize(("admit", "cpu"), [(True, "300m"), (False, "500m")])
def test_whether_new_pods_get_the_target_is_for_it_to_say(admit: bool, cpu: str) -> None:
    cluster = started(deployment(1), sizer(rec(300, evict="none", admit=admit)))
    cluster.advance("10s")
    assert sizes(cluster)[0][0] == "500m"
    cluster.scale("deployments", "web", 2)
    cluster.settle()
    assert sorted(each for each, _ in sizes(cluster)) == sorted(["500m", cpu])


@pytest.mark.parametrize(
    ("low", "high", "gone"), [(400, 600, 0), (501, 600, 2), (400, 499, 2), (500, 500, 0)]
)
def test_an_autoscaler_that_names_nobody_leaves_it_to_the_bounds(
    low: int, high: int, gone: int
) -> None:
    target = min(max(low, 510), high)
    cluster = started(deployment(2), sizer(rec([low, target, high])))
    before = names(cluster)
    cluster.advance("10s")
    assert len(before - names(cluster)) == gone
    cluster.advance("30s")
    assert len(before - names(cluster)) == gone


def test_a_disruption_budget_holds_and_is_told() -> None:
    """One at a time: the second is refused until the first is replaced."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    answer = rec([600, 700, 900])
    cluster = started(deployment(3), budget, sizer(answer), events=True)
    for replaced in (1, 2):
        cluster.advance("10s")
        assert [each for each, _ in sizes(cluster)].count("700m") == replaced
        assert condition(cluster)[:2] == ("False", "SizeRefused")
        assert "disruption budget" in condition(cluster)[2]
    cluster.advance("10s")
    assert [each for each, _ in sizes(cluster)] == ["700m"] * 3
    assert condition(cluster)[:2] == ("True", "Asked")
    gone = [each for each in cluster.list("events") if each["reason"] == "EvictedPod"]
    assert sum(each.get("count", 1) for each in gone) == 3


def two_containers() -> JsonObject:
    obj = deployment(1)
    spec = obj["spec"]["template"]["spec"]
    spec["containers"] += [{**spec["containers"][0], "name": "side"}]
    return obj


def test_of_several_containers_one_has_to_be_named() -> None:
    cluster = started(two_containers(), sizer(rec(300, evict="none", resize="all")))
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("False", "ContainerNotFound")
    assert "has the containers app, side: say which one is sized" in condition(cluster)[2]
    assert {one[2] for one in plugin_of(cluster).told} == {1000}
    cluster.patch(PLUGINS, "web", {"spec": {"container": "side"}})
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("True", "Asked")
    assert (sizes(cluster)[0][0], sizes(cluster, 1)[0][0]) == ("500m", "300m")
    assert plugin_of(cluster).told[-1][::2] == ("CREATE", 500)
    cluster.patch(PLUGINS, "web", {"spec": {"container": "none"}})
    cluster.advance("10s")
    assert condition(cluster)[2].endswith("has the containers app, side, and no 'none'")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (rec([1, -1, 2]), "target of cpu is -1, not an amount"),
        ({"rec": {"gpu": [1, 1, 1]}}, "it sizes 'gpu': only cpu and memory can be"),
        (rec([10, 5, 20]), "its target of cpu, 5, is not from 10 to 20"),
        (rec(10**15), "it recommends more cpu than the 100000000000000 that a pod may have"),
    ],
)
def test_a_size_that_makes_no_sense_is_told_and_nothing_else_happens(
    answer: JsonObject, said: str
) -> None:
    cluster = started(deployment(2), sizer(answer, rec(300, evict="none")))
    before = names(cluster)
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("False", "AutoscalerFailed")
    assert said in condition(cluster)[2]
    assert names(cluster) == before
    cluster.advance("10s")
    assert condition(cluster)[:2] == ("True", "Asked")


def test_what_another_autoscaler_has_said_new_pods_do_not_get() -> None:
    cluster = started(deployment(1), sizer(rec(300, evict="none")))
    cluster.advance("10s")
    cluster.patch(PLUGINS, "web", {"spec": {"type": "nobody.example.com"}})
    cluster.settle()
    assert "recommendation" not in cluster.get(PLUGINS, "web")["status"]
    cluster.scale("deployments", "web", 2)
    cluster.settle()
    assert [each for each, _ in sizes(cluster)] == ["500m"] * 2


def test_a_status_that_somebody_has_made_up_keeps_no_pod_from_coming() -> None:
    cluster = started(deployment(1), sizer(rec(300, evict="none")))
    amounts = {"target": {"cpu": "much"}}
    status = {"status": {"admit": True, "recommendation": amounts}}
    cluster.patch(PLUGINS, "web", status, subresource="status")
    cluster.scale("deployments", "web", 2)
    cluster.settle()
    assert [each for each, _ in sizes(cluster)] == ["500m"] * 2


def course(cluster: ClusterWorld, *pieces: str) -> bytes:
    for each in pieces:
        cluster.advance(each)
    return cluster.export()


def sized(**options: Any) -> ClusterWorld:
    answers = [rec(300, evict=1), rec(800, evict="none", resize="all"), rec([500, 600, 700])]
    return started(deployment(3), sizer(*answers), events=True, **options)


def test_how_time_is_cut_and_what_is_only_faster_change_nothing() -> None:
    whole = course(sized(), "1m")
    assert course(sized(), "7s", "3s", "15s", "35s") == whole
    assert course(sized(shortcuts=PLAIN), "1m") == whole
    cluster = sized()
    cluster.advance("15s")
    twin = deepcopy(cluster)
    assert course(twin, "45s") == course(cluster, "40s", "5s") == whole


# -- ours behind the interface -------------------------------------------------------------------


def vertical_world(scaler: JsonObject, **options: Any) -> list[list[tuple[str, str]]]:
    """The requests of four pods in each of five minutes of a load that does not change."""
    cluster = ClusterWorld(ClusterOptions(**options))
    for number in range(4):
        cluster.create(make_node(f"n{number}").cpu("16").memory("64Gi"))
    loads = (load(), load("memory", "600Mi"))
    for each in (vertical_deployment(), *loads, scaler):
        cluster.create(each)
    cluster.settle()
    found = []
    for _ in range(5):
        cluster.advance("1m")
        cpu, memory = requests(cluster), requests(cluster, "memory")
        found.append(sorted((cpu[name], str(parse(memory[name]).value())) for name in cpu))
    return found


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate", "Initial"])
@pytest.mark.parametrize("flags", [{}, {"eviction-tolerance": 0.25, "target-cpu-percentile": 0.5}])
def test_the_plugin_of_a_vpa_does_as_its_controllers(mode: str, flags: JsonObject) -> None:
    """What it measures, it measures four times as often: only a load at rest is the same."""
    settings = AutoscalingSettings(vertical=read_vertical(flags, "flags"))
    one = vertical_world(vpa(mode), autoscaling=settings)
    behind = plugin(obj=vpa(mode), verticalInterval="1m")
    assert vertical_world(behind, autoscaling=settings) == one
    steps = 4 if flags else 2
    assert len({str(each) for each in one}) == (1 if mode == "Initial" else steps)


def test_a_policy_for_a_container_by_name_is_refused_there() -> None:
    policy = {"containerPolicies": [{"containerName": "app", "mode": "Off"}]}
    cluster = started(deployment(1), plugin(obj=vpa(resourcePolicy=policy)))
    assert condition(cluster)[:2] == ("False", "ObjectRefused")
    assert "containerPolicies[0].containerName" in condition(cluster)[2]


def test_flags_of_the_horizontal_autoscaler_count_behind_the_interface() -> None:
    from controllers.test_horizontal_autoscaler import autoscaler, usage
    from controllers.test_knative_autoscaler import Decisions

    points = [{"at": "0s", "value": "2"}, {"at": "4m", "value": "500m"}]

    def made(scaler: JsonObject, flags: JsonObject) -> list[tuple[float, int, int]]:
        settings = AutoscalingSettings(read_horizontal(flags, "flags"))
        cluster = world(autoscaling=settings, cpu="64")
        decisions = Decisions(cluster)
        cluster.instruments.attach(decisions)
        for each in (deployment(2), usage(points=points), scaler):
            cluster.create(each)
        cluster.settle()
        cluster.advance("12m")
        return decisions.made

    behind = plugin(obj=autoscaler(), horizontalInterval="15s")
    flags = {"downscale-stabilization": "1m", "tolerance": 0.4}
    assert made(behind, flags) == made(autoscaler(), flags)
    assert made(behind, flags) != made(behind, {})


def test_pods_that_grow_answer_sooner() -> None:
    """40 requests a second of 20 ms need 800m: a pod of 500m never catches up, one of 2 does."""
    cluster = started(
        deployment(1, cpu="500m", limit="500m"),
        traffic(arrivals=constant(40), request={"cpuTime": "20ms", "timeout": "2s"}),
        sizer(rec(2000, evict="none", resize="all"), interval="1m"),
    )
    cluster.advance("1m")
    failed = cluster.get("traffics", "load")["status"]["failed"]
    assert failed > 100
    cluster.advance("15s")
    since = cluster.get("traffics", "load")["status"]["failed"]
    cluster.advance("45s")
    assert cluster.get("traffics", "load")["status"]["failed"] == since
