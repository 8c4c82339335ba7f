"""What nominated pods ask for, by row of the node table: who looks for a node must leave them room.

A `NominatedAmounts` adds up the pods of at least some priority. It is corrected when a pod is
nominated or loses its nomination, so that a search costs the same whether ten or a thousand pods
are nominated. `ShiftedNodes` shows the table with such amounts added or taken away.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from kubescene.api.records import Record
from kubescene.api.resource_requests import PODS
from kubescene.bounded import BoundedDict
from kubescene.scheduler.state.deltas import DeltaReader
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Column
from kubescene.types import ReadOnlyObject

Nominated: TypeAlias = Callable[[], Iterable[tuple[PodInfo, str]]]
"""All nominated pods and their nodes."""


class Amounts:
    """What some pods ask for, and how many they are, by row."""

    __slots__ = ("_size", "columns", "count")

    def __init__(self, rows: int) -> None:
        self._size = rows
        self.count: Column = np.zeros(rows, dtype=np.int64)
        self.columns: dict[str, Column] = {PODS: self.count}

    def add(self, row: int, pod: PodInfo, sign: int) -> None:
        self.count[row] += sign
        columns = self.columns
        for resource, amount in pod.requests.items():
            if resource not in columns:
                columns[resource] = np.zeros(self._size, dtype=np.int64)
            columns[resource][row] += sign * amount


class NominatedAmounts(Amounts):
    """Nominated pods of at least one priority; ``versions`` says when a row last changed."""

    __slots__ = ("versions",)

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.versions: Column = np.zeros(rows, dtype=np.int64)


class NominatedByPriority:
    """The amounts that somebody asked for, by priority."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._by_priority: BoundedDict[int, NominatedAmounts] = BoundedDict(POLICY.priorities_kept)
        self._layout = nodes.layout
        self._version = 0

    def against(self, pod: PodInfo, nominated: Nominated) -> NominatedAmounts:
        """Those of at least the priority of a pod; ``nominated`` are all, if need be."""
        self._check_layout()
        found = self._by_priority.get(pod.priority)
        if found is None:
            found = self._by_priority[pod.priority] = self._gather(pod.priority, nominated())
        return found

    def count(self, pod: PodInfo, node: str, sign: int) -> None:
        """A pod was nominated to a node, or lost its nomination."""
        self._check_layout()
        if (row := self.nodes.row_of(node)) is None:
            return
        for priority, amounts in self._by_priority.items():
            if pod.priority >= priority:
                self._put(amounts, row, pod, sign)

    def _put(self, amounts: NominatedAmounts, row: int, pod: PodInfo, sign: int) -> None:
        amounts.add(row, pod, sign)
        self._version += 1
        amounts.versions[row] = self._version

    def _gather(self, priority: int, nominated: Iterable[tuple[PodInfo, str]]) -> NominatedAmounts:
        amounts = NominatedAmounts(len(self.nodes))
        for pod, node in nominated:
            if pod.priority >= priority and (row := self.nodes.row_of(node)) is not None:
                self._put(amounts, row, pod, 1)
        return amounts

    def _check_layout(self) -> None:
        if self._layout != self.nodes.layout:
            self._layout = self.nodes.layout
            self._by_priority.clear()


class ShiftedNodes(NodeTable):
    """A table on which pods ask for more or less. Only amounts may be asked of it."""

    def __init__(
        self,
        table: NodeTable,
        more: Mapping[str, Column] | None = None,
        less: Mapping[str, Column] | None = None,
    ) -> None:
        vars(self).update(vars(table))
        self._table = table
        self._more = more or {}
        self._less = less or {}

    def requested(self, resource: str) -> Column:
        found = self._table.requested(resource)
        if resource in self._more:
            found = found + self._more[resource]
        if resource in self._less:
            found = found - self._less[resource]
        return found

    def set_node(self, record: Record, obj: ReadOnlyObject) -> None:
        raise TypeError("a shifted table takes no nodes")

    def remove_node(self, name: str) -> None:
        raise TypeError("a shifted table loses no nodes")

    def add_pod(self, pod: PodInfo, node: str) -> None:
        raise TypeError("a shifted table takes no pods")

    def remove_pod(self, pod: PodInfo, node: str) -> None:
        raise TypeError("a shifted table loses no pods")

    def update_pod(self, old: PodInfo, new: PodInfo, node: str) -> None:
        raise TypeError("a shifted table takes no pods")

    def refresh(self) -> None:
        raise TypeError("a shifted table has the rows of the one beneath")

    def follow(self) -> DeltaReader:
        raise TypeError("nothing happens to a shifted table: follow the one beneath")
