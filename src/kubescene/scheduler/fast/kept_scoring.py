"""Score of what is kept: the totals of feasible rows, and what explanations say of them.

The kept sums (`KeptRows.ranked`) need what is normalized, and what plugins say that read more than
the node. Mostly neither gives a node anything: then the sums decide alone, and the columns that
all nodes have alike are the same for every pod of the class as well. So only the scores of the
others are copied: a byte each, since they lie in 0..100, until somebody reads them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from kubescene.bounded import BoundedDict
from kubescene.instruments.score_columns import PackedScores, ScoreColumn, SharedScores
from kubescene.scheduler.cycle.best_node import pick_ranked, ranked
from kubescene.scheduler.cycle.scoring import (
    RawAndFinal,
    ScoreChain,
    Scored,
    ScoreSplit,
    final_scores,
)
from kubescene.scheduler.fast.kept_rows import KeptRows
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.runtime import ScoreExtension
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Window


class KeptScoring:
    """Score of one profile, from what is kept."""

    def __init__(self, chain: ScoreChain) -> None:
        self._chain = chain
        self._unrated: BoundedDict[tuple[str, int], RawAndFinal] = BoundedDict(POLICY.unrated_kept)
        self._even: BoundedDict[tuple[str, int], bool] = BoundedDict(POLICY.even_kept)
        self._common: CommonColumns | None = None
        """What the last explanations had in common."""

    def score(
        self,
        kept: KeptRows,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        window: Window | None,
        *,
        explain: bool,
    ) -> Scored:
        """The totals of rows whose scores are up to date."""
        assert kept.raters is not None
        split, scored = kept.raters.split, Scored(kept.sums(rows, window))
        told: dict[str, RawAndFinal] = {}
        for line, extension in enumerate(split.normalized):
            if extension.normalizes_alone and not kept.has_raw[line]:
                told[extension.name] = self._of_unrated(extension, state, pod, rows.size)
            else:
                raw = kept.raw_of(line, rows, window)
                told[extension.name] = final_scores(extension, state, pod, raw)
        for extension in split.others:
            raw = extension.score_nodes(state, pod, self._chain.nodes, rows)
            told[extension.name] = final_scores(extension, state, pod, raw)
        for extension in (*split.normalized, *split.others):
            final = told[extension.name][1]
            scored.totals += final if extension.weight == 1 else final * extension.weight
        if explain:
            # Wide enough to be weighted.
            own: Any = kept.own(rows, window).astype(np.int32)
            for extension, scores in zip(split.plain, own, strict=True):
                told[extension.name] = (scores, scores)
            scored.columns = self._chain.columns(state, told, rows.size)
        return scored

    def best(
        self, kept: KeptRows, state: CycleState, pod: PodInfo, rows: Rows, window: Window | None
    ) -> int:
        """The position of the best of these rows: what all have alike makes no difference."""
        assert kept.raters is not None
        split, totals, count = kept.raters.split, kept.ranked_of(rows, window), rows.size
        for line, extension in enumerate(split.normalized):
            if kept.has_raw[line] or not extension.normalizes_alone:
                raw = kept.raw_of(line, rows, window)
                final = final_scores(extension, state, pod, raw)[1]
            elif self._is_even(extension, state, pod, count):
                continue
            else:
                final = self._of_unrated(extension, state, pod, count)[1]
            totals = totals + ranked(final * extension.weight)
        for extension in split.others:
            raw = extension.score_nodes(state, pod, self._chain.nodes, rows)
            final = final_scores(extension, state, pod, raw)[1]
            totals = totals + ranked(final * extension.weight)
        return pick_ranked(totals)

    def told(
        self, kept: KeptRows, state: CycleState, pod: PodInfo, rows: Rows, window: Window | None
    ) -> "ScoredDetail":
        """What the kept sums are made of, where they decide alone."""
        common, count = self._common, rows.size
        if common is None or not common.fits(state, count):
            assert kept.raters is not None
            split = kept.raters.split
            told = {
                each.name: self._of_unrated(each, state, pod, count) for each in split.normalized
            }
            columns = self._chain.columns(state, told, count)
            common = self._common = CommonColumns(columns, split, state, count)
        return common.with_own(kept.own(rows, window))

    def decides_alone(self, kept: KeptRows, state: CycleState, pod: PodInfo, count: int) -> bool:
        """Whether the kept sums of so many rows decide: all get the same on top of them."""
        if not kept.is_summed or kept.even_for == count:
            return kept.is_summed
        assert kept.raters is not None
        if not all(self._is_even(each, state, pod, count) for each in kept.raters.normalized):
            return False
        kept.even_for = count
        return True

    def _is_even(
        self, extension: ScoreExtension, state: CycleState, pod: PodInfo, count: int
    ) -> bool:
        """Whether a plugin makes the same of so many nodes without a score."""
        found = self._even.get((extension.name, count))
        if found is None:
            _, final = self._of_unrated(extension, state, pod, count)
            found = self._even[extension.name, count] = bool((final == final[0]).all())
        return found

    def _of_unrated(
        self, extension: ScoreExtension, state: CycleState, pod: PodInfo, count: int
    ) -> RawAndFinal:
        """What nodes get of a plugin that gives none of them a score."""
        found = self._unrated.get((extension.name, count))
        if found is None:
            _, final = final_scores(extension, state, pod, np.zeros(count, dtype=np.int64))
            # Explanations keep it, nobody changes it.
            nothing: Any = np.zeros(count, dtype=np.int32)
            found = self._unrated[extension.name, count] = (nothing, final)
        return found


class ScoredDetail(NamedTuple):
    """What `Scored` holds, for explanations alone."""

    totals: "SummedTotals"
    columns: PackedScores


class CommonColumns:
    """Made from what one pod was told about so many nodes, for those that come after it."""

    __slots__ = ("_count", "_left_out", "_shared")

    def __init__(
        self, columns: Sequence[ScoreColumn], split: ScoreSplit, state: CycleState, count: int
    ) -> None:
        lines = {each.name: line for line, each in enumerate(split.plain)}
        self._shared = SharedScores([(each, lines.get(each.plugin)) for each in columns])
        self._count = count
        self._left_out = (state.skipped_scores, state.unrated_scores)

    def fits(self, state: CycleState, count: int) -> bool:
        """Whether it holds for so many nodes, rated by the same plugins."""
        left_out = (state.skipped_scores, state.unrated_scores)
        return self._count == count and self._left_out == left_out

    def with_own(self, plain: NDArray[np.int8]) -> ScoredDetail:
        """What another pod is told, whose own scores are a part of `KeptRows.plain`."""
        columns = PackedScores(self._shared, plain)
        return ScoredDetail(SummedTotals(columns, plain.shape[1]), columns)


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
