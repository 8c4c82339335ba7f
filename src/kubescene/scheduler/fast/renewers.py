"""How rows are told of anew: judged by the Filters of a class, and rated by its Scores.

Of plugins that read nothing but the node. Each of them is asked in the form that takes less, one
node or many; in the place of some stands what comes to the same with less, the arithmetic of
`cpu_memory`, as long as the amounts of all nodes allow it. What depends on node objects alone is
known (`SpecVerdicts`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubescene.bounded import BoundedDict
from kubescene.errors import KubesceneError
from kubescene.scheduler.cycle.best_node import ranked
from kubescene.scheduler.cycle.scoring import ScoreSplit, check_scores, invalid_score
from kubescene.scheduler.cycle.verdicts import (
    FilterSplit,
    codes_of,
    judge_rows,
    packed,
    verdict_of,
)
from kubescene.scheduler.fast.cpu_memory import (
    CpuMemoryColumns,
    FilterByPairs,
    Floats,
    Pairs,
    ScoreByPairs,
    filter_by_pairs,
    score_by_pairs,
)
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.guarded_calls import check_answer, failed
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Codes, Rows, Scores
from kubescene.scheduler.framework.profile import ExtensionPoint
from kubescene.scheduler.framework.runtime import FilterExtension, Framework, ScoreExtension
from kubescene.scheduler.framework.signing import encoded
from kubescene.scheduler.framework.status import SUCCESS
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY

Extensions: TypeAlias = tuple[FilterExtension, ...]
Scorers: TypeAlias = tuple[ScoreExtension, ...]
Lines: TypeAlias = tuple[tuple[int, ScoreExtension], ...]
"""Plugins whose scores are normalized, each with its line of `KeptRows.raw`."""


class RowScores(Protocol):
    """Where scores are kept, see `KeptRows`."""

    plain: NDArray[np.int8] | None
    ranked: Scores
    has_raw: list[bool]

    def keep_raw(self, line: int, at: Rows | slice | int, scores: Scores | int) -> None:
        """Keep scores that are to be normalized."""
        ...


class SpecVerdicts:
    """What plugins that look at nothing but the node object say of all nodes.

    Pods that land change nothing for them. So their verdicts are worked out for the whole table at
    a time, whenever a node object has changed; ``codes`` is None if they refuse none. Of such
    Scores it is enough to know whether they give any node anything:
    ``rates`` says whether one of the ``raters`` gives a node another score than 0.
    """

    __slots__ = ("_extensions", "_newest", "_raters", "codes", "errors", "rates")

    def __init__(self, extensions: Extensions, raters: Scorers = ()) -> None:
        self._extensions = extensions
        self._raters = raters
        self._newest = -1
        self.codes: Codes | None = None
        self.errors = False
        """Whether some verdict stands for an error rather than a refusal."""
        self.rates = False

    def sync(self, nodes: NodeTable, state: CycleState, pod: PodInfo) -> None:
        """Judge all nodes anew if one of them has changed; any pod that is signed alike will do."""
        if self._newest == nodes.newest_spec:
            return
        rows = np.arange(len(nodes), dtype=np.intp)
        before, state.filter_errors = state.filter_errors, False
        codes = judge_rows(state, pod, self._extensions, nodes, rows)
        self.codes = codes if codes.any() else None
        self.errors = state.filter_errors
        state.filter_errors |= before
        self.rates = any(each.score_nodes(state, pod, nodes, rows).any() for each in self._raters)
        self._newest = nodes.newest_spec


class SharedVerdicts:
    """Those of one profile, shared by all classes of pods that the plugins sign alike.

    Pods that differ in what they request are the same to them (`SigningPlugin`).
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._kept: BoundedDict[tuple[Extensions, Scorers, bytes], SpecVerdicts] = BoundedDict(
            POLICY.specs_kept
        )

    def of(self, extensions: Extensions, pod: PodInfo, raters: Scorers = ()) -> SpecVerdicts | None:
        """Those for pods like this one; None if a plugin does not sign it."""
        parts: dict[str, Any] = {}
        names = [each.name for each in extensions] + [each.name for each in raters]
        for name in dict.fromkeys(names):
            plugin: Any = self._framework.plugins[name]
            part = plugin.sign(pod.signature) if hasattr(plugin, "sign") else None
            if part is None:
                return None
            parts.update(part)
        key = (extensions, raters, encoded(parts))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = SpecVerdicts(extensions, raters)
        return found


class JudgedFilter(NamedTuple):
    """A Filter, and who may judge in its place."""

    extension: FilterExtension
    by: FilterByPairs | None


class RatedScore(NamedTuple):
    """A Score, likewise."""

    extension: ScoreExtension
    by: ScoreByPairs | None


class Judges:
    """The Filters of pods of one class that read nothing but the node."""

    __slots__ = (
        "_asked",
        "_columns",
        "_nodes",
        "_one",
        "_spec",
        "by_pairs",
        "by_pairs_alone",
        "errors",
        "extensions",
        "newest_spec",
    )

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        split: FilterSplit,
        pod: PodInfo,
        shared: SharedVerdicts,
    ) -> None:
        self._nodes = nodes
        self._columns = nodes.shared(CpuMemoryColumns)
        self.newest_spec = -1
        """As of which change of node objects this is, see `sync`."""
        self.extensions = split.per_node
        # First those that see no pods on a node, as long as these are the first ones anyway.
        blind = _first_blind(self.extensions)
        self._spec = shared.of(self.extensions[:blind], pod)
        plugins, pod_class = framework.plugins, pod.pod_class
        self._asked = tuple(
            JudgedFilter(each, filter_by_pairs(plugins[each.name], each, pod_class))
            for each in self.extensions[0 if self._spec is None else blind :]
        )
        self._one = self._asked
        self.errors = False
        """Whether a verdict on a node object stands for an error."""
        self.by_pairs = any(each.by is not None for each in self._asked)
        self.by_pairs_alone = all(each.by is not None for each in self._asked)

    def sync(self, state: CycleState, pod: PodInfo) -> None:
        """Take in that node objects have changed, before any row is told of."""
        nodes = self._nodes
        if self._spec is not None:
            self._spec.sync(nodes, state, pod)
            self.errors = self._spec.errors
        is_exact = self.by_pairs and self._columns.is_exact()
        self._one = (
            self._asked if is_exact else tuple(JudgedFilter(each, None) for each, _ in self._asked)
        )
        self.newest_spec = nodes.newest_spec

    def row(self, state: CycleState, pod: PodInfo, row: int) -> int:
        """The verdict on one row."""
        known = None if self._spec is None else self._spec.codes
        if known is not None and (verdict := known.item(row)):
            return int(verdict)
        info = self._nodes.infos[row]
        for extension, by in self._one:
            if by is not None:
                if code := by.judge_one(pod.pod_class, info):
                    return verdict_of(extension, code)
                continue
            if extension.inner is not None:
                try:
                    status = extension.inner(state, pod, info)
                except KubesceneError:
                    raise
                except Exception as error:
                    raise failed(error, extension.name, ExtensionPoint.FILTER) from error
                if status is SUCCESS:
                    continue
                check_answer(status, extension.name, "filter", ExtensionPoint.FILTER)
                if status.ok:
                    continue
            codes = codes_of(extension, state, pod, self._nodes, np.array([row], dtype=np.intp))
            if codes[0]:
                return int(packed(extension, codes)[0])
        return 0

    def rows(
        self, state: CycleState, pod: PodInfo, rows: Rows, pairs: Pairs | None
    ) -> Codes | None:
        """The verdicts on many rows; None if all pass."""
        known = None if self._spec is None else self._spec.codes
        verdicts = None if known is None else known.take(rows)
        for extension, by in self._asked:
            if by is not None and pairs is not None:
                codes = by.judge(pod.pod_class, pairs)
                if codes is not None:
                    verdicts = _with(verdicts, extension, codes)
            elif verdicts is None:
                codes = codes_of(extension, state, pod, self._nodes, rows)
                if codes.any():
                    verdicts = _with(None, extension, codes)
            else:
                passing = (verdicts == 0).nonzero()[0]
                if not passing.size:
                    break
                codes = codes_of(extension, state, pod, self._nodes, rows.take(passing))
                if (refused := codes.nonzero()[0]).size:
                    verdicts[passing.take(refused)] = packed(extension, codes.take(refused))
        return verdicts


def _first_blind(extensions: tuple[FilterExtension, ...]) -> int:
    """How many of the first Filters see no pods on a node."""
    others = (at for at, each in enumerate(extensions) if not each.is_blind)
    return next(others, len(extensions))


def _with(verdicts: Codes | None, extension: FilterExtension, codes: Codes) -> Codes:
    """The verdicts with those of one more plugin, which was asked about all rows."""
    if verdicts is None:
        verdicts = np.zeros(codes.size, dtype=np.int64)
    else:
        codes = np.where(verdicts == 0, codes, 0)
    if (refused := codes.nonzero()[0]).size:
        verdicts[refused] = packed(extension, codes.take(refused))
    return verdicts


class Raters:
    """The Scores of pods of one class that read nothing but the node.

    `KeptRows.plain` has a line for each of ``plain``, `KeptRows.raw` for each of ``normalized``.
    """

    __slots__ = (
        "_asked",
        "_blind",
        "_by_pairs_alone",
        "_columns",
        "_nodes",
        "_one",
        "_spec",
        "by_pairs",
        "may_sum",
        "newest_spec",
        "normalized",
        "plain",
        "split",
    )

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        split: ScoreSplit,
        pod: PodInfo,
        shared: SharedVerdicts,
    ) -> None:
        self._nodes = nodes
        self._columns = nodes.shared(CpuMemoryColumns)
        self.newest_spec = -1
        """As that of `Judges`."""
        self.split = split
        plugins, pod_class = framework.plugins, pod.pod_class
        self.plain = tuple(
            RatedScore(each, score_by_pairs(plugins[each.name], pod_class)) for each in split.plain
        )
        self._one = self.plain
        self.by_pairs = any(each.by is not None for each in self.plain)
        self._by_pairs_alone = all(each.by is not None for each in self.plain)
        self.normalized = split.normalized
        self._asked: Lines = ()
        self._blind = tuple(
            each for each in split.normalized if each.is_blind and each.normalizes_alone
        )
        self._spec = shared.of((), pod, self._blind) if self._blind else None
        """Whether any node object has a score of those that look at nothing else."""
        self.may_sum = not split.others and all(each.normalizes_alone for each in split.normalized)
        """Whether the sums decide alone as long as no node has a score to be normalized."""

    def sync(self, has_raw: Sequence[bool], state: CycleState, pod: PodInfo) -> None:
        """Take in that node objects have changed, before any row is told of."""
        nodes, spec, is_known = self._nodes, self._spec, False
        if spec is not None:
            spec.sync(nodes, state, pod)
            is_known = not spec.rates
        self._asked = tuple(
            (line, each)
            for line, each in enumerate(self.normalized)
            if not (is_known and each in self._blind) or has_raw[line]
        )
        is_exact = self.by_pairs and self._columns.is_exact()
        self._one = (
            self.plain if is_exact else tuple(RatedScore(each, None) for each, _ in self.plain)
        )
        self.newest_spec = nodes.newest_spec

    def row(self, kept: RowScores, state: CycleState, pod: PodInfo, row: int) -> None:
        """Rate one row that passes."""
        info, plain, total = self._nodes.infos[row], kept.plain, 0
        for line, (extension, by) in enumerate(self._one):
            if by is not None:
                score = by.rate_one(pod.pod_class, info)
            else:
                score = self._ask(extension, state, pod, row)
                if not 0 <= score <= MAX_NODE_SCORE:
                    raise invalid_score(extension, score)
            total += extension.weight * score
            if plain is not None:
                plain[line, row] = score
        kept.ranked[row] = ranked(total)
        for line, extension in self._asked:
            score = self._ask(extension, state, pod, row)
            if score or kept.has_raw[line]:
                kept.keep_raw(line, row, score)

    def _ask(self, extension: ScoreExtension, state: CycleState, pod: PodInfo, row: int) -> int:
        if extension.inner is None:
            rows = np.array([row], dtype=np.intp)
            return int(extension.score_nodes(state, pod, self._nodes, rows)[0])
        try:
            score = extension.inner(state, pod, self._nodes.infos[row])
        except KubesceneError:
            raise
        except Exception as error:
            raise failed(error, extension.name, ExtensionPoint.SCORE) from error
        if score.__class__ is not int:
            check_answer(score, extension.name, "score", ExtensionPoint.SCORE)
        return score

    def rows(
        self,
        kept: RowScores,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        at: Rows | slice,
        pairs: Pairs | None,
    ) -> None:
        """Rate many rows, which stand ``at`` some place of the table."""
        total: Scores | Floats | None = None
        for line, (extension, by) in enumerate(self.plain):
            scores: Scores | Floats
            if by is not None and pairs is not None:
                scores = by.rate(pod.pod_class, pairs)
            else:
                scores = extension.score_nodes(state, pod, self._nodes, rows)
                check_scores(extension, scores)
            if kept.plain is not None:
                kept.plain[line][at] = scores  # By one index it takes several times as long.
            scores = scores if extension.weight == 1 else scores * extension.weight
            total = scores if total is None else total + scores
        kept.ranked[at] = 0 if total is None else ranked(total.astype(np.int64))
        for line, extension in self._asked:
            raw = extension.score_nodes(state, pod, self._nodes, rows)
            if kept.has_raw[line] or raw.any():
                kept.keep_raw(line, at, raw)

    @property
    def asks_nobody(self) -> bool:
        """Whether arithmetic does it all: to that, it is all one whether a node is refused."""
        return self._by_pairs_alone and not self._asked


class Renewers:
    """Who judges and who rates pods of the classes of one profile."""

    def __init__(self, framework: Framework, nodes: NodeTable) -> None:
        self._framework = framework
        self._nodes = nodes
        self._shared = SharedVerdicts(framework)
        self._judges: BoundedDict[PodClass, Judges] = BoundedDict(POLICY.classes_kept)
        self._raters: BoundedDict[PodClass, Raters] = BoundedDict(POLICY.classes_kept)

    def judges(self, pod: PodInfo, split: FilterSplit) -> Judges:
        """Who judges pods of the class of this one."""
        found = self._judges.get(pod.pod_class)
        if found is None or found.extensions != split.per_node:
            found = Judges(self._framework, self._nodes, split, pod, self._shared)
            self._judges[pod.pod_class] = found
        return found

    def raters(self, pod: PodInfo, split: ScoreSplit) -> Raters:
        """Who rates nodes for pods of the class of this one."""
        found = self._raters.get(pod.pod_class)
        if found is None or found.split is not split:
            found = Raters(self._framework, self._nodes, split, pod, self._shared)
            self._raters[pod.pod_class] = found
        return found
