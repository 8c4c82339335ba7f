"""DynamicResources: devices for pods that name resource claims.

Every pod that finds no node hears of this plugin: its PostFilter looks for claims whose devices
could be given back, and says so when a pod has none. Its Score is 0 on every node for such pods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubescene.scheduler import signing
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.interfaces import (
    ClusterScorePlugin,
    EnqueueExtensions,
    EventRegistration,
    FilterDiagnosis,
    Handle,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
)
from kubescene.scheduler.node_info import NodeInfo
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.pods import PodInfo, PodSignature
from kubescene.scheduler.signing import Part
from kubescene.scheduler.status import SKIP, Status

NO_CLAIMS = PostFilterResult(Status.unschedulable("no new claims to deallocate"))
NOT_FOUND = PostFilterResult(Status.error("not found"))


class DynamicResources(
    PreFilterPlugin, PostFilterPlugin, ScorePlugin, ClusterScorePlugin, EnqueueExtensions
):
    name = "DynamicResources"
    reads = Reads.NODE
    prepares_by_class = True

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return SKIP, None  # D-2

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult:
        """D-4; M-6 if another PreFilter turned the pod away before this one had its turn."""
        return NO_CLAIMS if self.name in state.skipped_filters else NOT_FOUND

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.zeros(rows.size, dtype=np.int64)  # D-5

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def events_to_register(self) -> Sequence[EventRegistration]:
        return []

    def sign(self, signature: PodSignature) -> Part | None:
        return None if signature.claims else signing.NOTHING


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return DynamicResources()
