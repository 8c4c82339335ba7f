"""What the autoscaler remembers of pods that are alike is what the plugins would say again."""

import pytest

from kubescene.actors import Actor
from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.cluster import ClusterWorld
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from random_scenarios import Lot

PODS = GroupResource("", "pods")
CLASSES = PodClasses()


def seen(name: str, cpu: str, *, apart: bool = False) -> SeenPod:
    obj = make_pod(name).cpu(cpu).build()
    obj["metadata"] |= {"uid": name, "labels": {"apart": str(apart)}}
    if apart:
        term: JsonObject = {"labelSelector": {"matchLabels": {"apart": "True"}}}
        term["topologyKey"] = "kubernetes.io/hostname"
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        obj["spec"]["affinity"] = {"podAntiAffinity": required}
    return SeenPod(PodInfo.read(make_record(PODS, obj, 1), obj, CLASSES), obj)


def node(name: str) -> SeenNode:
    return SeenNode(make_node(name).cpu("4").memory("8Gi").build())


def snapshot() -> ClusterSnapshot:
    world = ClusterWorld()
    return ClusterSnapshot(world.client(Actor("test")), world.clock, SchedulerOptions())


def test_room_that_comes_and_goes_is_seen() -> None:
    there = snapshot()
    there.show([node("n0")], [])
    assert there.place_anywhere(seen("a", "3")) == "n0"
    assert there.place_anywhere(seen("b", "3")) == ""
    assert not there.check(seen("c", "3"), "n0").ok
    with there.supposing():
        there.add_node(node("n1"))
        assert there.place_anywhere(seen("b", "3")) == "n1"
        assert there.place_anywhere(seen("d", "3")) == ""
    assert there.place_anywhere(seen("d", "3")) == ""
    there.forget_suppositions()
    assert there.check(seen("c", "3"), "n0").ok
    assert there.place_anywhere(seen("d", "3")) == "n0"


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_those_of_one_who_remembers_nothing(seed: int) -> None:
    chance, one, other = Lot(seed), snapshot(), snapshot()
    for each in (one, other):
        each.show([node("n0"), node("n1")], [])
    for number in range(40):
        pod = seen(f"p{number}", chance.of("1", "2", "3"), apart=chance.below(3) == 0)
        if chance.below(8) == 0:
            for each in (one, other):
                each.add_node(node(f"m{number}"))
        if chance.below(12) == 0:
            for each in (one, other):
                each.forget_suppositions()
        other._said.clear()
        other._nowhere.clear()
        assert one.check(pod, "n0") == other.check(pod, "n0")
        other._nowhere.clear()
        assert one.place_anywhere(pod) == other.place_anywhere(pod)
