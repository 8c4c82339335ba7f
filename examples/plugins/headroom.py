"""Headroom: part of the cpu of every node stays free. Judges thousands of nodes at once.

`filter_nodes` and `score_nodes` are what the scheduler uses. `filter` and `score` say the same of
one node: they are the definition that the conformance suite compares them with.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubescene.scheduler import (
    SUCCESS,
    Action,
    ClusterEvent,
    ClusterFilterPlugin,
    ClusterScorePlugin,
    Codes,
    CycleState,
    EventRegistration,
    EventResource,
    Handle,
    NodeInfo,
    NodeTable,
    PodInfo,
    Reads,
    Rows,
    Scores,
    SeesPods,
    Status,
)


class Headroom(ClusterFilterPlugin, ClusterScorePlugin):
    name = "Headroom"
    reads = Reads.NODE
    sees_pods = SeesPods.AMOUNTS

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self.percent = int(arguments.get("percent", 20))

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        cpu, asked = nodes.allocatable("cpu")[rows], nodes.requested("cpu")[rows]
        left = cpu - asked - pod.requests.get("cpu", 0)
        return (left * 100 < cpu * self.percent).astype(np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status.unschedulable("node(s) would have too little headroom")

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        cpu, asked = nodes.allocatable("cpu")[rows], nodes.requested("cpu")[rows]
        scores: Scores = np.maximum(cpu - asked, 0) * 100 // np.maximum(cpu, 1)
        return scores

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        left = node.free("cpu") - pod.requests.get("cpu", 0)
        if left * 100 < node.allocatable.get("cpu", 0) * self.percent:
            return self.describe(state, pod, 1)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return max(node.free("cpu"), 0) * 100 // max(node.allocatable.get("cpu", 0), 1)

    def events_to_register(self) -> list[EventRegistration]:
        node = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        return [
            EventRegistration(ClusterEvent(EventResource.POD, Action.DELETE)),
            EventRegistration(ClusterEvent(EventResource.NODE, node)),
        ]
