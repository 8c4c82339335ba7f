"""The scores that are kept of one class of pods.

Kept are those of plugins that read nothing but the node. Most of them need no normalisation: their
scores lie in 0..100, and a weighted sum is kept as well.
"""

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.cycle.best_node import SMALL
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Rows
from kubescene.scheduler.framework.runtime import ScoreExtension
from kubescene.scheduler.state.nodes import Column, Moves, NodeTable, moved
from kubescene.scheduler.state.row_results import RowResults, Window


class ScoreSplit:
    """The plugins that rate pods: those whose scores are kept, and the others.

    ``lines`` are the kept ones with the line where their scores stand: in `ClassScores.plain`, or
    in `ClassScores.raw` if they are to be normalized.
    """

    __slots__ = (
        "blind",
        "is_ours",
        "is_small",
        "kept",
        "lines",
        "normalized",
        "one_by_one",
        "others",
        "plain",
    )

    def __init__(self, active: list[ScoreExtension]) -> None:
        self.kept = tuple(each for each in active if each.per_node)
        self.one_by_one = all(each.one is not None for each in self.kept)
        plain = [each for each in self.kept if each.normalize is None]
        normalized = [each for each in self.kept if each.normalize is not None]
        self.normalized = tuple(enumerate(normalized))
        self.lines = tuple(
            ((plain if each.normalize is None else normalized).index(each), each)
            for each in self.kept
        )
        self.others = tuple(each for each in active if not each.per_node)
        self.is_ours = all(each.is_ours for each in active)
        self.is_small = MAX_NODE_SCORE * sum(each.weight for each in active) < SMALL
        """Whether totals are so small that `pick_small` may choose."""
        self.blind = tuple(each for each in normalized if each.is_blind and each.normalizes_alone)
        self.plain = tuple(plain)


class ClassScores(RowResults):
    """One line of scores per plugin, and the weighted sum of those that are not normalized."""

    __slots__ = ("active", "plain", "rated", "raw", "sums")

    def __init__(self, nodes: NodeTable, active: ScoreSplit) -> None:
        super().__init__(nodes)
        self.active = active
        normalized, count = len(active.normalized), len(nodes)
        # In little space: explanations keep parts of them.
        self.plain: NDArray[np.int8] = np.zeros(
            (len(active.kept) - normalized, count), dtype=np.int8
        )
        self.raw: Column = np.zeros((normalized, count), dtype=np.int64)
        self.sums: Column = np.zeros(count, dtype=np.int64)
        self.rated = [False] * normalized
        """For each line of ``raw``, whether a score other than 0 was ever kept in it."""

    def move(self, moves: Moves) -> None:
        super().move(moves)
        self.plain = self.plain.take(moves, axis=1, mode="clip")
        self.raw = self.raw.take(moves, axis=1, mode="clip")
        self.sums = moved(self.sums, moves)

    def told(self, rows: Rows, window: Window | None) -> NDArray[np.int8]:
        """A copy of ``plain`` for these rows, to be kept."""
        part = None if window is None else window.part
        return self.plain.take(rows, axis=1) if part is None else self.plain[:, part].copy()
