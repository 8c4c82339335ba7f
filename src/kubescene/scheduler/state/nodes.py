"""Node state: one `NodeInfo` per node for those who look at one, columns for those who look at all.

`NodeTable` mirrors the numbers of its `NodeInfo` objects in NumPy int64 columns, one row per node
in *snapshot order*, and is changed in place as pods come and go, at constant cost. Each change
gives the row a new number in ``versions``, so that whoever keeps results per row knows which of
them are out of date; ``spec_versions`` tells of node objects alone, and ``detail_versions`` also of
what changes no count: the order of pods, their status. Whoever keeps counts of pods follows the
changes themselves (`follow`, see `deltas`).

Which rows exist, and in what order, changes only in `refresh`, at the start of a scheduling cycle:
the order is made anew when a node was added or removed, and only then, as kube-scheduler does
(N-4, N-5).
Rows that merely move keep their versions, and `moved_from` says where they came from. Pods that
are on a node nobody has told us about yet wait for it in a ghost `NodeInfo` without row (N-6).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubescene.api.quantity import MAX_INT64
from kubescene.api.records import Record
from kubescene.api.resource_requests import (
    PODS,
)
from kubescene.scheduler.state.claim_users import VolumeUsers, uses_claim
from kubescene.scheduler.state.deltas import POD_ADDED, DeltaKind, DeltaLog, DeltaReader
from kubescene.scheduler.state.host_ports import HostPort, PortHolders
from kubescene.scheduler.state.image_states import ImageStates
from kubescene.scheduler.state.node_columns import LabelColumn, SpecColumns
from kubescene.scheduler.state.node_info import NO_ROW, NodeInfo
from kubescene.scheduler.state.node_tree import NodeTree
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Column
from kubescene.types import ReadOnlyObject

T = TypeVar("T")

Moves: TypeAlias = NDArray[np.intp]
"""For each row, the row it had before, or `NO_ROW` if it is new."""


class _Layout(NamedTuple):
    """How the rows of one layout came from those of the one before."""

    number: int
    moves: Moves


class NodeTable:
    """All nodes. Rows are those of the last `refresh`, in snapshot order."""

    bare = False
    """Whether this shows nodes without what runs on them."""

    def __init__(self) -> None:
        self.names: Sequence[str] = ()
        self.infos: Sequence[NodeInfo] = []
        self.layout = 0
        """Grows whenever rows were added, removed or reordered."""
        self.versions: Column = _zeros(0)
        self.spec_versions: Column = _zeros(0)
        self.detail_versions: Column = _zeros(0)
        self._nonzero_cpu: Column = _zeros(0)
        self._nonzero_memory: Column = _zeros(0)
        self._tree = NodeTree()
        self._nodes: dict[str, NodeInfo] = {}
        self._removed: set[str] = set()
        self._added: set[str] = set()
        self._version = 0
        self.newest_spec = 0
        """Grows whenever one of ``spec_versions`` does, or a row moves."""
        self._touched: list[int] = []
        self._touched_from = 0
        self._allocatable: dict[str, Column] = {}
        self._requested: dict[str, Column] = {}
        self._none: Column = _zeros(0)
        self._everywhere: dict[str, bool] = {}
        self._spec = SpecColumns()
        self._ports = PortHolders()
        self.volume_users = VolumeUsers()
        """The nodes with pods that use volumes, those without a row included."""
        self.tried: dict[str, PodInfo] = {}
        """Members of a pod group that are on nodes for a trial only, by uid, see `try_pod`."""
        self.images = ImageStates()
        """The images that the nodes hold."""
        self._layouts: deque[_Layout] = deque(maxlen=POLICY.moves_kept)
        self._log = DeltaLog()
        self._shared: dict[Callable[[NodeTable], Any], Any] = {}

    def release(self) -> None:
        """Nobody asks any more: forget the nodes, and all that was counted on them."""
        self.infos = []
        self._log.forget()
        for held in (self._nodes, self._touched, self._shared, self.tried):
            held.clear()

    # -- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.infos)

    def info(self, name: str) -> NodeInfo | None:
        """The node of this name, whether or not it has a row yet."""
        found = self._nodes.get(name)
        return found if found is not None and found.exists else None

    def row_of(self, name: str) -> int | None:
        found = self._nodes.get(name)
        return None if found is None or found.row == NO_ROW else found.row

    def allocatable(self, resource: str) -> Column:
        """What each node offers; cpu in thousandths, the rest in whole units. Read-only."""
        return self._allocatable.get(resource, self._none)

    def requested(self, resource: str) -> Column:
        """What the pods of each node ask for; of ``pods``, their number. Read-only."""
        return self._requested.get(resource, self._none)

    @property
    def nonzero_cpu(self) -> Column:
        """What scoring counts as requested, in thousandths: pods that ask for nothing included."""
        return self._nonzero_cpu

    @property
    def nonzero_memory(self) -> Column:
        return self._nonzero_memory

    def is_offered_everywhere(self, resource: str) -> bool:
        """Whether every node has some of a resource, as is the rule for cpu and memory."""
        known = self._everywhere.get(resource)
        if known is None:
            known = self._everywhere[resource] = bool((self.allocatable(resource) > 0).all())
        return known

    def with_ports(self, ports: Iterable[HostPort]) -> list[NodeInfo]:
        """The nodes where one of these ports is in use, at whatever address."""
        names = dict.fromkeys(name for each in ports for name in self._ports.of(each.number))
        infos = [self._nodes[name] for name in names]
        return [info for info in infos if info.row != NO_ROW]

    def with_disks(self) -> list[NodeInfo]:
        """The nodes with pods that use disks of their own, see `VolumeUsers`."""
        infos = [self._nodes[name] for name in self.volume_users.with_disks()]
        return [info for info in infos if info.row != NO_ROW]

    def uses_claim(self, namespace: str, name: str) -> bool:
        """Whether a pod on one of the nodes uses a claim."""
        users = [self._nodes[node] for node in self.volume_users.of_claim(namespace, name)]
        if self.tried:
            users = [info for info in users if self._uses_for_good(info, namespace, name)]
        return any(info.row != NO_ROW for info in users)

    def _uses_for_good(self, info: NodeInfo, namespace: str, name: str) -> bool:
        staying = (pod for pod in info.pods if pod.uid not in self.tried)
        return any(pod.namespace == namespace and uses_claim(pod, name) for pod in staying)

    def label(self, key: str) -> LabelColumn:
        """The values of one label as numbers, see `LabelColumn`.

        Numbers mean the same as long as this returns the same object.
        """
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

    def moved_from(self, layout: int) -> Moves | None:
        """Where the rows came from since an earlier layout; None if that is too long ago."""
        if not self._layouts or layout < self._layouts[0].number - 1:
            return None
        moves: Moves | None = None
        for each in reversed(self._layouts):
            if each.number == layout:
                break
            moves = each.moves if moves is None else _composed(moves, each.moves)
        return moves

    @property
    def version(self) -> int:
        """Grows with every change of a row, except those that `layout` tells of."""
        return self._version

    @property
    def changes(self) -> int:
        """How many changes of rows there have been; see `changed_since`."""
        return self._touched_from + len(self._touched)

    def changed_since(self, changes: int) -> Sequence[int] | None:
        """The rows that changed after so many changes, some perhaps more than once.

        None if that is too long ago, or if rows were added, removed or reordered in between.
        """
        at = changes - self._touched_from
        return self._touched[at:] if at >= 0 else None

    @property
    def is_current(self) -> bool:
        """Whether no node was added or removed since the last `refresh`."""
        return not (self._added or self._removed)

    def follow(self) -> DeltaReader:
        """Read what happens to the nodes from now on; see `deltas`."""
        return DeltaReader(self._log)

    def shared(self, make: Callable[["NodeTable"], T]) -> T:
        """What plugins of all profiles keep about these nodes together; made once.

        ``make`` is a class or a plain function, and is what they find it by.
        """
        if make not in self._shared:
            self._shared[make] = make(self)
        found: T = self._shared[make]
        return found

    # -- nodes come and go -----------------------------------------------------------------

    def set_node(self, record: Record, obj: ReadOnlyObject) -> None:
        """Add a node, or take over a new version of it."""
        name = record.name
        info = self._nodes.get(name) or self._nodes.setdefault(name, NodeInfo(name))
        info.set_node(record, obj)
        self._tree.add(name, info.labels)
        self._renew(self.images.set_images(name, info.images, self.versions))
        self._removed.discard(name)
        if info.row == NO_ROW:
            self._added.add(name)
            return
        for resource in info.allocatable:
            self._ensure(resource)
        for resource, column in self._allocatable.items():
            column[info.row] = info.allocatable.get(resource, 0)
        self._everywhere.clear()
        self._spec.update(info.row, info.labels, info.taints, info.unschedulable)
        self._touch(info.row)
        self.spec_versions[info.row] = self.newest_spec = self._version
        if self._log.followed:
            self._log.add(DeltaKind.NODE_CHANGED, info)

    def remove_node(self, name: str) -> None:
        """Forget a node. It keeps its row until the next `refresh`."""
        info = self._nodes.get(name)
        if info is None or not info.exists:
            return
        self._tree.remove(name)
        self._renew(self.images.remove_node(name, self.versions))
        info.exists = False
        self._added.discard(name)
        if info.row != NO_ROW:
            self._removed.add(name)
        elif not info.pods:
            del self._nodes[name]

    def refresh(self) -> None:
        """Bring the rows up to date with the nodes that exist."""
        if self._added or self._removed:
            self._rebuild()
        if self.images.known:
            self.images.looked_at(self._version)

    # -- pods come and go ------------------------------------------------------------------

    def add_pod(self, pod: PodInfo, node: str) -> None:
        info = self._nodes.get(node)
        if info is None:
            info = self._nodes[node] = NodeInfo(node)
        info.add(pod)
        self._mirror(info, pod, POD_ADDED)

    def remove_pod(self, pod: PodInfo, node: str) -> None:
        info = self._nodes[node]
        found = info.remove(pod)
        self._mirror(info, found, DeltaKind.POD_REMOVED)
        if not info.pods and not info.exists and info.row == NO_ROW:
            del self._nodes[node]

    def try_pod(self, pod: PodInfo, node: str) -> None:
        """Put a member of a pod group on a node until `take_back`.

        As upstream, who is tried takes room, but the rest of the snapshot stays as it was taken:
        which nodes have pods with affinity, which claims are in use, how many nodes hold an image.
        """
        self.tried[pod.uid] = pod
        with self._images_kept(node):
            self.add_pod(pod, node)

    def take_back(self, pod: PodInfo, node: str) -> None:
        """Undo `try_pod`."""
        with self._images_kept(node):
            self.remove_pod(pod, node)
        del self.tried[pod.uid]

    @contextmanager
    def _images_kept(self, node: str) -> Iterator[None]:
        """What happens to the node is no reason to count its images anew."""
        row = self._nodes[node].row if node in self._nodes else NO_ROW
        before = NO_ROW if row == NO_ROW else int(self.versions[row])
        yield
        if row != NO_ROW:
            self.images.overlook(row, before, int(self.versions[row]))

    def update_pod(self, old: PodInfo, new: PodInfo, node: str) -> None:
        """Put ``new`` in the place of ``old``, at the end of the node's list."""
        same = old.requests is new.requests or old.requests == new.requests
        if old.pod_class is not new.pod_class or not same:
            self.remove_pod(old, node)
            self.add_pod(new, node)
            return
        info, ports = self._nodes[node], new.pod_class.host_ports
        info.replace(old, new)
        if ports:
            self._ports.follow(node, ports, info.ports)
        row = info.row
        if row == NO_ROW:
            return
        self._version += 1
        self.detail_versions[row] = self._version
        if not self._matters(old, new, row) and not ports:
            return
        self._touch(info.row)
        if self._log.followed:
            self._log.add(DeltaKind.POD_CHANGED, info, old, new)

    # -- inside ----------------------------------------------------------------------------

    def _matters(self, old: PodInfo, new: PodInfo, row: int) -> bool:
        """Whether anybody may see a difference between two forms of a pod without host ports."""
        if old.labels is not new.labels and old.labels != new.labels:
            return True
        if old.terminating != new.terminating:
            return True
        return bool(self.images.known) and self.images.renew(row, int(self.versions[row]))

    def _mirror(self, info: NodeInfo, pod: PodInfo, kind: DeltaKind) -> None:
        if ports := pod.pod_class.host_ports:
            self._ports.follow(info.name, ports, info.ports)
        if pod.signature.volumes:
            self.volume_users.count(info.name, pod, 1 if kind is POD_ADDED else -1)
        row = info.row
        if row == NO_ROW:
            return
        requested, columns = info.requested, self._requested
        for resource in pod.requests:
            if resource not in columns:
                self._ensure(resource)
        try:
            for resource in pod.requests:
                columns[resource][row] = requested[resource]
            self._nonzero_cpu[row] = info.nonzero_cpu
            self._nonzero_memory[row] = info.nonzero_memory
        except OverflowError:
            self._show_requested(info)
        columns[PODS][row] = requested[PODS]
        self._touch(row)
        if self._log.followed:
            self._log.add(kind, info, pod)

    def _show_requested(self, info: NodeInfo) -> None:
        row = info.row
        for resource, amount in info.requested.items():
            self._ensure(resource)
            self._requested[resource][row] = _at_most(amount)
        self._nonzero_cpu[row] = _at_most(info.nonzero_cpu)
        self._nonzero_memory[row] = _at_most(info.nonzero_memory)

    def _touch(self, row: int) -> None:
        self._version += 1
        self.versions[row] = self.detail_versions[row] = self._version
        self._touched.append(row)
        if len(self._touched) >= 2 * POLICY.changes_kept:
            del self._touched[: POLICY.changes_kept]
            self._touched_from += POLICY.changes_kept

    def _renew(self, rows: Sequence[int]) -> None:
        for row in rows:
            self._touch(row)

    def touch_all(self) -> None:
        """Let everybody judge all rows anew: something else than the nodes has changed for them."""
        self._version += 1
        self.versions[:] = self.spec_versions[:] = self.detail_versions[:] = self._version
        self.newest_spec = self._version
        self._touched_from = self.changes + 1
        self._touched.clear()

    def _ensure(self, resource: str) -> None:
        if resource not in self._requested:
            self._requested[resource] = _zeros(len(self.infos))
            self._allocatable[resource] = _zeros(len(self.infos))

    def _rebuild(self) -> None:
        self._forget_removed()
        self._added.clear()
        self.names = tuple(self._tree.order())
        self.infos = infos = [self._nodes[name] for name in self.names]
        moves = np.array([info.row for info in infos], dtype=np.intp)
        for row, info in enumerate(infos):
            info.row = row
        self.layout += 1
        self._layouts.append(_Layout(self.layout, moves))
        self._move(moves)
        for row in (moves == NO_ROW).nonzero()[0].tolist():
            self._join(infos[row])

    def _forget_removed(self) -> None:
        for name in sorted(self._removed):
            info = self._nodes[name]
            info.clear_node()
            if not info.pods:
                del self._nodes[name]
            if self._log.followed:
                self._log.add(DeltaKind.NODE_LEFT, info)
        self._removed.clear()

    def _move(self, moves: Moves) -> None:
        """Give the columns new rows; those of new nodes are zero."""
        self._version += 1
        self.newest_spec = self._version
        self._everywhere.clear()
        self._touched_from = self.changes + 1
        self._touched.clear()
        self._none = _zeros(moves.size)
        self.versions = moved(self.versions, moves)
        self.spec_versions = moved(self.spec_versions, moves)
        self.detail_versions = moved(self.detail_versions, moves)
        self._nonzero_cpu = moved(self._nonzero_cpu, moves)
        self._nonzero_memory = moved(self._nonzero_memory, moves)
        for columns in (self._allocatable, self._requested):
            for resource, column in columns.items():
                columns[resource] = moved(column, moves)
        self._spec.move(moves)
        self.images.move(moves)

    def _join(self, info: NodeInfo) -> None:
        row = info.row
        for resource in (*info.allocatable, *info.requested):
            self._ensure(resource)
        for resource, amount in info.allocatable.items():
            self._allocatable[resource][row] = amount
        self._show_requested(info)
        self._spec.update(row, info.labels, info.taints, info.unschedulable)
        self._touch(row)
        self.spec_versions[row] = self.newest_spec = self._version
        if self._log.followed:
            self._log.add(DeltaKind.NODE_JOINED, info, *info.pods)


def _at_most(amount: int) -> int:
    """Nobody sets so much aside; whoever lists it in manifests gets as much as a column holds."""
    return min(amount, MAX_INT64)


def moved(column: Column, moves: Moves, fill: int = 0) -> Column:
    """A column over other rows; those that are new hold ``fill``."""
    taken = np.full(moves.size, fill, dtype=column.dtype)
    known = (moves != NO_ROW).nonzero()[0]
    taken[known] = column.take(moves.take(known))
    return taken


def _composed(later: Moves, earlier: Moves) -> Moves:
    """Two moves in one; a row that was new in between stays new."""
    return moved(earlier, later, NO_ROW)


def _zeros(count: int) -> Column:
    return np.zeros(count, dtype=np.int64)
