"""NodeDeclaredFeatures: a node must declare what the pod needs of its kubelet."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
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
    Reads,
    Rows,
    SeesPods,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
HOST_NETWORK_WITH_USER_NAMESPACE = "UserNamespacesHostNetworkSupport"


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "NodeDeclaredFeatures"
    concerns_by_kind = True
    reads = Reads.NODE
    sees_pods = SeesPods.NOTHING
    prepares_by_class = True
    REASON = "node(s) didn't match Pod's required features"
    REFUSED = Status.unresolvable(REASON)

    def concerns(self, signature: PodSignature) -> bool:
        return bool(_of_class(signature.pod_class))

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return (SUCCESS if _of_class(pod.pod_class) else SKIP), None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:  # F-24
        return SUCCESS if _of_class(pod.pod_class) <= node.features else self.REFUSED

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        needed, infos = _of_class(pod.pod_class), nodes.infos
        lacking = [not needed <= infos[row].features for row in rows.tolist()]
        return np.array(lacking, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
        pod = ClusterEvent(EventResource.POD, Action.UPDATE)
        return [
            EventRegistration(node, _after_node_change, by_signature=True),
            EventRegistration(pod, _after_pod_update, by_signature=True),
        ]

    def sign(self, signature: PodSignature) -> Part | None:
        return {"features": sorted(_of_class(signature.pod_class))}


def needed_features(spec: ReadOnlyObject) -> frozenset[str]:
    """The features that a pod needs, read from its spec."""
    needed = set()
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    rules = (rule for each in containers for rule in each.get("restartPolicyRules") or ())
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.get("hostNetwork") and spec.get("hostUsers") is False:
        needed.add(HOST_NETWORK_WITH_USER_NAMESPACE)
    return frozenset(needed)


def _of_class(pod_class: PodClass) -> frozenset[str]:
    return pod_class.compiled(_compile)


def _compile(pod_class: PodClass) -> frozenset[str]:
    return needed_features(pod_class.spec)


def _after_node_change(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    if before is not None and _declared(before) == _declared(change.object):
        return Hint.SKIP
    return Hint.QUEUE


def _after_pod_update(pod: PodInfo, change: Change) -> Hint:
    before = change.previous_object
    if change.record.uid != pod.uid or before is None:
        return Hint.SKIP
    same = needed_features(before["spec"]) == needed_features(change.object["spec"])
    return Hint.SKIP if same else Hint.QUEUE


def _declared(node: ReadOnlyObject) -> Sequence[str]:
    return (node.get("status") or {}).get("declaredFeatures") or ()


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return NodeDeclaredFeatures()
