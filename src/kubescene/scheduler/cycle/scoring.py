"""Which of the feasible nodes is best.

Each Score plugin rates every feasible node; after normalisation its scores lie in 0..100 and
enter the total times the plugin's weight. As in `verdicts`, the raw scores of plugins that read
nothing but the node are kept per class of pods and made anew only for nodes that changed; those
that need no normalisation are kept as one weighted sum.

Which of the rated nodes wins is a matter of `best_node`.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from kubescene.errors import KubesceneError
from kubescene.instruments.score_columns import ScoreColumn
from kubescene.scheduler.cycle.class_scores import ClassScores, ScoreSplit
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.guarded_calls import failed
from kubescene.scheduler.framework.interfaces import Rows, Scores
from kubescene.scheduler.framework.normalization import highest
from kubescene.scheduler.framework.profile import ExtensionPoint
from kubescene.scheduler.framework.runtime import ScoreExtension
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY, entries_kept
from kubescene.scheduler.state.row_results import Window

_UNSIGNED = np.dtype(np.uint64)


class ScoringError(Exception):
    """Scores that cannot be used; the attempt ends with this text."""


@dataclass(slots=True)
class Scored:
    """Totals over the rows, and per plugin its column if somebody wants to know."""

    totals: Scores
    columns: list[ScoreColumn] = field(default_factory=list)


class ScoreChain:
    """The Score plugins of one profile over one node table."""

    def __init__(self, scores: tuple[ScoreExtension, ...], nodes: NodeTable) -> None:
        self.scores = scores
        self.nodes = nodes
        self.keeps = True
        """Whether scores are kept from one attempt to the next."""
        self._kept: OrderedDict[PodClass, ClassScores] = OrderedDict()
        self._splits: dict[frozenset[str], ScoreSplit] = {}
        self._unrated_kept: dict[tuple[str, int], tuple[Scores, Scores]] = {}

    def score(
        self,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        window: Window | None = None,
        *,
        explain: bool = False,
    ) -> Scored:
        """Rate ``rows`` (C-13); the PreScores have run. ``window`` is said if the rows are one."""
        kept = self.scores_of(pod, self.split(state.skipped_scores | state.unrated_scores))
        outdated = kept.outdated(self.nodes, rows, window)
        if len(outdated):
            self._renew(state, pod, kept, outdated)
        return self.rate(state, pod, kept, rows, window, explain=explain)

    def rate(
        self,
        state: CycleState,
        pod: PodInfo,
        kept: ClassScores,
        rows: Rows,
        window: Window | None = None,
        *,
        explain: bool = False,
    ) -> Scored:
        """The same where all that is kept of these rows is up to date."""
        split = self.split(state.skipped_scores | state.unrated_scores)
        scored = Scored(_shown(kept.sums, rows, window))
        added: dict[str, tuple[Scores, Scores]] = {}
        for line, extension in split.normalized:
            if extension.normalizes_alone and not kept.rated[line]:
                final, weighted = self._unrated(extension, state, pod, rows.size)
                scored.totals += weighted
                added[extension.name] = (_nothing(rows.size), final)
            else:
                raw = _shown(kept.raw[line], rows, window)
                added[extension.name] = (raw, self._add(extension, state, pod, raw, scored))
        for extension in split.others:
            raw = extension.score_nodes(state, pod, self.nodes, rows)
            added[extension.name] = (raw, self._add(extension, state, pod, raw, scored))
        if explain:
            scored.columns = [*self._columns(state, kept, rows, window, added)]
        return scored

    def split(self, left_out: frozenset[str]) -> ScoreSplit:
        """The plugins that rate if some are left out; the same object for the same ones."""
        found = self._splits.get(left_out)
        if found is None:
            active = [each for each in self.scores if each.name not in left_out]
            found = self._splits[left_out] = ScoreSplit(active)
        return found

    def scores_of(self, pod: PodInfo, split: ScoreSplit) -> ClassScores:
        """What is kept of the class of a pod."""
        nodes = self.nodes
        if not self.keeps:
            return ClassScores(nodes, split)
        kept = self._kept.get(pod.pod_class)
        if kept is None or kept.active.kept != split.kept or not kept.in_place(nodes):
            kept = self._kept[pod.pod_class] = ClassScores(nodes, split)
            while len(self._kept) > entries_kept(nodes):
                self._kept.popitem(last=False)
        self._kept.move_to_end(pod.pod_class)
        return kept

    def _add(
        self,
        extension: ScoreExtension,
        state: CycleState,
        pod: PodInfo,
        raw: Scores,
        scored: Scored,
    ) -> Scores:
        final = _final(extension, state, pod, raw)
        scored.totals += final if extension.weight == 1 else final * extension.weight
        return final

    def _unrated(
        self, extension: ScoreExtension, state: CycleState, pod: PodInfo, count: int
    ) -> tuple[Scores, Scores]:
        """What nodes get of a plugin that gives none of them a score, without and with weight."""
        found = self._unrated_kept.get((extension.name, count))
        if found is None:
            if len(self._unrated_kept) >= POLICY.unrated_kept:
                self._unrated_kept.clear()
            final = _final(extension, state, pod, np.zeros(count, dtype=np.int64))
            found = (final, final * extension.weight)
            self._unrated_kept[extension.name, count] = found
        return found

    def _renew(
        self, state: CycleState, pod: PodInfo, kept: ClassScores, rows: list[int] | Rows
    ) -> None:
        if len(rows) <= POLICY.few_rated and kept.active.one_by_one:
            for row in map(int, rows):
                self.renew_row(state, pod, kept, row)
        else:
            self.renew_rows(state, pod, kept, np.asarray(rows, dtype=np.intp))
        kept.renewed(self.nodes, rows)

    def renew_row(self, state: CycleState, pod: PodInfo, kept: ClassScores, row: int) -> None:
        """Rate one row anew."""
        info, total = self.nodes.infos[row], 0
        for line, extension in kept.active.lines:
            assert extension.inner is not None
            try:
                score = extension.inner(state, pod, info)
            except KubesceneError:
                raise
            except Exception as error:
                raise failed(error, extension.name, ExtensionPoint.SCORE) from error
            if extension.normalize is None:
                if not 0 <= score <= 100:
                    raise _invalid(extension, score)
                total += extension.weight * score
                kept.plain[line, row] = score
            elif score or kept.rated[line]:
                kept.rated[line] = True
                kept.raw[line, row] = score
        kept.sums[row] = total

    def renew_rows(
        self,
        state: CycleState,
        pod: PodInfo,
        kept: ClassScores,
        rows: Rows,
        part: slice | None = None,
    ) -> None:
        """Rate many rows anew; ``part`` says where they are, if in one."""
        at = rows if part is None else part
        total: Scores | int = 0
        for line, extension in kept.active.lines:
            scores = extension.score_nodes(state, pod, self.nodes, rows)
            if extension.normalize is None:
                _check(extension, scores)
                total = total + (scores if extension.weight == 1 else scores * extension.weight)
                kept.plain[line, at] = scores
            elif kept.rated[line] or scores.any():
                kept.rated[line] = True
                kept.raw[line, at] = scores
        kept.sums[at] = total

    def unrated(
        self, state: CycleState, pod: PodInfo, split: ScoreSplit, count: int
    ) -> list[ScoreColumn]:
        """The columns of plugins that give none of so many nodes a score; of the others, names."""
        final = {
            each.name: self._unrated(each, state, pod, count)[0] for _, each in split.normalized
        }
        return [
            _empty_column(each.name, each.weight, count)
            if each.name not in final
            else _column(each, count, final[each.name])
            for each in self.scores
            if each.name not in state.skipped_scores
        ]

    def _columns(
        self,
        state: CycleState,
        kept: ClassScores,
        rows: Rows,
        window: Window | None,
        added: dict[str, tuple[Scores, Scores]],
    ) -> Iterator[ScoreColumn]:
        """A column for each plugin, in order; ``added`` are those that were worked out just now."""
        # Wide enough to be weighted.
        plain = iter(kept.told(rows, window).astype(np.int32))
        skipped, unrated, count = state.skipped_scores, state.unrated_scores, rows.size
        for extension in self.scores:
            name = extension.name
            if name in skipped:
                continue
            if name in unrated:
                yield _empty_column(name, extension.weight, count)
                continue
            found: Any = added.get(name)
            if found is None:
                found = (scores := next(plain), scores)
            yield ScoreColumn(name, extension.weight, *found)


@lru_cache(POLICY.unrated_kept)
def _empty_column(plugin: str, weight: int, count: int) -> ScoreColumn:
    """That of a plugin that gives no node a score. Shared: nobody changes it."""
    scores: Any = _nothing(count)
    return ScoreColumn(plugin, weight, scores, scores)


def _column(extension: ScoreExtension, count: int, final: Any) -> ScoreColumn:
    raw: Any = _nothing(count)
    return ScoreColumn(extension.name, extension.weight, raw, final)


@lru_cache(POLICY.unrated_kept)
def _nothing(count: int) -> Scores:
    """No score for anybody. Shared: explanations keep it, nobody changes it."""
    nothing: Any = np.zeros(count, dtype=np.int32)
    scores: Scores = nothing
    return scores


def _shown(column: Scores, rows: Rows, window: Window | None) -> Scores:
    return column.take(rows) if window is None else window.of(column, rows)


def _final(extension: ScoreExtension, state: CycleState, pod: PodInfo, raw: Scores) -> Scores:
    final = raw if extension.normalize is None else extension.normalize(state, pod, raw)
    _check(extension, final)
    return final


def _check(extension: ScoreExtension, scores: Scores) -> None:
    # As unsigned numbers negative scores are huge, so one look at the maximum finds both faults.
    if scores.size and highest(scores.view(_UNSIGNED)) > 100:
        wrong = ((scores < 0) | (scores > 100)).nonzero()[0][0]
        raise _invalid(extension, int(scores[wrong]))


def _invalid(extension: ScoreExtension, score: int) -> ScoringError:
    return ScoringError(
        f'applying score defaultWeights on Score plugins: plugin "{extension.name}" returns an '
        f"invalid score {score}, it should in the range of [0, 100] after normalizing"
    )
