"""Which of the feasible nodes is best.

Each Score plugin rates every feasible node; after normalisation its scores lie in 0..100 and
enter the total times the plugin's weight. Which of the rated nodes wins is a matter of `best_node`.

This is the rule. What a world keeps of scores is kept by `kubescene.scheduler.fast`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from kubescene.instruments.score_columns import ScoreColumn
from kubescene.scheduler.cycle.best_node import SMALL
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Rows, Scores
from kubescene.scheduler.framework.normalization import highest
from kubescene.scheduler.framework.runtime import ScoreExtension
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo

_UNSIGNED = np.dtype(np.uint64)

RawAndFinal: TypeAlias = tuple[Scores, Scores]
"""The scores of a plugin before and after normalisation: one object if it has none."""


class ScoringError(Exception):
    """Scores that cannot be used; the attempt ends with this text."""


@dataclass(slots=True)
class Scored:
    """Totals over the rows, and per plugin its column if somebody wants to know."""

    totals: Scores
    columns: list[ScoreColumn] = field(default_factory=list)


class ScoreSplit:
    """The plugins that rate a pod: those that read nothing but the node, and the others."""

    __slots__ = ("is_small", "normalized", "others", "per_node", "plain")

    def __init__(self, active: Sequence[ScoreExtension]) -> None:
        self.per_node = tuple(each for each in active if each.per_node)
        self.others = tuple(each for each in active if not each.per_node)
        self.plain = tuple(each for each in self.per_node if each.normalize is None)
        self.normalized = tuple(each for each in self.per_node if each.normalize is not None)
        self.is_small = MAX_NODE_SCORE * sum(each.weight for each in active) < SMALL
        """Whether totals are so small that `pick_small` may choose."""


class ScoreChain:
    """The Score plugins of one profile over one node table."""

    def __init__(self, scores: tuple[ScoreExtension, ...], nodes: NodeTable) -> None:
        self.scores = scores
        self.nodes = nodes
        self._splits: dict[frozenset[str], ScoreSplit] = {}

    def split(self, left_out: frozenset[str]) -> ScoreSplit:
        """The plugins that rate if some are left out; the same object for the same ones."""
        found = self._splits.get(left_out)
        if found is None:
            active = [each for each in self.scores if each.name not in left_out]
            found = self._splits[left_out] = ScoreSplit(active)
        return found

    def score(
        self, state: CycleState, pod: PodInfo, rows: Rows, *, explain: bool = False
    ) -> Scored:
        """Rate ``rows`` (C-13); the PreScores have run."""
        split = self.split(state.skipped_scores | state.unrated_scores)
        told: dict[str, RawAndFinal] = {}
        for extension in split.per_node:
            raw = extension.score_nodes(state, pod, self.nodes, rows)
            if extension.normalize is None:
                check_scores(extension, raw)
            told[extension.name] = (raw, raw)
        for extension in split.normalized:
            told[extension.name] = final_scores(extension, state, pod, told[extension.name][0])
        for extension in split.others:
            raw = extension.score_nodes(state, pod, self.nodes, rows)
            told[extension.name] = final_scores(extension, state, pod, raw)
        scored = Scored(np.zeros(rows.size, dtype=np.int64))
        for extension in (*split.per_node, *split.others):
            scored.totals += told[extension.name][1] * extension.weight
        if explain:
            scored.columns = self.columns(state, told, rows.size)
        return scored

    def columns(
        self, state: CycleState, told: dict[str, RawAndFinal], count: int
    ) -> list[ScoreColumn]:
        """A column for each plugin, in order; no node has anything from those not told of."""
        nothing: Any = (zeros := np.zeros(count, dtype=np.int32), zeros)
        asked = [each for each in self.scores if each.name not in state.skipped_scores]
        found: list[tuple[ScoreExtension, Any]] = [
            (each, told.get(each.name, nothing)) for each in asked
        ]
        return [ScoreColumn(each.name, each.weight, *scores) for each, scores in found]


def final_scores(
    extension: ScoreExtension, state: CycleState, pod: PodInfo, raw: Scores
) -> RawAndFinal:
    """What a plugin said, and what becomes of it by its normalisation."""
    if extension.normalize is None:
        check_scores(extension, raw)
        return raw, raw
    given = raw
    if extension.per_node and extension.normalizes_alone and not raw.any():
        given = np.zeros(raw.size, dtype=np.int64)  # What nodes get of one that rates none of them.
    final = extension.normalize(state, pod, given)
    check_scores(extension, final)
    return raw, final


def check_scores(extension: ScoreExtension, scores: Scores) -> None:
    """Raise unless they lie in 0..100."""
    # As unsigned numbers negative scores are huge, so one look at the maximum finds both faults.
    if scores.size and highest(scores.view(_UNSIGNED)) > MAX_NODE_SCORE:
        wrong = ((scores < 0) | (scores > MAX_NODE_SCORE)).nonzero()[0][0]
        raise invalid_score(extension, int(scores[wrong]))


def invalid_score(extension: ScoreExtension, score: int) -> ScoringError:
    """What is raised for a score outside 0..100."""
    return ScoringError(
        f'applying score defaultWeights on Score plugins: plugin "{extension.name}" returns an '
        f"invalid score {score}, it should in the range of [0, 100] after normalizing"
    )
