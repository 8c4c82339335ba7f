"""The horizontal pod autoscaler on real objects, with metrics that are declared as series."""

import re
from typing import Any

import pytest

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ForbiddenError
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def deployment(replicas: int = 2, name: str = "web") -> JsonObject:
    requests = {"cpu": "500m", "memory": "128Mi"}
    container = {"name": "app", "image": "web", "resources": {"requests": requests}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def utilization(percent: int) -> JsonObject:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def autoscaler(*metrics: JsonObject, name: str = "web", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "minReplicas": 2,
            "maxReplicas": 20,
            "scaleTargetRef": TARGET,
            "metrics": list(metrics or (utilization(50),)),
            **spec,
        },
    }


def series(name: str = "load", **spec: Any) -> JsonObject:
    points = spec.pop("points", [{"at": "0s", "value": "1"}])
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "MetricSeries",
        "metadata": {"name": name},
        "spec": {"points": points, **spec},
    }


def usage(**spec: Any) -> JsonObject:
    return series(resource="cpu", pods={"matchLabels": {"app": "web"}}, **spec)


def world(*objects: JsonObject, **options: Any) -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(**options))
    for number in range(4):
        cluster.create(make_node(f"n{number}").cpu("16").memory("64Gi"))
    for each in objects:
        cluster.create(each)
    cluster.settle()
    return cluster


def replicas(cluster: ClusterWorld) -> int:
    found: int = cluster.get("deployments", "web")["spec"]["replicas"]
    return found


def status(cluster: ClusterWorld, name: str = "web") -> JsonObject:
    found: JsonObject = cluster.get("horizontalpodautoscalers", name).get("status") or {}
    return found


def condition(cluster: ClusterWorld, type: str) -> tuple[str, str, str]:
    found = next(each for each in status(cluster)["conditions"] if each["type"] == type)
    return found["status"], found["reason"], found["message"]


def test_a_pass_is_fifteen_seconds_after_the_object_and_after_the_pass_before() -> None:
    """For 4 cores at 50 % of 500m 16 pods are needed: by doubling, a pass each."""
    cluster = world(deployment(), usage(points=[{"at": "0s", "value": "4"}]), autoscaler())
    counts = []
    for _ in range(5):
        cluster.advance("14s")
        before = replicas(cluster)
        cluster.advance("1s")
        counts.append((before, replicas(cluster)))
    assert counts == [(2, 4), (4, 8), (8, 16), (16, 16), (16, 16)]


def test_what_happens_between_passes_does_not_hasten_them() -> None:
    cluster = world(deployment(), usage(points=[{"at": "0s", "value": "4"}]), autoscaler())
    cluster.advance("10s")
    cluster.patch("horizontalpodautoscalers", "web", {"metadata": {"labels": {"a": "b"}}})
    cluster.advance("4s")
    assert replicas(cluster) == 2
    cluster.advance("1s")
    assert replicas(cluster) == 4


def test_it_goes_down_when_the_window_has_passed() -> None:
    points = [{"at": "0s", "value": "4"}, {"at": "2m", "value": "500m"}]
    cluster = world(deployment(), usage(points=points), autoscaler())
    cluster.advance("2m")
    assert replicas(cluster) == 16
    cluster.advance("5m")
    assert replicas(cluster) == 16
    assert condition(cluster, "AbleToScale")[1] == "ScaleDownStabilized"
    cluster.advance("15s")
    assert replicas(cluster) == 2


def test_the_status_is_what_kubectl_shows() -> None:
    cluster = world(deployment(), usage(), autoscaler())
    cluster.advance("1m")
    found = status(cluster)
    assert replicas(cluster) == 4
    assert (found["currentReplicas"], found["desiredReplicas"]) == (4, 4)
    assert found["lastScaleTime"] == "2026-01-01T00:00:15Z"
    assert found["currentMetrics"] == [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "current": {"averageValue": "250m", "averageUtilization": 50},
            },
        }
    ]
    assert condition(cluster, "ScalingActive") == (
        "True",
        "ValidMetricFound",
        "the HPA was able to successfully calculate a replica count from cpu resource utilization "
        "(percentage of request)",
    )


def test_pods_that_nobody_measures_have_no_metrics() -> None:
    cluster = world(deployment(), autoscaler())
    cluster.advance("1m")
    assert replicas(cluster) == 2
    told = condition(cluster, "ScalingActive")
    assert told[:2] == ("False", "FailedGetResourceMetric")
    assert "no metrics returned from resource metrics API" in told[2]


def test_a_pod_is_measured_from_the_first_scrape_after_it_is_ready() -> None:
    """Two pods are ready, two wait for room: what is used is shared by those that are ready."""
    cluster = ClusterWorld(ClusterOptions())
    cluster.create(make_node("n0").cpu("1").memory("4Gi"))
    for each in (deployment(4), usage(), autoscaler(minReplicas=4)):
        cluster.create(each)
    cluster.advance("30s")
    current = status(cluster)["currentMetrics"][0]["resource"]["current"]
    assert current == {"averageValue": "500m", "averageUtilization": 100}


@pytest.mark.parametrize(
    ("metric", "given", "count"),
    [
        (
            {
                "type": "External",
                "external": {
                    "metric": {
                        "name": "queue",
                        "selector": {"matchLabels": {"topic": "orders"}},
                    },
                    "target": {"type": "AverageValue", "averageValue": "30"},
                },
            },
            [
                series(
                    "orders",
                    metric="queue",
                    external={"labels": {"topic": "orders"}},
                    points=[{"at": "0s", "value": "150"}],
                ),
                series(
                    "returns",
                    metric="queue",
                    external={"labels": {"topic": "returns"}},
                    points=[{"at": "0s", "value": "900"}],
                ),
            ],
            5,
        ),
        (
            {
                "type": "Object",
                "object": {
                    "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
                    "metric": {"name": "rps"},
                    "target": {"type": "AverageValue", "averageValue": "100"},
                },
            },
            [
                series(
                    metric="rps",
                    object={"apiVersion": "v1", "kind": "Service", "name": "front"},
                    points=[{"at": "0s", "value": "420"}],
                )
            ],
            5,
        ),
        (
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "sessions"},
                    "target": {"type": "AverageValue", "averageValue": "10"},
                },
            },
            [
                series(
                    metric="sessions",
                    pods={"matchLabels": {"app": "web"}},
                    points=[{"at": "0s", "value": "48"}],
                )
            ],
            5,
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "memory",
                    "container": "app",
                    "target": {"type": "AverageValue", "averageValue": "100Mi"},
                },
            },
            [
                series(
                    resource="memory",
                    pods={"matchLabels": {"app": "web"}},
                    points=[{"at": "0s", "value": "500Mi"}],
                )
            ],
            5,
        ),
    ],
    ids=["external", "object", "pods", "container"],
)
def test_every_sort_of_metric_can_be_declared(
    metric: JsonObject, given: list[JsonObject], count: int
) -> None:
    cluster = world(deployment(), autoscaler(metric), *given)
    cluster.advance("2m")
    assert replicas(cluster) == count


def gap(what: str = "MetricsGap", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": {"name": "gap"},
        "spec": {"what": what, "nodes": {}, "after": "1m", "for": "1m", **spec},
    }


@pytest.mark.parametrize("what", ["MetricsGap", "NodesSilent"])
def test_while_nobody_scrapes_nothing_is_known(what: str) -> None:
    """The load rises with the gap: it is seen by the second scrape after it."""
    points = [{"at": "0s", "value": "500m"}, {"at": "1m", "value": "4"}]
    cluster = world(deployment(), usage(points=points), autoscaler(), gap(what))
    told = []
    for _ in range(10):
        cluster.advance("15s")
        told.append((replicas(cluster), condition(cluster, "ScalingActive")[0]))
    calm, blind = [(2, "True")] * 3, [(2, "False")] * 5
    assert told == [*calm, *blind, (4, "True"), (8, "True")]


def test_pods_of_nodes_that_are_not_scraped_keep_their_share() -> None:
    """Of 2 cores on two pods one is seen: its own core, not both, nor none."""
    cluster = world(deployment(), usage(points=[{"at": "0s", "value": "2"}]))
    first = min(pod["spec"]["nodeName"] for pod in cluster.list("pods"))
    cluster.patch("nodes", first, {"metadata": {"labels": {"blind": "yes"}}})
    cluster.create(gap(nodes={"matchLabels": {"blind": "yes"}}, after="0s"))
    cluster.settle().create(autoscaler(maxReplicas=2))
    cluster.advance("30s")
    current = status(cluster)["currentMetrics"][0]["resource"]["current"]
    assert current == {"averageValue": "1", "averageUtilization": 200}


def test_a_target_that_is_not_there_is_told() -> None:
    cluster = world(autoscaler())
    cluster.advance("15s")
    told = condition(cluster, "AbleToScale")
    assert told == (
        "False",
        "FailedGetScale",
        "the HPA controller was unable to get the target's current scale: "
        'deployments.apps "web" not found',
    )
    cluster.create(deployment())
    cluster.create(usage())
    cluster.advance("1m")
    assert replicas(cluster) == 4


def test_a_target_of_a_kind_that_nobody_knows_is_told() -> None:
    target = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}
    cluster = world(autoscaler(scaleTargetRef=target))
    cluster.advance("15s")
    assert (
        'no matches for kind "Widget" in group "example.com"'
        in condition(cluster, "AbleToScale")[2]
    )


def test_two_autoscalers_of_one_target_are_in_each_others_way() -> None:
    cluster = world(deployment(), usage(), autoscaler(), autoscaler(name="other"))
    cluster.advance("30s")
    told = condition(cluster, "ScalingActive")
    assert told[:2] == ("False", "AmbiguousSelector")
    assert "[default/other default/web]" in told[2]


def test_a_count_beyond_the_bounds_is_brought_back() -> None:
    cluster = world(deployment(30), autoscaler())
    cluster.advance("15s")
    assert replicas(cluster) == 20


def test_zero_replicas_turn_it_off() -> None:
    cluster = world(deployment(0), usage(), autoscaler())
    cluster.advance("1m")
    assert replicas(cluster) == 0
    assert condition(cluster, "ScalingActive")[1] == "ScalingDisabled"


def test_one_that_is_made_anew_remembers_nothing() -> None:
    points = [{"at": "0s", "value": "4"}, {"at": "2m", "value": "500m"}]
    cluster = world(deployment(), usage(points=points), autoscaler())
    cluster.advance("3m")
    cluster.delete("horizontalpodautoscalers", "web")
    cluster.advance("15s")
    cluster.create(autoscaler())
    cluster.advance("15s")
    # Without a recommendation of before, the count itself is what is remembered.
    assert replicas(cluster) == 16
    cluster.advance("5m")
    assert replicas(cluster) == 16
    cluster.advance("15s")
    assert replicas(cluster) == 2


def test_what_was_decided_is_told_with_its_reason() -> None:
    from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
    from kubescene.instruments import Instrument

    told: list[ReplicasDecided] = []

    class Listener(Instrument):
        def fact_told(self, actor: object, fact: object) -> None:
            del actor
            if isinstance(fact, ReplicasDecided):
                told.append(fact)

    cluster = world(deployment(), usage(), autoscaler())
    cluster.instruments.attach(Listener())
    cluster.advance("1m")
    assert [(each.target, each.current, each.desired) for each in told] == [
        ("Deployment/web", 2, 4)
    ]
    assert "cpu resource" in told[0].reason


def test_forks_and_split_advances_come_to_the_same() -> None:
    points = [{"at": "0s", "value": "1"}, {"at": "4m", "value": "6"}, {"at": "9m", "value": "1"}]
    whole = world(deployment(), usage(points=points, interpolation="Linear"), autoscaler())
    whole.advance("1m")
    fork = whole.fork()
    whole.advance("19m")
    for _ in range(19 * 12):
        fork.advance("5s")
    for kind in ("deployments", "pods", "horizontalpodautoscalers"):
        assert [*map(dict, fork.list(kind))] == [*map(dict, whole.list(kind))]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"metric": "m"}, "one of pods, object and external, not none"),
        ({"metric": "m", "pods": {}, "external": {}}, "one of pods, object and external"),
        ({"pods": {}}, "either resource or metric"),
        ({"resource": "cpu", "metric": "m", "pods": {}}, "either resource or metric"),
        ({"resource": "cpu", "external": {}}, "spec.external: cpu is used by pods"),
        ({"metric": "m", "external": {}, "points": [{"at": "x", "value": 1}]}, "points[0].at"),
        (
            {
                "metric": "m",
                "external": {},
                "points": [{"at": "1s", "value": 1}, {"at": "1s", "value": 2}],
            },
            "spec.points[1].at: 1s does not come after",
        ),
        ({"metric": "m", "external": {}, "points": [{"at": "0s", "value": "-1"}]}, "negative"),
        (
            {"metric": "m", "external": {}, "points": [{"at": "0s", "value": "a"}]},
            "points[0].value",
        ),
        (
            {"metric": "m", "external": {}, "points": [{"at": "0s", "value": True}]},
            "no quantity",
        ),
        ({"metric": "m", "external": {}, "points": [{"at": "0s", "value": {}}]}, "no quantity"),
        ({"metric": "m", "pods": {"matchLabels": 1}}, "spec.pods: "),
    ],
)
def test_a_series_that_makes_no_sense_says_so(spec: JsonObject, said: str) -> None:
    cluster = world(series(**spec))
    assert said in cluster.get("metricseries", "load")["status"]["message"]
    cluster.delete("metricseries", "load")
    cluster.create(usage())
    cluster.settle()
    assert "status" not in cluster.get("metricseries", "load")


def test_pods_of_nobody_are_left_alone() -> None:
    cluster = world(deployment(), usage(), autoscaler())
    cluster.create(make_pod("other").cpu("1"))
    cluster.advance("1m")
    assert replicas(cluster) == 4


def test_a_changed_spec_counts_from_the_next_pass_on() -> None:
    """Autoscalers have no generation that says so."""
    cluster = world(deployment(), usage(points=[{"at": "0s", "value": "4"}]), autoscaler())
    cluster.advance("15s")
    assert replicas(cluster) == 4
    cluster.patch("horizontalpodautoscalers", "web", {"spec": {"maxReplicas": 5}})
    cluster.advance("15s")
    assert replicas(cluster) == 5


class RefusesScale:
    """A gate that lets nobody scale."""

    def __init__(self) -> None:
        self.is_open = False

    def role_of(self, actor: Any) -> Any:
        from kubescene.api.gates import role_without_scenario

        return role_without_scenario(actor)

    def before_write(self, actor: Any, kind: Any, subresource: str, name: str) -> None:
        del subresource, name
        scales = (actor.name, kind.kind) == ("horizontalpodautoscaler", "Deployment")
        if scales and not self.is_open:
            raise ForbiddenError("not now")


def test_a_scale_that_is_refused_is_no_decision_and_is_told_once() -> None:
    from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
    from kubescene.instruments import Instrument

    told: list[ReplicasDecided] = []

    class Listener(Instrument):
        def fact_told(self, actor: Any, fact: Any) -> None:
            del actor
            if isinstance(fact, ReplicasDecided):
                told.append(fact)

    load = usage(points=[{"at": "0s", "value": "4"}])
    cluster = world(deployment(), load, autoscaler(), events=True)
    cluster.observe(Listener())
    gate = RefusesScale()
    cluster.guard(gate)
    cluster.advance("15s")
    about = [e for e in cluster.list("events") if e["involvedObject"]["name"] == "web"]
    reasons = [e["reason"] for e in about if "Rescale" in e["reason"]]
    assert (told, reasons) == ([], ["FailedRescale"])
    assert condition(cluster, "AbleToScale")[1] == "FailedUpdateScale"
    gate.is_open = True
    cluster.advance("15s")
    assert [each.desired for each in told] == [4]


def test_who_is_made_again_before_the_next_pass_goes_on() -> None:
    """The controller forgets an autoscaler at the pass that does not find it."""
    points = [{"at": "0s", "value": "4"}, {"at": "2m", "value": "500m"}]
    cluster = world(deployment(), usage(points=points), autoscaler())
    cluster.advance("2m")
    assert replicas(cluster) == 16
    cluster.delete("horizontalpodautoscalers", "web")
    cluster.create(autoscaler())
    cluster.advance("5m15s")
    assert replicas(cluster) == 2


def test_flags_are_those_of_the_controller() -> None:
    from kubescene.controllers.builtin.autoscaling.flags import AutoscalingSettings, read_horizontal

    flags = {"sync-period": "30s", "horizontal-pod-autoscaler-tolerance": "0.5"}
    settings = AutoscalingSettings(horizontal=read_horizontal(flags, "flags"))
    load = usage(points=[{"at": "0s", "value": "700m"}])
    cluster = world(deployment(), load, autoscaler(), autoscaling=settings)
    cluster.advance("29s")
    assert "conditions" not in status(cluster)
    cluster.advance("1m")
    # 70 % in place of 50 % are within half of it.
    assert replicas(cluster) == 2


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"sync-perod": "30s"}, "did you mean sync-period?"),
        ({"sync-period": "0s"}, "shorter than a second"),
        ({"tolerance": -1}, "is not a number of at least 0"),
        ({"downscale-stabilization": 300}, "is not a duration such as 90s or 10m"),
        ("15s", "must be an object: flags by their names"),
    ],
)
def test_flags_that_make_no_sense_are_refused(flags: Any, told: str) -> None:
    from kubescene.errors import ScenarioError
    from kubescene.scenario.simulation import parse_simulation

    with pytest.raises(ScenarioError, match=re.escape(told)):
        parse_simulation({"horizontalPodAutoscaler": flags})


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"eviction-tolerence": 0.1}, "did you mean eviction-tolerance?"),
        ({"target-cpu-percentile": 90}, "is above 1"),
        ({"container-recommendation-max-allowed-cpu": "many"}, "many"),
        ({"confidence-interval-cpu": "0s"}, "longer than nothing"),
    ],
)
def test_flags_of_the_vertical_one_too(flags: Any, told: str) -> None:
    from kubescene.errors import ScenarioError
    from kubescene.scenario.simulation import parse_simulation

    with pytest.raises(ScenarioError, match=re.escape(told)):
        parse_simulation({"verticalPodAutoscaler": flags})


def test_flags_of_the_vertical_one_are_read() -> None:
    from kubescene.autoscalers.vertical.options import RecommenderOptions, UpdaterOptions
    from kubescene.scenario.simulation import parse_simulation

    flags = {
        "recommender-interval": "30s",
        "recommendation-margin-fraction": 0.2,
        "container-recommendation-max-allowed-cpu": "2",
        "min-replicas": 1,
    }
    settings = parse_simulation({"verticalPodAutoscaler": flags}).autoscaling.vertical
    assert settings.recommender_interval == 30 * 10**9
    recommender = RecommenderOptions(**settings.recommender)
    assert (recommender.safety_margin, str(recommender.global_max_allowed["cpu"])) == (0.2, "2")
    assert UpdaterOptions(**settings.updater).min_replicas == 1
