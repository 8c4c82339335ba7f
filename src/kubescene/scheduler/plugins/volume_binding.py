"""VolumeBinding: volumes that are there must be reachable, the others are bound with the pod.

A claim of a class with ``WaitForFirstConsumer`` gets its volume when its pod gets a node: one that
is there and free, or a new one that somebody provisions. What was chosen is assumed at Reserve and
written at PreBind; the pod then waits until the volume controller, or the provisioner, has done the
rest. Scoring by capacity is behind a gate that is off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.api.volumes.claims import WAIT_FOR_FIRST_CONSUMER, class_of, is_bound, volume_of
from kubescene.api.volumes.csi_migration import MIGRATED_PLUGINS
from kubescene.clock import SECOND
from kubescene.errors import ApiError
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import (
    Action,
    Awaited,
    ClusterEvent,
    ClusterFilterPlugin,
    ClusterScorePlugin,
    Codes,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Hint,
    Plugin,
    PreBindAnswer,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    Rows,
    Scores,
    SeesPods,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Code, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.volumes.binding import Assumed, VolumeBinder
from kubescene.scheduler.volumes.claims import (
    claim_not_found,
    is_made_for,
    mentioned,
    not_made_for,
    refers_to,
)
from kubescene.scheduler.volumes.finding import (
    NO_SUCH_VOLUME,
    UNTRANSLATABLE,
    WRONG_NODE,
    ClaimsOfPod,
)
from kubescene.scheduler.volumes.provisioning import NO_SPACE, NO_VOLUME, volume_limit
from kubescene.types import ReadOnlyObject

BIND_TIMEOUT_S = 600
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
REASONS = {
    WRONG_NODE: "node(s) didn't match PersistentVolume's node affinity",
    NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    NO_SUCH_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
"""What the bits of a code mean, in the order of the reasons (F-19)."""


@dataclass(slots=True)
class BindingState:
    """The volumes of one pod in one attempt. Shared by suppositions, which change no volume."""

    claims: ClaimsOfPod = field(default_factory=ClaimsOfPod)
    codes: Codes | None = None
    all_bound: bool = False
    assumed: Assumed | None = None


class VolumeBinding(
    PreFilterPlugin,
    FilterPlugin,
    ClusterFilterPlugin,
    PreScorePlugin,
    ClusterScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    name = "VolumeBinding"
    concerns_by_kind = True
    sees_pods = SeesPods.NOTHING

    def __init__(self, handle: Handle, timeout_s: int = BIND_TIMEOUT_S) -> None:
        self._nodes = handle.nodes
        self._claims = handle.lister(KINDS[EventResource.PERSISTENT_VOLUME_CLAIM])
        self._classes = handle.lister(KINDS[EventResource.STORAGE_CLASS])
        self._binder = VolumeBinder(handle, timeout_s * SECOND)

    def concerns(self, signature: PodSignature) -> bool:
        return bool(signature.compiled(mentioned))

    def concerns_scoring(self, signature: PodSignature) -> bool:
        return False

    # -- deciding --------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        prepared = BindingState()
        if not pod.signature.compiled(mentioned):
            state.write(self.name, prepared)
            return SKIP, None
        if fault := self._fault(pod):
            return Status.unresolvable(fault), None
        status = self._sort(pod, prepared.claims)
        if status.ok:
            self._binder.finder.look()
            state.write(self.name, prepared)
        return status, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        prepared = state.find(self.name)
        if prepared is None:
            return Status.error("not found")
        code = int(self._codes(prepared)[node.row])
        return self.describe(state, pod, code) if code else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        prepared = state.find(self.name)
        if prepared is None:
            state.filter_errors = True
            return np.full(rows.size, UNTRANSLATABLE, dtype=np.int64)
        codes = self._codes(prepared).take(rows)
        state.filter_errors |= bool(prepared.claims.fault)
        return codes

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        if code & UNTRANSLATABLE:
            prepared = state.find(self.name)
            return Status.error("not found" if prepared is None else prepared.claims.fault)
        reasons = [reason for bit, reason in REASONS.items() if code & bit]
        return Status(Code.UNRESOLVABLE, tuple(reasons))

    def _codes(self, prepared: BindingState) -> Codes:
        if prepared.codes is None:
            prepared.codes = self._binder.finder.codes(prepared.claims)
        return prepared.codes

    def _fault(self, pod: PodInfo) -> str:
        """What is wrong with the first of the pod's claims with which something is (F-17)."""
        for each in pod.signature.compiled(mentioned):
            name = each.name(pod.name)
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                waiting = "waiting for ephemeral volume controller to create the"
                named = f'{waiting} persistentvolumeclaim "{name}"'
                return named if each.volume else claim_not_found(name)
            if (claim.get("status") or {}).get("phase") == "Lost":
                lost = f'non-existent persistentvolume "{volume_of(claim)}"'
                return f'persistentvolumeclaim "{name}" bound to {lost}'
            if claim["metadata"].get("deletionTimestamp") is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if each.volume and not is_made_for(claim, pod):
                return not_made_for(pod, name)
        return ""

    def _sort(self, pod: PodInfo, claims: ClaimsOfPod) -> Status:
        """Tell bound claims from those that are bound with the pod; others must wait (F-18)."""
        immediate = False
        for each in pod.signature.compiled(mentioned):
            claim = self._binder.claims.get(each.name(pod.name), pod.namespace)
            assert claim is not None
            if is_bound(claim):
                claims.bound.append(claim)
                continue
            storage_class = self._classes.get(class_of(claim)) if class_of(claim) else None
            mode = (storage_class or {}).get("volumeBindingMode")
            if storage_class is not None and mode is None:
                named = class_of(claim)
                return Status.error(f'VolumeBindingMode not set for StorageClass "{named}"')
            if mode == WAIT_FOR_FIRST_CONSUMER and not volume_of(claim):
                claims.delayed.append(claim)
            else:
                immediate = True
        return Status.unresolvable(UNBOUND) if immediate else SUCCESS

    # -- scoring: behind a gate that is off (SC-8) ------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        return SKIP

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.zeros(rows.size, dtype=np.int64)

    # -- binding ---------------------------------------------------------------------------

    def concerns_binding(self, state: CycleState, pod: PodInfo) -> bool:
        prepared: BindingState | None = state.find(self.name)
        return prepared is None or bool(prepared.claims.delayed)

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        prepared: BindingState | None = state.find(self.name)
        if prepared is None:
            return Status.error("not found")
        row = self._nodes.row_of(node)
        if prepared.codes is None or row is None or not prepared.claims.delayed:
            prepared.all_bound = True
        else:
            prepared.assumed = self._binder.assume(prepared.claims, node, row)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        prepared: BindingState | None = state.find(self.name)
        if prepared is not None and prepared.assumed is not None:
            self._binder.restore(prepared.assumed)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> PreBindAnswer:  # F-21
        prepared: BindingState | None = state.find(self.name)
        if prepared is None:
            return Status.error("not found")
        if prepared.all_bound or prepared.assumed is None:
            return SUCCESS
        try:
            return self._binder.bind(prepared.assumed, node)
        except ApiError as error:
            return Status.error(str(error))

    def awaits(self, state: CycleState, pod: PodInfo, node: str) -> Sequence[Awaited]:
        prepared: BindingState = state.read(self.name, BindingState)
        assumed = prepared.assumed or Assumed()
        claims = [Awaited(EventResource.PERSISTENT_VOLUME_CLAIM, *key) for key in assumed.claims()]
        volumes = [
            Awaited(EventResource.PERSISTENT_VOLUME, "", name) for name, _ in assumed.bindings
        ]
        return [*claims, *volumes, Awaited(EventResource.NODE, "", node)]

    # -- requeueing ------------------------------------------------------------------------

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.volumes(signature)

    def events_to_register(self) -> Sequence[EventRegistration]:
        change, node = Action.ADD | Action.UPDATE, Action.ADD | Action.UPDATE_NODE_LABEL
        hints = [
            (EventResource.STORAGE_CLASS, change, _after_class_change, True),
            (EventResource.PERSISTENT_VOLUME_CLAIM, change, _after_claim_change, False),
            (EventResource.PERSISTENT_VOLUME, change, None, True),
            (EventResource.NODE, node, None, True),
            (EventResource.CSI_NODE, change, _after_csi_node_change, True),
            (EventResource.CSI_DRIVER, Action.UPDATE, _after_driver_change, True),
            (EventResource.CSI_STORAGE_CAPACITY, change, _after_capacity_change, True),
        ]
        return [
            EventRegistration(ClusterEvent(resource, action), hint, by_signature=by_signature)
            for resource, action, hint, by_signature in hints
        ]


def _after_class_change(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    same = before is not None and _topologies(before) == _topologies(change.object)
    return Hint.SKIP if same else Hint.QUEUE


def _topologies(storage_class: ReadOnlyObject) -> Sequence[Any]:
    return storage_class.get("allowedTopologies") or ()


def _after_claim_change(pod: PodInfo, change: Change) -> Hint:
    own = refers_to(pod, change.object, ephemeral=True)
    return Hint.QUEUE if own else Hint.SKIP


def _after_csi_node_change(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    if before is None:
        return Hint.QUEUE
    same = _migrated(before) == _migrated(change.object)
    return Hint.SKIP if same else Hint.QUEUE


def _migrated(csi_node: ReadOnlyObject) -> str:
    return (csi_node["metadata"].get("annotations") or {}).get(MIGRATED_PLUGINS) or ""


def _after_driver_change(pod: PodInfo, change: Change) -> Hint:
    """A driver that one of the pod's own volumes names has stopped to report capacity."""
    before, name = change.previous_object, change.record.name
    inline = [volume["csi"] for volume in pod.signature.volumes if volume.get("csi") is not None]
    if before is None or not any(each.get("driver") == name for each in inline):
        return Hint.SKIP
    stopped = _tracks(before) and not _tracks(change.object)
    return Hint.QUEUE if stopped else Hint.SKIP


def _tracks(driver: ReadOnlyObject) -> bool:
    return bool((driver.get("spec") or {}).get("storageCapacity"))


def _after_capacity_change(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    if before is None:
        return Hint.QUEUE
    old, new = volume_limit(before), volume_limit(change.object)
    grew = new is not None and (old is None or new > old)
    return Hint.QUEUE if grew else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    timeout = arguments.get("bindTimeoutSeconds")
    return VolumeBinding(handle, BIND_TIMEOUT_S if timeout is None else timeout)
