"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint of cordoned nodes.

Rule F-1.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.api.selectors import find_untolerated
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
    Reads,
    Rows,
    SeesPods,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class NodeUnschedulable(FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "NodeUnschedulable"
    reads = Reads.NODE
    sees_pods = SeesPods.NOTHING
    REASON = "node(s) were unschedulable"
    REFUSED = Status.unresolvable(REASON)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return self.REFUSED if node.unschedulable and not tolerates_cordon(pod) else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        if tolerates_cordon(pod):
            return np.zeros(rows.size, dtype=np.int64)
        return nodes.unschedulable.take(rows).astype(np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        tolerations = ClusterEvent(EventResource.POD, Action.UPDATE_POD_TOLERATION)
        return [
            EventRegistration(node, _after_node_change, by_signature=True),
            EventRegistration(tolerations, _after_toleration_change, by_signature=True),
        ]

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.tolerations(signature)


def tolerates_cordon(pod: PodInfo) -> bool:
    return pod.pod_class.compiled(_class_covers_cordon)


def _class_covers_cordon(pod_class: PodClass) -> bool:
    return _covers_cordon(pod_class.spec)


def _covers_cordon(spec: ReadOnlyObject) -> bool:
    return find_untolerated([TAINT], spec.get("tolerations") or ()) is None


def _after_node_change(pod: PodInfo, change: Change) -> Hint:
    """A node that was added, or is no longer cordoned; other taints are no news. [Q-11]"""
    before = change.previous_object
    opened = before is None or _is_cordoned(before)
    return Hint.QUEUE if opened and not _is_cordoned(change.object) else Hint.SKIP


def _is_cordoned(node: ReadOnlyObject) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _after_toleration_change(pod: PodInfo, change: Change) -> Hint:
    own = change.record.uid == pod.uid
    return Hint.QUEUE if own and _covers_cordon(change.object["spec"]) else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return NodeUnschedulable()
