"""NodeName: a pod that names its node runs nowhere else. [F-2]"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
    Plugin,
    Reads,
    Rows,
    SeesPods,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo


class NodeName(FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "NodeName"
    reads = Reads.NODE
    sees_pods = SeesPods.NOTHING
    REASON = "node(s) didn't match the requested node name"
    REFUSED = Status.unresolvable(REASON)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if fits(pod, node.name) else self.REFUSED

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        if not pod.node:
            return np.zeros(rows.size, dtype=np.int64)
        names = nodes.names
        refused = [not fits(pod, names[row]) for row in rows.tolist()]
        return np.array(refused, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED

    def events_to_register(self) -> Sequence[EventRegistration]:
        return [EventRegistration(ClusterEvent(EventResource.NODE, Action.ADD))]

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.NOTHING


def fits(pod: PodInfo, node: str) -> bool:
    return not pod.node or pod.node == node


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return NodeName()
