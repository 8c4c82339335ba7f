"""Nodes that differ in nothing but their names are made one like the other."""

from typing import Any

import pytest

import kubescene
from kubescene.api.records.templates import HOSTNAME, HostBlueprint
from kubescene.registry.interface import Registry
from kubescene.registry.shortcuts.node_status_patches import NodeReports
from kubescene.registry.shortcuts.templates import Molds
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.alike import Likenesses, like
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


def node(name: str, host: str | None = None) -> JsonObject:
    obj = make_node(name).cpu("4").build()
    labels = {"a": "b"} if host is None else {"a": "b", HOSTNAME: host, "c": "d"}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def test_alike_objects_share_all_but_their_names() -> None:
    alike = Likenesses()
    likeness, same = alike.of(node("x")), alike.of(node("y"))
    assert same is likeness
    first, second = like(node("x"), likeness), like(node("y"), likeness)
    assert second == node("y")
    assert second["status"] is first["status"]


def test_hosts_are_alike_although_they_say_their_names() -> None:
    alike = Likenesses()
    likeness, same = (alike.of(node(name, host=name)) for name in ("x", "y"))
    assert same is likeness is not None
    second = like(node("y", host="y"), likeness)
    assert second == node("y", host="y")
    assert likeness.blueprint is not None
    assert likeness.blueprint.covers(second)


@pytest.mark.parametrize("says", ["", "x", "z"])
def test_who_says_something_else_is_no_host(says: str) -> None:
    alike = Likenesses()
    hosts, again = (alike.of(node(name, host=name)) for name in ("x", "w"))
    assert hosts is again
    assert hosts is not None
    likeness = alike.of(node("y", host=says))
    other = like(node("y", host=says), likeness)
    assert likeness is not hosts
    assert other == node("y", host=says)
    assert hosts.blueprint is not None
    assert not hosts.blueprint.covers(other)


def test_a_pod_is_no_host() -> None:
    alike = Likenesses()
    pods = [make_pod(name).labels({HOSTNAME: name}).build() for name in ("x", "y")]
    first, second = map(alike.of, pods)
    assert first is not second


def test_a_blueprint_of_hosts_covers_no_liar() -> None:
    hosts = HostBlueprint(node("x", host="x"))
    metadata = hosts.body["metadata"]
    liar = {**metadata, "name": "y", "labels": {**metadata["labels"], HOSTNAME: "z"}}
    assert not hosts.covers({**hosts.body, "metadata": liar})


def world() -> kubescene.Run:
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
    return kubescene.run(built.done())


PRESSURE = {"type": "DiskPressure", "status": "False"}


def told(run: kubescene.Run) -> tuple[bytes, list[str]]:
    assert run.ok, run.message
    return run.cluster.export(), [repr(fact) for fact in run.log]


def test_alike_nodes_are_what_the_long_way_makes_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []
    monkeypatch.setattr(Registry, "_create_like", noted(ways, "like", Registry._create_like))
    monkeypatch.setattr(Registry, "_rewrite", noted(ways, "rewritten", Registry._rewrite))
    in_parts = told(world())
    # Two shapes of nodes and one of pods have a first each, the node with a condition is alone;
    # so has each of those its first report, and another time is another report.
    assert (ways.count("like"), ways.count("rewritten")) == (3 + 1 + 8, 3)
    monkeypatch.setattr(Molds, "find", lambda *_, **__: None)
    monkeypatch.setattr(NodeReports, "find", lambda *_: None)
    ways.clear()
    assert told(world()) == in_parts
    assert not ways


def noted(ways: list[str], word: str, way: Any) -> Any:
    def taken(*arguments: Any) -> Any:
        ways.append(word)
        return way(*arguments)

    return taken


@pytest.mark.parametrize("labels", [{"pool": "a"}, {HOSTNAME: "one-for-all"}], ids=str)
def test_so_are_the_nodes_of_a_set(labels: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> tuple[bytes, list[str]]:
        template = {"metadata": {"labels": labels}, "status": {"capacity": {"cpu": "4"}}}
        node_set = {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "NodeSet",
            "metadata": {"name": "set"},
            "spec": {"replicas": 5, "template": template},
        }
        return told(kubescene.run(ScenarioBuilder("set").create(node_set).done()))

    ways: list[str] = []
    monkeypatch.setattr(Registry, "_create_like", noted(ways, "like", Registry._create_like))
    in_parts = run()
    assert len(ways) == 4
    monkeypatch.setattr(Molds, "find", lambda *_, **__: None)
    assert run() == in_parts
