"""NodePorts: the host ports of a pod must be free on the node."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubescene.api.records.changes import Change
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
    Reads,
    Rows,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.host_ports import (
    UsedPorts,
    conflict,
    host_ports,
    take,
)
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo


class NodePorts(PreFilterPlugin, FilterPlugin, ClusterFilterPlugin, EnqueueExtensions):
    name = "NodePorts"
    concerns_by_kind = True
    reads = Reads.NODE
    prepares_by_class = True
    REASON = "node(s) didn't have free ports for the requested pod ports"
    REFUSED = Status.unschedulable(REASON)

    def concerns(self, signature: PodSignature) -> bool:
        return bool(signature.pod_class.host_ports)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return (SUCCESS if pod.pod_class.host_ports else SKIP), None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:  # F-10
        return self.REFUSED if conflict(pod.pod_class.host_ports, node.ports) else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        wanted = pod.pod_class.host_ports
        taken = np.zeros(len(nodes), dtype=np.int64)
        for node in nodes.with_ports(wanted):
            taken[node.row] = conflict(wanted, node.ports)
        return taken.take(rows)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED

    def events_to_register(self) -> Sequence[EventRegistration]:
        deleted = ClusterEvent(EventResource.POD, Action.DELETE)
        added = ClusterEvent(EventResource.NODE, Action.ADD)
        return [
            EventRegistration(deleted, _after_pod_deletion, by_signature=True),
            EventRegistration(added),
        ]

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.host_ports(signature)


def _after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """A pod that had a node, or was promised one, gave up a port that this pod wants."""
    gone = change.previous_object or change.object
    nominated = (gone.get("status") or {}).get("nominatedNodeName")
    if not gone["spec"].get("nodeName") and not nominated:
        return Hint.SKIP
    freed: UsedPorts = {}
    take(host_ports(gone["spec"]), freed)
    return Hint.QUEUE if conflict(pod.pod_class.host_ports, freed) else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return NodePorts()
