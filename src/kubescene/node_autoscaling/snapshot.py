"""The cluster as the autoscaler supposes it: a node table of its own, and plugins that judge it.

Never the scheduler's table: supposed nodes would spoil what is kept there. Every change is noted,
so that `ClusterSnapshot.supposing` can take back all that was done within it.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Stream
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.recording import SILENT
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import Informers
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo

NODES = GroupResource("", "nodes")


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
        self._remembers = not options.plugins
        """Whether what is said of one pod holds for those like it: a plugin of somebody's own may
        go by names, or by anything else."""
        self._nodes: dict[str, SeenNode] = {}
        self._pods: dict[str, list[Placed]] = {}
        self._undo: list[Callable[[], None]] = []
        self._said: dict[tuple[PodSignature, str], Status] = {}
        """What was said of pods that no plugin can tell apart, until something changes."""
        self._nowhere: set[PodSignature] = set()
        """Those of which none fits anywhere, likewise."""
        self._rows: Rows | None = None
        self._names: list[str] = []
        self._place_of: dict[str, int] = {}
        self._is_in_order = False
        """Whether names and places are those of the nodes."""
        self._layout = -1
        self._next = 1
        """Where the ring begins; in a new process one after the first node."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    # -- what is there ---------------------------------------------------------------------

    @property
    def nodes(self) -> list[SeenNode]:
        return [*self._nodes.values()]

    def node(self, name: str) -> SeenNode:
        return self._nodes[name]

    def pods_on(self, name: str) -> list[SeenPod]:
        return [each.pod for each in self._pods[name]]

    # -- changes ---------------------------------------------------------------------------

    def show(self, nodes: Iterable[SeenNode], pods: Iterable[SeenPod]) -> None:
        """Start anew from these nodes and the pods on them; what is as it was is not touched."""
        self._forget_answers()
        self.forget_suppositions()
        placed = _by_node(nodes, pods)
        for name in [each for each in self._nodes if each not in placed]:
            self._drop(name)
        kept, self._nodes, self._rows = self._nodes, {}, None
        self._is_in_order = False
        for name, (node, wanted) in placed.items():
            self._nodes[name] = node
            if kept.get(name) is not node:
                self._set(node)
            self._exchange(name, wanted)
        self._undo.clear()

    def forget_suppositions(self) -> None:
        """Back to what was shown last."""
        self._take_back(0)

    @property
    def position(self) -> int:
        """Where the ring goes on."""
        return self._next

    def _forget_answers(self) -> None:
        """Something is about to change, or has."""
        self._said.clear()
        self._nowhere.clear()

    def _exchange(self, name: str, wanted: Sequence[SeenPod]) -> None:
        """Have exactly these pods on a node, in this order."""
        there = self._pods.setdefault(name, [])
        if [each.pod for each in there] == wanted:
            return
        known = {each.pod: each for each in there}
        kept = set(wanted)
        for each in there:
            if each.pod not in kept:
                self._table.remove_pod(each.info, name)
        self._pods[name] = [known.get(pod) or self._added(pod, name) for pod in wanted]

    def _added(self, pod: SeenPod, name: str) -> "Placed":
        self._forget_answers()
        placed = Placed(pod, pod.info.assumed(name))
        self._table.add_pod(placed.info, name)
        return placed

    def _set(self, node: SeenNode) -> None:
        self._forget_answers()
        self._table.set_node(make_record(NODES, node.object, 1), node.object)

    def _drop(self, name: str) -> None:
        self._forget_answers()
        for each in self._pods.pop(name):
            self._table.remove_pod(each.info, name)
        del self._nodes[name]
        self._table.remove_node(name)
        self._rows = None
        if self._is_in_order and self._names[-1] == name:
            del self._place_of[self._names.pop()]
        else:
            self._is_in_order = False

    def add_node(self, node: SeenNode, pods: Iterable[SeenPod] = ()) -> None:
        name = node.name
        self._nodes[name] = node
        self._pods[name] = []
        self._rows = None
        if self._is_in_order:
            self._place_of[name] = len(self._names)
            self._names.append(name)
        self._set(node)
        self._undo.append(lambda: self._drop(name))
        for pod in pods:
            self._put(pod, name)

    def remove_node(self, name: str) -> None:
        """Take a node out, and all that is on it."""
        node, order = self._nodes[name], [*self._nodes]
        pods = self._pods[name]
        self._drop(name)
        self._undo.append(lambda: self._bring_back(node, pods, order))

    def _bring_back(self, node: SeenNode, pods: list["Placed"], order: list[str]) -> None:
        self._nodes[node.name] = node
        self._nodes = {name: self._nodes[name] for name in order}
        self._pods[node.name] = pods
        self._rows, self._is_in_order = None, False
        self._set(node)
        for each in pods:
            self._table.add_pod(each.info, node.name)

    def replace_node(self, node: SeenNode) -> None:
        """Put an empty node in the place of the one of this name; its domains stay."""
        name = node.name
        before, pods = self._nodes[name], self._pods[name]
        for each in pods:
            self._table.remove_pod(each.info, name)
        self._nodes[name], self._pods[name] = node, []
        self._set(node)
        self._undo.append(lambda: self._put_back(before, pods))

    def _put_back(self, node: SeenNode, pods: list["Placed"]) -> None:
        self._nodes[node.name], self._pods[node.name] = node, pods
        self._set(node)
        for each in pods:
            self._table.add_pod(each.info, node.name)

    def _put(self, pod: SeenPod, node: str) -> None:
        self._pods[node].append(self._added(pod, node))
        self._undo.append(lambda: self._table.remove_pod(self._pods[node].pop().info, node))

    @contextmanager
    def supposing(self) -> Iterator["SnapshotFork"]:
        """What is done inside is undone at the end, unless it is kept; the ring goes on anyway."""
        mark, supposition = len(self._undo), SnapshotFork()
        try:
            yield supposition
        finally:
            if not supposition.kept:
                self._take_back(mark)

    def _take_back(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._forget_answers()
            self._undo.pop()()

    # -- questions -------------------------------------------------------------------------

    def check(self, pod: SeenPod, node: str) -> Status:
        """What the plugins say of a pod on one node; pods that are alike are asked about once."""
        if pod.info.is_resized or not self._remembers:
            return self._check(pod, node)
        key = pod.info.signature, node
        said = self._said.get(key)
        if said is None:
            said = self._said[key] = self._check(pod, node)
        return said

    def _check(self, pod: SeenPod, node: str) -> Status:
        filtering, status, among = self._begin(pod.info)
        row = self._table.row_of(node)
        if filtering is None or row is None:
            return status
        if among is not None and node not in among:
            return Status(Code.UNRESOLVABLE)
        verdict = filtering.judge(np.array([row], dtype=np.intp))[0]
        return filtering.describe(int(verdict))

    def place(self, pod: SeenPod, node: str) -> Status:
        """Put a pod on a node if it fits there."""
        status = self.check(pod, node)
        if status.ok:
            self._put(pod, node)
        return status

    def place_anywhere(
        self,
        pod: SeenPod,
        among: Callable[[str], bool] | None = None,
        only: Collection[str] | None = None,
    ) -> str:
        """Put a pod on the first node of the ring that it fits on; empty if there is none.

        Others than those ``among`` which it may be, or the ``only`` ones, are not looked at.
        """
        if only is not None and not only:
            return ""
        is_any = among is None and only is None and not pod.info.is_resized and self._remembers
        if is_any and pod.info.signature in self._nowhere:
            return ""
        filtering, _, named = self._begin(pod.info)
        if filtering is None or not self._nodes:
            return ""
        names = self._ordered()
        if only is None:
            rows, places = self._scanned(), np.arange(len(names), dtype=np.intp)
        else:
            known = sorted(self._place_of[name] for name in only)
            places = np.array(known, dtype=np.intp)
            rows = self._rows_of(names[at] for at in known)
        fits = (filtering.judge(rows) == 0) & ~self._table.unschedulable[rows]
        start = self._next % len(names)
        order = places[fits]
        turned: list[int] = np.roll(order, -int(np.searchsorted(order, start))).tolist()
        for at in turned:
            name = names[at]
            if (named is None or name in named) and (among is None or among(name)):
                self._next = at + 1
                self._put(pod, name)
                return name
        if is_any:
            self._nowhere.add(pod.info.signature)
        return ""

    def _ordered(self) -> Sequence[str]:
        """The names of all nodes in order of insertion; tells their places, too."""
        if not self._is_in_order:
            self._names, self._is_in_order = [*self._nodes], True
            self._place_of = {name: at for at, name in enumerate(self._names)}
        return self._names

    def _rows_of(self, names: Iterable[str]) -> Rows:
        return np.array([self._table.row_of(name) for name in names], dtype=np.intp)

    def _scanned(self) -> Rows:
        """The rows of all nodes, in order of insertion."""
        if self._rows is None or self._layout != self._table.layout:
            self._layout = self._table.layout
            self._rows = self._rows_of(self._ordered())
        return self._rows

    def _begin(self, pod: PodInfo) -> tuple[Filtering | None, Status, Container[str] | None]:
        """Filter for a pod, or why it cannot even begin; and the nodes that it is limited to."""
        self._table.refresh()
        state = CycleState()
        outcome = self._cycle.pre_filter(state, pod)
        if not outcome.status.ok:
            return None, outcome.status, None
        return self._cycle.filters.begin(state, pod), SUCCESS, outcome.node_names


class Placed(NamedTuple):
    """A pod on a node, and how it stands in the table."""

    pod: SeenPod
    info: PodInfo


class SnapshotFork:
    """What was done since it began; `keep` makes it hold."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        self.kept = True


def _by_node(
    nodes: Iterable[SeenNode], pods: Iterable[SeenPod]
) -> dict[str, tuple[SeenNode, list[SeenPod]]]:
    placed: dict[str, tuple[SeenNode, list[SeenPod]]] = {each.name: (each, []) for each in nodes}
    for pod in pods:
        if pod.node in placed:
            placed[pod.node][1].append(pod)
    return placed
