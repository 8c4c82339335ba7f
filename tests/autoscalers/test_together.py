"""HPA and VPA on one workload: what one changes, the other measures by, or does not."""

from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import START, feed, make_recommender, make_vpa, policies
from horizontals import hpa, utilization
from kubescene.autoscalers.horizontal import (
    HorizontalAutoscaler,
    Observation,
    ObservedScale,
    PodMetrics,
    PodRequests,
    RecordedMetrics,
    ScaledPod,
)
from kubescene.autoscalers.vertical import pod_patches
from kubescene.autoscalers.vertical.options import DAY
from kubescene.types import JsonObject

USED, REQUESTED, MEMORY = 500, "1", "256Mi"
"""Millicores that each of four pods uses of the core that it requests."""
BY_USAGE = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "500m"}},
}


def pod_object() -> JsonObject:
    resources = {"requests": {"cpu": REQUESTED, "memory": MEMORY}}
    owner = {"kind": "ReplicaSet", "name": "web-rs", "controller": True}
    return {
        "metadata": {"name": "web", "labels": {"app": "web"}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
    }


def admitted_requests(spec: dict[str, Any]) -> dict[str, str]:
    """What a new pod requests after a day of such usage."""
    recommender = make_recommender(vpa=make_vpa(spec))
    feed(recommender, cpu=USED, memory=100 << 20, minutes=24 * 60)
    found = recommender.recommend(START + DAY)
    vpa = recommender.vpa.with_recommendation(found.recommended)
    requests = dict(pod_object()["spec"]["containers"][0]["resources"]["requests"])
    for patch in pod_patches(vpa, pod_object()):
        path = patch["path"].split("/")
        if path[-2] == "requests":
            requests[path[-1]] = patch["value"]
    return requests


def count_with(metric: JsonObject, requests: dict[str, str]) -> int:
    """What the HPA makes of four pods with these requests."""
    spec = {"containers": [{"name": "app", "resources": {"requests": requests}}]}
    names = [f"web-{number}" for number in range(4)]
    pods = [ScaledPod(name, PodRequests.of(spec), {"app": "web"}) for name in names]
    usage = tuple(PodMetrics(name, {"app": {"cpu": USED}}, START) for name in names)
    observation = Observation(ObservedScale(4, "app=web"), pods, RecordedMetrics(usage))
    return HorizontalAutoscaler(hpa(metric)).run(observation, START).desired


def test_a_vpa_over_cpu_moves_what_the_hpa_measures_by() -> None:
    """Half busy is what the HPA wants and what the VPA calls too large."""
    before, after = {"cpu": REQUESTED, "memory": MEMORY}, admitted_requests({})
    assert count_with(utilization(50), before) == 4
    assert after["cpu"] == "587m"
    assert count_with(utilization(50), after) == 7, "85 % of what they request now"


@pytest.mark.parametrize("resources", [["memory"], []])
def test_a_vpa_that_leaves_cpu_alone_does_not(resources: list[str]) -> None:
    spec = policies({"containerName": "*", "controlledResources": resources})
    requests = admitted_requests(spec)
    assert requests["cpu"] == REQUESTED
    assert count_with(utilization(50), requests) == 4


def test_an_hpa_by_usage_does_not_mind_what_pods_request() -> None:
    assert count_with(BY_USAGE, admitted_requests({})) == 4


def test_a_vpa_that_only_recommends_changes_no_pod() -> None:
    spec = {"updatePolicy": {"updateMode": "Off"}}
    assert admitted_requests(spec) == {"cpu": REQUESTED, "memory": MEMORY}
