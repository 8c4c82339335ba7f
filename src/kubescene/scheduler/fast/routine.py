"""The usual decision in one pass: about a pod of which nothing is special.

Most pods are like many others. What PreFilter and PreScore say of them is known, no extender has to
be asked, nobody is nominated, and all Filters that run are our own and read nothing but the node.
Then a cycle comes down to this: judge and rate the rows that have changed since the last pod of the
class, and take the best one of the next window. For pods that ask for cpu and memory alone there is
a faster way to do so, and one for classes that are rare (`cpu_memory_decisions`).

The outcome is that of `deciding.Deciding`, to which everything else is left, pods that fit nowhere
included.
"""

from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

from kubescene.errors import PluginError
from kubescene.instruments.attempts import Explanation
from kubescene.scheduler.cycle.best_node import pick, pick_small
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.explanations import explain_choice
from kubescene.scheduler.cycle.fast_path import NextDecision
from kubescene.scheduler.cycle.scoring import Scored, ScoringError
from kubescene.scheduler.cycle.search import Found, nodes_to_find, search
from kubescene.scheduler.cycle.summed_scores import CommonColumns, Told
from kubescene.scheduler.fast.cpu_memory_decisions import CpuMemoryDecisions, Evaluation
from kubescene.scheduler.fast.cpu_memory_rows import CpuMemoryRows
from kubescene.scheduler.fast.repeating import RepeatedFailures
from kubescene.scheduler.fast.routine_rows import Plan, Routine
from kubescene.scheduler.fast.spec_verdicts import SharedVerdicts
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.relevance import RelevantPlugins
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import entries_kept

NO_ROWS: Rows = np.zeros(0, dtype=np.intp)


class LastOne:
    """The last decision, for the next pod that is like it."""

    __slots__ = ("changes", "explains", "newest_spec", "plan", "rows", "signature")

    def __init__(
        self,
        signature: PodSignature,
        rows: CpuMemoryRows,
        plan: Plan,
        nodes: NodeTable,
        *,
        explains: bool,
    ) -> None:
        self.signature = signature
        self.rows = rows
        self.plan = plan
        self.explains = explains
        self.changes = nodes.changes
        """Of the node table when it was made."""
        self.newest_spec = nodes.newest_spec


class FastDecisions:
    """The routine decisions of one profile, and the failures that need not be worked out again."""

    keeps_rows = True

    def __init__(self, cycle: Cycle) -> None:
        framework = cycle.framework
        self._cycle = cycle
        self._nodes: NodeTable = cycle.nodes
        self._shared = SharedVerdicts(framework)
        self._by_cpu_memory = CpuMemoryDecisions(framework, cycle.filters, self._shared)
        self._kept: OrderedDict[PodClass, Routine] = OrderedDict()
        self.failures = RepeatedFailures(framework, cycle.nominations)
        self._possible = bool(
            cycle.extenders.is_empty and framework.scores and not framework.unprepared.scoring
        )
        self._wanted = (0, 0)
        self._last: LastOne | None = None
        self._common: CommonColumns | None = None
        """What the last explanations of looks had in common."""

    def decide(self, pod: PodInfo, explain: Explain | None) -> Decision | None:
        """Find a node for a pod, or None if it takes a whole cycle to do so or to say why not."""
        cycle, nodes = self._cycle, self._nodes
        nodes.refresh()
        self._last = None
        if not self._possible or cycle.nominations or self._is_special(pod) or not nodes.infos:
            return None
        relevant = cycle.framework.relevance.of(pod.signature)
        plan: Plan | None = relevant.plan
        if plan is None and (plan := self._find_plan(relevant, pod)) is None:
            return None
        if plan.filters is None:
            return None
        explains = explain is not None and explain.wanted(failed=False, nodes=len(nodes.infos))
        try:
            evaluation = self._by_cpu_memory.begin(plan, pod)
            if evaluation is not None:
                return self._take_by(evaluation, plan, pod, explains=explains)
            return self._take(plan, self._fitting(plan, pod), pod, explains=explains)
        except (PluginError, ScoringError):
            # The whole cycle will come to the same and say whose fault it is.
            return None

    def decide_next(self, pod: PodInfo) -> Decision | NextDecision | None:
        """Find a node for a pod like the last that `decide` placed, if nothing else has happened.

        None if it has, or may have. Who asks knows that nothing but nodes can have changed.
        """
        last, nodes, cycle = self._last, self._nodes, self._cycle
        if last is None or last.signature is not pod.signature or cycle.nominations:
            return None
        changed = nodes.only_change_since(last.changes, last.newest_spec)
        if changed is None:
            self._last = None
            return None
        rows = last.rows
        rows.renew(changed)
        if last.explains or rows.refuses:
            try:
                return self._take_by(rows, last.plan, pod, explains=last.explains)
            except (PluginError, ScoringError):
                return None
        start, wanted = self._bounds()
        count = len(nodes.infos)
        examined = min(wanted, count)
        cycle.start.advance(examined, count)
        last.changes = nodes.changes
        return NextDecision(nodes.names[rows.best_of_all(start, wanted)], examined, examined)

    def _is_special(self, pod: PodInfo) -> bool:
        if pod.nominated_node or pod.node or pod.requests is not pod.pod_class.requests:
            return True
        return pod.signature in self.failures.known

    def failure(self, pod: PodInfo, stamp: Hashable) -> Decision | None:
        return self.failures.find(pod, stamp)

    def failed(self, pod: PodInfo, decision: Decision, stamp: Hashable) -> None:
        self.failures.keep(pod, decision, stamp)

    def _find_plan(self, relevant: RelevantPlugins, pod: PodInfo) -> Plan | None:
        """Settle what can be; None if a plugin has raised."""
        if not (relevant.pre_filters_by_class and relevant.pre_scores_by_class):
            relevant.plan = Plan(relevant, None, None)
        elif self._prepared(relevant, pod):
            relevant.plan = self._settled(relevant, pod)
        plan: Plan | None = relevant.plan
        return plan

    def _prepared(self, relevant: RelevantPlugins, pod: PodInfo) -> bool:
        """Have PreFilter and PreScore asked about the class, if nobody has done so before."""
        state, cycle = CycleState(), self._cycle
        try:
            if relevant.pre_filtered is None:
                cycle.pre_filter(state, pod)
            if relevant.pre_scored is None:
                state.relevant = relevant
                cycle.pre_score(state, pod, NO_ROWS)
        except PluginError:
            return False
        return relevant.pre_filtered is not None and relevant.pre_scored is not None

    def _settled(self, relevant: RelevantPlugins, pod: PodInfo) -> Plan:
        (outcome, skipped), (fault, unscored) = relevant.pre_filtered, relevant.pre_scored
        filters = self._cycle.filters.split(skipped)
        scores = self._cycle.scores.split(unscored | relevant.unrated)
        usual = outcome.status.ok and outcome.node_names is None and not fault
        own = filters.is_ours and not filters.others and scores.is_ours
        alone = self._cycle.batch.signs(pod, relevant)
        return Plan(relevant, filters if usual and own and not alone else None, scores)

    def _fitting(self, plan: Plan, pod: PodInfo) -> Routine:
        """What is kept of the class, if need be from now on."""
        kept = self._kept
        routine = kept.get(pod.pod_class)
        if routine is None or not routine.fits(plan):
            assert plan.filters is not None
            by_spec = plan.filters.by_spec
            spec = self._shared.of(by_spec, pod) if by_spec else None
            routine = kept[pod.pod_class] = Routine(self._cycle, plan, pod, spec)
            while len(kept) > entries_kept(self._nodes):
                kept.popitem(last=False)
        kept.move_to_end(pod.pod_class)
        return routine

    def _take_by(
        self, evaluation: Evaluation, plan: Plan, pod: PodInfo, *, explains: bool
    ) -> Decision | None:
        """Decide about a pod that asks for cpu and memory alone."""
        found = evaluation.search(self._cycle.candidates(None), *self._bounds())
        feasible = found.feasible.size
        if not feasible:
            # The whole cycle need not judge them again.
            assert plan.filters is not None
            self._cycle.filters.keep(pod, plan.filters, found.rows, found.verdicts)
            return None
        if isinstance(evaluation, CpuMemoryRows):
            self._last = LastOne(pod.signature, evaluation, plan, self._nodes, explains=explains)
        best = evaluation.best(found, explains=explains) if feasible > 1 else 0
        state = plan.state()
        decision = self._decided(plan, state, found, best)
        if explains:
            told = None
            if feasible > 1:
                told = self._common_to(plan, state, pod, feasible).with_own(evaluation.plain(found))
            decision.explanation = self._explanation(evaluation, found, told, best)
        return decision

    def _common_to(self, plan: Plan, state: CycleState, pod: PodInfo, count: int) -> CommonColumns:
        """What such pods are told of so many nodes, whatever these are."""
        common = self._common
        if common is None or not common.fits(state, count):
            assert plan.scores is not None
            columns = self._cycle.scores.unrated(state, pod, plan.scores, count)
            common = self._common = CommonColumns(columns, plan.scores, state, count)
        return common

    def _take(
        self, plan: Plan, routine: Routine, pod: PodInfo, *, explains: bool
    ) -> Decision | None:
        found = search(routine, self._cycle.candidates(None), *self._bounds(), every=True)
        feasible, state = found.feasible.size, plan.state()
        if not feasible or routine.judged.errors:
            return None
        best, scored = 0, None
        if feasible > 1:
            if not routine.is_summed or (explains and not routine.explains(state, found)):
                scored = self._rate(routine, state, pod, found, explains=explains)
            totals = routine.sums(found) if scored is None else scored.totals
            best = (pick_small if routine.scores.is_small else pick)(totals)
        decision = self._decided(plan, state, found, best)
        if explains:
            if scored is not None:
                routine.explained(state, found, scored)
            told = scored or (routine.summed(found) if feasible > 1 else None)
            decision.explanation = self._explanation(routine, found, told, best)
        return decision

    def _decided(self, plan: Plan, state: CycleState, found: Found, best: int) -> Decision:
        """The pod goes to one of the feasible nodes."""
        cycle, nodes, examined = self._cycle, self._nodes, found.rows.size
        cycle.start.advance(examined, len(nodes.infos))
        cycle.batch.leave_nothing()
        name, outcome = nodes.names[found.feasible.item(best)], plan.relevant.pre_filtered[0]
        return Decision(state, name, examined, found.feasible.size, pre_filter=outcome)

    def _bounds(self) -> tuple[int, int]:
        """Where a search starts, and how many nodes are enough."""
        cycle, count = self._cycle, len(self._nodes.infos)
        if self._wanted[0] != count:
            percentage = cycle.framework.profile.percentage_of_nodes_to_score
            self._wanted = (count, nodes_to_find(count, percentage))
        return cycle.start.index % count, self._wanted[1]

    def _explanation(
        self, judge: Routine | Evaluation, found: Found, told: Scored | Told | None, best: int
    ) -> Explanation:
        return explain_choice(self._nodes.names, found, judge.filtering, told, best)

    def _rate(
        self, routine: Routine, state: CycleState, pod: PodInfo, found: Found, *, explains: bool
    ) -> Scored:
        """All that counts: what is kept, and what has to be worked out for these rows together."""
        scores, rows = self._cycle.scores, found.feasible
        return scores.rate(state, pod, routine.rated, rows, found.window, explain=explains)
