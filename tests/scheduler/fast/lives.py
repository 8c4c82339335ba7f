"""Clusters in which something always happens; the usual decision beside that of a whole cycle."""

from typing import Any

from kubescene.api.records import make_record
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Stream
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.state.pods import PodInfo
from kubescene.testing.builders import ObjectBuilder, make_node, make_pod
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
    """A pod of a kind that nobody has seen."""
    named = {"name": "probe", "namespace": "default", "uid": "probe"}
    pod = {**kind, "metadata": {**kind["metadata"], **named}}
    return PodInfo.read(make_record(PODS, pod, 1), pod, life.world.scheduler.watcher.classes)


def compare(life: Life, kind: JsonObject) -> bool:
    """Whether there was a usual decision; if so it must be the right one."""
    pod, scheduler = probe(life, kind), life.world.scheduler
    old = scheduler.cycle_of(pod.scheduler_name)
    at = old.start.index
    quick = old.fast.decide(pod, None)
    old.start.index = at
    made = old.fast.decide(pod, Explain.FULL)
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
