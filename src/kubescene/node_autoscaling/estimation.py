"""Estimation: how many nodes of a group would take which of the waiting pods."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubescene.api.quantity import milli_value, value
from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.node_autoscaling.nodes import HOSTNAME
from kubescene.node_autoscaling.pods import KINDS_PER_CONTROLLER, SeenPod
from kubescene.node_autoscaling.provider import NodeGroup
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.node_autoscaling.templates import NodeTemplate
from kubescene.scheduler.framework.status import Status

SPREAD_REFUSED = "node(s) didn't match pod topology spread constraints"


@dataclass(slots=True)
class EquivalenceGroup:
    """Waiting pods that no plugin can tell apart, and what node groups are to them."""

    pods: list[SeenPod]
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Groups whose nodes cannot run them, and why."""
    fitting: list[str] = field(default_factory=list)
    """Groups whose nodes can."""
    is_helped: bool = False

    @property
    def sample(self) -> SeenPod:
        return self.pods[0]


@dataclass(frozen=True, slots=True)
class Option:
    """So many nodes of a group would take these pods, in order of placement."""

    group: NodeGroup
    template: NodeTemplate
    nodes: int
    pods: tuple[SeenPod, ...]
    similar: tuple[NodeGroup, ...] = ()

    @property
    def waste(self) -> tuple[float, float]:
        """The shares of cpu and memory that nobody would ask for."""
        node = self.template.node
        cpu, memory = node.milli_cpu * self.nodes, node.memory * self.nodes
        used_cpu = sum(pod.info.requests.get(CPU, 0) for pod in self.pods)
        used_memory = sum(pod.info.requests.get(MEMORY, 0) for pod in self.pods)
        return _share(cpu - used_cpu, cpu), _share(memory - used_memory, memory)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def like_pods(pods: Iterable[SeenPod]) -> list[EquivalenceGroup]:
    """Pods that are alike to every plugin, by first appearance."""
    groups: list[EquivalenceGroup] = []
    known: dict[str, dict[bytes, EquivalenceGroup]] = {}
    for pod in pods:
        if pod.controller is None or pod.is_daemon:
            groups.append(EquivalenceGroup([pod]))
            continue
        kinds = known.setdefault(pod.controller.uid, {})
        found = kinds.get(pod.likeness)
        if found is not None:
            found.pods.append(pod)
            continue
        groups.append(EquivalenceGroup([pod]))
        if len(kinds) < KINDS_PER_CONTROLLER:
            kinds[pod.likeness] = groups[-1]
    return groups


def ask_plugins(
    snapshot: ClusterSnapshot, group: str, template: NodeTemplate, alike: Sequence[EquivalenceGroup]
) -> list[EquivalenceGroup]:
    """Those whose sample can run on a new node of a group; each is told so, or why not."""
    fitting = []
    with snapshot.supposing():
        snapshot.add_node(template.node, template.pods)
        for each in alike:
            status = snapshot.check(each.sample, template.node.name)
            if status.ok:
                each.is_helped = True
                each.fitting.append(group)
                fitting.append(each)
            else:
                each.refused[group] = status.reasons
    return fitting


@dataclass(slots=True)
class NodeEstimate:
    """Bin packing of one node group; ``limit`` None: as many nodes as it takes."""

    snapshot: ClusterSnapshot
    template: NodeTemplate
    limit: int | None
    added: dict[str, None] = field(default_factory=dict)
    """The nodes that were added, in order."""
    used: set[str] = field(default_factory=set)
    taken: list[SeenPod] = field(default_factory=list)

    def run(self, groups: Sequence[EquivalenceGroup]) -> tuple[int, tuple[SeenPod, ...]]:
        """The number of nodes that received pods, and the pods."""
        may_add = True
        with self.snapshot.supposing():
            for group in sorted(groups, key=lambda each: -self._score(each.sample)):
                left = self._on_added(group.pods)
                if may_add:
                    may_add = self._on_new(left)
        return len(self.used), tuple(self.taken)

    def _score(self, pod: SeenPod) -> float:
        offered, requests = self.template.node.allocatable, pod.info.requests
        cpu, memory = milli_value(offered.get("cpu", 0)), value(offered.get("memory", 0))
        score = requests.get(CPU, 0) / cpu if cpu > 0 else 0.0
        return score + (requests.get(MEMORY, 0) / memory if memory > 0 else 0.0)

    @property
    def _last(self) -> str:
        return next(reversed(self.added), "")

    def _take(self, pod: SeenPod, node: str) -> None:
        self.used.add(node)
        self.taken.append(pod)

    def _on_added(self, pods: list[SeenPod]) -> list[SeenPod]:
        """Fill the nodes added so far, until the first pod that fits none of them."""
        for at, pod in enumerate(pods):
            node = self.snapshot.place_anywhere(pod, only=self.added)
            if not node:
                return pods[at:]
            self._take(pod, node)
        return []

    def _on_new(self, pods: list[SeenPod]) -> bool:
        """Add nodes for what is left; False once no more nodes may be added."""
        for pod in pods:
            if self._on_last(pod):
                continue
            if self.added and self._last not in self.used:
                return True
            if self.limit is not None and len(self.added) >= self.limit:
                return False
            if not self._on_fresh(pod):
                return True
        return True

    def _on_fresh(self, pod: SeenPod) -> bool:
        fresh = self.template.another(f"e-{len(self.added)}")
        self.snapshot.add_node(fresh.node, fresh.pods)
        self.added[fresh.node.name] = None
        if not self.snapshot.place(pod, fresh.node.name).ok:
            return False
        self._take(pod, fresh.node.name)
        return True

    def _on_last(self, pod: SeenPod) -> bool:
        """Place it on the newest node, or, for the sake of its spread, on any other."""
        last = self._last
        if not last:
            return False
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


def _spread_by_hostname(pod: SeenPod, status: Status) -> bool:
    """Whether a pod was refused by a spread constraint and has one over hostnames."""
    constraints = pod.object["spec"].get("topologySpreadConstraints") or ()
    by_hostname = any(each["topologyKey"] == HOSTNAME for each in constraints)
    return by_hostname and SPREAD_REFUSED in status.reasons
