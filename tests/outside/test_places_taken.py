"""The real kube-controller-manager in the place of ours, beside our scheduler and kubelet."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.api.kinds import NODE, POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.server import Server
from kubescene.cli.serve import cluster_with
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.cluster import ClusterOptions
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


@contextmanager
def taken_over(tmp_path: Path) -> Iterator[HttpClient]:
    """A served world in which a real one has some of the places."""
    manager = require_program("kube-controller-manager")
    options = ClusterOptions(events=True, without=frozenset(PLACES))
    with Server(cluster_with(options, (), "wall"), port=0) as server:
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(make_kubeconfig(server.url)))
        command = [
            str(manager),
            f"--kubeconfig={config}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
            # Sooner than by default, so that nobody waits for a minute.
            "--node-monitor-grace-period=12s",
            "--node-monitor-period=1s",
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
    for _ in range(600):
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
