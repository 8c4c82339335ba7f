"""VolumeZone: a volume with zone or region labels goes to nodes with the same ones."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.api.volumes.claims import WAIT_FOR_FIRST_CONSUMER, class_of, volume_of
from kubescene.api.volumes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
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
    PreFilterPlugin,
    Rows,
    SeesPods,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.node_columns import ABSENT
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.node_selectors import Mask
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.volumes.claims import claim_not_found, mounted, refers_to
from kubescene.types import ReadOnlyObject

LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_SEPARATOR = "__"


class Topology(NamedTuple):
    """A label of a volume, and the values that it allows."""

    key: str
    values: frozenset[str]


class VolumeZone(PreFilterPlugin, FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "VolumeZone"
    concerns_by_kind = True
    sees_pods = SeesPods.NOTHING
    REASON = "node(s) had no available volume zone"
    REFUSED = Status.unresolvable(REASON)

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME_CLAIM])
        self._volumes = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME])
        self._classes = handle.lister(KINDS[EventResource.STORAGE_CLASS])

    def concerns(self, signature: PodSignature) -> bool:
        return bool(signature.compiled(mounted))

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        found: list[Topology] = []
        for name in pod.signature.compiled(mounted):
            fault = self._collect(name, pod.namespace, found)
            if fault:
                return Status.unresolvable(fault), None
        if not found:
            return SKIP, None
        state.write(self.name, tuple(found))
        return SUCCESS, None

    def _collect(self, name: str, namespace: str, found: list[Topology]) -> str:
        """Add the labels of a claim's volume; returns what is wrong with the claim (F-22)."""
        if not name:
            return "PersistentVolumeClaim had no name"
        claim = self._claims.get(name, namespace)
        if claim is None:
            return claim_not_found(name)
        if not volume_of(claim):
            return self._without_volume(class_of(claim))
        volume = self._volumes.get(volume_of(claim))
        if volume is None:
            return f'persistentvolume "{volume_of(claim)}" not found'
        found.extend(topologies(volume))
        return ""

    def _without_volume(self, class_name: str) -> str:
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self._classes.get(class_name)
        if storage_class is None:
            return f'storageclass.storage.k8s.io "{class_name}" not found'
        mode = storage_class.get("volumeBindingMode")
        if mode is None:
            return f'VolumeBindingMode not set for StorageClass "{class_name}"'
        return "" if mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"

    def _topologies(self, state: CycleState, pod: PodInfo) -> tuple[Sequence[Topology], str]:
        """Those of PreFilter; where it did not run, they are looked up now."""
        prepared: Sequence[Topology] | None = state.find(self.name)
        if prepared is not None:
            return prepared, ""
        found: list[Topology] = []
        for name in pod.signature.compiled(mounted):
            if fault := self._collect(name, pod.namespace, found):
                return (), fault
        return found, ""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:  # F-23
        wanted, fault = self._topologies(state, pod)
        if fault:
            return Status.unresolvable(fault)
        labels = node.labels
        if not any(key in labels for key in LABELS):
            return SUCCESS
        for key, values in wanted:
            held = labels.get(key, labels.get(_NEWER.get(key, key)))
            if held not in values:
                return self.REFUSED
        return SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        wanted, fault = self._topologies(state, pod)
        if fault:
            return np.full(rows.size, 2, dtype=np.int64)
        codes = np.zeros(rows.size, dtype=np.int64)
        for topology in wanted:
            codes[~_holds(topology, nodes, rows)] = 1
        if codes.any():
            codes[_unlabelled(nodes, rows)] = 0
        return codes

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        if code == 1:
            return self.REFUSED
        return Status.unresolvable(self._topologies(state, pod)[1])

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.volumes(signature)

    def events_to_register(self) -> Sequence[EventRegistration]:
        change, node = Action.ADD | Action.UPDATE, Action.ADD | Action.UPDATE_NODE_LABEL
        hints = [
            (EventResource.STORAGE_CLASS, Action.ADD, _after_class_added),
            (EventResource.NODE, node, None),
            (EventResource.PERSISTENT_VOLUME_CLAIM, change, _after_claim_change),
            (EventResource.PERSISTENT_VOLUME, change, _after_volume_change),
        ]
        return [
            EventRegistration(ClusterEvent(resource, action), hint, by_signature=True)
            for resource, action, hint in hints
        ]


def topologies(volume: ReadOnlyObject) -> list[Topology]:
    """The zone and region labels of a volume; one with an empty part is passed over."""
    labels = volume["metadata"].get("labels") or {}
    found = []
    for key in LABELS:
        if key in labels:
            values = [part.strip() for part in labels[key].split(_SEPARATOR)]
            if all(values):
                found.append(Topology(key, frozenset(values)))
    return found


def _holds(topology: Topology, nodes: NodeTable, rows: Rows) -> Mask:
    mask = _has_value(topology.key, topology.values, nodes, rows)
    newer = _NEWER.get(topology.key)
    if newer is not None:
        lacking = nodes.label(topology.key).ids.take(rows) == ABSENT
        mask |= lacking & _has_value(newer, topology.values, nodes, rows)
    return mask


def _has_value(key: str, values: frozenset[str], nodes: NodeTable, rows: Rows) -> Mask:
    column = nodes.label(key)
    numbers = [column.numbers[value] for value in values if value in column.numbers]
    ids = column.ids.take(rows)
    return np.isin(ids, numbers) if len(numbers) != 1 else ids == numbers[0]


def _unlabelled(nodes: NodeTable, rows: Rows) -> Mask:
    mask = np.ones(rows.size, dtype=np.bool_)
    for key in LABELS:
        mask &= nodes.label(key).ids.take(rows) == ABSENT
    return mask


def _after_class_added(pod: PodInfo, change: Change) -> Hint:
    waits = change.object.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
    return Hint.QUEUE if waits else Hint.SKIP


def _after_claim_change(pod: PodInfo, change: Change) -> Hint:
    own = refers_to(pod, change.object, ephemeral=False)
    return Hint.QUEUE if own else Hint.SKIP


def _after_volume_change(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    same = before is not None and topologies(before) == topologies(change.object)
    return Hint.SKIP if same else Hint.QUEUE


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments
    return VolumeZone(handle)
