"""Nodes that differ in nothing but their names are made one like the other."""

from typing import Any

import pytest

import kubescene
from kubescene.api.records.templates import HOSTNAME, HostBlueprint
from kubescene.registry.shortcuts import Shortcut
from kubescene.registry.shortcuts.status_patches import StatusPatches
from kubescene.registry.shortcuts.templates import Templates
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.reading.alike import SharedBodies, like
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


def node(name: str, host: str | None = None) -> JsonObject:
    obj = make_node(name).cpu("4").build()
    labels = {"a": "b"} if host is None else {"a": "b", HOSTNAME: host, "c": "d"}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def test_alike_objects_share_all_but_their_names() -> None:
    alike = SharedBodies()
    shared, same = alike.of(node("x")), alike.of(node("y"))
    assert same is shared
    first, second = like(node("x"), shared), like(node("y"), shared)
    assert second == node("y")
    assert second["status"] is first["status"]


def test_hosts_are_alike_although_they_say_their_names() -> None:
    alike = SharedBodies()
    shared, same = (alike.of(node(name, host=name)) for name in ("x", "y"))
    assert same is shared is not None
    second = like(node("y", host="y"), shared)
    assert second == node("y", host="y")
    assert shared.blueprint is not None
    assert shared.blueprint.covers(second)


@pytest.mark.parametrize("says", ["", "x", "z"])
def test_who_says_something_else_is_no_host(says: str) -> None:
    alike = SharedBodies()
    hosts, again = (alike.of(node(name, host=name)) for name in ("x", "w"))
    assert hosts is again
    assert hosts is not None
    shared = alike.of(node("y", host=says))
    other = like(node("y", host=says), shared)
    assert shared is not hosts
    assert other == node("y", host=says)
    assert hosts.blueprint is not None
    assert not hosts.blueprint.covers(other)


def test_a_pod_is_no_host() -> None:
    alike = SharedBodies()
    pods = [make_pod(name).labels({HOSTNAME: name}).build() for name in ("x", "y")]
    first, second = map(alike.of, pods)
    assert first is not second


def test_a_blueprint_of_hosts_covers_no_liar() -> None:
    hosts = HostBlueprint(node("x", host="x"))
    metadata = hosts.body["metadata"]
    liar = {**metadata, "name": "y", "labels": {**metadata["labels"], HOSTNAME: "z"}}
    assert not hosts.covers({**hosts.body, "metadata": liar})


def world(*, plain: bool = False) -> kubescene.Run:
    """Nodes of two shapes, each in an operation of its own; one comes late, one has conditions.

    Two have empty annotations, which go with the first write of their status.
    """
    built = ScenarioBuilder("alike")
    for number in range(8):
        name = f"n-{number}"
        obj: Any = node(name, host=name) if number % 2 else node(name)
        if number == 4:
            obj = {**obj, "status": {**obj["status"], "conditions": [PRESSURE]}}
        if number > 5:
            obj = {**obj, "metadata": {**obj["metadata"], "annotations": {}}}
        built.create(obj)
    built.step(2).advance("90s").step(3).create(node("n-9"))
    built.step(4).create(make_pod("p-$(INDEX)").cpu("2"), count=9)
    return kubescene.run(built.done(), plain=plain)


PRESSURE = {"type": "DiskPressure", "status": "False"}


def told(run: kubescene.Run) -> tuple[bytes, list[str]]:
    assert run.ok, run.message
    return run.cluster.export(), [repr(fact) for fact in run.log]


def test_alike_nodes_are_what_the_long_way_makes_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    alike, patched = noted(monkeypatch, Templates), noted(monkeypatch, StatusPatches)
    in_parts = told(world())
    # Two shapes of nodes have a first each, the node with a condition is alone; so has each of
    # those its first report, and another time is another report.
    assert (alike.count("Node"), patched.count("Node")) == (3 + 1, 3)
    alike.clear()
    assert told(world(plain=True)) == in_parts
    assert not alike


def noted(monkeypatch: pytest.MonkeyPatch, shortcut: type[Shortcut]) -> list[str]:
    """The kinds of the objects for which a shortcut knows an answer from now on."""
    found: list[str] = []
    find = shortcut.find

    def call(self: Any, request: Any, current: Any) -> Any:
        result = find(self, request, current)
        if result is not None:
            found.append(request.resource_type.kind)
        return result

    monkeypatch.setattr(shortcut, "find", call)
    return found


@pytest.mark.parametrize("labels", [{"pool": "a"}, {HOSTNAME: "one-for-all"}], ids=str)
def test_so_are_the_nodes_of_a_set(labels: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*, plain: bool = False) -> tuple[bytes, list[str]]:
        template = {"metadata": {"labels": labels}, "status": {"capacity": {"cpu": "4"}}}
        node_set = {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "NodeSet",
            "metadata": {"name": "set"},
            "spec": {"replicas": 5, "template": template},
        }
        return told(kubescene.run(ScenarioBuilder("set").create(node_set).done(), plain=plain))

    alike = noted(monkeypatch, Templates)
    in_parts = run()
    assert len(alike) == 4
    assert run(plain=True) == in_parts
