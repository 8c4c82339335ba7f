"""The cluster as the autoscaler supposes it: a node table of its own, and plugins that judge it.

Never the scheduler's table: supposed nodes would spoil what is kept there. Every change is noted,
so that `ClusterSnapshot.supposing` can take back all that was done within it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Stream
from kubescene.recording import SILENT
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import Informers
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject

NODES = GroupResource("", "nodes")


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """A node, and the pods that are on it from the start."""

    node: JsonObject
    pods: tuple[PodInfo, ...] = ()

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    def renamed(self, name: str) -> "SimulatedNode":
        """A fresh node like this one."""
        metadata = self.node["metadata"]
        labels = {**(metadata.get("labels") or {}), "kubernetes.io/hostname": name}
        node = {**self.node, "metadata": {**metadata, "name": name, "labels": labels}}
        return SimulatedNode(node, self.pods)


def _nothing() -> None:
    """Nobody waits here."""


def lone_cycle(client: Client, clock: Clock, options: SchedulerOptions, nodes: NodeTable) -> Cycle:
    """The plugins of a profile over a node table: no queue, no watch of nodes or pods."""
    profile, informers, nominations = options.profiles[0], Informers(client), Nominations()
    handle = SchedulerHandle(
        profile.scheduler_name,
        client,
        clock,
        Stream(0),
        nodes=nodes,
        nominations=nominations,
        waiting_pods=WaitingRoom(_nothing),
        informers=informers,
        events=SILENT,
        feature_gates=options.feature_gates,
    )
    framework = Framework(profile, options.registry(), handle)
    cycle = Cycle(framework, nodes, nominations, StartIndex(), informers=informers, clock=clock)
    handle.connect(cycle=cycle)
    return cycle


class ClusterSnapshot:
    """Nodes in order of insertion, scanned in a ring that goes on after the last match."""

    def __init__(self, client: Client, clock: Clock, options: SchedulerOptions) -> None:
        self._table = NodeTable()
        self._cycle = lone_cycle(client, clock, options, self._table)
        self._nodes: dict[str, SimulatedNode] = {}
        self._undo: list[Callable[[], None]] = []
        self._next = 1
        """Where the ring begins; in a new process one after the first node."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    # -- changes ---------------------------------------------------------------------------

    def add_node(self, node: SimulatedNode) -> None:
        obj, name = node.node, node.name
        self._nodes[name] = node
        self._table.set_node(make_record(NODES, obj, 1), obj)
        self._undo.append(lambda: self._drop(name))
        for pod in node.pods:
            self._put(pod, name)

    def _drop(self, name: str) -> None:
        del self._nodes[name]
        self._table.remove_node(name)

    def _put(self, pod: PodInfo, node: str) -> None:
        placed = pod.assumed(node)
        self._table.add_pod(placed, node)
        self._undo.append(lambda: self._table.remove_pod(placed, node))

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """What is done inside is undone at the end; the ring goes on all the same."""
        mark = len(self._undo)
        try:
            yield
        finally:
            while len(self._undo) > mark:
                self._undo.pop()()

    # -- questions -------------------------------------------------------------------------

    def check(self, pod: PodInfo, node: str) -> Status:
        """What the plugins say of a pod on one node."""
        filtering, status = self._begin(pod)
        row = self._table.row_of(node)
        if filtering is None or row is None:
            return status
        verdict = filtering.judge(np.array([row], dtype=np.intp))[0]
        return filtering.describe(int(verdict))

    def place(self, pod: PodInfo, node: str) -> Status:
        """Put a pod on a node if it fits there."""
        status = self.check(pod, node)
        if status.ok:
            self._put(pod, node)
        return status

    def place_anywhere(self, pod: PodInfo, among: Callable[[str], bool] | None = None) -> str:
        """Put a pod on the first node of the ring that it fits on; empty if there is none."""
        filtering, _ = self._begin(pod)
        if filtering is None or not self._nodes:
            return ""
        names = [*self._nodes]
        fits = self._fitting(filtering, names)
        for step in range(len(names)):
            at = (self._next + step) % len(names)
            if fits[at] and (among is None or among(names[at])):
                self._next = at + 1
                self._put(pod, names[at])
                return names[at]
        return ""

    def _fitting(self, filtering: Filtering, names: list[str]) -> list[bool]:
        rows = np.array([self._table.row_of(name) for name in names], dtype=np.intp)
        fits = (filtering.judge(rows) == 0) & ~self._table.unschedulable[rows]
        return [bool(each) for each in fits]

    def _begin(self, pod: PodInfo) -> tuple[Filtering | None, Status]:
        """Filter for a pod, or why it cannot even begin."""
        self._table.refresh()
        state = CycleState()
        outcome = self._cycle.pre_filter(state, pod)
        if not outcome.status.ok:
            return None, outcome.status
        if outcome.node_names is not None:
            return None, Status(Code.UNRESOLVABLE, ())
        return self._cycle.filters.begin(state, pod), SUCCESS
