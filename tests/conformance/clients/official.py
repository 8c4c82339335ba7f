"""The official client against the server that a kubeconfig names.

A process of its own, since a library's open sockets must end with something. Each check prints its
name when it is done; the first that fails ends the process.
"""

import sys
from importlib import import_module
from typing import Any

import pytest

client: Any = import_module("kubernetes.client")
config: Any = import_module("kubernetes.config")
dynamic: Any = import_module("kubernetes.dynamic")
watch: Any = import_module("kubernetes.watch")

CONTAINERS = [{"name": "c", "image": "pause"}]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
SPEC = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


def check_objects_are_typed(core: Any) -> None:
    nodes = core.list_node().items
    assert [node.metadata.name for node in nodes] == ["node-1", "node-2"]
    assert nodes[0].status.allocatable["cpu"] == "4"


def check_create_read_patch_replace_delete(core: Any) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    assert core.create_namespaced_config_map("default", body).metadata.uid
    assert core.read_namespaced_config_map("a", "default").data == {"k": "v"}
    patched = core.patch_namespaced_config_map("a", "default", {"data": {"l": "w"}})
    assert patched.data == {"k": "v", "l": "w"}
    patched.data = {"only": "this"}
    assert core.replace_namespaced_config_map("a", "default", patched).data == patched.data
    core.delete_namespaced_config_map("a", "default")
    assert "a" not in [
        item.metadata.name for item in core.list_namespaced_config_map("default").items
    ]


def check_errors_carry_the_status(core: Any) -> None:
    with pytest.raises(client.ApiException) as refused:
        core.read_namespaced_pod("nope", "default")
    assert refused.value.status == 404
    assert 'pods \\"nope\\" not found' in refused.value.body


def check_watch_until_it_runs(core: Any) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}}
    core.create_namespaced_pod("default", pod)
    following = watch.Watch()
    for event in following.stream(core.list_namespaced_pod, "default", timeout_seconds=20):
        if event["object"].status.phase == "Running":
            following.stop()
    assert core.read_namespaced_pod("p", "default").spec.node_name in ("node-1", "node-2")
    core.create_namespaced_pod_eviction("p", "default", {"metadata": {"name": "p"}})


def check_pages(core: Any) -> None:
    for number in range(5):
        core.create_namespaced_config_map("default", {"metadata": {"name": f"c{number}"}})
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map("default", limit=2, _continue=token or "")
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names[:5] == [f"c{number}" for number in range(5)]


def check_dynamic_client(core: Any) -> None:
    deployments = dynamic.DynamicClient(core.api_client).resources.get(
        api_version="apps/v1", kind="Deployment"
    )
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": SPEC}
    deployments.create(body=body, namespace="default")
    assert deployments.get(name="d", namespace="default").spec.replicas == 1


def check_scale(core: Any) -> None:
    apps = client.AppsV1Api(core.api_client)
    apps.create_namespaced_replica_set("default", {"metadata": {"name": "r"}, "spec": SPEC})
    scale = apps.patch_namespaced_replica_set_scale("r", "default", {"spec": {"replicas": 2}})
    assert scale.spec.replicas == 2


if __name__ == "__main__":
    config.load_kube_config(sys.argv[1])
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check(client.CoreV1Api())
            print(name)
