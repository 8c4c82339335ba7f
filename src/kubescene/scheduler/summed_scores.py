"""The scores of a routine decision in columns, where kept sums decide.

Then all nodes get the same from the plugins whose scores are normalized. What these columns hold is
the same for every pod of the class as well, so that only those of the others are copied.
"""

import numpy as np

from kubescene.scheduler.class_scores import ClassScores
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.scoring import Scored
from kubescene.scheduler.search import Found
from kubescene.timeline.attempts import ScoreColumn


class SummedColumns:
    """Made from what the first pod was told about so many nodes, for those that come after it."""

    __slots__ = ("_added", "_columns", "_count", "_left_out")

    def __init__(self, scored: Scored, kept: ClassScores, state: CycleState, found: Found) -> None:
        rows = found.feasible
        lines = {each.name: line for line, each in kept.active.lines if each.normalize is None}
        self._columns = [
            (each.plugin, each.weight, lines.get(each.plugin), each) for each in scored.columns
        ]
        self._added: int = scored.totals.item(0) - kept.sums.item(rows.item(0))
        self._count = rows.size
        self._left_out = (state.skipped_scores, state.unrated_scores)

    def fits(self, state: CycleState, found: Found) -> bool:
        """Whether it holds for so many nodes, rated by the same plugins."""
        left_out = (state.skipped_scores, state.unrated_scores)
        return self._count == found.feasible.size and self._left_out == left_out

    def of(self, kept: ClassScores, found: Found) -> Scored:
        """The same that `ScoreChain.rate` explains."""
        rows, window = found.feasible, found.window
        plain, part = kept.told(rows, window), None if window is None else window.part
        sums = kept.sums.take(rows) if part is None else kept.sums[part]
        columns = [
            shared if line is None else ScoreColumn(plugin, weight, scores := plain[line], scores)
            for plugin, weight, line, shared in self._columns
        ]
        return Scored(np.add(sums, self._added), columns)
