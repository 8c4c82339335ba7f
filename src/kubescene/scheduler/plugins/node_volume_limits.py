"""NodeVolumeLimits: a node attaches only so many volumes of a CSI driver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.api.volumes.csi_migration import TranslationError, in_tree, inline_volume
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
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
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.volumes.attached import (
    AttachedVolumes,
    MissingClaimError,
    UncountableError,
    Volumes,
)
from kubescene.scheduler.volumes.claims import mentioned, refers_to
from kubescene.types import ReadOnlyObject

_OVER = 1
_MISSING = 2
_FAULT = 3


@dataclass(slots=True)
class Wanted:
    """The volumes of a pod, on nodes that have a CSINode, or why they cannot be told."""

    volumes: Volumes = field(default_factory=dict)
    code: int = 0
    text: str = ""


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "NodeVolumeLimits"
    concerns_by_kind = True
    REASON = "node(s) exceed max volume count"
    REFUSED = Status.unschedulable(REASON)

    def __init__(self, handle: Handle) -> None:
        self._nodes = handle.nodes
        self._attached = AttachedVolumes(handle)

    def concerns(self, signature: PodSignature) -> bool:
        return signature.compiled(is_counted)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return (SUCCESS if pod.signature.compiled(is_counted) else SKIP), None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        wanted = self._wanted(state, pod)
        if wanted.code:
            return self.describe(state, pod, wanted.code)
        try:
            over = self._attached.is_over_limit(wanted.volumes, self._attached.at(node))
        except UncountableError as error:
            return Status.error(str(error))
        return self.REFUSED if over else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        wanted = self._wanted(state, pod)
        if wanted.code:
            state.filter_errors |= wanted.code == _FAULT
            return np.full(rows.size, wanted.code, dtype=np.int64)
        if not wanted.volumes:
            return np.zeros(rows.size, dtype=np.int64)
        if nodes is not self._nodes:
            infos = [nodes.infos[row] for row in rows.tolist()]
            return np.array([not self.filter(state, pod, each).ok for each in infos], np.int64)
        return self._codes(state, wanted, rows)

    def _codes(self, state: CycleState, wanted: Wanted, rows: Rows) -> Codes:
        codes = self._attached.over_limit(wanted.volumes, rows).astype(np.int64)
        for row, fault in self._attached.faults():
            wanted.text = fault
            codes[rows == row] = _FAULT
            state.filter_errors = True
        return codes

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        if code == _OVER:
            return self.REFUSED
        text = self._wanted(state, pod).text
        return Status.unresolvable(text) if code == _MISSING else Status.error(text)

    def _wanted(self, state: CycleState, pod: PodInfo) -> Wanted:
        """The volumes of the pod, told once per attempt."""
        found: Wanted | None = state.find(self.name)
        if found is None:
            self._attached.look()
            found = self._tell(pod)
            state.write(self.name, found)
        return found

    def _tell(self, pod: PodInfo) -> Wanted:
        try:
            return Wanted(self._attached.of_new(pod, on_csi_node=True))
        except MissingClaimError as error:
            return Wanted(code=_MISSING, text=str(error))
        except UncountableError as error:
            return Wanted(code=_FAULT, text=str(error))

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.volumes(signature)

    def events_to_register(self) -> Sequence[EventRegistration]:
        hints = [
            (EventResource.CSI_NODE, Action.ADD, None, True),
            (EventResource.CSI_NODE, Action.UPDATE, _after_csi_node_update, True),
            (EventResource.POD, Action.DELETE, _after_pod_deletion, True),
            (EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added, False),
            (EventResource.VOLUME_ATTACHMENT, Action.DELETE, _after_detachment, True),
        ]
        return [
            EventRegistration(ClusterEvent(resource, action), hint, by_signature=by_signature)
            for resource, action, hint, by_signature in hints
        ]


def is_counted(signature: PodSignature) -> bool:
    """Whether some volume of a pod may count."""
    return bool(signature.compiled(mentioned)) or any(map(in_tree, signature.volumes))


def _after_csi_node_update(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    old = {} if before is None else _limits(before)
    grew = any(limit > old.get(name, 0) for name, limit in _limits(change.object).items())
    return Hint.QUEUE if grew else Hint.SKIP


def _limits(csi_node: ReadOnlyObject) -> dict[str, int]:
    drivers = (csi_node.get("spec") or {}).get("drivers") or ()
    return {each["name"]: (each.get("allocatable") or {}).get("count") or 0 for each in drivers}


def _after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """A pod that had a node, or was promised one, gave up volumes that may have counted."""
    gone = change.previous_object or change.object
    nominated = (gone.get("status") or {}).get("nominatedNodeName")
    if not gone["spec"].get("nodeName") and not nominated:
        return Hint.SKIP
    counted = any(
        volume.get("persistentVolumeClaim") is not None
        or volume.get("ephemeral") is not None
        or in_tree(volume) is not None
        for volume in gone["spec"].get("volumes") or ()
    )
    return Hint.QUEUE if counted else Hint.SKIP


def _after_claim_added(pod: PodInfo, change: Change) -> Hint:
    own = refers_to(pod, change.object, ephemeral=True)
    return Hint.QUEUE if own else Hint.SKIP


def _after_detachment(pod: PodInfo, change: Change) -> Hint:
    """A volume was detached: one of a claim, or one of the same driver as the pod's own."""
    attacher = change.object["spec"].get("attacher")
    for volume in pod.signature.volumes:
        if volume.get("persistentVolumeClaim") is not None:
            return Hint.QUEUE
        kind = in_tree(volume)
        if kind is None:
            continue
        try:
            inline_volume(volume, kind)
        except TranslationError:
            return Hint.QUEUE
        if kind.driver == attacher:
            return Hint.QUEUE
    return Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments
    return NodeVolumeLimits(handle)
