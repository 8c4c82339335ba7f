"""Whole worlds in and out."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import kubescene
from kubescene.api.scheme import GroupResource
from kubescene.errors import BadRequestError
from kubescene.testing import make_node, make_pod, make_replica_set

PLAY = """
import sys, kubescene
from kubescene.testing import make_node, make_replica_set
cluster = kubescene.Cluster()
for name in ("b", "a", "c"):
    cluster.create(make_node(name).cpu("4").memory("8Gi").zone(name))
cluster.create(make_replica_set("web").replicas(7))
cluster.settle().delete("pod", cluster.list("pods")[0]["metadata"]["name"])
sys.stdout.buffer.write(cluster.settle().export())
"""

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.dev"},
    "spec": {
        "group": "example.dev",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
THING = {
    "apiVersion": "example.dev/v1",
    "kind": "Thing",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"size": 3},
}


def small_world() -> kubescene.Cluster:
    cluster = kubescene.Cluster()
    cluster.create(make_node("n2").cpu("4").memory("8Gi"))
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    cluster.create(make_replica_set("web").replicas(3))
    return cluster.settle()


def listed(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def test_the_same_calls_give_the_same_export_in_two_processes() -> None:
    exports = [
        subprocess.run(
            [sys.executable, "-c", PLAY],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert exports[0] == exports[1]
    assert json.loads(exports[0])["kind"] == "List"


def test_an_imported_export_is_the_same_world() -> None:
    world = small_world()
    copy = kubescene.Cluster()
    copy.load(world.export())
    assert copy.export() == world.export()


def test_placed_pods_stay_where_they_are_and_are_counted() -> None:
    copy = kubescene.Cluster()
    copy.load(small_world().export())
    copy.create(make_pod("big").cpu("4"))
    assert copy.settle().pod("big").is_ready
    assert {pod["spec"]["nodeName"] for pod in copy.list("pods", labels="app=web")} <= {"n1", "n2"}


def test_pods_that_give_way_to_others_of_their_names_take_no_room() -> None:
    """Two of 1 CPU on a node of 4, brought three times: there are still 2 CPU."""
    cluster = kubescene.Cluster()
    cluster.create(make_node("n").cpu("4").memory("8Gi"))
    placed = [make_pod(name).cpu("1").on("n").build() for name in ("a", "b")]
    waiting = make_pod("waits").cpu("8").build()
    for _ in range(3):
        cluster.load({"kind": "List", "items": [*placed, waiting]})
        cluster.settle()
    cluster.create(make_pod("next").cpu("2"))
    assert cluster.settle().pod("next").is_ready


def test_who_watches_hears_that_another_object_has_the_name() -> None:
    cluster = kubescene.Cluster()
    cluster.create(make_pod("a").cpu("1"))
    before = cluster.get("pods", "a")["metadata"]["uid"]
    heard: list[tuple[str, bool]] = []
    cluster.store.subscribe(
        lambda change: heard.append((change.type.value, change.record.uid == before)),
        [GroupResource("", "pods")],
    )
    cluster.load({"kind": "List", "items": [make_pod("a").cpu("1").build()]})
    assert heard == [("DELETED", True), ("ADDED", False)]
    heard.clear()
    cluster.load(cluster.export())
    assert [kind for kind, _ in heard] == ["MODIFIED"]


def test_nodes_keep_their_order_of_creation() -> None:
    items = json.loads(small_world().export())["items"]
    assert [i["metadata"]["name"] for i in items if i["kind"] == "Node"] == ["n2", "n1"]


def test_custom_resources_travel_with_their_definition() -> None:
    world = kubescene.Cluster()
    assert world.load(listed(THING, CRD)) == 2
    assert world.get("things", "one")["spec"] == {"size": 3}
    copy = kubescene.Cluster()
    copy.load(world.export())
    assert copy.get("things", "one")["spec"] == {"size": 3}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "must be a List"),
        ({"items": [1]}, "must be a List"),
        (listed(make_node("ok").build(), {"kind": "Nothing"}), r"items\[1\], Nothing"),
        (listed(make_node("ok").build(), make_pod("Bad Name").build()), "Invalid value"),
    ],
    ids=["broken", "array", "scalars", "unknown kind", "invalid"],
)
def test_a_bad_import_changes_nothing(document: Any, complaint: str) -> None:
    world = kubescene.Cluster()
    before = world.export()
    with pytest.raises(BadRequestError, match=complaint):
        world.load(document)
    assert world.export() == before


def test_a_bad_custom_resource_takes_its_definition_back() -> None:
    world = kubescene.Cluster()
    before = world.export()
    with pytest.raises(BadRequestError, match="Thing 'one'"):
        world.load(listed(CRD, {**THING, "spec": {"size": "large"}}))
    assert world.export() == before


def test_reset_is_a_new_cluster() -> None:
    world = small_world()
    world.load(listed(CRD, THING))
    world.reset()
    assert world.export() == kubescene.Cluster().export()
    world.create(make_node("n1").cpu("4").memory("8Gi"))
    world.create(make_pod("a").cpu("1"))
    assert world.settle().pod("a").node == "n1"


def test_a_refused_import_leaves_the_definitions_that_were_there_and_their_objects() -> None:
    world = kubescene.Cluster()
    world.load(listed(CRD, THING))
    before = world.settle().export()
    wider = json.loads(json.dumps(CRD))
    wider["spec"]["names"]["shortNames"] = ["th"]
    with pytest.raises(BadRequestError):
        world.load(listed(wider, {"kind": []}))
    assert world.settle().export() == before
    assert world.get("things", "one")["spec"] == {"size": 3}


def test_a_refused_import_takes_back_the_definitions_that_it_brought() -> None:
    world = kubescene.Cluster().settle()
    before = world.export()
    with pytest.raises(BadRequestError):
        world.load(listed(CRD, {"kind": []}))
    assert world.settle().export() == before
