"""TaintToleration: taints keep pods away that do not tolerate them. [F-3, F-4, SC-1]

``NoSchedule`` and ``NoExecute`` refuse the node; each untolerated ``PreferNoSchedule`` makes it
less attractive. Nodes share few different lists of taints, so a class of pods judges each list
once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.api.records.changes import Change
from kubescene.api.selectors import find_untolerated, tolerates
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    Action,
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
    NormalizePlugin,
    Plugin,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
    SeesPods,
)
from kubescene.scheduler.framework.normalization import normalize_by_maximum
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

PREFER_NO_SCHEDULE = "PreferNoSchedule"


class TaintToleration(
    FilterPlugin,
    ClusterFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ClusterScorePlugin,
    NormalizePlugin,
    EnqueueExtensions,
):
    name = "TaintToleration"
    reads = Reads.NODE
    sees_pods = SeesPods.NOTHING
    rates_by_spec = True
    prepares_by_class = True
    normalizes_alone = True
    REASON = "node(s) had untolerated taint(s)"
    REFUSED = Status.unresolvable(REASON)

    def __init__(self) -> None:
        self._verdicts: Memo[PodClass, _Verdicts] = Memo(_no_verdicts)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not node.taints or find_untolerated(node.taints, pod.pod_class.tolerations) is None:
            return SUCCESS
        return self.REFUSED

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return self._judged(pod.pod_class, nodes).refused.take(nodes.taint_ids.take(rows))

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSED

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return count_unpreferred(node.taints, pod.pod_class.tolerations) if node.taints else 0

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return self._judged(pod.pod_class, nodes).unpreferred.take(nodes.taint_ids.take(rows))

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return normalize_by_maximum(scores, reverse=True)

    def _judged(self, pod_class: PodClass, nodes: NodeTable) -> "_Verdicts":
        verdicts = self._verdicts[pod_class]
        if verdicts.refused.size < len(nodes.taint_sets):
            verdicts.judge(nodes.taint_sets, pod_class.tolerations)
        return verdicts

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        tolerations = ClusterEvent(EventResource.POD, Action.UPDATE_POD_TOLERATION)
        return [
            EventRegistration(node, _after_node_change, by_signature=True),
            EventRegistration(tolerations, _after_toleration_change, by_signature=True),
        ]

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.tolerations(signature)


def count_unpreferred(
    taints: Sequence[ReadOnlyObject], tolerations: Sequence[ReadOnlyObject]
) -> int:
    """How many ``PreferNoSchedule`` taints the tolerations do not cover."""
    relevant = [each for each in tolerations if each.get("effect", "") in ("", PREFER_NO_SCHEDULE)]
    return sum(
        taint.get("effect") == PREFER_NO_SCHEDULE
        and not any(tolerates(each, taint) for each in relevant)
        for taint in taints
    )


class _Verdicts:
    """What a class of pods makes of each different list of taints, by its number."""

    __slots__ = ("refused", "unpreferred")

    def __init__(self) -> None:
        self.refused: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.unpreferred: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def judge(
        self,
        taint_sets: Sequence[Sequence[ReadOnlyObject]],
        tolerations: Sequence[ReadOnlyObject],
    ) -> None:
        refused = [find_untolerated(taints, tolerations) is not None for taints in taint_sets]
        unpreferred = [count_unpreferred(taints, tolerations) for taints in taint_sets]
        self.refused = np.array(refused, dtype=np.int64)
        self.unpreferred = np.array(unpreferred, dtype=np.int64)


def _no_verdicts(pod_class: PodClass) -> _Verdicts:
    del pod_class
    return _Verdicts()


def _after_node_change(pod: PodInfo, change: Change) -> Hint:
    was_kept_out = change.previous_object is None or _keeps_out(change.previous_object, pod)
    return Hint.QUEUE if was_kept_out and not _keeps_out(change.object, pod) else Hint.SKIP


def _after_toleration_change(pod: PodInfo, change: Change) -> Hint:
    return Hint.QUEUE if change.record.uid == pod.uid else Hint.SKIP


def _keeps_out(node: ReadOnlyObject, pod: PodInfo) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return find_untolerated(taints, pod.pod_class.tolerations) is not None


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return TaintToleration()
