"""The real kube-controller-manager in the place of ours, beside our scheduler and kubelet.

Its autoscaler reads our metrics.
"""

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml

from horizontals import external, utilization
from kubescene.actors import Actor
from kubescene.api.kinds import NODE, POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.server import Server
from kubescene.cli.serve import cluster_with
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject
from real_programs import require_program

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
OUTAGE = GroupVersionKind("kubescene.dev", "v1alpha1", "Outage")
PLACES = ("deployment", "replicaset", "node-lifecycle", "taint-eviction")
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
)


OF_WORKLOADS = {
    "deployment": "deployment-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "statefulset": "statefulset-controller",
    "daemonset": "daemonset-controller",
    "job": "job-controller",
    "cronjob": "cronjob-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
    "disruption": "disruption-controller",
    "endpoints": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslicemirroring": "endpointslice-mirroring-controller",
    "resourcequota": "resourcequota-controller",
}
"""Our names, and those of the real ones."""
CHART = Path(__file__).parents[2] / "examples" / "13-a-chart" / "scenario.yaml"


@contextmanager
def taken_over(
    tmp_path: Path,
    places: Iterable[str] = PLACES,
    controllers: Iterable[str] = CONTROLLERS,
) -> Iterator[HttpClient]:
    """A served world in which a real one has some of the places."""
    manager = require_program("kube-controller-manager")
    options = ClusterOptions(events=True, without=frozenset(places))
    with Server(cluster_with(options, (), "wall"), port=0) as server:
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(make_kubeconfig(server.url)))
        command = [
            str(manager),
            f"--kubeconfig={config}",
            f"--controllers={','.join(controllers)}",
            "--leader-elect=false",
            "--secure-port=0",
            # Sooner than by default, so that nobody waits for a minute.
            "--node-monitor-grace-period=12s",
            "--node-monitor-period=1s",
            "--horizontal-pod-autoscaler-sync-period=1s",
            "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
        ]
        with (tmp_path / "log").open("w") as log:
            program = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            with closing(HttpClient(server.url, Actor("tester"))) as client:
                yield client
        finally:
            program.terminate()
            program.wait()


def eventually(look: Callable[[], Any], wanted: object) -> None:
    """Wait until something is as it should be; a real program takes its time."""
    for _ in range(1200):
        if (found := look()) == wanted:
            return
        Event().wait(0.1)
    pytest.fail(f"it is {found}, not {wanted}")


def counts(client: HttpClient) -> tuple[int, ...]:
    status = client.get(ObjectRef(DEPLOYMENT, "web", "default")).get("status", {})
    return tuple(status.get(name, 0) for name in ("updatedReplicas", "replicas", "readyReplicas"))


def writer(obj: JsonObject) -> str:
    return str(obj["metadata"]["managedFields"][0]["manager"])


def test_the_real_one_rolls_out_and_ours_place_and_start_the_pods(tmp_path: Path) -> None:
    with taken_over(tmp_path) as client:
        for name in ("n0", "n1"):
            client.create(make_node(name).cpu("4").memory("8Gi").build())
        client.create(make_deployment("web").replicas(3).image("a").build())
        eventually(lambda: counts(client), (3, 3, 3))
        ref = ObjectRef(DEPLOYMENT, "web", "default")
        template = {"spec": {"containers": [{"name": "main", "image": "b"}]}}
        client.patch(ref, {"spec": {"template": template}})
        eventually(lambda: counts(client), (3, 3, 3))
        eventually(
            lambda: sorted(rs["spec"]["replicas"] for rs in client.list(REPLICA_SET)), [0, 3]
        )
        assert {writer(each) for each in client.list(REPLICA_SET)} == {"kube-controller-manager"}
        pods = [pod for pod in client.list(POD) if not pod["metadata"].get("deletionTimestamp")]
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"b"}
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}


def readiness(client: HttpClient, node: str) -> tuple[str, str, list[tuple[str, str]]]:
    found = client.get(ObjectRef(NODE, node))
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    taints = [(each["key"], each["effect"]) for each in found["spec"].get("taints", ())]
    return ready["status"], ready["reason"], sorted(taints)


def test_the_real_one_notices_a_silent_node_by_its_lease_and_that_it_is_back(
    tmp_path: Path,
) -> None:
    key = "node.kubernetes.io/unreachable"
    with taken_over(tmp_path) as client:
        for name in ("n0", "n1"):
            client.create(make_node(name).cpu("4").memory("8Gi").label(name=name).build())
        client.create(make_pod("a").on("n0").build())
        outage = {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "Outage",
            "metadata": {"name": "o"},
            "spec": {"what": "NodesSilent", "nodes": {"matchLabels": {"name": "n0"}}},
        }
        client.create(outage)
        unreachable = [(key, "NoExecute"), (key, "NoSchedule")]
        eventually(lambda: readiness(client, "n0"), ("Unknown", "NodeStatusUnknown", unreachable))
        assert readiness(client, "n1") == ("True", "KubeletReady", [])
        client.delete(ObjectRef(OUTAGE, "o"))
        eventually(lambda: readiness(client, "n0"), ("True", "KubeletReady", []))


def chart() -> list[JsonObject]:
    """What the chart of the example brings along, nodes and a Job of three parts among it."""
    scenario = yaml.safe_load(CHART.read_text())
    found = [
        each["createOperation"]["object"]
        for each in scenario["spec"]["operations"]
        if "createOperation" in each
    ]
    brief = {"kubescene.dev/run-time": "1s"}
    template = {
        "metadata": {"annotations": brief},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "import"}]},
    }
    spec = {"completions": 3, "parallelism": 1, "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "import"}, "spec": spec}
    for each in (*found, job):
        each["metadata"].setdefault("namespace", "default")
    return [*found, job]


def seen(client: HttpClient) -> JsonObject:
    """What has become of it, but for names that are made up."""
    pods = list(client.list(POD))
    of = [each["metadata"]["ownerReferences"][0]["kind"] for each in pods]
    slices = client.list(GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice"))
    endpoints = client.list(GroupVersionKind("", "v1", "Endpoints"))
    quota = client.get(ObjectRef(GroupVersionKind("", "v1", "ResourceQuota"), "most", "default"))
    budget = ObjectRef(GroupVersionKind("policy", "v1", "PodDisruptionBudget"), "web", "default")
    job = ObjectRef(GroupVersionKind("batch", "v1", "Job"), "import", "default")
    web = {
        each["status"].get("podIP", "")
        for each in pods
        if each["metadata"].get("labels", {}).get("app") == "web"
    }
    return {
        "pods": {kind: of.count(kind) for kind in sorted(of)},
        "in slices": {
            address
            for each in slices
            for endpoint in each.get("endpoints") or ()
            if endpoint["conditions"]["ready"] and each["metadata"]["namespace"] == "default"
            for address in endpoint["addresses"]
        }
        == web,
        "in endpoints": {
            address["ip"]
            for each in endpoints
            if each["metadata"]["namespace"] == "default"
            for subset in each.get("subsets") or ()
            for address in subset.get("addresses") or ()
        }
        == web,
        "addresses": len(web),
        "used": (quota.get("status") or {}).get("used"),
        "disruptions": (client.get(budget).get("status") or {}).get("disruptionsAllowed"),
        "succeeded": (client.get(job).get("status") or {}).get("succeeded"),
    }


def test_a_chart_comes_to_the_same_with_all_workload_controllers_of_the_real_one(
    tmp_path: Path,
) -> None:
    """The nodes, where pods are, their addresses and their ends are ours; the rest is theirs."""
    wanted = {
        "pods": {"DaemonSet": 3, "Job": 3, "ReplicaSet": 3, "StatefulSet": 2},
        "in slices": True,
        "in endpoints": True,
        "addresses": 3,
        "used": {"pods": "8"},
        "disruptions": 1,
        "succeeded": 3,
    }
    with (
        Server(cluster_with(ClusterOptions(events=True), (), "wall"), port=0) as server,
        closing(HttpClient(server.url, Actor("tester"))) as ours,
        taken_over(tmp_path, OF_WORKLOADS, OF_WORKLOADS.values()) as theirs,
    ):
        for client in (ours, theirs):
            for each in chart():
                client.create(deepcopy(each))
            eventually(partial(seen, client), wanted)


AUTOSCALER = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "front"}
MEASURED: dict[str, tuple[JsonObject, JsonObject, str]] = {
    "cpu": (utilization(50), {"resource": "cpu"}, "4"),
    "memory": (
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "memory",
                "container": "main",
                "target": {"type": "AverageValue", "averageValue": "100Mi"},
            },
        },
        {"resource": "memory"},
        "450Mi",
    ),
    "sessions": (
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": "sessions"},
                "target": {"type": "AverageValue", "averageValue": "10"},
            },
        },
        {"metric": "sessions"},
        "48",
    ),
    "rps": (
        {
            "type": "Object",
            "object": {
                "describedObject": SERVICE,
                "metric": {"name": "rps"},
                "target": {"type": "AverageValue", "averageValue": "100"},
            },
        },
        {"metric": "rps", "object": {"kind": "Service", "name": "front"}},
        "420",
    ),
    "queue": (external("queue", "30"), {"metric": "queue", "external": {}}, "150"),
}
"""By name: what an autoscaler goes by, what is measured, and how much of it there is."""


def measured(name: str) -> Iterator[JsonObject]:
    """A Deployment, its autoscaler, and what that goes by."""
    metric, source, value = MEASURED[name]
    deployment = make_deployment(name).replicas(2).build()
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "500m", "memory": "128Mi"}}
    yield deployment
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    scaling = {"minReplicas": 2, "maxReplicas": 6, "scaleTargetRef": target, "metrics": [metric]}
    head = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    yield {**head, "metadata": {"name": name, "namespace": "default"}, "spec": scaling}
    pods = {} if {"object", "external"} & source.keys() else {"pods": selector_of(name)}
    points = [{"at": "0s", "value": value}]
    head = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "MetricSeries"}
    metadata = {"name": name, "namespace": "default"}
    yield {**head, "metadata": metadata, "spec": {**source, **pods, "points": points}}


def selector_of(name: str) -> JsonObject:
    selector: JsonObject = make_deployment(name).build()["spec"]["selector"]
    return selector


def decided(autoscaler: JsonObject) -> JsonObject:
    """The status, but for when."""
    status = dict(autoscaler.get("status") or {})
    status.pop("lastScaleTime", None)
    conditions = [
        {key: value for key, value in each.items() if key != "lastTransitionTime"}
        for each in status.pop("conditions", ())
    ]
    return {**status, "conditions": conditions}


def status_of(client: HttpClient, name: str) -> JsonObject:
    return decided(client.get(ObjectRef(AUTOSCALER, name, "default")))


def test_the_real_autoscaler_reads_our_metrics_and_comes_to_what_ours_does(
    tmp_path: Path,
) -> None:
    objects = [make_node(f"n{number}").cpu("16").memory("64Gi").build() for number in range(4)]
    objects += [each for name in MEASURED for each in measured(name)]
    world = ClusterWorld()
    for each in objects:
        world.create(deepcopy(each))
    world.advance("3m")
    with taken_over(
        tmp_path, ("horizontalpodautoscaler",), ("horizontal-pod-autoscaler-controller",)
    ) as client:
        for each in objects:
            client.create(deepcopy(each))
        for name in MEASURED:
            wanted = decided(world.get("horizontalpodautoscalers", name))
            assert wanted["currentReplicas"] > 2
            eventually(partial(status_of, client, name), wanted)
