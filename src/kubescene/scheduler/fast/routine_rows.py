"""What is kept for the routine decisions about one class of pods: verdicts and scores by row.

Both are made for the same versions of the rows. Since rows are judged and rated together, some are
rated that need not be: with plugins of our own that does no harm.
"""

import numpy as np

from kubescene.scheduler.cycle.class_scores import ClassScores, ScoreSplit
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.scoring import Scored
from kubescene.scheduler.cycle.search import Found
from kubescene.scheduler.cycle.summed_scores import CommonColumns, Told
from kubescene.scheduler.cycle.verdicts import ClassVerdicts, Filtering, FilterSplit
from kubescene.scheduler.fast.spec_verdicts import SpecVerdicts
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Codes, Rows, Scores
from kubescene.scheduler.framework.relevance import RelevantPlugins
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_results import RowResults, Window


class Plan:
    """What is settled for all pods with the same relevant plugins before a cycle begins.

    ``filters`` is None if their cycle has to take all its steps.
    """

    __slots__ = ("filters", "relevant", "scores")

    def __init__(
        self, relevant: RelevantPlugins, filters: FilterSplit | None, scores: ScoreSplit | None
    ) -> None:
        self.relevant = relevant
        self.filters = filters
        self.scores = scores

    def state(self) -> CycleState:
        """The state as PreFilter and PreScore leave it."""
        state, relevant = CycleState(), self.relevant
        state.relevant = relevant
        state.skipped_filters = relevant.pre_filtered[1]
        state.skipped_scores = relevant.pre_scored[1]
        state.unrated_scores = relevant.unrated
        return state


class Routine(RowResults):
    """Verdicts and scores of one class of pods, both made for the same versions of the rows.

    Any pod of the class stands for all of them.
    """

    __slots__ = (
        "_cycle",
        "_nodes",
        "_pod",
        "_state",
        "common",
        "filtering",
        "filters",
        "judged",
        "pod_class",
        "rated",
        "scores",
        "spec",
    )

    def __init__(self, cycle: Cycle, plan: Plan, pod: PodInfo, spec: SpecVerdicts | None) -> None:
        super().__init__(cycle.nodes)
        assert plan.filters is not None
        assert plan.scores is not None
        self._cycle = cycle
        self._nodes = cycle.nodes
        self._pod = pod
        self.pod_class = pod.pod_class
        self._state = plan.state()
        self.filters = plan.filters
        self.scores = plan.scores
        self.spec = spec
        self.judged: ClassVerdicts = cycle.filters.verdicts_of(pod, plan.filters)
        self.rated: ClassScores = cycle.scores.scores_of(pod, plan.scores)
        self.common: CommonColumns | None = None
        """What explanations of its pods have in common, once there was one."""
        self.filtering = Filtering(cycle.filters, self._state, pod, self.filters, self.judged)

    def fits(self, plan: Plan) -> bool:
        """Whether it can be used, after the rows have moved and for this plan."""
        nodes = self._nodes
        if self.filters is not plan.filters or self.scores is not plan.scores:
            return False
        if self.layout == nodes.layout and self.judged.layout == self.rated.layout == self.layout:
            return True
        return self.in_place(nodes) and self.judged.in_place(nodes) and self.rated.in_place(nodes)

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        """One verdict per row; those that pass are rated as well. Read at once, it may change."""
        outdated = self.outdated(self._nodes, rows, window)
        if len(outdated):
            self._renew(outdated, rows, window)
        verdicts = self.judged.verdicts
        return verdicts.take(rows) if window is None else window.on(verdicts, rows)

    def _renew(self, outdated: list[int] | Rows, rows: Rows, window: Window | None) -> None:
        nodes, state = self._nodes, self._state
        if self.spec is not None:
            self.spec.sync(nodes, state, self._pod)
        if len(outdated) <= POLICY.few_routine and self.rated.active.one_by_one:
            few = outdated if isinstance(outdated, list) else outdated.tolist()
            self._renew_few(few)
            self.renewed(nodes, few)
            return
        part = None if window is None else window.part
        if part is not None and 2 * len(outdated) > rows.size:
            self._renew_many(rows, part)
            self.renewed(nodes, rows, part)
        else:
            many = np.asarray(outdated, dtype=np.intp)
            self._renew_many(many, None)
            self.renewed(nodes, many)

    def _renew_few(self, rows: list[int]) -> None:
        judged, filtering, scores = self.judged, self.filtering, self._cycle.scores
        known = None if self.spec is None else self.spec.codes
        asked = self.filters.per_node if self.spec is None else self.filters.by_pods
        for row in rows:
            verdict = 0 if known is None else known.item(row)
            verdict = verdict or filtering.judge_row(row, asked)
            judged.verdicts[row] = verdict
            judged.seen[row] = self._nodes.versions[row]
            if not verdict:
                scores.renew_row(self._state, self._pod, self.rated, row)

    def _renew_many(self, rows: Rows, part: slice | None) -> None:
        asked = self.filters.per_node if self.spec is None else self.filters.by_pods
        verdicts = self.filtering.judge_rows(rows, asked, self._nodes)
        if self.spec is not None and self.spec.codes is not None:
            known = self.spec.codes.take(rows)
            verdicts = np.where(known == 0, verdicts, known)
        self.judged.verdicts[rows if part is None else part] = verdicts
        self.judged.renewed(self._nodes, rows, part)
        self._cycle.scores.renew_rows(self._state, self._pod, self.rated, rows, part)

    def sums(self, found: Found) -> Scores:
        """The kept sums of the feasible rows, for those who look at once."""
        rows, window, sums = found.feasible, found.window, self.rated.sums
        return sums.take(rows) if window is None else window.on(sums, rows)

    def explains(self, state: CycleState, found: Found) -> bool:
        """Whether `summed` can tell about so many nodes, rated by the same plugins."""
        return self.common is not None and self.common.fits(state, found.feasible.size)

    def explained(self, state: CycleState, found: Found, scored: Scored) -> None:
        """A pod was told this: those after it may have most of it in common."""
        if self.is_summed:
            count = found.feasible.size
            self.common = CommonColumns(scored.columns, self.scores, state, count)

    def summed(self, found: Found) -> Told:
        """What the kept sums are made of."""
        assert self.common is not None
        return self.common.with_own(self.rated.told(found.feasible, found.window))

    @property
    def is_summed(self) -> bool:
        """Whether the kept sums decide alone: what is added to them is the same for all rows."""
        split, rated = self.scores, self.rated.rated
        if split.others or not split.is_small:
            return False
        for line, extension in split.normalized:
            if rated[line] or not extension.normalizes_alone:
                return False
        return True
