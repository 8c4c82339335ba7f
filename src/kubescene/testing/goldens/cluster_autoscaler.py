"""The cluster autoscaler: the first loop of each case, up to the option that is chosen.

What later loops decide depends on cluster state and scale-down, which are not there yet; they are
not compared, and not counted as equal. Nor are first loops with daemon sets.
"""

from collections.abc import Iterable
from enum import StrEnum

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.clock import VirtualClock
from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND
from kubescene.node_autoscaling import (
    ClusterSnapshot,
    NodeGroup,
    Option,
    Packing,
    SimulatedNode,
    chosen,
    expander_chain,
    expansion_options,
)
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.environment import ReplayClient
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject

UNIT = "first loops"
START = parse_time("2000-01-01T00:00:00Z")
PODS = GroupResource("", "pods")
NAMESPACES = GroupResource("", "namespaces")
CUTOFF = -10
STABLE = 60 * SECOND
NEW = 2 * SECOND
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"


class AutoscalerAspect(StrEnum):
    """What can differ."""

    REPLAYED = "replayed"
    PACKING = "pending after packing"
    OPTIONS = "expansion options"
    CHOSEN = "chosen option"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case has as many results as steps."""
    given, told = case.get("steps"), result.get("steps")
    if not isinstance(given, list) or not isinstance(told, list) or len(given) != len(told):
        raise GoldenFormatError(
            f'{where}: {case["id"]} needs lists "steps" in case and result, equally long'
        )


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    try:
        _replay(golden, comparison)
    except Exception as error:
        # Whatever our autoscaler raises is a difference.
        comparison.failed(AutoscalerAspect.REPLAYED, f"{type(error).__name__}: {error}", "")
    tally.attempts += 1


def _replay(golden: Golden, comparison: GoldenComparison) -> None:
    step, theirs = golden.case["steps"][0], golden.result["steps"][0]
    if step["set"].get("daemonSets"):
        comparison.failed(AutoscalerAspect.REPLAYED, "daemon sets are not simulated yet", "")
        return
    loop = _FirstLoop(golden.case, step)
    comparison.at = f"at {step['t']} s"
    left = loop.leftover()
    recorded = theirs.get("pendingAfterPacking") or []
    comparison.equal(AutoscalerAspect.PACKING, [pod.key for pod in left], recorded)
    options = loop.options(left)
    expansion = theirs.get("expansion") or {}
    ours = [_shown(each) for each in options]
    recorded = [_recorded(each) for each in expansion.get("options") or ()]
    comparison.equal(AutoscalerAspect.OPTIONS, ours, recorded)
    if options:
        chain = expander_chain(golden.case["flags"].get("expander", "least-waste"))
        best = chosen(options, chain)
        name = best.group.id if best is not None else ""
        comparison.equal(AutoscalerAspect.CHOSEN, name, expansion.get("chosen"))


def _shown(option: Option) -> JsonObject:
    cpu, memory = option.waste
    return {
        "group": option.group.id,
        "nodes": option.nodes,
        "pods": [pod.key for pod in option.pods],
        "similar": [],
        "waste": (round(cpu, 12), round(memory, 12)),
    }


def _recorded(option: JsonObject) -> JsonObject:
    return {
        "group": option["group"],
        "nodes": option["nodes"],
        "pods": option["pods"],
        "similar": option.get("similar") or [],
        "waste": (round(option["wasteCPU"], 12), round(option["wasteMemory"], 12)),
    }


class _FirstLoop:
    """What a new autoscaler sees at the first step of a case."""

    def __init__(self, case: JsonObject, step: JsonObject) -> None:
        self._case, self._step = case, step
        self._now: int = START + round(step["t"] * 1000) * SECOND // 1000
        store, classes = Store(), PodClasses()
        for name in ("default", "kube-system", "team-a"):
            labels = {"kubernetes.io/metadata.name": name}
            store.put(NAMESPACES, {"metadata": {"name": name, "labels": labels}}, expected=0)
        client = ReplayClient(store, case)
        self._snapshot = ClusterSnapshot(client, VirtualClock(), SchedulerOptions())
        self._nodes: list[JsonObject] = step["set"].get("nodes") or []
        self._pods = [
            (_read(each, classes), each)
            for each in step["set"].get("pods") or ()
            if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        for node in self._nodes:
            name = node["metadata"]["name"]
            self._snapshot.add_node(SimulatedNode(node, tuple(self._placed_on(name))))
        self._size = len(self._nodes)

    def _placed_on(self, node: str) -> Iterable[PodInfo]:
        for pod, _ in self._pods:
            nominated = not pod.node and not pod.terminating and pod.nominated_node == node
            if (pod.node == node or nominated) and pod.priority >= CUTOFF:
                yield pod

    def leftover(self) -> list[PodInfo]:
        waiting = [
            pod
            for pod, obj in self._pods
            if not pod.node
            and not pod.terminating
            and not pod.nominated_node
            and _is_unschedulable(obj)
            and pod.priority >= CUTOFF
        ]
        return Packing().leftover(self._snapshot, waiting)

    def options(self, left: list[PodInfo]) -> list[Option]:
        born = {
            pod.uid: parse_time(obj["metadata"]["creationTimestamp"]) for pod, obj in self._pods
        }
        pods = [pod for pod in left if born[pod.uid] < self._now]
        if not pods or min(born[pod.uid] for pod in pods) + NEW > self._now:
            return []
        return expansion_options(self._snapshot, self._groups(), pods, self._most_nodes())

    def _most_nodes(self) -> int:
        flags = self._case["flags"]
        total = int(flags.get("max-nodes-total", 0))
        most = int(flags.get("max-nodes-per-scaleup", 1000))
        return min(most, total - self._size) if total else most

    def _groups(self) -> list[NodeGroup]:
        seen = self._step.get("groups") or {}
        groups = []
        for each in self._case["groups"]:
            now = seen.get(each["id"]) or {}
            members = {one["id"] for one in now.get("instances") or ()}
            template = self._template(each, members)
            target = now.get("target", 0)
            groups.append(NodeGroup(each["id"], each["min"], each["max"], target, template))
        return groups

    def _template(self, group: JsonObject, members: set[str]) -> SimulatedNode | None:
        mine = [node for node in self._nodes if node["metadata"]["name"] in members]
        good = (node for node in mine if self._is_stable(node))
        node = next(good, None) or group.get("template") or next(iter(mine), None)
        if node is None:
            return None
        bare = SimulatedNode(node).renamed(f"template-node-for-{group['id']}")
        bare.node["metadata"]["labels"]["cluster-autoscaler.kubernetes.io/template-node"] = "true"
        return bare

    def _is_stable(self, node: JsonObject) -> bool:
        """Ready for more than a minute, schedulable, and not on its way out."""
        spec = node.get("spec") or {}
        if spec.get("unschedulable"):
            return False
        if any(each["key"] == TO_BE_DELETED for each in spec.get("taints") or ()):
            return False
        conditions = node["status"].get("conditions") or ()
        ready = next((each for each in conditions if each["type"] == "Ready"), None)
        if ready is None or ready["status"] != "True":
            return False
        return parse_time(ready["lastTransitionTime"]) + STABLE < self._now


def _read(obj: JsonObject, classes: PodClasses) -> PodInfo:
    metadata = obj["metadata"]
    uid = f"pod-{metadata['namespace']}/{metadata['name']}"
    named = {**obj, "metadata": {**metadata, "uid": uid}}
    return PodInfo.read(make_record(PODS, named, 1), named, classes)


def _is_unschedulable(obj: JsonObject) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        each["type"] == "PodScheduled"
        and each["status"] == "False"
        and each.get("reason") == "Unschedulable"
        for each in conditions
    )
