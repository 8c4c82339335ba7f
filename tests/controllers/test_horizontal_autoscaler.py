"""The horizontal pod autoscaler on real objects, with metrics that are declared as series."""

from typing import Any

import pytest

from kubescene.cluster import ClusterOptions, ClusterWorld
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
    cluster.create(autoscaler())
    cluster.advance("15s")
    # Without a recommendation of before, the count itself is what is remembered.
    assert replicas(cluster) == 16
    cluster.advance("5m")
    assert replicas(cluster) == 16
    cluster.advance("15s")
    assert replicas(cluster) == 2


def test_what_was_decided_is_told_with_its_reason() -> None:
    from kubescene.controllers.builtin.autoscaling.passes import ReplicasDecided
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
