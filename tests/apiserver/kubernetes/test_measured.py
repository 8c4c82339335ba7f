"""What pods use, over HTTP: the numbers that autoscalers see, and nobody else's."""

from collections.abc import Iterator

import pytest

from apiserver.http import Http
from controllers.test_traffic import constant, deployment, traffic
from kubescene.apiserver.server import Server
from kubescene.clock import VirtualClock
from kubescene.cluster import ClusterWorld
from kubescene.testing import make_node, make_pod
from stopping import Retire

METRICS = "/apis/metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


@pytest.fixture
def measured(retire: Retire) -> Iterator[Http]:
    """A minute of 40 requests of 20 ms a second to two pods, served as it stands."""
    world = ClusterWorld(clock=VirtualClock())
    for number in range(2):
        world.create(make_node(f"n{number}").cpu("16").memory("64Gi"))
    world.create(deployment(2))
    world.create(make_pod("other").cpu("1"))
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    meta = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}}
    world.create({**meta, "spec": service})
    load = traffic(
        to={"service": "front"}, arrivals=constant(40), memory={"base": "64Mi", "perRequest": "0"}
    )
    world.create(load)
    points = [{"at": "0s", "value": 7}]
    queue = {"metric": "queue", "external": {"labels": {"q": "a"}}, "points": points}
    kind = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "MetricSeries"}
    world.create({**kind, "metadata": {"name": "queue"}, "spec": queue})
    world.settle()
    world.advance("1m")
    running = Server(world, port=0)
    running.start()
    client = Http(running.host, running.port)
    yield client
    client.close()
    retire(running)


def test_pods_and_nodes_use_what_their_requests_take(measured: Http) -> None:
    """40 times 20 ms in a second are 800 millicores, of which each pod has the half."""
    pods = measured.get(f"{METRICS}/namespaces/default/pods").json
    assert pods["kind"] == "PodMetricsList"
    usage = [each["containers"] for each in pods["items"]]
    assert usage == [[{"name": "app", "usage": {"cpu": "400000000n", "memory": "65536Ki"}}]] * 2
    assert {each["window"] for each in pods["items"]} == {"15s"}
    nodes = measured.get(f"{METRICS}/nodes").json["items"]
    total = sum(int(each["usage"]["cpu"].removesuffix("n")) for each in nodes)
    assert total == 800_000_000
    name = pods["items"][0]["metadata"]["name"]
    one = measured.get(f"{METRICS}/namespaces/default/pods/{name}").json
    assert (one["kind"], one["containers"]) == ("PodMetrics", usage[0])


def test_whom_nobody_measures_is_not_found(measured: Http) -> None:
    reply = measured.get(f"{METRICS}/namespaces/default/pods/other")
    assert (reply.status, reply.reason) == (404, "NotFound")
    assert reply.message == 'pods.metrics.k8s.io "other" not found'


def test_nodes_that_are_not_scraped_have_no_metrics(measured: Http) -> None:
    gap = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": {"name": "blind"},
        "spec": {"what": "MetricsGap", "nodes": {}, "count": 1},
    }
    assert measured.post("/apis/kubescene.dev/v1alpha1/outages", gap).status == 201
    seen = [len(measured.get(f"{METRICS}/{each}").json["items"]) for each in ("nodes", "pods")]
    assert seen == [1, 1]


def test_labels_select(measured: Http) -> None:
    everybody, nobody = (
        measured.get(f"{METRICS}/pods?labelSelector=app%3D{app}").json["items"]
        for app in ("web", "none")
    )
    assert (len(everybody), len(nobody)) == (2, 0)
    assert measured.get(f"{METRICS}/pods?fieldSelector=metadata.name%3Dx").status == 400


def test_custom_metrics_of_pods_and_of_their_service(measured: Http) -> None:
    pods = measured.get(f"{CUSTOM}/pods/*/requests_per_second").json["items"]
    assert [each["value"] for each in pods] == ["20000m", "20000m"]
    service = measured.get(f"{CUSTOM}/services/front/requests_per_second").json["items"]
    assert [each["value"] for each in service] == ["40000m"]
    assert measured.get(f"{CUSTOM}/services/front/nothing").status == 404


def test_external_metrics(measured: Http) -> None:
    [found] = measured.get(f"{EXTERNAL}/queue").json["items"]
    assert (found["value"], found["metricLabels"]) == ("7000m", {"q": "a"})
    assert measured.get(f"{EXTERNAL}/queue?labelSelector=q%3Db").json["items"] == []


def test_discovery_lists_what_is_measured(measured: Http) -> None:
    groups = measured.get("/apis").json["groups"]
    assert "metrics.k8s.io" in [each["name"] for each in groups]
    resources = measured.get(METRICS).json["resources"]
    assert [(each["name"], each["verbs"]) for each in resources] == [
        ("nodes", ["get", "list"]),
        ("pods", ["get", "list"]),
    ]


def test_nothing_can_be_written(measured: Http) -> None:
    assert measured.post(f"{METRICS}/namespaces/default/pods", {}).status == 405


def test_discovery_lists_custom_and_external_metrics(measured: Http) -> None:
    """What the HPA controller of kube-controller-manager looks for before it asks."""
    groups = {each["name"]: each for each in measured.get("/apis").json["groups"]}
    for group, version in (
        ("custom.metrics.k8s.io", "v1beta2"),
        ("external.metrics.k8s.io", "v1beta1"),
    ):
        assert groups[group]["preferredVersion"]["version"] == version
        rows = measured.get(f"/apis/{group}/{version}").json["resources"]
        assert rows
        assert all(row["namespaced"] and row["verbs"] == ["get"] for row in rows)
        kinds = {row["kind"] for row in rows}
        assert kinds <= {"MetricValueList", "ExternalMetricValueList"}
