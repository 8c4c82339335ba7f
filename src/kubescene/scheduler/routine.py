"""The usual decision in one pass: about a pod of which nothing is special.

Most pods are like many others. What PreFilter and PreScore say of them is known, no extender has to
be asked, nobody is nominated, and all Filters that run are our own and read nothing but the node.
Then a cycle comes down to this: judge and rate the rows that have changed since the last pod of the
class, and take the best one of the next window; or look at that window anew, if pods of the class
are rare (`fresh_looks`).

The outcome is that of `deciding.Deciding`, to which everything else is left, pods that fit nowhere
included.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from kubescene.errors import PluginError
from kubescene.scheduler.concerns import Concern
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.decisions import Decision
from kubescene.scheduler.explanations import explain_choice
from kubescene.scheduler.fresh_looks import FreshLook, FreshLooks
from kubescene.scheduler.interfaces import Rows
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.picking import pick, pick_small
from kubescene.scheduler.pods import PodClass, PodInfo
from kubescene.scheduler.routine_rows import Course, Routine
from kubescene.scheduler.scoring import Scored, ScoringError
from kubescene.scheduler.search import Found, Judge, nodes_to_find, search
from kubescene.scheduler.spec_verdicts import SharedVerdicts
from kubescene.scheduler.summed_scores import CommonColumns, Told
from kubescene.scheduler.verdicts import entries_kept
from kubescene.timeline.attempts import Explanation
from kubescene.timeline.explanations import Explain

if TYPE_CHECKING:
    from kubescene.scheduler.cycle import Cycle

NO_ROWS: Rows = np.zeros(0, dtype=np.intp)


class Routines:
    """The routine decisions of one profile."""

    def __init__(self, cycle: "Cycle") -> None:
        framework = cycle.framework
        self._cycle = cycle
        self._nodes: NodeTable = cycle.nodes
        self._shared = SharedVerdicts(framework)
        self._looks = FreshLooks(cycle.filters, self._shared)
        self._kept: OrderedDict[PodClass, Routine] = OrderedDict()
        self._possible = bool(
            cycle.extenders.is_empty and framework.scores and not framework.unprepared.scoring
        )
        self._wanted = (0, 0)
        self._last: Routine | None = None
        """Who decided about the last pod: mostly the next one is of the same class."""
        self._common: CommonColumns | None = None
        """What the last explanations of fresh looks had in common."""

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
        explains = explain is not None and explain.wanted(failed=False, nodes=len(nodes.infos))
        routine = self._last
        try:
            if routine is None or routine.pod_class is not pod.pod_class:
                return self._turn_to(course, pod, explains=explains)
            return self._take(course, self._fitting(course, pod, routine), pod, explains=explains)
        except (PluginError, ScoringError):
            # The whole cycle will come to the same and say whose fault it is.
            return None

    def _is_special(self, pod: PodInfo) -> bool:
        if pod.nominated_node or pod.node or pod.requests is not pod.pod_class.requests:
            return True
        return pod.signature in self._cycle.failures.known

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

    def _turn_to(self, course: Course, pod: PodInfo, *, explains: bool) -> Decision | None:
        """Decide after pods of another class: by what is kept, unless that is far behind."""
        routine, self._last = self._kept.get(pod.pod_class), None
        if routine is None or not routine.follows(self._nodes):
            look = self._looks.begin(course, pod)
            if look is not None:
                return self._take_anew(course, look, pod, explains=explains)
        self._last = routine = self._fitting(course, pod, routine)
        self._kept.move_to_end(pod.pod_class)
        return self._take(course, routine, pod, explains=explains)

    def _fitting(self, course: Course, pod: PodInfo, routine: Routine | None) -> Routine:
        """What is kept of the class, if need be from now on."""
        if routine is not None and routine.fits(course):
            return routine
        assert course.filters is not None
        kept, by_spec = self._kept, course.filters.by_spec
        spec = self._shared.of(by_spec, pod) if by_spec else None
        self._last = kept[pod.pod_class] = Routine(self._cycle, course, pod, spec)
        kept.move_to_end(pod.pod_class)
        while len(kept) > entries_kept(self._nodes):
            kept.popitem(last=False)
        return self._last

    def _take_anew(
        self, course: Course, look: FreshLook, pod: PodInfo, *, explains: bool
    ) -> Decision | None:
        found = self._search(look, len(self._nodes.infos))
        look.visits.saw(found.rows.size)
        feasible = found.feasible.size
        if not feasible:
            # The whole cycle need not judge them again.
            assert course.filters is not None
            self._cycle.filters.keep(pod, course.filters, found.rows, found.verdicts)
            return None
        best = pick_small(look.sums(found, explains=explains)) if feasible > 1 else 0
        decision = self._decided(course, look.state, found, best)
        if explains:
            told = self._told_anew(course, look, pod, feasible) if feasible > 1 else None
            decision.explanation = self._explanation(look, found, told, best)
        return decision

    def _told_anew(self, course: Course, look: FreshLook, pod: PodInfo, count: int) -> Told:
        """What a fresh look has summed up."""
        state, common = look.state, self._common
        if common is None or not common.fits(state, count):
            assert course.scores is not None
            columns = self._cycle.scores.unrated(state, pod, course.scores, count)
            common = self._common = CommonColumns(columns, course.scores, state, count)
        return common.with_own(look.plain)

    def _take(
        self, course: Course, routine: Routine, pod: PodInfo, *, explains: bool
    ) -> Decision | None:
        found = self._search(routine, len(self._nodes.infos))
        feasible, state = found.feasible.size, course.state()
        if not feasible or routine.judged.errors:
            return None
        best, scored = 0, None
        if feasible > 1:
            if not routine.is_summed or (explains and not routine.explains(state, found)):
                scored = self._rate(routine, state, pod, found, explains=explains)
            totals = routine.sums(found) if scored is None else scored.totals
            best = (pick_small if routine.scores.is_small else pick)(totals)
        decision = self._decided(course, state, found, best)
        if explains:
            if scored is not None:
                routine.explained(state, found, scored)
            told = scored or (routine.summed(found) if feasible > 1 else None)
            decision.explanation = self._explanation(routine, found, told, best)
        return decision

    def _decided(self, course: Course, state: CycleState, found: Found, best: int) -> Decision:
        """The pod goes to one of the feasible nodes."""
        cycle, nodes, examined = self._cycle, self._nodes, found.rows.size
        cycle.start.advance(examined, len(nodes.infos))
        cycle.batch.leave_nothing()
        name, outcome = nodes.names[found.feasible.item(best)], course.concern.pre_filtered[0]
        return Decision(state, name, examined, found.feasible.size, pre_filter=outcome)

    def _search(self, judge: Judge, count: int) -> Found:
        cycle = self._cycle
        if self._wanted[0] != count:
            percentage = cycle.framework.profile.percentage_of_nodes_to_score
            self._wanted = (count, nodes_to_find(count, percentage))
        start, wanted = cycle.start.index % count, self._wanted[1]
        return search(judge, cycle.candidates(None), start, wanted, every=True)

    def _explanation(
        self, judge: Routine | FreshLook, found: Found, told: Scored | Told | None, best: int
    ) -> Explanation:
        return explain_choice(self._nodes.names, found, judge.filtering, told, best)

    def _rate(
        self, routine: Routine, state: CycleState, pod: PodInfo, found: Found, *, explains: bool
    ) -> Scored:
        """All that counts: what is kept, and what has to be worked out for these rows together."""
        scores, rows = self._cycle.scores, found.feasible
        return scores.rate(state, pod, routine.rated, rows, found.window, explain=explains)
