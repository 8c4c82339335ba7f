"""VolumeRestrictions: disks that a node attaches once, and claims that only one pod may use."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    ClusterFilterPlugin,
    Codes,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Hint,
    Plugin,
    PreFilterExtensions,
    Rows,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.claim_users import DISKS
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.volumes.claims import claim_not_found, mounted, refers_to
from kubescene.types import ReadOnlyObject

_DISK = 1
_CLAIM = 2


@dataclass(slots=True)
class ExclusiveClaims:
    """The pod's claims that only one pod may use, and how many uses stand in the way."""

    names: frozenset[str]
    uses: int

    def clone(self) -> "ExclusiveClaims":
        return replace(self)

    def count(self, pod: PodInfo, change: int) -> None:
        """As upstream, whoever uses a claim of the same name counts, in whatever namespace."""
        used = sum(name in self.names for name in pod.signature.compiled(mounted))
        self.uses += change * used


class VolumeRestrictions(PreFilterExtensions, FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "VolumeRestrictions"
    concerns_by_kind = True
    DISK_IN_USE = Status.unschedulable("node(s) had no available disk")
    CLAIM_IN_USE = Status.unschedulable(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME_CLAIM])

    def concerns(self, signature: PodSignature) -> bool:
        return bool(signature.compiled(mounted) or signature.compiled(disks))

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        exclusive: dict[str, None] = {}
        for name in pod.signature.compiled(mounted):
            claim = self._claims.get(name, pod.namespace)
            if claim is None:  # F-14
                return Status.unresolvable(claim_not_found(name)), None
            if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
                exclusive[name] = None
        # A claim counts once however many use it, see `remove_pod`.
        uses = sum(nodes.uses_claim(pod.namespace, name) for name in exclusive)
        if not uses and not pod.signature.compiled(disks):
            return SKIP, None
        state.write(self.name, ExclusiveClaims(frozenset(exclusive), uses))
        return SUCCESS, None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        state.read(self.name, ExclusiveClaims).count(added, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status:
        state.read(self.name, ExclusiveClaims).count(removed, -1)
        return SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:  # F-15
        if in_conflict(pod.signature.compiled(disks), node.pods):
            return self.DISK_IN_USE
        prepared: ExclusiveClaims | None = state.find(self.name)
        if prepared is None:
            return Status.error(_UNPREPARED)
        return self.CLAIM_IN_USE if prepared.uses > 0 else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        prepared: ExclusiveClaims | None = state.find(self.name)
        wanted = pod.signature.compiled(disks)
        state.filter_errors |= prepared is None
        in_use = prepared is None or prepared.uses > 0
        codes = np.full(len(nodes), _CLAIM if in_use else 0, dtype=np.int64)
        if wanted:
            for node in nodes.with_disks():
                if in_conflict(wanted, node.pods):
                    codes[node.row] = _DISK
        return codes.take(rows)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        if code == _DISK:
            return self.DISK_IN_USE
        prepared = state.find(self.name)
        return Status.error(_UNPREPARED) if prepared is None else self.CLAIM_IN_USE

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.volumes(signature)

    def events_to_register(self) -> Sequence[EventRegistration]:
        deleted = ClusterEvent(EventResource.POD, Action.DELETE)
        node = ClusterEvent(EventResource.NODE, Action.ADD)
        claim = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
        return [
            EventRegistration(deleted, _after_pod_deletion, by_signature=True),
            EventRegistration(node),
            EventRegistration(claim, _after_claim_added, by_signature=True),
        ]


_UNPREPARED = 'cannot read "PreFilterVolumeRestrictions" from cycleState'


def disks(signature: PodSignature) -> tuple[ReadOnlyObject, ...]:
    """The volumes of a pod that are disks of their own."""
    return tuple(each for each in signature.volumes if any(kind in each for kind in DISKS))


def in_conflict(wanted: Sequence[ReadOnlyObject], pods: Iterable[PodInfo]) -> bool:
    """Whether a pod there holds one of the disks in a way that allows no other."""
    return bool(wanted) and any(
        conflict(volume, held)
        for pod in pods
        for held in pod.signature.compiled(disks)
        for volume in wanted
    )


def conflict(volume: ReadOnlyObject, held: ReadOnlyObject) -> bool:
    """Whether two volumes are the same disk, and at least one of them is written to."""
    for kind, same in _SAME_DISK.items():
        one, other = volume.get(kind), held.get(kind)
        if one is not None and other is not None and same(one, other):
            shared = one.get("readOnly") and other.get("readOnly")
            if kind == "awsElasticBlockStore" or not shared:
                return True
    return False


def _same_name(one: ReadOnlyObject, other: ReadOnlyObject) -> bool:
    return bool(one.get("pdName") == other.get("pdName"))


def _same_id(one: ReadOnlyObject, other: ReadOnlyObject) -> bool:
    return bool(one.get("volumeID") == other.get("volumeID"))


def _same_target(one: ReadOnlyObject, other: ReadOnlyObject) -> bool:
    return bool(one.get("iqn") == other.get("iqn"))


def _same_image(one: ReadOnlyObject, other: ReadOnlyObject) -> bool:
    monitors = set(one.get("monitors") or ()) & set(other.get("monitors") or ())
    same = (one.get("pool"), one.get("image")) == (other.get("pool"), other.get("image"))
    return bool(monitors) and same


_SAME_DISK = {
    "gcePersistentDisk": _same_name,
    "awsElasticBlockStore": _same_id,
    "iscsi": _same_target,
    "rbd": _same_image,
}


def _after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """A pod of the same namespace gave up a disk or a claim that this one wants."""
    gone = change.previous_object or change.object
    if change.record.namespace != pod.namespace:
        return Hint.SKIP
    freed = gone["spec"].get("volumes") or ()
    if any(conflict(one, held) for one in pod.signature.compiled(disks) for held in freed):
        return Hint.QUEUE
    claims = {(each.get("persistentVolumeClaim") or {}).get("claimName") for each in freed}
    shared = any(name in claims for name in pod.signature.compiled(mounted))
    return Hint.QUEUE if shared else Hint.SKIP


def _after_claim_added(pod: PodInfo, change: Change) -> Hint:
    own = refers_to(pod, change.object, ephemeral=False)
    return Hint.QUEUE if own else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments
    return VolumeRestrictions(handle)
