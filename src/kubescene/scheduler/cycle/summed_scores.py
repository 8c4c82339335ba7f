"""The scores of a routine decision in columns, where kept sums decide.

Then all nodes get the same from the plugins whose scores are normalized. What these columns hold is
the same for every pod of the class as well, so that only the scores of the others are copied: a
byte each, since they lie in 0..100, until somebody reads them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from kubescene.instruments.score_columns import PackedScores, ScoreColumn, SharedScores
from kubescene.scheduler.cycle.class_scores import ScoreSplit
from kubescene.scheduler.framework.cycle_state import CycleState


class Told(NamedTuple):
    """What `Scored` holds, for explanations alone."""

    totals: "SummedTotals"
    columns: PackedScores


class CommonColumns:
    """Made from what one pod was told about so many nodes, for those that come after it."""

    __slots__ = ("_count", "_left_out", "_shared")

    def __init__(
        self, columns: Iterable[ScoreColumn], split: ScoreSplit, state: CycleState, count: int
    ) -> None:
        lines = {each.name: line for line, each in split.lines if each.normalize is None}
        self._shared = SharedScores([(each, lines.get(each.plugin)) for each in columns])
        self._count = count
        self._left_out = (state.skipped_scores, state.unrated_scores)

    def fits(self, state: CycleState, count: int) -> bool:
        """Whether it holds for so many nodes, rated by the same plugins."""
        left_out = (state.skipped_scores, state.unrated_scores)
        return self._count == count and self._left_out == left_out

    def with_own(self, plain: NDArray[np.int8]) -> Told:
        """What another pod is told, whose own scores are a part of `ClassScores.plain`."""
        columns = PackedScores(self._shared, plain)
        return Told(SummedTotals(columns, plain.shape[1]), columns)


class SummedTotals(Sequence[int]):
    """The weighted sums of columns, likewise."""

    __slots__ = ("_columns", "_count")

    def __init__(self, columns: PackedScores, count: int) -> None:
        self._columns = columns
        self._count = count

    def tolist(self) -> list[int]:
        """All of them at once."""
        total = np.zeros(self._count, dtype=np.int64)  # There may be no columns at all.
        for each in self._columns:
            total += np.multiply(each.normalized, np.int64(each.weight))
        return total.tolist()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        return self.tolist()[at]

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())
