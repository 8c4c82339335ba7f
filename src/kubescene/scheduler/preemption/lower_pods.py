"""What pods of lower priority ask for, by row: what preemption could set free there at most.

Kept for the priorities that were asked about, and corrected by what has happened since.
"""

from kubescene.scheduler.state.deltas import Delta, DeltaKind, DeltaReader
from kubescene.scheduler.state.node_info import NO_ROW
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominated_amounts import Amounts

PRIORITIES_KEPT = 16


class LowerPods:
    """Sums over the pods below some priority. Follows the table from the first question on."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._reader: DeltaReader | None = None
        self._layout = -1
        self._below: dict[int, Amounts] = {}

    def below(self, priority: int) -> Amounts:
        """What all pods below a priority ask for. Valid until the next pod comes or goes."""
        self._follow()
        found = self._below.get(priority)
        if found is None:
            if len(self._below) >= PRIORITIES_KEPT:
                self._below.clear()
            found = self._below[priority] = self._count(priority)
        return found

    def _follow(self) -> None:
        if self._reader is None:
            self._reader = self._nodes.follow()
        deltas = self._reader.read()
        if deltas is None or self._layout != self._nodes.layout:
            self._layout = self._nodes.layout
            self._below.clear()
            return
        if self._below:
            for delta in deltas:
                self._take(delta)

    def _take(self, delta: Delta) -> None:
        row = delta.node.row
        sign = {DeltaKind.POD_ADDED: 1, DeltaKind.POD_REMOVED: -1}.get(delta.kind, 0)
        if not sign or row == NO_ROW:
            return
        (pod,) = delta.pods
        for priority, amounts in self._below.items():
            if pod.priority < priority:
                amounts.add(row, pod, sign)

    def _count(self, priority: int) -> Amounts:
        amounts = Amounts(len(self._nodes))
        for row, info in enumerate(self._nodes.infos):
            for pod in info.pods:
                if pod.priority < priority:
                    amounts.add(row, pod, 1)
        return amounts
