"""What pods use, as their behaviour says: courses, and autoscalers that see them."""

from typing import Any

import pytest

from kubescene.clock import SECOND, Streams
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet.behaviour import behaviour_of, read_workload
from kubescene.controllers.kubelet.usages import BehaviourUsage
from kubescene.testing import make_node
from kubescene.types import JsonObject
from kubescene.usage.courses import exceeded_at, read_courses
from kubescene.usage.series import Points

REQUESTS = {"requests": {"cpu": "500m", "memory": "100Mi"}}


def running(**more: Any) -> JsonObject:
    told = {"name": "main", "state": {"running": {"startedAt": "1970-01-01T00:00:20Z"}}}
    return {
        "metadata": {"namespace": "default", "name": "a", "creationTimestamp": "", **more},
        "spec": {"containers": [{"name": "main", "resources": REQUESTS}]},
        "status": {"containerStatuses": [told]},
    }


def scraped(usage: JsonObject, second: int) -> dict[str, int]:
    behaviour = behaviour_of((read_workload({"usage": usage}),), {}, "default")
    assert behaviour is not None
    source = BehaviourUsage(Streams())
    source.note(running(), behaviour)
    found = list(source.scraped("default", second * SECOND))
    return found[0].resources if found else {}


LINE = {
    "series": [{"at": "0s", "value": "0"}, {"at": "60s", "value": "600m"}],
    "interpolation": "Linear",
}


@pytest.mark.parametrize(
    ("usage", "second", "wanted"),
    [
        ({"cpu": "200m"}, 19, {}),
        ({"cpu": "200m"}, 30, {"cpu": 200}),
        (
            {"cpu": {"share": 0.5}, "memory": {"share": 2}},
            31,
            {"cpu": 250, "memory": 200 * 2**20 * 1000},
        ),
        # The scrapes are at 30 and 45 s: at ages of 10 and 25 s; the mean is that in the middle.
        ({"cpu": LINE}, 44, {"cpu": 50}),
        ({"cpu": LINE}, 45, {"cpu": 175}),
        ({"memory": LINE}, 59, {"memory": 250}),
        ({"cpu": LINE}, 3600, {"cpu": 600}),
    ],
)
def test_a_scrape_sees_what_is_said(usage: JsonObject, second: int, wanted: dict[str, int]) -> None:
    assert scraped(usage, second) == wanted


@pytest.mark.parametrize("limit", [0, 99, 100, 150, 199, 200])
@pytest.mark.parametrize("linear", [True, False])
def test_a_limit_is_exceeded_when_a_second_look_says_so(limit: int, linear: bool) -> None:
    points = Points((0, 50, 90), (100, 100, 200), linear)
    values = [points.at(age) or 0 for age in range(200)]
    wanted = next((age for age, value in enumerate(values) if value > limit), None)
    assert exceeded_at(points, limit) == wanted


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ([], "must be an object with cpu or memory"),
        ({"disk": 1}, "has no disk; it has cpu and memory"),
        ({"cpu": "-1"}, "cpu: '-1' is negative or too large"),
        ({"cpu": {"share": -1}}, "cpu: share must be from 0 to 1000, not -1"),
        ({"cpu": {"share": 1, "min": 2}}, "cpu: a share stands alone"),
        ({"cpu": {"series": []}}, "cpu: series must be a list of points"),
        (
            {"cpu": {"series": [{"at": "1s"}]}},
            "cpu: series[0]: must be an object with at and value",
        ),
        (
            {"memory": {"series": [{"at": "x", "value": 1}]}},
            "memory: series[0].at: 'x' is not a duration",
        ),
    ],
)
def test_a_fault_of_a_course_names_its_resource(usage: Any, words: str) -> None:
    with pytest.raises(ValueError, match=r"^") as caught:
        read_courses(usage)
    assert str(caught.value).startswith(words)


def test_an_autoscaler_sees_what_pods_use() -> None:
    cluster = ClusterWorld(
        ClusterOptions(workloads=(read_workload({"usage": {"cpu": {"share": 0.7}}}),))
    )
    cluster.create(make_node("n").cpu("16").memory("64Gi"))
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": REQUESTS}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    cluster.create(web)
    target = {"type": "Utilization", "averageUtilization": 50}
    scaler = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    cluster.create({**kind, "metadata": {"name": "web"}, "spec": scaler})
    cluster.settle()
    cluster.advance("1m")
    # 2 pods at 70 % for a target of 50 %: 2.8, so 3.
    assert cluster.get("deployments", "web")["spec"]["replicas"] == 3
    found = cluster.get("horizontalpodautoscalers", "web")["status"]["currentMetrics"]
    assert found[0]["resource"]["current"]["averageUtilization"] == 70
