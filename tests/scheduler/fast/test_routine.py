"""The routine decision is the one that a whole cycle comes to, whatever has happened before."""

from collections import Counter
from typing import Any

import pytest

from kubescene.api.records import make_record
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Stream
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    Reads,
    ScorePlugin,
    Status,
)
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.fast.cpu_memory_rows import CpuMemoryRows
from kubescene.scheduler.state.pods import PodInfo
from kubescene.testing.builders import ObjectBuilder, make_node, make_pod
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject
from scheduler.staging import NODE, Stage
from scheduler.tables import PODS

NODES = 150
STORAGE = "ephemeral-storage"
TOLERATION = {"key": "t", "operator": "Exists", "effect": "NoSchedule"}


class Life:
    """A cluster large enough for a search that stops early, in which something always happens."""

    def __init__(self, seed: int, *, taints: tuple[str, ...], moving: int = 100) -> None:
        self.taints = taints
        self.moving = moving
        """How often of a hundred times a node really comes or goes when it is its turn."""
        self.random = Stream(seed)
        self.world = Stage()
        self.nodes = [f"n{number}" for number in range(NODES)]
        self.pods: list[str] = []
        self.made = 0
        for name in self.nodes:
            self.world.create(self.node(name))

    def one(self, *choices: Any) -> Any:
        return choices[self.random.below(len(choices))]

    def perhaps(self, percent: int) -> bool:
        return self.random.below(100) < percent

    def node(self, name: str) -> ObjectBuilder:
        node = make_node(name).cpu(self.one("1", "2", "4")).memory(self.one("4Gi", "16Gi"))
        node = node.pods(self.one("2", "9")).labels({"disk": self.one("ssd", "hdd")})
        node = node.capacity(STORAGE, self.one("1Gi", "9Gi"))
        if self.perhaps(10):
            node = node.taint("t", effect=self.one(*self.taints))
        return node

    def kinds(self) -> list[JsonObject]:
        """Pods that differ in their requests, and in what they ask of a node."""
        kinds = [make_pod("kind").cpu(cpu).memory("512Mi") for cpu in ("100m", "1", "3")]
        kinds += [make_pod("kind").cpu("100m").select(disk="ssd"), make_pod("kind")]
        kinds += [make_pod("kind").cpu(cpu).request(STORAGE, "1Gi") for cpu in ("100m", "1")]
        built: list[JsonObject] = [each.build() for each in kinds]
        tolerant = make_pod("kind").cpu("1").build()
        tolerant["spec"]["tolerations"] = [TOLERATION]
        choosy = make_pod("kind").cpu("1").build()
        term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        preferred = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": term}]
        }
        choosy["spec"]["affinity"] = {"nodeAffinity": preferred}
        return [*built, tolerant, choosy]

    def happen(self) -> None:
        event = self.random.below(10)
        if event < 2 and not self.perhaps(self.moving):
            event = 9
        if event == 0 and len(self.nodes) > 100:
            self.nodes.remove(name := self.one(*self.nodes))
            self.world.delete(name, NODE)
        elif event == 1:
            self.made += 1
            self.nodes.append(f"new-{self.made}")
            self.world.create(self.node(self.nodes[-1]))
        elif event == 2:
            patch = {"spec": {"unschedulable": self.one(True, None)}}
            self.world.client.patch(ObjectRef(NODE, self.one(*self.nodes)), patch)
        elif event == 3 and self.pods:
            self.pods.remove(name := self.one(*self.pods))
            self.world.delete(name)
        else:
            self.made += 1
            self.pods.append(f"pod-{self.made}")
            pod = self.one(*self.kinds())
            pod["metadata"]["name"] = self.pods[-1]
            self.world.create(pod)
            self.world.work()


def told(decision: Decision, start: int) -> dict[str, Any]:
    why = decision.explanation
    assert why is not None
    return {
        "node": decision.node,
        "counts": (decision.evaluated, decision.feasible, start),
        "why": why.to_dict(),
        "totals": (len(why.totals), list(why.totals), list(why.totals[:3])),
        "scores": (len(why.scores), [each.plugin for each in why.scores[:2]]),
        "plugins": why.filter_plugins,
        "examined": list(why.examined),
        "skipped": decision.state.skipped_filters,
        # If one node is left, a whole cycle asks no PreScore.
        "unscored": decision.feasible > 1 and decision.state.skipped_scores,
    }


def probe(life: Life, kind: JsonObject) -> PodInfo:
    pod = {**kind, "metadata": {"name": "probe", "namespace": "default", "uid": "probe"}}
    return PodInfo.read(make_record(PODS, pod, 1), pod, life.world.scheduler.watcher.classes)


def compare(life: Life, kind: JsonObject) -> bool:
    """Whether there was a routine decision; if so it must be the right one."""
    pod, scheduler = probe(life, kind), life.world.scheduler
    old = scheduler.cycle_of(pod.scheduler_name)
    at = old.start.index
    quick = old.routines.decide(pod, None)
    old.start.index = at
    made = old.routines.decide(pod, Explain.FULL)
    went_to, old.start.index = old.start.index, at
    fresh = Cycle(old.framework, scheduler.nodes, scheduler.nominations, StartIndex())
    fresh.start.index = at
    wanted = fresh.decide(pod, explain=Explain.FULL)
    assert (made is None) == (quick is None)
    if made is None or quick is None:
        return False
    assert told(made, went_to) == told(wanted, fresh.start.index)
    assert quick.node == wanted.node
    return True


@pytest.mark.parametrize("taints", [("NoSchedule",), ("NoSchedule", "PreferNoSchedule")])
@pytest.mark.parametrize("seed", range(3))
def test_the_routine_decision_is_that_of_a_whole_cycle(seed: int, taints: tuple[str, ...]) -> None:
    life = Life(seed, taints=taints)
    kinds, made = life.kinds(), 0
    for kind in kinds:
        life.world.scheduler.cycle_of("default-scheduler").decide(probe(life, kind))
    for _ in range(60):
        for _ in range(1 + life.random.below(6)):
            life.happen()
        made += sum(compare(life, life.one(*kinds)) for _ in range(2))
    assert made > 60


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_of_a_class_follows_whatever_happens(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few nodes change between two pods of a class, some, or many; now and then all rows move."""
    ways: Counter[str] = Counter()
    for way in ("_renew_few", "_renew_many", "_fill"):
        count_calls(monkeypatch, ways, way)
    life = Life(seed, taints=("NoSchedule",), moving=3)
    kinds = life.kinds()
    for _ in range(70):
        for _ in range(life.one(1, 2, 6, 14, 25, 60)):
            life.happen()
        for _ in range(life.one(1, 4)):
            compare(life, life.one(*kinds))
    assert min(ways[way] for way in ("_renew_few", "_renew_many", "_fill")) > 15


def count_calls(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], name: str) -> None:
    method = getattr(CpuMemoryRows, name)

    def counted(*arguments: Any) -> Any:
        calls[name] += 1
        return method(*arguments)

    monkeypatch.setattr(CpuMemoryRows, name, counted)


def test_a_pod_that_fits_nowhere_is_left_to_a_whole_cycle() -> None:
    world = Stage()
    world.nodes("a", "b")
    assert world.place(make_pod("first").cpu("1"), make_pod("second").cpu("1")) == [
        "first:a",
        "second:b",
    ]
    world.place(make_pod("large").cpu("8"))
    attempt = world.attempts.made[-1]
    assert attempt.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_a_pod_makes_room_for_one_that_is_nominated() -> None:
    world = Stage()
    world.nodes("a", "b")
    world.place(*(make_pod(f"p{number}").cpu("1") for number in range(4)))
    nominated = probe_named(world, "high", nominated="a")
    world.scheduler.nominations.add(nominated, "a")
    pod = probe_named(world, "low")
    cycle = world.scheduler.cycle_of("default-scheduler")
    cycle.decide(pod)
    assert cycle.routines.decide(pod, None) is None
    world.scheduler.nominations.remove(nominated)
    assert cycle.routines.decide(pod, None) is not None


class Filtering(FilterPlugin):
    name = "Filtering"
    reads = Reads.NODE

    def __init__(self, handle: Handle) -> None:
        del handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class Scoring(ScorePlugin):
    name = "Scoring"
    reads = Reads.NODE

    def __init__(self, handle: Handle) -> None:
        del handle

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1


@pytest.mark.parametrize("plugin", [Filtering, Scoring])
def test_plugins_of_others_are_asked_about_no_more_nodes_than_need_be(plugin: type) -> None:
    world = Stage(plugin)
    world.nodes("a", "b")
    assert world.place(make_pod("first"), make_pod("second")) == ["first:a", "second:b"]
    cycle = world.scheduler.cycle_of("default-scheduler")
    pod = probe_named(world, "third")
    assert cycle.decide(pod).node
    assert cycle.routines.decide(pod, None) is None


def test_verdicts_on_node_objects_are_shared_by_classes_that_are_signed_alike() -> None:
    world = Stage()
    world.nodes("a", "b")
    world.place(*(make_pod(f"p{cpu}").cpu(f"{cpu}m") for cpu in (100, 200, 300)))
    world.place(make_pod("choosy").cpu("100m").select(disk="ssd"))
    routines = world.scheduler.cycle_of("default-scheduler").routines
    specs = [each.spec for each in routines._by_cpu_memory._visits.values()]
    assert len(specs) == 4
    assert specs[0] is specs[1] is specs[2]
    assert specs[3] is not specs[0]


def probe_named(world: Stage, name: str, nominated: str = "") -> PodInfo:
    pod: JsonObject = make_pod(name).cpu("1").build()
    pod["metadata"].update(uid=name, namespace="default")
    pod["status"] = {"nominatedNodeName": nominated} if nominated else {}
    return PodInfo.read(make_record(PODS, pod, 1), pod, world.scheduler.watcher.classes)


@pytest.mark.parametrize("more", [{}, {STORAGE: "1Gi"}])
def test_what_explanations_have_in_common_holds_for_the_same_plugins_and_as_many_nodes(
    more: dict[str, str],
) -> None:
    """Of a class that is looked up by cpu and memory alone, and of one that is not."""
    life = Life(0, taints=("NoSchedule",))
    asked = make_pod("p").cpu("100m")
    for resource, amount in more.items():
        asked = asked.request(resource, amount)
    pod = probe(life, asked.build())
    routines = life.world.scheduler.cycle_of(pod.scheduler_name).routines
    for _ in range(3):
        decision = routines.decide(pod, Explain.FULL)
    assert decision is not None
    shared = routines._kept[pod.pod_class].common if more else routines._common
    state, count = decision.state, decision.feasible
    assert shared is not None
    assert shared.fits(state, count)
    assert not shared.fits(state, count - 1)
    state.skipped_scores |= {"NodeResourcesFit"}
    assert not shared.fits(state, count)
