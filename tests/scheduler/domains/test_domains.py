"""Plugins whose answers depend on signature and topology domains."""

import numpy as np
import pytest

from kubescene.client.interfaces import ObjectRef
from kubescene.errors import ConfigurationError
from kubescene.scheduler import (
    Codes,
    CycleState,
    EventRegistration,
    Handle,
    NodeTable,
    PodInfo,
    Reads,
    Rows,
    Status,
)
from kubescene.scheduler.state.node_columns import ABSENT
from kubescene.testing.builders import make_node, make_pod
from scheduler.staging import NODE, Stage

ZONE = "topology.kubernetes.io/zone"


class OnePerZone:
    """A zone holds one pod of an app. Its stamp is the number of changes it has seen."""

    name = "OnePerZone"
    reads = Reads.DOMAIN

    def __init__(self, handle: Handle) -> None:
        self.reader = handle.nodes.follow()
        self.changes = 0
        self.asked: list[int] = []

    def stamp(self, state: CycleState, pod: PodInfo) -> int:
        deltas = self.reader.read()
        self.changes += 1 if deltas is None or deltas else 0
        return self.changes

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        self.asked.append(rows.size)
        zones = nodes.label(ZONE)
        taken = np.zeros(len(zones.values) + 1, dtype=np.int64)
        for info in nodes.infos:
            if any(each.labels.get("app") == pod.labels.get("app") for each in info.pods):
                taken[zones.ids[info.row]] = 1
        taken[ABSENT] = 0
        return taken.take(zones.ids.take(rows))

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status.unschedulable("zone is taken")

    def events_to_register(self) -> list[EventRegistration]:
        return []


class Unstamped:
    name = "Unstamped"
    reads = Reads.DOMAIN

    def __init__(self, handle: Handle) -> None:
        del handle

    def filter(self, state: CycleState, pod: PodInfo, node: object) -> Status:
        return Status.unschedulable("never")


def stage() -> Stage:
    made = Stage(OnePerZone)
    zones = ("x", "x", "y", "y")
    made.create(*(make_node(name).cpu("4").zone(z) for name, z in zip("abcd", zones, strict=True)))
    return made


def test_answers_are_right_and_follow_the_stamp() -> None:
    world = stage()
    pods = [make_pod(f"{app}{number}").label(app=app) for number in range(3) for app in "pq"]
    placed = dict(each.split(":") for each in world.place(*pods))
    zones = {"a": "x", "b": "x", "c": "y", "d": "y", "": "-"}
    for app in "pq":
        first, second, third = (zones[placed[f"{app}{number}"]] for number in range(3))
        assert ({first, second}, third) == ({"x", "y"}, "-")


def test_nothing_is_asked_again_while_the_stamp_stays() -> None:
    world = stage()
    world.place(*(make_pod(f"p{number}").label(app="p") for number in range(2)))
    plugin = world.plugin("OnePerZone")
    plugin.asked.clear()
    assert world.place(make_pod("p2").label(app="p"), make_pod("p3").label(app="p")) == [
        "p2:",
        "p3:",
    ]
    assert plugin.asked == [4]


def test_a_changed_node_is_asked_about_again_even_at_the_same_stamp() -> None:
    world = stage()
    world.place(*(make_pod(f"p{number}").label(app="p") for number in range(3)))
    plugin = world.plugin("OnePerZone")
    stamp = plugin.changes
    world.client.patch(ObjectRef(NODE, "d"), {"metadata": {"labels": {ZONE: "z"}}})
    plugin.reader.read()
    plugin.asked.clear()
    assert world.place(make_pod("p4").label(app="p")) == ["p4:d"]
    assert (plugin.asked, plugin.changes) == ([1], stamp)


def test_pods_of_another_signature_have_answers_of_their_own() -> None:
    world = stage()
    world.place(*(make_pod(f"p{number}").label(app="p") for number in range(3)))
    plugin = world.plugin("OnePerZone")
    plugin.asked.clear()
    assert world.place(make_pod("q").label(app="q")) != ["q:"]
    assert plugin.asked == [4]


def test_a_domain_plugin_needs_a_stamp() -> None:
    with pytest.raises(ConfigurationError, match="has no method stamp"):
        Stage(Unstamped)
