"""The devices, classes and claims of the cluster as one scheduler sees them.

One object for all profiles of a scheduler (`Handle.shared`): a device that one profile has promised
to a pod is taken for the others. It follows the scheduler's watches and notes which nodes a change
concerns, so that what is known about the others stays valid.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.devices.allocated import Allocated
from kubescene.scheduler.devices.classes import DEVICE_CLASS, WatchedClasses
from kubescene.scheduler.devices.inventory import Inventory
from kubescene.scheduler.devices.named_claims import RESOURCE_CLAIM
from kubescene.scheduler.devices.slices import DeviceId, PoolId
from kubescene.scheduler.framework.interfaces import Handle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_types import Column
from kubescene.types import ReadOnlyObject

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
