"""The real cluster autoscaler over a served world: it orders nodes of its kwok provider there.

Its module is not on Go's module proxy, so nothing here can build it, and without it these tests are
skipped: whoever has the program with that provider names its directory in KUBESCENE_BINARIES.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

import pytest
import yaml

from kubescene.actors import Actor
from kubescene.api.kinds import NODE, POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.server import Server
from kubescene.cli.serve import cluster_with
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.node_autoscaling.flags import read_settings
from kubescene.testing import make_pod
from kubescene.types import JsonObject
from real_programs import require_program

GROUP = "autoscaling.x-k8s.io"
REQUEST = GroupVersionKind(GROUP, "v1", "ProvisioningRequest")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SPACE = "kube-system"
KWOK = {
    "apiVersion": "v1alpha1",
    "readNodesFrom": "configmap",
    "nodegroups": {"fromNodeLabelKey": "pool"},
    "nodes": {"skipTaint": True},
    "configmap": {"name": "kwok-provider-templates"},
}


def template(name: str, cpu: str, most: int) -> JsonObject:
    annotations = {
        "cluster-autoscaler.kwok.nodegroup/min-count": "0",
        "cluster-autoscaler.kwok.nodegroup/max-count": str(most),
        "kwok.x-k8s.io/node": "fake",
    }
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": name}, "annotations": annotations},
        "status": {"capacity": room, "allocatable": room},
    }


def config_map(name: str, **data: str) -> JsonObject:
    metadata = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@contextmanager
def autoscaled(tmp_path: Path, *templates: JsonObject, **flags: str) -> Iterator[HttpClient]:
    """A served world whose nodes the real one orders and gives back."""
    program = require_program("cluster-autoscaler", "its project's own means")
    with Server(cluster_with(ClusterOptions(events=True), (), "wall"), port=0) as server:
        config = tmp_path / "kubeconfig"
        config.write_text(json.dumps(make_kubeconfig(server.url)))
        given = {"scan-interval": "2s", "leader-elect": "false", "address": "127.0.0.1:0"} | flags
        command = [str(program), f"--kubeconfig={config}", "--cloud-provider=kwok"]
        command += [f"--{name}={value}" for name, value in given.items()]
        environment = {
            "KUBECONFIG": str(config),
            "KWOK_PROVIDER_MODE": "local",
            "POD_NAMESPACE": SPACE,
            "HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
        }
        with closing(HttpClient(server.url, Actor("tester"))) as client:
            client.create(config_map("kwok-provider-config", config=yaml.safe_dump(KWOK)))
            listed = {"apiVersion": "v1", "kind": "List", "items": [*templates]}
            client.create(config_map("kwok-provider-templates", templates=yaml.safe_dump(listed)))
            with (tmp_path / "log").open("w") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            try:
                yield client
            finally:
                process.terminate()
                process.wait()


def eventually(happened: Callable[[], object]) -> None:
    """Wait for a real program, which takes its time."""
    for _ in range(1200):
        if happened():
            return
        Event().wait(0.2)
    pytest.fail("it did not happen")


def pools(client: HttpClient) -> list[str]:
    return sorted(each["metadata"]["labels"].get("pool", "") for each in client.list(NODE))


def waiting(client: HttpClient) -> list[str]:
    pods = client.list(POD)
    return [each["metadata"]["name"] for each in pods if not each["spec"].get("nodeName")]


def test_the_real_one_orders_nodes_for_pods_that_wait_and_removes_them(tmp_path: Path) -> None:
    """Ten pods, of which five fit on one of the larger machines."""
    small, large = template("small", "4", 10), template("large", "16", 10)
    flags = {
        "expander": "least-nodes",
        "scale-down-unneeded-time": "5s",
        "scale-down-delay-after-add": "5s",
    }
    with autoscaled(tmp_path, small, large, **flags) as client:
        for at in range(10):
            client.create(make_pod(f"p{at}").cpu("3").memory("1Gi").build())
        eventually(lambda: client.list(POD) and not waiting(client))
        assert pools(client) == ["large", "large"]
        for at in range(10):
            client.delete(ObjectRef(POD, f"p{at}", "default"))
        eventually(lambda: not client.list(NODE))
        status = client.get(ObjectRef(CONFIG_MAP, "cluster-autoscaler-status", SPACE))
        assert "autoscalerStatus: Running" in status["data"]["status"]


def asked(class_name: str) -> list[JsonObject]:
    """Ten pods of three cores, and the request for their room."""
    pod = make_pod("x").cpu("3").memory("1Gi").build()
    like = {"metadata": {}, "spec": pod["spec"]}
    sets = [{"count": 10, "podTemplateRef": {"name": "worker"}}]
    spec = {"provisioningClassName": f"{class_name}.{GROUP}", "podSets": sets}
    metadata = {"name": "worker", "namespace": "default"}
    return [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": like},
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ProvisioningRequest",
            "metadata": {**metadata, "name": "r"},
            "spec": spec,
        },
    ]


def conditions(request: JsonObject) -> list[JsonObject]:
    """Without the times."""
    written = (request.get("status") or {}).get("conditions") or ()
    return [{**each, "lastTransitionTime": ""} for each in written]


def ours(class_name: str) -> list[JsonObject]:
    """What our autoscaler says of the same request."""
    settings = read_settings({"enable-provisioning-requests": True}, "autoscaler")
    world = ClusterWorld(ClusterOptions(autoscaler=settings))
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    spec = {"max": 10, "template": {"status": {"capacity": room}}}
    group = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "NodeGroup"}
    world.create({**group, "metadata": {"name": "large"}, "spec": spec})
    for each in asked(class_name):
        world.create(each)
    world.advance("20s")
    return conditions(world.get(f"provisioningrequests.{GROUP}", "r", namespace="default"))


@pytest.mark.parametrize(
    ("class_name", "nodes"), [("best-effort-atomic-scale-up", 2), ("check-capacity", 0)]
)
def test_the_real_one_answers_provisioning_requests_as_ours_does(
    tmp_path: Path, class_name: str, nodes: int
) -> None:
    flags = {"enable-provisioning-requests": "true"}
    with autoscaled(tmp_path, template("large", "16", 10), **flags) as client:
        for each in asked(class_name):
            client.create(each)
        ref = ObjectRef(REQUEST, "r", "default")
        eventually(lambda: len(conditions(client.get(ref))) == 2)
        assert conditions(client.get(ref)) == ours(class_name)
        assert pools(client) == ["large"] * nodes
