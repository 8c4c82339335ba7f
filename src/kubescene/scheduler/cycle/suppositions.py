"""What if: Filter as if pods came to or left some nodes. Nothing that is shared is touched.

`SupposedNodes` is a `NodeTable` that shows another one with some rows changed. It copies the
`NodeInfo` of a node when a pod is first added to or removed from it, and a column when somebody
asks for it afterwards; row numbers, label numbers and everything else are those of the table
beneath. No version is bumped, so nobody's kept verdicts grow stale.

`Supposition` belongs to one pod that looks for a node. It tells the PreFilter plugins of each
supposed change (`add_pod`, `remove_pod`), on a clone of the cycle's state, and asks their
Filters::

    supposition = handle.suppose(state, pod)
    for victim in victims:
        supposition.remove(victim, node)
    if supposition.filter(node).ok: ...

`BareNodes` shows a table as if nothing ran anywhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from kubescene.api.records import Record
from kubescene.api.resource_requests import PODS
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.deltas import DeltaReader
from kubescene.scheduler.state.host_ports import HostPort
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Column
from kubescene.types import ReadOnlyObject


class SupposedNodes(NodeTable):
    """A table with some rows changed. Only `add_pod` and `remove_pod` may be called."""

    def __init__(self, table: NodeTable) -> None:
        vars(self).update(vars(table))
        self._table = table
        self._changed: dict[int, NodeInfo] = {}
        self._columns: dict[str, Column] = {}
        self._nonzero: dict[str, Column] = {}
        self.infos = _Infos(table.infos, self._changed)

    def copied(self) -> "SupposedNodes":
        """The same changes, to be taken further in another way."""
        copy = SupposedNodes(self._table)
        copy._changed.update((row, info.copy()) for row, info in self._changed.items())
        return copy

    def info(self, name: str) -> NodeInfo | None:
        found = self._table.info(name)
        return None if found is None else self._changed.get(found.row, found)

    def add_pod(self, pod: PodInfo, node: str) -> None:
        info = self._own(node)
        info.add(pod)
        self._show(info, pod)

    def remove_pod(self, pod: PodInfo, node: str) -> None:
        info = self._own(node)
        self._show(info, info.remove(pod))

    def requested(self, resource: str) -> Column:
        found = self._columns.get(resource)
        if found is None:
            found = self._columns[resource] = self._table.requested(resource).copy()
            for row, info in self._changed.items():
                found[row] = info.requested.get(resource, 0)
        return found

    @property
    def nonzero_cpu(self) -> Column:
        return self._scored("nonzero_cpu")

    @property
    def nonzero_memory(self) -> Column:
        return self._scored("nonzero_memory")

    def with_ports(self, ports: Iterable[HostPort]) -> list[NodeInfo]:
        infos = {info.row: info for info in self._table.with_ports(ports)}
        return [*(infos | self._changed).values()]

    def with_disks(self) -> list[NodeInfo]:
        infos = {info.row: info for info in self._table.with_disks()}
        return [*(infos | self._changed).values()]

    def set_node(self, record: Record, obj: ReadOnlyObject) -> None:
        raise TypeError("a supposed table takes no nodes")

    def remove_node(self, name: str) -> None:
        raise TypeError("a supposed table loses no nodes")

    def update_pod(self, old: PodInfo, new: PodInfo, node: str) -> None:
        raise TypeError("suppose the removal of one pod and the arrival of another")

    def refresh(self) -> None:
        raise TypeError("a supposed table has the rows of the one beneath")

    def follow(self) -> DeltaReader:
        raise TypeError("nothing happens to a supposed table: follow the one beneath")

    def _own(self, node: str) -> NodeInfo:
        row = self._table.row_of(node)
        if row is None:
            raise KeyError(f"node {node!r} has no row")
        found = self._changed.get(row)
        if found is None:
            found = self._changed[row] = self._table.infos[row].copy()
        return found

    def _show(self, info: NodeInfo, pod: PodInfo) -> None:
        """Bring the columns that somebody has seen up to date."""
        for resource in (*pod.requests, PODS):
            if resource in self._columns:
                self._columns[resource][info.row] = info.requested[resource]
        for field, column in self._nonzero.items():
            column[info.row] = getattr(info, field)

    def _scored(self, field: str) -> Column:
        found = self._nonzero.get(field)
        if found is None:
            beneath: Column = getattr(self._table, field)
            found = self._nonzero[field] = beneath.copy()
            for row, info in self._changed.items():
                found[row] = getattr(info, field)
        return found


class _Infos(Sequence[NodeInfo]):
    """The nodes of a table, some of them replaced."""

    __slots__ = ("_beneath", "_changed")

    def __init__(self, beneath: Sequence[NodeInfo], changed: dict[int, NodeInfo]) -> None:
        self._beneath = beneath
        self._changed = changed

    def __len__(self) -> int:
        return len(self._beneath)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        beneath = self._beneath[index]
        return self._changed.get(beneath.row, beneath)

    def __iter__(self) -> Iterator[NodeInfo]:
        return (self._changed.get(info.row, info) for info in self._beneath)


class Supposition:
    """Filter for one pod, as if other pods were here or not here."""

    __slots__ = ("_failed", "_filtering", "_nodes", "_nominations", "_pod")

    def __init__(
        self, filtering: Filtering, nodes: NodeTable, nominations: Nominations, pod: PodInfo
    ) -> None:
        self._nodes = SupposedNodes(nodes)
        self._filtering = filtering.supposing(self._nodes)
        self._nominations = nominations
        self._pod = pod
        self._failed = SUCCESS

    @property
    def state(self) -> CycleState:
        """The clone that `add` and `remove` work on."""
        return self._filtering.state

    def node(self, name: str) -> NodeInfo:
        """The node as it would be; raises KeyError if there is none with a row."""
        row = self._nodes.row_of(name)
        if row is None:
            raise KeyError(f"node {name!r} has no row")
        return self._nodes.infos[row]

    def add(self, pod: PodInfo, node: str) -> None:
        """Suppose that a pod ran on a node."""
        self._nodes.add_pod(pod, node)
        self._tell(self._filtering.pod_added(pod, self.node(node)))

    def remove(self, pod: PodInfo, node: str) -> None:
        """Suppose that a pod did not run on its node; raises StopIteration if it does not."""
        self._nodes.remove_pod(pod, node)
        self._tell(self._filtering.pod_removed(pod, self.node(node)))

    def clone(self) -> "Supposition":
        """The same supposition, to be taken further in another way."""
        copy: Supposition = object.__new__(Supposition)
        copy._nodes = self._nodes.copied()
        copy._filtering = self._filtering.supposing(copy._nodes)
        copy._nominations = self._nominations
        copy._pod = self._pod
        copy._failed = self._failed
        return copy

    def filter(self, node: str, *, nominated: bool = True) -> Status:
        """What Filter says: success, or the answer of the first plugin that refuses.

        As in the cycle itself, the pod must pass both with and without the pods of at least its
        priority that are nominated to the node, unless ``nominated`` is false. A plugin that
        could not follow a supposed change makes this an error.
        """
        if not self._failed.ok:
            return self._failed
        if nominated and (rivals := self._nominations.rivals_on(node, self._pod)):
            crowded = self.clone()
            for rival in rivals:
                crowded.add(rival, node)
            status = crowded.filter(node, nominated=False)
            if not status.ok:
                return status
        return self._filtering.describe(self.judge(self.node(node).row))

    def judge(self, row: int) -> int:
        """The verdict on one row, without regard to nominated pods."""
        return self._filtering.judge_anew(row)

    @property
    def failed(self) -> Status:
        """Success, or the error of a plugin that could not follow a supposed change."""
        return self._failed

    def _tell(self, status: Status) -> None:
        if self._failed.ok and not status.ok:
            self._failed = status


class BareNodes(NodeTable):
    """A table with the rows of another one, but no pods and no images. Only for reading.

    So Score plugins see nodes that an extender sent back (X-5).
    """

    bare = True

    def __init__(self, table: NodeTable) -> None:
        vars(self).update(vars(table))
        self._nothing: Column = np.zeros(len(table), dtype=np.int64)
        self.infos = _BareInfos(table.infos)

    def requested(self, resource: str) -> Column:
        del resource
        return self._nothing

    @property
    def nonzero_cpu(self) -> Column:
        return self._nothing

    @property
    def nonzero_memory(self) -> Column:
        return self._nothing

    def info(self, name: str) -> NodeInfo | None:
        found = super().info(name)
        return None if found is None else found.without_pods()


class _BareInfos(Sequence[NodeInfo]):
    """The nodes of a table without their pods, made when somebody looks."""

    __slots__ = ("_beneath",)

    def __init__(self, beneath: Sequence[NodeInfo]) -> None:
        self._beneath = beneath

    def __len__(self) -> int:
        return len(self._beneath)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [info.without_pods() for info in self._beneath[index]]
        return self._beneath[index].without_pods()

    def __iter__(self) -> Iterator[NodeInfo]:
        return (info.without_pods() for info in self._beneath)
