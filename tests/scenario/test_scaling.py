"""Traffic, metrics and autoscalers of which nothing can come: said before anything is played."""

from typing import Any

import pytest

import kubescene
from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.errors import ScenarioError
from kubescene.scenario import ScenarioBuilder, parse_spec
from kubescene.scenario.validation.objects import object_faults
from kubescene.scenario.validation.unsimulated import Players, unsimulated
from kubescene.scheduler import SchedulerOptions
from kubescene.testing import make_node
from kubescene.types import JsonObject

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
NODE = make_node("n").build()
SIZE = {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}}


def made(kind: str, spec: JsonObject, name: str = "web") -> JsonObject:
    versions = {
        "Deployment": "apps/v1",
        "HorizontalPodAutoscaler": "autoscaling/v2",
        "LimitRange": "v1",
        "PodAutoscaler": "autoscaling.internal.knative.dev/v1alpha1",
        "ScaledObject": "keda.sh/v1alpha1",
        "Service": "v1",
        "VerticalPodAutoscaler": "autoscaling.k8s.io/v1",
    }
    version = versions.get(kind, "kubescene.dev/v1alpha1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def deployment(resources: JsonObject | None = None) -> JsonObject:
    labels, container = {"app": "web"}, {"name": "app", "image": "a", "resources": resources or {}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return made("Deployment", {"selector": {"matchLabels": labels}, "template": template})


def traffic(**fields: Any) -> JsonObject:
    arrivals = {"pattern": "constant", "constant": {"rps": 5}}
    return made("Traffic", {"to": {"deployment": "web"}, "arrivals": arrivals, **fields})


def metric(form: str = "Resource", name: str = "cpu", **target: Any) -> JsonObject:
    said = {"target": target or {"type": "Utilization", "averageUtilization": 50}}
    member = form[:1].lower() + form[1:]
    if form == "ContainerResource":
        return {"type": form, member: {"name": name, "container": "app", **said}}
    return {
        "type": form,
        member: {**({"name": name} if form == "Resource" else {"metric": {"name": name}}), **said},
    }


def hpa(*metrics: JsonObject, name: str = "web", **fields: Any) -> JsonObject:
    given = [*metrics] or [metric()]
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": given, **fields}
    return made("HorizontalPodAutoscaler", spec, name)


def vpa(**fields: Any) -> JsonObject:
    return made("VerticalPodAutoscaler", {"targetRef": TARGET, **fields})


def kpa(name: str = "web") -> JsonObject:
    return made("PodAutoscaler", {"scaleTargetRef": TARGET, "protocolType": "http1"}, name)


def scaled(type: str = "cpu", **fields: Any) -> JsonObject:
    trigger = {"type": type, "metricType": "Utilization", "metadata": {"value": "50"}}
    spec = {"scaleTargetRef": {"name": "web"}, "minReplicaCount": 1, "triggers": [trigger]}
    return made("ScaledObject", {**spec, **fields})


def series(**fields: Any) -> JsonObject:
    points = [{"at": "0s", "value": "1"}]
    return made("MetricSeries", {"metric": "queue", "external": {}, "points": points, **fields})


def limited(container: JsonObject | None = None) -> JsonObject:
    return made("LimitRange", {"limits": [{"type": "Container", **(container or {})}]})


def scenario(*objects: JsonObject, length: str = "3m", sized: bool = True) -> JsonObject:
    built = ScenarioBuilder("s").create(NODE).create(deployment(SIZE if sized else None))
    for each in objects:
        built.create(each)
    document = built.build()
    advance = {"id": "t", "step": 1, "advanceOperation": {"duration": length}}
    document["spec"]["operations"].append(advance)
    return document


def said(document: JsonObject) -> list[str]:
    spec, options = parse_spec(document), ClusterOptions()
    players = Players.of(spec, builtin_controllers(options), SchedulerOptions())
    return [str(each).partition(" (operation")[0] for each in unsimulated(spec, players)]


HORIZONTAL, VERTICAL = "HorizontalPodAutoscaler default/web", "VerticalPodAutoscaler default/web"
BOTH_SCALE = "both scale Deployment default/web"
LATER = {"points": [{"at": "0s", "rps": 5}, {"at": "99h", "rps": 50}]}
NOBODY = "has no effect: nobody measures it: create a MetricSeries"
OFF = {"updatePolicy": {"updateMode": "Off"}}
OF_MEMORY = {
    "resourcePolicy": {
        "containerPolicies": [{"containerName": "*", "controlledResources": ["memory"]}]
    }
}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (
            [traffic(to={"deployment": "nope"})],
            "Traffic default/web has no effect: nothing in the scenario creates "
            "Deployment default/nope",
        ),
        (
            [traffic(to={"service": "nope"})],
            "Traffic default/web has no effect: nothing in the scenario creates "
            "Service default/nope",
        ),
        (
            [traffic(to={"scale": {**TARGET, "kind": "StatefulSet"}})],
            "Traffic default/web has no effect: nothing in the scenario creates "
            "StatefulSet default/web",
        ),
        (
            [traffic(), hpa(scaleTargetRef={**TARGET, "name": "nope"})],
            f"{HORIZONTAL} has no effect: nothing in the scenario creates Deployment default/nope",
        ),
        (
            [traffic(arrivals={"pattern": "piecewise", "piecewise": LATER})],
            "spec.arrivals.piecewise.points[1] of Traffic default/web has no effect: "
            "it comes at 99h, and 3m pass",
        ),
        (
            [traffic(arrivals={"pattern": "replay", "replay": {"arrivals": ["1s", "4m", "2m"]}})],
            "spec.arrivals.replay.arrivals[1] of Traffic default/web has no effect: "
            "it comes at 4m, and 3m pass",
        ),
        (
            [series(points=[{"at": "181s", "value": 1}])],
            "spec.points[0] of MetricSeries default/web has no effect: "
            "it comes at 181s, and 3m pass",
        ),
        (
            [traffic(), hpa(metric("Pods", "nobody", type="AverageValue", averageValue="1"))],
            f"the metric nobody of {HORIZONTAL} {NOBODY}",
        ),
        (
            [series(), traffic(), hpa(metric("External", "no", type="Value", value="1"))],
            f"the metric no of {HORIZONTAL} {NOBODY}",
        ),
        (
            [series(), hpa(metric("Pods", "queue", type="AverageValue", averageValue="1"))],
            f"the metric queue of {HORIZONTAL} {NOBODY}",
        ),
        (
            [traffic(), hpa(metric("External", "requests_per_second", type="Value", value="1"))],
            f"the metric requests_per_second of {HORIZONTAL} {NOBODY}",
        ),
        (
            [traffic(), hpa(metric(name="memory"))],
            f"the utilization of memory in {HORIZONTAL} has no effect: "
            "container app of Deployment default/web requests none",
        ),
        (
            [traffic(), hpa(metric("ContainerResource", "memory"))],
            f"the utilization of memory in {HORIZONTAL} has no effect: "
            "container app of Deployment default/web requests none",
        ),
        (
            [traffic(), hpa(), hpa(name="other")],
            f"HorizontalPodAutoscaler default/other is in the way of {HORIZONTAL}: {BOTH_SCALE}",
        ),
        (
            [traffic(), hpa(), kpa()],
            f"PodAutoscaler default/web is in the way of {HORIZONTAL}: {BOTH_SCALE}",
        ),
        (
            [traffic(), scaled(), hpa()],
            f"{HORIZONTAL} is in the way of ScaledObject default/web: {BOTH_SCALE}",
        ),
        (
            [traffic(), kpa(), kpa("two")],
            "PodAutoscaler default/two is in the way of PodAutoscaler default/web: " + BOTH_SCALE,
        ),
        (
            [traffic(), hpa(), vpa()],
            f"{VERTICAL} is in the way of {HORIZONTAL}: both go by cpu of Deployment default/web",
        ),
        (
            [traffic(), vpa(), scaled()],
            f"ScaledObject default/web is in the way of {VERTICAL}: "
            "both go by cpu of Deployment default/web",
        ),
        (
            [traffic(), scaled(minReplicaCount=9, maxReplicaCount=3)],
            "ScaledObject default/web has no effect: "
            "MinReplicaCount=9 must be less than MaxReplicaCount=3",
        ),
        (
            [series(), kpa()],
            "metrics of PodAutoscaler default/web has no effect: it goes by requests, and none "
            "come: create a Traffic",
        ),
    ],
)
def test_what_nothing_can_come_of_is_said(objects: list[JsonObject], expected: str) -> None:
    assert said(scenario(*objects)) == [expected]


@pytest.mark.parametrize(
    "objects",
    [
        [traffic(), hpa(), vpa(**OFF)],
        [traffic(), hpa(), vpa(**OF_MEMORY)],
        [traffic(), hpa(metric("Pods", "requests_per_second", type="Value", value="1")), vpa()],
        [traffic(), hpa(metric("Pods", "concurrent_requests", type="Value", value="1"))],
        [series(), hpa(metric("External", "queue", type="Value", value="1"))],
        [traffic(), hpa(metric(name="memory", type="AverageValue", averageValue="1Gi"))],
        [traffic(), kpa(), hpa(scaleTargetRef={**TARGET, "kind": "Mine"})],
        [traffic(to={"selector": {"matchLabels": {"app": "web"}}})],
        [series(points=[{"at": "3m", "value": 1}])],
    ],
)
def test_what_makes_sense_is_not_spoken_of(objects: list[JsonObject]) -> None:
    assert said(scenario(*objects)) == []


def test_requests_may_come_from_a_limit_range_or_a_vertical_autoscaler() -> None:
    load = [traffic(), hpa()]
    assert len(said(scenario(*load, sized=False))) == 1
    assert said(scenario(limited(), *load, sized=False)) == []
    assert said(scenario(*load, vpa(**OFF), sized=False)) == []


def test_names_that_are_counted_may_be_the_ones_that_are_asked_for() -> None:
    document = scenario(traffic(to={"deployment": "shop-1"}))
    shop = {"object": {**deployment(SIZE), "metadata": {"name": "shop-$(INDEX)"}}, "count": 3}
    assert len(said(document)) == 1
    document["spec"]["operations"].insert(1, {"id": "c", "step": 1, "createOperation": shop})
    assert said(document) == []


def test_a_cluster_that_is_there_already_may_hold_what_is_not_created() -> None:
    document = scenario(traffic(to={"deployment": "nope"}))
    document["spec"]["simulation"] = {"snapshot": "cluster.json"}
    spec = parse_spec(document)
    players = Players.of(spec, builtin_controllers(ClusterOptions()), SchedulerOptions())
    assert [*unsimulated(spec, players)] == []


def test_a_run_warns_and_a_strict_one_does_not_begin() -> None:
    document = scenario(traffic(), hpa(), kpa())
    run = kubescene.run(document)
    assert run.ok, run.message
    [warning] = run.summary.warnings
    assert warning.startswith("PodAutoscaler default/web is in the way of ")
    strict = kubescene.run(document, strict=True)
    assert strict.bad_input
    assert len(strict.timeline) == 0


@pytest.mark.parametrize(
    ("obj", "told"),
    [
        (
            series(points=[{"at": "9s", "value": 1}, {"at": "5s", "value": 1}]),
            "spec.points[1].at: 5s does not come after the point before it",
        ),
        (
            series(points=[{"at": "0s", "value": "-1"}]),
            "spec.points[0].value: '-1' is negative or too large",
        ),
        (series(resource="cpu"), "spec: either resource or metric has to be said"),
        (
            traffic(to={"deployment": "web", "service": "web"}),
            "spec.to: one of service, deployment, scale, selector has to be said, "
            "found service and deployment",
        ),
        (
            traffic(request={"cpuTime": "-20ms"}),
            "spec.request.cpuTime: '-20ms' is not a duration such as 90s, 5m or 1h30m",
        ),
        (
            traffic(arrivals={"pattern": "constant", "constant": {"rps": -1}}),
            "spec.arrivals.constant.rps: must be a number of requests a second from 0 to "
            "10000000, not -1.0",
        ),
        (
            hpa(minReplicas=9),
            "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`",
        ),
    ],
)
def test_what_is_never_right_is_a_fault(obj: JsonObject, told: str) -> None:
    [fault] = object_faults(parse_spec(scenario(obj)))
    assert told in fault.message


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_numbers_that_are_none_are_faults(number: float) -> None:
    load = traffic(arrivals={"pattern": "constant", "constant": {"rps": number}})
    with pytest.raises(ScenarioError, match="rps is not a finite number"):
        kubescene.run(scenario(load))
