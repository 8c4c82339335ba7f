"""Per-node plugins in whole-cluster form: one call per node, answers gathered in an array."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Codes, FilterPlugin, Rows, ScorePlugin, Scores
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo

STATUSES_KEPT = 1024


class AdaptedFilter:
    """Numbers the statuses of a per-node Filter: 1 is the first one ever seen, and so on.

    A plugin that puts ever new numbers into its reasons would fill memory: beyond a limit, statuses
    are numbered for one attempt only, and verdicts with such numbers are not kept.
    """

    def __init__(self, plugin: FilterPlugin, kept: int = STATUSES_KEPT) -> None:
        self._plugin = plugin
        self._kept = kept
        self._numbers: dict[Hashable, int] = {}
        self._statuses: list[Status] = []

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        infos, judge = nodes.infos, self._plugin.filter
        codes = [self._number(state, judge(state, pod, infos[row])) for row in rows.tolist()]
        return np.array(codes, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        del pod
        if code > self._kept:
            return state.passing_codes[code - self._kept - 1]
        return self._statuses[code - 1]

    def _number(self, state: CycleState, status: Status) -> int:
        if status is SUCCESS:
            return 0
        if not isinstance(status, Status):
            raise TypeError(f"answered with {status!r}, expected a Status")
        if status.code is Code.SUCCESS:
            return 0
        state.filter_errors |= not status.code.is_rejection
        found = self._numbers.get(status)
        if found is not None:
            return found
        if len(self._statuses) >= self._kept:
            state.passing_codes.append(status)
            return self._kept + len(state.passing_codes)
        self._statuses.append(status)
        found = self._numbers[status] = len(self._statuses)
        return found


class AdaptedScore:
    def __init__(self, plugin: ScorePlugin) -> None:
        self._plugin = plugin

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        infos, judge = nodes.infos, self._plugin.score
        scores: list[Any] = [judge(state, pod, infos[row]) for row in rows.tolist()]
        for score in scores:
            # NumPy would cut a fraction off without a word.
            if type(score) is not int and not isinstance(score, np.integer):
                raise TypeError(f"answered with {score!r}, expected an integer")
        return np.array(scores, dtype=np.int64)


def adapt_filter(plugin: Any) -> AdaptedFilter:
    return AdaptedFilter(plugin)


def adapt_score(plugin: Any) -> AdaptedScore:
    return AdaptedScore(plugin)
