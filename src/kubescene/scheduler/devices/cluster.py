"""The devices, classes and claims of the cluster as one scheduler sees them.

One object for all profiles of a scheduler (`Handle.shared`): a device that one profile has promised
to a pod is taken for the others. It follows the scheduler's watches and notes which nodes a change
concerns, so that what is known about the others stays valid.

All slices, and what each node can reach of them, are kept up to date slice by slice. Most slices
belong to one node. Those of others (devices in a network, say) and the pools that they
are in are looked at for every node. Slices with counters count as such, but the devices that use
the counters need not: of a pool whose devices are out of reach a node notices only that it is
incomplete or invalid.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.devices.allocated import Allocated
from kubescene.scheduler.devices.classes import DEVICE_CLASS, WatchedClasses
from kubescene.scheduler.devices.named_claims import RESOURCE_CLAIM
from kubescene.scheduler.devices.pools import Pool, gather_pools
from kubescene.scheduler.devices.slices import DeviceId, PoolId, Slice
from kubescene.scheduler.framework.interfaces import Handle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_types import Column
from kubescene.types import ReadOnlyObject

K = TypeVar("K")


class Inventory:
    """Slices by name, by node and by pool."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._on_node: dict[str, dict[str, Slice]] = {}
        self._elsewhere: dict[str, Slice] = {}
        self._by_pool: dict[PoolId, dict[str, Slice]] = {}
        self._troubled: dict[PoolId, Pool] = {}
        self._pools: dict[str, tuple[Pool, ...]] = {}
        self._alike: dict[tuple[str, ...], tuple[Pool, ...]] = {}

    def __len__(self) -> int:
        return len(self._slices)

    def pools(self, node: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """What a node can reach, in the order of allocation.

        Nodes that reach the same slices get the same tuple.
        """
        found = self._pools.get(node)
        if found is None:
            found = self._pools[node] = self._gathered(node, labels)
        return found

    def forget_node(self, node: str) -> None:
        """The node has changed: what it can reach has to be found out again."""
        self._pools.pop(node, None)

    def reached_from(self, pool: PoolId) -> list[str] | None:
        """The nodes that reach devices of a pool, None for all."""
        nodes = dict.fromkeys(
            each.node for each in self._by_pool.get(pool, {}).values() if not each.counter_sets
        )
        return None if "" in nodes else [*nodes]

    # -- slices come and go ----------------------------------------------------------------

    def take(self, obj: ReadOnlyObject) -> None:
        """A slice that exists already."""
        new = Slice(obj)
        self._put(new)
        self._judge(new.pool)

    def changed(self, change: Change) -> list[str] | None:
        """A slice came, changed or went. Returns the nodes concerned, None for all."""
        old = self._remove(change.record.name)
        new = None if change.type is ChangeType.DELETED else Slice(change.object)
        if new is not None:
            self._put(new)
        return self._after(old, new)

    def _after(self, old: Slice | None, new: Slice | None) -> list[str] | None:
        moved = [each for each in (old, new) if each is not None]
        troubled = [self._judge(each.pool) for each in moved]
        reached = [self.reached_from(each.pool) for each in moved]
        self._alike.clear()
        if any(troubled) or None in reached or not all(each.node for each in moved):
            self._pools.clear()
            return None
        concerned = dict.fromkeys(each.node for each in moved)
        for nodes in reached:
            concerned.update(dict.fromkeys(nodes or ()))
        for node in concerned:
            self._pools.pop(node, None)
        return [*concerned]

    def _put(self, new: Slice) -> None:
        self._slices[new.name] = new
        self._by_pool.setdefault(new.pool, {})[new.name] = new
        if new.node:
            self._on_node.setdefault(new.node, {})[new.name] = new
        else:
            self._elsewhere[new.name] = new

    def _remove(self, name: str) -> Slice | None:
        old = self._slices.pop(name, None)
        if old is None:
            return None
        _drop(self._by_pool, old.pool, name)
        if old.node:
            _drop(self._on_node, old.node, name)
        else:
            del self._elsewhere[name]
        return old

    def _judge(self, id: PoolId) -> bool:
        """See what a pool with counters looks like from afar; whether that matters or did."""
        before = self._troubled.pop(id, None)
        slices = self._by_pool.get(id, {})
        counters = [each for each in slices.values() if each.counter_sets]
        found = gather_pools(counters, self._by_pool)
        if found and not found[0].is_usable:
            self._troubled[id] = found[0]
        return before is not None or id in self._troubled

    # -- what a node reaches ---------------------------------------------------------------

    def _gathered(self, node: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        relevant = [*self._relevant(node, labels)]
        key = tuple(sorted(each.name for each in relevant))
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = self._with_troubled(gather_pools(relevant, self._by_pool))
        return found

    def _relevant(self, node: str, labels: Mapping[str, str]) -> Iterator[Slice]:
        """Slices whose devices the node reaches, and the counters of their pools."""
        pools: dict[PoolId, None] = {}
        reached = [*self._on_node.get(node, {}).values()]
        reached.extend(
            each
            for each in self._elsewhere.values()
            if not each.counter_sets and each.is_relevant(node, labels)
        )
        for each in reached:
            pools[each.pool] = None
            yield each
        for pool in pools:
            yield from (each for each in self._by_pool[pool].values() if each.counter_sets)

    def _with_troubled(self, pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
        known = {each.id for each in pools}
        more = [each for id, each in self._troubled.items() if id not in known]
        if not more:
            return pools
        plain = [each for each in pools if not each.needs_binding]
        ordered = sorted([*plain, *more], key=_id)
        return (*ordered, *(each for each in pools if each.needs_binding))


def _drop(table: dict[K, dict[str, Slice]], key: K, name: str) -> None:
    held = table[key]
    del held[name]
    if not held:
        del table[key]


def _id(pool: Pool) -> PoolId:
    return pool.id


RESOURCE_SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


class TakenDevices(Allocated):
    """What claims hold, and what is promised to claims that do not say so yet."""

    def __init__(self) -> None:
        super().__init__()
        self.promised = Allocated()

    def is_dedicated(self, id: DeviceId) -> bool:
        return super().is_dedicated(id) or self.promised.is_dedicated(id)

    def is_allocated(self, id: DeviceId) -> bool:
        return super().is_allocated(id) or self.promised.is_allocated(id)

    def capacity(self, id: DeviceId) -> Mapping[str, int] | None:
        held, promised = super().capacity(id), self.promised.capacity(id)
        if held is None or promised is None:
            return held if promised is None else promised
        names = dict.fromkeys((*held, *promised))
        return {name: held.get(name, 0) + promised.get(name, 0) for name in names}


class DeviceCluster:
    """Made once per scheduler, by ``handle.shared(DeviceCluster)``, when the first pod needs it."""

    def __init__(self, handle: Handle) -> None:
        self.classes = handle.shared(WatchedClasses)
        self.inventory = Inventory()
        self.taken = TakenDevices()
        self.claims = handle.lister(RESOURCE_CLAIM)
        self._allocations: dict[tuple[str, str], ReadOnlyObject] = {}
        self._promises: dict[str, ReadOnlyObject] = {}
        self._extended: dict[str, tuple[str, str]] = {}
        self._stamps = RowStamps()
        slices = handle.lister(RESOURCE_SLICE)
        for each in slices.list():
            self.inventory.take(each)
        for each in self.claims.list():
            self._take(each)
        handle.lister(DEVICE_CLASS).tell(self._class_changed)
        slices.tell(self._slice_changed)
        self.claims.tell(self._claim_changed)

    def stamps(self, nodes: NodeTable) -> Column:
        """A number per row that changes when what can be allocated there may have changed."""
        self._stamps.update(nodes, self.inventory)
        return self._stamps.column

    def extended_claim_of(self, pod_uid: str, pod_name: str) -> ReadOnlyObject | None:
        """The claim that an earlier attempt made for the extended resources of a pod."""
        key = self._extended.get(pod_uid)
        claim = None if key is None else self.claims.get(key[1], key[0])
        return claim if claim is not None and _owner(claim) == (pod_uid, pod_name) else None

    # -- promises: allocations that are not written yet ------------------------------------

    def promise(self, claim_uid: str, allocation: ReadOnlyObject) -> None:
        self._promises[claim_uid] = allocation
        self._touch_pools(self.taken.promised.add(allocation))

    def end_promise(self, claim_uid: str) -> bool:
        """The allocation is written, or will not be; False if it was not promised."""
        allocation = self._promises.pop(claim_uid, None)
        if allocation is None:
            return False
        self._touch_pools(self.taken.promised.remove(allocation))
        return True

    def is_promised(self, claim_uid: str) -> bool:
        return claim_uid in self._promises

    # -- following the watches -------------------------------------------------------------

    def _class_changed(self, change: Change) -> None:
        del change
        self._stamps.touch(None)

    def _slice_changed(self, change: Change) -> None:
        self._stamps.touch(self.inventory.changed(change))

    def _claim_changed(self, change: Change) -> None:
        key = change.record.key
        if change.type is not ChangeType.DELETED:
            self._take(change.object)
            return
        self._touch_pools(self.taken.remove(self._allocations.pop(key, None)))
        owner = _owner(change.object)
        if owner is not None and self._extended.get(owner[0]) == key:
            del self._extended[owner[0]]

    def _take(self, claim: ReadOnlyObject) -> None:
        metadata = claim["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        before = self._allocations.get(key)
        after = (claim.get("status") or {}).get("allocation")
        if after is not None and before is None:
            self._allocations[key] = after
            self._touch_pools(self.taken.add(after))
        elif after is None and before is not None:
            del self._allocations[key]
            self._touch_pools(self.taken.remove(before))
        if (owner := _owner(claim)) is not None:
            self._extended[owner[0]] = key

    def _touch_pools(self, pools: Iterable[PoolId]) -> None:
        for pool in pools:
            self._stamps.touch(self.inventory.reached_from(pool))


class RowStamps:
    """Numbers per row of the node table. Nodes are touched by name and find their rows later."""

    def __init__(self) -> None:
        self.column: Column = np.zeros(0, dtype=np.int64)
        self._spec_versions: Column = np.zeros(0, dtype=np.int64)
        self._layout = -1
        self._stamp = 0
        self._touched: dict[str, None] = {}
        self._all = True

    def touch(self, nodes: Iterable[str] | None) -> None:
        """Something changed for these nodes, or for all."""
        if nodes is None:
            self._all = True
        else:
            self._touched.update(dict.fromkeys(nodes))

    def update(self, nodes: NodeTable, inventory: Inventory) -> None:
        self._stamp += 1
        if self._layout != nodes.layout:
            self._begin_anew(nodes)
        changed = (self._spec_versions != nodes.spec_versions).nonzero()[0]
        if changed.size:
            self._forget(nodes, changed.tolist(), inventory)
        if self._all:
            self.column[:] = self._stamp
        for name in self._touched:
            row = nodes.row_of(name)
            if row is not None:
                self.column[row] = self._stamp
        self._all = False
        self._touched.clear()

    def _begin_anew(self, nodes: NodeTable) -> None:
        """Rows have moved."""
        self._layout = nodes.layout
        self.column = np.zeros(len(nodes), dtype=np.int64)
        self._spec_versions = np.full(len(nodes), -1, dtype=np.int64)
        self._all = True

    def _forget(self, nodes: NodeTable, rows: list[int], inventory: Inventory) -> None:
        for row in rows:
            inventory.forget_node(nodes.names[row])
        self._spec_versions = nodes.spec_versions.copy()
        self.column[rows] = self._stamp


def _owner(claim: ReadOnlyObject) -> tuple[str, str] | None:
    """Uid and name of the pod that a claim for extended resources belongs to."""
    metadata = claim["metadata"]
    if (metadata.get("annotations") or {}).get(EXTENDED_RESOURCE_CLAIM) != "true":
        return None
    owners = (each for each in metadata.get("ownerReferences") or () if each.get("controller"))
    return next(((each["uid"], each["name"]) for each in owners), None)
