"""The usual decision in one pass: about a pod of which nothing is special.

Most pods are like many others. What PreFilter and PreScore say of them is known, no extender has to
be asked, nobody is nominated, and all Filters that run are our own and read nothing but the node.
Then a cycle comes down to this: judge and rate the rows that have changed since the last pod of the
class, and take the best one of the next window.

The outcome is that of `deciding.Deciding`, to which everything else is left, pods that fit nowhere
included. Since rows are judged and rated together, some are rated that need not be: with plugins of
our own that does no harm.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from kubescene.errors import PluginError
from kubescene.scheduler.class_scores import ClassScores, ScoreSplit
from kubescene.scheduler.concerns import Concern
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.decisions import Decision
from kubescene.scheduler.explanations import Diagnosis, explain_attempt
from kubescene.scheduler.interfaces import Codes, Rows
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.picking import pick, pick_small
from kubescene.scheduler.pods import PodClass, PodInfo
from kubescene.scheduler.row_results import RowResults, Window
from kubescene.scheduler.scoring import Scored, ScoringError
from kubescene.scheduler.search import Found, nodes_to_find, search
from kubescene.scheduler.spec_verdicts import SharedVerdicts, SpecVerdicts
from kubescene.scheduler.verdicts import ClassVerdicts, Filtering, FilterSplit, entries_kept
from kubescene.timeline.explanations import Explain

if TYPE_CHECKING:
    from kubescene.scheduler.cycle import Cycle

NO_ROWS: Rows = np.zeros(0, dtype=np.intp)
FEW_ROWS = 12
"""So many rows are judged and rated faster one by one."""


class Course:
    """What is settled for all pods of one concern before a cycle begins.

    ``filters`` is None if their cycle has to take all its steps.
    """

    __slots__ = ("concern", "filters", "scores")

    def __init__(
        self, concern: Concern, filters: FilterSplit | None, scores: ScoreSplit | None
    ) -> None:
        self.concern = concern
        self.filters = filters
        self.scores = scores

    def state(self) -> CycleState:
        """The state as PreFilter and PreScore leave it."""
        state, concern = CycleState(), self.concern
        state.concern = concern
        state.skipped_filters = concern.pre_filtered[1]
        state.skipped_scores = concern.pre_scored[1]
        state.unrated_scores = concern.unrated
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
        "filtering",
        "filters",
        "judged",
        "rated",
        "scores",
        "spec",
    )

    def __init__(
        self, cycle: "Cycle", course: Course, pod: PodInfo, spec: SpecVerdicts | None
    ) -> None:
        super().__init__(cycle.nodes)
        assert course.filters is not None
        assert course.scores is not None
        self._cycle = cycle
        self._nodes = cycle.nodes
        self._pod = pod
        self._state = course.state()
        self.filters = course.filters
        self.scores = course.scores
        self.spec = spec
        self.judged: ClassVerdicts = cycle.filters.verdicts_of(pod, course.filters)
        self.rated: ClassScores = cycle.scores.scores_of(pod, course.scores)
        self.filtering = Filtering(cycle.filters, self._state, pod, self.filters, self.judged)

    def fits(self, course: Course) -> bool:
        """Whether it can be used, after the rows have moved and for this course."""
        nodes = self._nodes
        if self.filters is not course.filters or self.scores is not course.scores:
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
        if len(outdated) <= FEW_ROWS and self.rated.active.one_by_one:
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

    def totals(self, found: Found) -> Scored:
        """What the feasible rows are worth, if that decides, as a view."""
        rows, window = found.feasible, found.window
        sums = self.rated.sums
        return Scored(sums.take(rows) if window is None else window.on(sums, rows))

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


class Routines:
    """The routine decisions of one profile."""

    def __init__(self, cycle: "Cycle") -> None:
        framework = cycle.framework
        self._cycle = cycle
        self._nodes: NodeTable = cycle.nodes
        self._shared = SharedVerdicts(framework)
        self._kept: OrderedDict[PodClass, Routine] = OrderedDict()
        self._possible = bool(
            cycle.extenders.is_empty and framework.scores and not framework.unprepared.scoring
        )
        self._wanted = (0, 0)

    def decide(self, pod: PodInfo, explain: Explain | None) -> Decision | None:
        """Find a node for a pod, or None if it takes a whole cycle to do so or to say why not."""
        cycle, nodes = self._cycle, self._nodes
        nodes.refresh()
        if not self._possible or cycle.nominations or self._is_special(pod) or not nodes.infos:
            return None
        concern = cycle.framework.concerns.of(pod.signature)
        course: Course | None = concern.course
        if course is None and (course := self._look(concern, pod)) is None:
            return None
        if course.filters is None:
            return None
        try:
            return self._take(course, self._routine(course, pod), pod, explain)
        except (PluginError, ScoringError):
            # The whole cycle will come to the same and say whose fault it is.
            return None

    def _is_special(self, pod: PodInfo) -> bool:
        if pod.nominated_node or pod.node or pod.requests is not pod.pod_class.requests:
            return True
        return self._cycle.failures.remembers(pod)

    def _look(self, concern: Concern, pod: PodInfo) -> Course | None:
        """Settle what can be; None if a plugin has raised."""
        if not (concern.pre_filters_by_class and concern.pre_scores_by_class):
            concern.course = Course(concern, None, None)
        elif self._prepared(concern, pod):
            concern.course = self._settled(concern, pod)
        course: Course | None = concern.course
        return course

    def _prepared(self, concern: Concern, pod: PodInfo) -> bool:
        """Have PreFilter and PreScore asked about the class, if nobody has done so before."""
        state, cycle = CycleState(), self._cycle
        try:
            if concern.pre_filtered is None:
                cycle.pre_filter(state, pod)
            if concern.pre_scored is None:
                state.concern = concern
                cycle.pre_score(state, pod, NO_ROWS)
        except PluginError:
            return False
        return concern.pre_filtered is not None and concern.pre_scored is not None

    def _settled(self, concern: Concern, pod: PodInfo) -> Course:
        (outcome, skipped), (fault, unscored) = concern.pre_filtered, concern.pre_scored
        filters = self._cycle.filters.split(skipped)
        scores = self._cycle.scores.split(unscored | concern.unrated)
        usual = outcome.status.ok and outcome.node_names is None and not fault
        own = filters.is_ours and not filters.others and scores.is_ours
        alone = self._cycle.batch.signs(pod, concern)
        return Course(concern, filters if usual and own and not alone else None, scores)

    def _routine(self, course: Course, pod: PodInfo) -> Routine:
        kept, pod_class = self._kept, pod.pod_class
        routine = kept.get(pod_class)
        if routine is None or not routine.fits(course):
            assert course.filters is not None
            by_spec = course.filters.by_spec
            spec = self._shared.of(by_spec, pod) if by_spec else None
            routine = kept[pod_class] = Routine(self._cycle, course, pod, spec)
            while len(kept) > entries_kept(self._nodes):
                kept.popitem(last=False)
        kept.move_to_end(pod_class)
        return routine

    def _take(
        self, course: Course, routine: Routine, pod: PodInfo, explain: Explain | None
    ) -> Decision | None:
        cycle, nodes = self._cycle, self._nodes
        count = len(nodes.infos)
        if self._wanted[0] != count:
            percentage = cycle.framework.profile.percentage_of_nodes_to_score
            self._wanted = (count, nodes_to_find(count, percentage))
        start = cycle.start.index % count
        found = search(routine, cycle.candidates(None), start, self._wanted[1], every=True)
        feasible = found.feasible.size
        if not feasible or routine.judged.errors:
            return None
        state = course.state()
        explains = explain is not None and explain.wanted(failed=False, nodes=count)
        scored: Scored | None = None
        best = 0
        if feasible > 1:
            if explains or not routine.is_summed:
                scored = cycle.scores.rate(
                    state, pod, routine.rated, found.feasible, found.window, explain=explains
                )
                choose = pick_small if routine.scores.is_small else pick
                best = choose(scored.totals)
            else:
                best = pick_small(routine.totals(found).totals)
        chosen = found.feasible.item(best)
        cycle.start.advance(found.rows.size, count)
        cycle.batch.leave_nothing()
        decision = Decision(
            state,
            nodes.names[chosen],
            found.rows.size,
            feasible,
            pre_filter=course.concern.pre_filtered[0],
        )
        if explains:
            diagnosis = Diagnosis(nodes.names)
            diagnosis.examine(found, routine.filtering)
            decision.explanation = explain_attempt(nodes.names, diagnosis, found, scored, chosen)
        return decision
