"""Remedies for pods that claim devices: tried with the controllers that keep the claims."""

from typing import Any

import pytest

import kubescene
from kubescene.cluster import ClusterWorld
from kubescene.remedies import apply_remedy
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

DRIVER = "gpu.example.com"
CLASS: JsonObject = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


def devices_of(node: str, count: int) -> JsonObject:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(count)]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    metadata = {"name": f"{node}-gpus"}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return {**kind, "metadata": metadata, "spec": spec}


def template(count: int) -> JsonObject:
    exactly = {"deviceClassName": "gpu", "count": count}
    requests = [{"name": "gpu", "exactly": exactly}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"gpus-{count}", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def claiming(name: str, count: int) -> JsonObject:
    pod = make_pod(name).cpu("1").build()
    claims = [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{count}"}]
    pod["spec"]["resourceClaims"] = claims
    return pod


def objects() -> list[Any]:
    """A node with three devices, of which somebody holds two and somebody else wants two."""
    return [
        CLASS,
        template(2),
        make_node("another").cpu("16"),
        make_node("gpu-0").cpu("16"),
        devices_of("gpu-0", 3),
        claiming("first", 2),
        make_pod("bystander").cpu("1").build(),
    ]


@pytest.fixture
def world() -> ClusterWorld:
    cluster = ClusterWorld()
    for obj in objects():
        cluster.create(obj)
        cluster.settle()
    cluster.create(claiming("second", 2))
    return cluster.settle()


def told(cluster: kubescene.Cluster) -> list[tuple[str, str]]:
    return [(each.text, each.node) for each in cluster.remedies("second")]


EXPECTED = [
    ("delete default/first from gpu-0, and its devices are free", "gpu-0"),
    ("add a node like gpu-0 with its devices (tried as gpu-0-twin-1)", "gpu-0-twin-1"),
]


def test_who_holds_the_devices_may_go_or_a_node_with_its_own_comes(world: ClusterWorld) -> None:
    assert told(world) == EXPECTED


def test_what_is_proposed_works(world: ClusterWorld) -> None:
    for remedy in world.remedies("second"):
        fork = world.fork()
        apply_remedy(fork, remedy)
        assert fork.settle().pod("second").node == remedy.node


def test_the_world_notices_nothing(world: ClusterWorld) -> None:
    before, revision = world.export(), world.revision
    world.remedies("second")
    assert (world.export(), world.revision) == (before, revision)


def test_the_least_important_holder_goes() -> None:
    cluster = ClusterWorld()
    for obj in (CLASS, template(1), make_node("gpu-0").cpu("16"), devices_of("gpu-0", 2)):
        cluster.create(obj)
    important, common = claiming("a-important", 1), claiming("b-common", 1)
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 9}
    cluster.create({**priority, "metadata": {"name": "high"}})
    important["spec"]["priorityClassName"] = "high"
    for pod in (important, common):
        cluster.create(pod)
        cluster.settle()
    cluster.create(claiming("second", 1))
    cluster.settle()
    assert told(cluster)[0][0].startswith("delete default/b-common from gpu-0")


def test_pods_without_claims_are_not_asked_about_devices() -> None:
    cluster = ClusterWorld()
    for obj in objects():
        cluster.create(obj)
    cluster.create(make_pod("second").cpu("99"))
    cluster.settle()
    assert "devices" not in " ".join(text for text, _ in told(cluster))


def test_a_run_has_them_too() -> None:
    builder = ScenarioBuilder("s")
    for obj in objects():
        builder.create(obj)
    run = kubescene.run(builder.step(2).create(claiming("second", 2)).done())
    assert [(each.text, each.node) for each in run.remedies("default/second")] == EXPECTED
