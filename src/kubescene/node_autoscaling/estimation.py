"""Estimation: how many nodes of a group would take which of the waiting pods."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubescene.api.quantity import milli_value, value
from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.node_autoscaling.packing import KINDS_PER_CONTROLLER, controller_of, likeness
from kubescene.node_autoscaling.snapshot import ClusterSnapshot, SimulatedNode
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject

HOSTNAME = "kubernetes.io/hostname"
SPREAD_REFUSED = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """What the provider says of a group; without template nothing can be estimated for it."""

    id: str
    min: int
    max: int
    target: int
    template: SimulatedNode | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """So many nodes of a group would take these pods, in order of placement."""

    group: NodeGroup
    template: SimulatedNode
    nodes: int
    pods: tuple[PodInfo, ...]

    @property
    def waste(self) -> tuple[float, float]:
        """The shares of cpu and memory that nobody would ask for."""
        capacity = self.template.node["status"]["capacity"]
        cpu = milli_value(capacity["cpu"]) * self.nodes
        memory = value(capacity["memory"]) * self.nodes
        used_cpu = sum(pod.requests.get(CPU, 0) for pod in self.pods)
        used_memory = sum(pod.requests.get(MEMORY, 0) for pod in self.pods)
        return (cpu - used_cpu) / cpu, (memory - used_memory) / memory


def equivalence_groups(pods: Iterable[PodInfo]) -> list[list[PodInfo]]:
    """Pods that are alike to every plugin, by first appearance."""
    groups: list[list[PodInfo]] = []
    known: dict[str, list[tuple[JsonObject, list[PodInfo]]]] = {}
    for pod in pods:
        uid, kind = controller_of(pod)
        if not uid or kind == "DaemonSet":
            groups.append([pod])
            continue
        like, kinds = likeness(pod), known.setdefault(uid, [])
        found = next((members for each, members in kinds if each == like), None)
        if found is not None:
            found.append(pod)
            continue
        groups.append([pod])
        if len(kinds) < KINDS_PER_CONTROLLER:
            kinds.append((like, groups[-1]))
    return groups


def expansion_options(
    snapshot: ClusterSnapshot,
    node_groups: Sequence[NodeGroup],
    pods: Sequence[PodInfo],
    most_nodes: int,
) -> list[Option]:
    """The options of all groups that are not full, in the order of the groups."""
    alike = equivalence_groups(pods)
    open_groups = [
        (each, each.template)
        for each in node_groups
        if each.template is not None and each.target < each.max
    ]
    fitting = [_fitting(snapshot, template, alike) for _, template in open_groups]
    options = []
    for (group, template), members in zip(open_groups, fitting, strict=True):
        limit = min(most_nodes, group.max - group.target)
        estimate = Estimate(snapshot, template, limit)
        nodes, taken = estimate.run(members)
        if nodes and taken:
            options.append(Option(group, template, nodes, tuple(taken)))
    return options


def _fitting(
    snapshot: ClusterSnapshot, template: SimulatedNode, alike: Sequence[list[PodInfo]]
) -> list[list[PodInfo]]:
    with snapshot.supposing():
        snapshot.add_node(template)
        return [each for each in alike if snapshot.check(each[0], template.name).ok]


@dataclass(slots=True)
class Estimate:
    """Bin packing of one node group."""

    snapshot: ClusterSnapshot
    template: SimulatedNode
    limit: int
    added: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    taken: list[PodInfo] = field(default_factory=list)

    def run(self, groups: Sequence[list[PodInfo]]) -> tuple[int, list[PodInfo]]:
        """The number of nodes that received pods, and the pods."""
        may_add = True
        with self.snapshot.supposing():
            for group in sorted(groups, key=lambda each: -self._score(each[0])):
                left = self._on_added(group)
                if may_add:
                    may_add = self._on_new(left)
        return len(self.used), self.taken

    def _score(self, pod: PodInfo) -> float:
        offered = self.template.node["status"]["allocatable"]
        cpu, memory = milli_value(offered.get("cpu", 0)), value(offered.get("memory", 0))
        score = pod.requests.get(CPU, 0) / cpu if cpu > 0 else 0.0
        return score + (pod.requests.get(MEMORY, 0) / memory if memory > 0 else 0.0)

    def _take(self, pod: PodInfo, node: str) -> None:
        self.used.add(node)
        self.taken.append(pod)

    def _on_added(self, pods: list[PodInfo]) -> list[PodInfo]:
        """Fill the nodes added so far, until the first pod that fits none of them."""
        for at, pod in enumerate(pods):
            node = self.snapshot.place_anywhere(pod, self.added.__contains__)
            if not node:
                return pods[at:]
            self._take(pod, node)
        return []

    def _on_new(self, pods: list[PodInfo]) -> bool:
        """Add nodes for what is left; False once no more nodes may be added."""
        for pod in pods:
            if self._on_last(pod):
                continue
            if self.added and self.added[-1] not in self.used:
                return True
            if len(self.added) >= self.limit:
                return False
            if not self._on_fresh(pod):
                return True
        return True

    def _on_fresh(self, pod: PodInfo) -> bool:
        name = f"{self.template.name}-e-{len(self.added)}"
        self.snapshot.add_node(self.template.renamed(name))
        self.added.append(name)
        if not self.snapshot.place(pod, name).ok:
            return False
        self._take(pod, name)
        return True

    def _on_last(self, pod: PodInfo) -> bool:
        if not self.added:
            return False
        last = self.added[-1]
        status = self.snapshot.place(pod, last)
        if status.ok:
            self._take(pod, last)
            return True
        if not _spread_by_hostname(pod, status):
            return False
        node = self.snapshot.place_anywhere(pod, lambda name: name != last)
        if node:
            self._take(pod, node)
        return bool(node)


def _spread_by_hostname(pod: PodInfo, status: Status) -> bool:
    """Whether a pod was refused by a spread constraint and has one over hostnames."""
    constraints = pod.object["spec"].get("topologySpreadConstraints") or ()
    by_hostname = any(each["topologyKey"] == HOSTNAME for each in constraints)
    return by_hostname and SPREAD_REFUSED in status.reasons
