"""Node state: one `NodeInfo` per node for those who look at one, columns for those who look at all.

A `NodeInfo` holds the exact numbers as Python integers and the pods in the order of
kube-scheduler's cache (append on arrival, on removal the last pod fills the hole). `NodeTable`
mirrors the numbers in NumPy int64 columns, one row per node in *snapshot order*, and is changed
in place as pods come and go, at constant cost. Each change gives the row a new number in
``versions``, so that whoever keeps results per row knows which of them are out of date.

Which rows exist, and in what order, changes only in `refresh`, at the start of a scheduling cycle:
the order is made anew when a node was added or removed, and only then, as kube-scheduler does.
Pods that are on a node nobody has told us about yet wait for it in a ghost `NodeInfo` without row.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubescene.api.records import Record
from kubescene.api.resource_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Amounts,
    node_allocatable,
)
from kubescene.scheduler.node_columns import LabelColumn, SpecColumns
from kubescene.scheduler.node_tree import NodeTree
from kubescene.scheduler.pods import PodInfo
from kubescene.types import ReadOnlyObject

Column: TypeAlias = NDArray[np.int64]

_NO_ROW = -1
_NOTHING: Mapping[str, Any] = {}


class NodeInfo:
    """One node and what runs on it."""

    __slots__ = (
        "allocatable",
        "annotations",
        "exists",
        "images",
        "labels",
        "name",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "record",
        "requested",
        "row",
        "taints",
        "unschedulable",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = _NO_ROW
        self.exists = False
        self.record: Record | None = None
        self.labels: Mapping[str, str] = _NOTHING
        self.annotations: Mapping[str, str] = _NOTHING
        self.taints: tuple[ReadOnlyObject, ...] = ()
        self.unschedulable = False
        self.images: Sequence[ReadOnlyObject] = ()
        self.allocatable: Amounts = {PODS: 0}
        self.requested: Amounts = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0}
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.pods: list[PodInfo] = []

    @property
    def object(self) -> ReadOnlyObject:
        """The decoded node, made anew at each call."""
        return _NOTHING if self.record is None else self.record.decode()

    def free(self, resource: str) -> int:
        """What is left of a resource; negative if the node is overcommitted."""
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)

    def set_node(self, record: Record, obj: ReadOnlyObject) -> None:
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        self.exists = True
        self.record = record
        self.labels = record.labels
        self.annotations = metadata.get("annotations") or _NOTHING
        self.taints = tuple(spec.get("taints") or ())
        self.unschedulable = bool(spec.get("unschedulable"))
        self.images = (obj.get("status") or {}).get("images") or ()
        self.allocatable = node_allocatable(obj)

    def clear_node(self) -> None:
        """The node is gone; its pods may still be here."""
        self.exists = False
        self.row = _NO_ROW

    def add(self, pod: PodInfo) -> None:
        self.pods.append(pod)
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> PodInfo:
        """Take out the pod of this uid; the last one fills its place."""
        pods, uid = self.pods, pod.uid
        position = next(index for index, each in enumerate(pods) if each.uid == uid)
        found, last = pods[position], pods.pop()
        if last is not found:
            pods[position] = last
        self._count(found, -1)
        return found

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """Take out ``old`` and append ``new``, which asks for the same."""
        pods = self.pods
        if pods[-1] is not old:
            pods[pods.index(old)] = pods[-1]
        pods[-1] = new

    def _count(self, pod: PodInfo, sign: int) -> None:
        requested = self.requested
        for resource, amount in pod.requests.items():
            requested[resource] = requested.get(resource, 0) + sign * amount
        requested[PODS] += sign
        self.nonzero_cpu += sign * pod.nonzero_cpu
        self.nonzero_memory += sign * pod.nonzero_memory

    def __repr__(self) -> str:
        return f"<NodeInfo {self.name} row {self.row}, {len(self.pods)} pods>"


class NodeTable:
    """All nodes. Rows are those of the last `refresh`, in snapshot order."""

    def __init__(self) -> None:
        self.names: Sequence[str] = ()
        self.infos: list[NodeInfo] = []
        self.layout = 0
        """Grows whenever rows were added, removed or reordered."""
        self.versions: Column = _zeros(0)
        self.nonzero_cpu: Column = _zeros(0)
        self.nonzero_memory: Column = _zeros(0)
        self._tree = NodeTree()
        self._nodes: dict[str, NodeInfo] = {}
        self._removed: set[str] = set()
        self._added = False
        self._version = 0
        self._allocatable: dict[str, Column] = {}
        self._requested: dict[str, Column] = {}
        self._none: Column = _zeros(0)
        self._everywhere: dict[str, bool] = {}
        self._spec = SpecColumns()

    # -- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.infos)

    def info(self, name: str) -> NodeInfo | None:
        """The node of this name, whether or not it has a row yet."""
        found = self._nodes.get(name)
        return found if found is not None and found.exists else None

    def row_of(self, name: str) -> int | None:
        found = self._nodes.get(name)
        return None if found is None or found.row == _NO_ROW else found.row

    def allocatable(self, resource: str) -> Column:
        """What each node offers; cpu in thousandths, the rest in whole units. Read-only."""
        return self._allocatable.get(resource, self._none)

    def requested(self, resource: str) -> Column:
        """What the pods of each node ask for; of ``pods``, their number. Read-only."""
        return self._requested.get(resource, self._none)

    def is_offered_everywhere(self, resource: str) -> bool:
        """Whether every node has some of a resource, as is the rule for cpu and memory."""
        known = self._everywhere.get(resource)
        if known is None:
            known = self._everywhere[resource] = bool((self.allocatable(resource) > 0).all())
        return known

    def label(self, key: str) -> LabelColumn:
        """The values of one label as numbers, see `LabelColumn`."""
        return self._spec.label(key)

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        """Which nodes are cordoned."""
        return self._spec.unschedulable

    @property
    def taint_sets(self) -> Sequence[tuple[ReadOnlyObject, ...]]:
        """The different lists of taints that nodes have; see `taint_ids`."""
        return self._spec.taint_sets

    @property
    def taint_ids(self) -> NDArray[np.intp]:
        """For each node, the position of its taints in `taint_sets`."""
        return self._spec.taint_ids

    # -- nodes come and go -----------------------------------------------------------------

    def set_node(self, record: Record, obj: ReadOnlyObject) -> None:
        """Add a node, or take over a new version of it."""
        name = record.name
        info = self._nodes.get(name) or self._nodes.setdefault(name, NodeInfo(name))
        info.set_node(record, obj)
        self._tree.add(name, info.labels)
        self._removed.discard(name)
        if info.row == _NO_ROW:
            self._added = True
            return
        for resource in info.allocatable:
            self._ensure(resource)
        for resource, column in self._allocatable.items():
            column[info.row] = info.allocatable.get(resource, 0)
        self._everywhere.clear()
        self._spec.update(info.row, info.labels, info.taints, info.unschedulable)
        self._touch(info.row)

    def remove_node(self, name: str) -> None:
        """Forget a node. It keeps its row until the next `refresh`."""
        info = self._nodes.get(name)
        if info is None or not info.exists:
            return
        self._tree.remove(name)
        info.exists = False
        if info.row != _NO_ROW:
            self._removed.add(name)
        elif not info.pods:
            del self._nodes[name]

    def refresh(self) -> None:
        """Bring the rows up to date with the nodes that exist."""
        if self._added or self._removed:
            self._rebuild()

    # -- pods come and go ------------------------------------------------------------------

    def add_pod(self, pod: PodInfo, node: str) -> None:
        info = self._nodes.get(node)
        if info is None:
            info = self._nodes[node] = NodeInfo(node)
        info.add(pod)
        self._mirror(info, pod)

    def remove_pod(self, pod: PodInfo, node: str) -> None:
        info = self._nodes[node]
        found = info.remove(pod)
        self._mirror(info, found)
        if not info.pods and not info.exists and info.row == _NO_ROW:
            del self._nodes[node]

    def update_pod(self, old: PodInfo, new: PodInfo, node: str) -> None:
        """Put ``new`` in the place of ``old``, at the end of the node's list."""
        if old.pod_class is not new.pod_class or old.requests != new.requests:
            self.remove_pod(old, node)
            self.add_pod(new, node)
            return
        info = self._nodes[node]
        info.replace(old, new)
        if old.labels != new.labels and info.row != _NO_ROW:
            self._touch(info.row)

    def confirm_pod(self, assumed: PodInfo, record: Record) -> None:
        """An assumed pod is now bound; binding may have copied labels of the node onto it."""
        relabelled = assumed.labels != record.labels
        assumed.confirm(record)
        info = self._nodes[assumed.node]
        info.replace(assumed, assumed)
        if relabelled and info.row != _NO_ROW:
            self._touch(info.row)

    # -- inside ----------------------------------------------------------------------------

    def _mirror(self, info: NodeInfo, pod: PodInfo) -> None:
        row = info.row
        if row == _NO_ROW:
            return
        requested, columns = info.requested, self._requested
        for resource in pod.requests:
            if resource not in columns:
                self._ensure(resource)
            columns[resource][row] = requested[resource]
        columns[PODS][row] = requested[PODS]
        self.nonzero_cpu[row] = info.nonzero_cpu
        self.nonzero_memory[row] = info.nonzero_memory
        self._touch(row)

    def _touch(self, row: int) -> None:
        self._version += 1
        self.versions[row] = self._version

    def _ensure(self, resource: str) -> None:
        if resource not in self._requested:
            self._requested[resource] = _zeros(len(self.infos))
            self._allocatable[resource] = _zeros(len(self.infos))

    def _rebuild(self) -> None:
        for name in sorted(self._removed):
            info = self._nodes[name]
            info.clear_node()
            if not info.pods:
                del self._nodes[name]
        self._removed.clear()
        self._added = False
        self.names = tuple(self._tree.order())
        self.infos = [self._nodes[name] for name in self.names]
        for row, info in enumerate(self.infos):
            info.row = row
        self.layout += 1
        self._fill()

    def _fill(self) -> None:
        infos = self.infos
        self._version += 1
        self.versions = np.full(len(infos), self._version, dtype=np.int64)
        self._none = _zeros(len(infos))
        self._everywhere.clear()
        self.nonzero_cpu = _column([info.nonzero_cpu for info in infos])
        self.nonzero_memory = _column([info.nonzero_memory for info in infos])
        resources = dict.fromkeys((CPU, MEMORY, EPHEMERAL_STORAGE, PODS))
        for info in infos:
            resources.update(dict.fromkeys(info.allocatable))
            resources.update(dict.fromkeys(info.requested))
        self._allocatable = {
            name: _column([info.allocatable.get(name, 0) for info in infos]) for name in resources
        }
        self._requested = {
            name: _column([info.requested.get(name, 0) for info in infos]) for name in resources
        }
        self._spec.fill([(info.labels, info.taints, info.unschedulable) for info in infos])


def _zeros(count: int) -> Column:
    return np.zeros(count, dtype=np.int64)


def _column(values: list[int]) -> Column:
    return np.array(values, dtype=np.int64)
