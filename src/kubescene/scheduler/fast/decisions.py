"""Who knows outcomes of cycles without them: the usual decision, made by reading what is kept.

Most pods are like many others. What PreFilter says of them is known, no extender has to be asked,
nobody is nominated, and all Filters that run read nothing but the node. Then a cycle comes down to
this: have the rows of the next window told of anew that have changed since the last pod of the
class, and take the best one. Mostly what PreScore says is known as well. Our own plugins that count
pods by domain prepare themselves for each pod, and rate the rows that are left.

The outcome is that of `deciding.Deciding`, to which everything else is left, pods that fit nowhere
included. Its Filters and Scores read what is kept as well.
"""

from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

from kubescene.api.records.templates import target_of
from kubescene.errors import PluginError
from kubescene.scheduler.cycle.best_node import pick_small
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.explanations import explain_choice
from kubescene.scheduler.cycle.fast_path import NextDecision
from kubescene.scheduler.cycle.profile_cycles import ProfileCycles
from kubescene.scheduler.cycle.scoring import Scored, ScoreSplit, ScoringError
from kubescene.scheduler.cycle.search import Found, nodes_to_find
from kubescene.scheduler.cycle.verdicts import Filtering, FilterSplit
from kubescene.scheduler.fast.kept_filtering import DomainCodes, KeptFiltering, UsualFiltering
from kubescene.scheduler.fast.kept_rows import KeptRows
from kubescene.scheduler.fast.kept_scoring import KeptScoring, ScoredDetail
from kubescene.scheduler.fast.renewers import Renewers
from kubescene.scheduler.fast.repeating import RepeatedFailures
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.extensions import Extension
from kubescene.scheduler.framework.guarded_calls import is_ours
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.relevance import RelevantPlugins
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Window

NO_ROWS: Rows = np.zeros(0, dtype=np.intp)


class CyclePlan:
    """What is settled for all pods with the same relevant plugins before a cycle begins.

    ``filters`` is None if their cycle has to take all its steps. ``skipped_scores`` are those of
    the PreScores that the class decides, ``preparing`` the others: they are asked about each pod,
    and ``scores`` are those that the last one had.
    """

    __slots__ = ("filters", "preparing", "relevant", "scores", "skipped_scores", "template")

    def __init__(
        self,
        relevant: RelevantPlugins,
        filters: FilterSplit | None = None,
        scores: ScoreSplit | None = None,
        skipped_scores: frozenset[str] = frozenset(),
        preparing: tuple[Extension, ...] = (),
    ) -> None:
        self.relevant = relevant
        self.filters = filters
        self.scores = scores
        self.skipped_scores = skipped_scores
        self.preparing = preparing
        self.template = CycleState() if filters is None else self.state()
        """The state for those who only have rows told of."""

    def state(self) -> CycleState:
        """The state as PreFilter leaves it, and as PreScore does but for those that prepare."""
        state, relevant = CycleState(), self.relevant
        state.relevant = relevant
        state.skipped_filters = relevant.pre_filtered[1]
        state.skipped_scores = self.skipped_scores
        state.unrated_scores = relevant.unrated
        return state


class LastOne:
    """The last decision, for the next pod that is like it."""

    __slots__ = ("explains", "kept", "newest_spec", "plan", "signature", "sums")

    def __init__(
        self,
        plan: CyclePlan,
        kept: KeptRows,
        signature: PodSignature,
        newest_spec: int,
        *,
        explains: bool,
        sums: int,
    ) -> None:
        self.plan = plan
        self.kept = kept
        self.signature = signature
        self.newest_spec = newest_spec
        self.explains = explains
        self.sums = sums
        """Of how many rows the kept sums are known to decide alone; 0 if more is to be told."""


class FastDecisions:
    """What is kept for one profile, and what it makes of it."""

    def __init__(self, cycle: ProfileCycles) -> None:
        framework = cycle.framework
        self._cycle = cycle
        self._nodes: NodeTable = cycle.nodes
        self._kept: OrderedDict[PodClass, KeptRows] = OrderedDict()
        self._renewers = Renewers(framework, cycle.nodes)
        self._domains = DomainCodes(cycle.nodes)
        self._scoring = KeptScoring(cycle.scores)
        self.failures = RepeatedFailures(framework, cycle.nominations)
        self._possible = bool(
            cycle.extenders.is_empty and framework.scores and not framework.unprepared.scoring
        )
        self._wanted = (0, 0)
        self._last: LastOne | None = None

    # -- the usual decision ----------------------------------------------------------------

    def decide(
        self, pod: PodInfo, explain: Explain | None, *, binds_at_once: bool = False
    ) -> Decision | None:
        """Find a node for a pod, or None if it takes a whole cycle to do so or to say why not."""
        cycle, nodes = self._cycle, self._nodes
        nodes.refresh()
        self._last = None
        if not self._possible or cycle.nominations or self._is_special(pod) or not nodes.infos:
            return None
        relevant = cycle.framework.relevance.of(pod.signature)
        if binds_at_once and not relevant.binds_at_once_alone:
            return None
        plan: CyclePlan | None = relevant.plan
        if plan is None and (plan := self._find_plan(relevant, pod)) is None:
            return None
        if plan.filters is None or plan.scores is None:
            return None
        explains = explain is not None and explain.wanted(failed=False, nodes=len(nodes.infos))
        kept = self._rated_rows(pod, plan.filters, plan.scores, explains=explains)
        return self._take(plan, kept, plan.state(), pod, explains=explains)

    def decide_next(self, pod: PodInfo, *, counted: bool) -> Decision | NextDecision | None:
        """Find a node for a pod like the last that `decide` placed; None if that takes more.

        Who asks knows that nothing but nodes can have changed; their objects must not have. If
        owners of pods have ``counted``, the plugins say themselves whether it matters to them.
        """
        last, nodes, cycle = self._last, self._nodes, self._cycle
        if last is None or last.signature is not pod.signature or cycle.nominations:
            return None
        kept = last.kept
        if not nodes.is_current or last.newest_spec != nodes.newest_spec:
            self._last = None
            return None
        if counted and cycle.framework.relevance.of(pod.signature) is not last.plan.relevant:
            self._last = None
            return None
        if not last.sums:
            return self._take(last.plan, kept, last.plan.state(), pod, explains=last.explains)
        start, wanted = self._bounds()
        count = len(nodes.infos)
        window = Window(start, min(wanted, count), count)
        if last.sums != window.size:
            return self._take(last.plan, kept, last.plan.state(), pod, explains=last.explains)
        rows = cycle.candidates(None)[start : start + window.size]
        try:
            told = kept.tell_all(last.plan.template, pod)
            if told is None:
                verdicts = kept.tell(last.plan.template, pod, rows, window)
            else:
                verdicts = window.on(told, rows)
        except (PluginError, ScoringError):
            return None
        if (kept.refuses and np.count_nonzero(verdicts)) or not kept.is_summed:
            return self._take(last.plan, kept, last.plan.state(), pod, explains=last.explains)
        cycle.start.advance(window.size, count)
        node = nodes.names[rows.item(kept.best(rows, window))]
        return NextDecision(node, window.size, window.size)

    def _take(
        self, plan: CyclePlan, kept: KeptRows, state: CycleState, pod: PodInfo, *, explains: bool
    ) -> Decision | None:
        """Search, choose, and explain; None leaves it to the whole cycle."""
        cycle, scored = self._cycle, None
        assert plan.filters is not None
        filtering = UsualFiltering(cycle.filters, state, pod, plan.filters, kept)
        try:
            found = filtering.search(cycle.candidates(None), *self._bounds())
            if not found.feasible.size or kept.errors or state.passing_codes:
                return None
            if plan.preparing and not self._prepare(
                plan, kept, state, pod, found, explains=explains
            ):
                return None
            best, scored = self._best(kept, state, pod, found, explains=explains)
        except (PluginError, ScoringError):
            # The whole cycle will come to the same and say whose fault it is.
            return None
        nodes, examined = self._nodes, found.rows.size
        alone = kept.is_summed and kept.even_for == found.feasible.size > 1 and not explains
        alone = alone and not plan.preparing  # They may have something to say about the next one.
        self._last = LastOne(
            plan,
            kept,
            pod.signature,
            nodes.newest_spec,
            explains=explains,
            sums=found.feasible.size if alone else 0,
        )
        cycle.start.advance(examined, len(nodes.infos))
        cycle.batch.leave_nothing()
        name, outcome = nodes.names[found.feasible.item(best)], plan.relevant.pre_filtered[0]
        decision = Decision(state, name, examined, found.feasible.size, pre_filter=outcome)
        if explains:
            decision.explanation = explain_choice(nodes.names, found, filtering, scored, best)
        return decision

    def _prepare(
        self,
        plan: CyclePlan,
        kept: KeptRows,
        state: CycleState,
        pod: PodInfo,
        found: Found,
        *,
        explains: bool,
    ) -> bool:
        """Ask those who prepare themselves for each pod; False leaves it to the whole cycle."""
        rows, cycle = found.feasible, self._cycle
        if rows.size == 1:
            return True  # It will not be rated.
        for extension in plan.preparing:
            status = extension.call(state, pod, self._nodes, rows)
            if status.code is Code.SKIP:
                state.skipped_scores |= {extension.name}
            elif not status.ok:
                return False
        scores = cycle.scores.split(state.skipped_scores | state.unrated_scores)
        if kept.raters is not None and kept.raters.split is scores:
            return True
        if not scores.is_small:
            return False
        # Somebody rates nodes for this pod who did not for the last one, or no longer.
        plan.scores = scores
        kept.rate_by(self._renewers.raters(pod, scores))
        if explains:
            kept.keep_plain()
        kept.rate(state, pod, rows, found.window)
        return True

    def _best(
        self, kept: KeptRows, state: CycleState, pod: PodInfo, found: Found, *, explains: bool
    ) -> tuple[int, Scored | ScoredDetail | None]:
        """The position of the best of the feasible rows, and what there is to say of all scores."""
        rows, window, scoring = found.feasible, found.window, self._scoring
        if rows.size == 1:
            return 0, None
        if scoring.decides_alone(kept, state, pod, rows.size):
            told = scoring.told(kept, state, pod, rows, window) if explains else None
            return kept.best(rows, window), told
        if not explains:
            return scoring.best(kept, state, pod, rows, window), None
        scored = scoring.score(kept, state, pod, rows, window, explain=True)
        return pick_small(scored.totals), scored

    def _bounds(self) -> tuple[int, int]:
        """Where a search starts, and how many nodes are enough."""
        cycle, count = self._cycle, len(self._nodes.infos)
        if self._wanted[0] != count:
            percentage = cycle.framework.profile.percentage_of_nodes_to_score
            self._wanted = (count, nodes_to_find(count, percentage))
        return cycle.start.index % count, self._wanted[1]

    # -- who is usual ----------------------------------------------------------------------

    def _is_special(self, pod: PodInfo) -> bool:
        if pod.nominated_node or pod.node or pod.requests is not pod.pod_class.requests:
            return True
        if pod.pod_class.compiled(asks_for_a_node):
            return True
        return pod.signature in self.failures.known

    def _find_plan(self, relevant: RelevantPlugins, pod: PodInfo) -> CyclePlan | None:
        """Settle what can be; None if a plugin has raised."""
        framework = self._cycle.framework
        preparing = tuple(
            each for each in relevant.pre_score if not framework.prepare_by_class((each,))
        )
        ours = all(is_ours(framework.plugins[each.name]) for each in preparing)
        if relevant.pre_filters_by_class and ours:
            relevant.plan = self._settled(relevant, pod, preparing)
        else:
            relevant.plan = CyclePlan(relevant)
        plan: CyclePlan | None = relevant.plan
        return plan

    def _settled(
        self, relevant: RelevantPlugins, pod: PodInfo, preparing: tuple[Extension, ...]
    ) -> CyclePlan | None:
        """Have PreFilter and PreScore asked about the class, if nobody has done so before."""
        state, cycle = CycleState(), self._cycle
        try:
            outcome = cycle.pre_filter(state, pod)
            fault = cycle.pre_score(state, pod, NO_ROWS)
        except PluginError:
            return None
        filters = cycle.filters.split(state.skipped_filters)
        scores = cycle.scores.split(state.skipped_scores | state.unrated_scores)
        usual = outcome.status.ok and outcome.node_names is None and not fault
        alone = cycle.batch.signs(pod, relevant)
        if usual and scores.is_small and not filters.others and not alone:
            skipped = state.skipped_scores.difference(each.name for each in preparing)
            return CyclePlan(relevant, filters, scores, skipped, preparing)
        return CyclePlan(relevant)

    # -- what is kept ----------------------------------------------------------------------

    def _rows_of(self, pod: PodInfo, split: FilterSplit) -> KeptRows:
        """What is kept of the class of a pod, if need be from now on."""
        kept, nodes = self._kept, self._nodes
        rows = kept.get(pod.pod_class)
        if rows is None or rows.judges.extensions != split.per_node or not rows.in_place():
            rows = kept[pod.pod_class] = KeptRows(nodes, self._renewers.judges(pod, split))
            while len(kept) > POLICY.entries_kept(len(nodes)):
                kept.popitem(last=False)
        kept.move_to_end(pod.pod_class)
        return rows

    def _rated_rows(
        self, pod: PodInfo, filters: FilterSplit, scores: ScoreSplit, *, explains: bool
    ) -> KeptRows:
        """The same with the scores of some plugins."""
        rows = self._rows_of(pod, filters)
        if rows.raters is None or rows.raters.split is not scores:
            rows.rate_by(self._renewers.raters(pod, scores))
        if explains:
            rows.keep_plain()
        return rows

    def filtering(self, state: CycleState, pod: PodInfo) -> Filtering | None:
        self._last = None
        # The node's name is no part of the class, and such a pod never is in the queue.
        if pod.node or pod.is_resized or pod.pod_class.compiled(asks_for_a_node):
            return None
        chain = self._cycle.filters
        split = chain.split(state.skipped_filters)
        kept = self._rows_of(pod, split)
        return KeptFiltering(chain, state, pod, split, kept, self._domains)

    def score(
        self,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        window: Window | None,
        *,
        explain: bool,
    ) -> Scored | None:
        split = self._cycle.scores.split(state.skipped_scores | state.unrated_scores)
        if pod.node or pod.is_resized or not split.is_small:
            return None
        filters = self._cycle.filters.split(state.skipped_filters)
        kept = self._rated_rows(pod, filters, split, explains=explain)
        kept.rate(state, pod, rows, window)
        return self._scoring.score(kept, state, pod, rows, window, explain=explain)

    # -- failures --------------------------------------------------------------------------

    def failure(self, pod: PodInfo, stamp: Hashable) -> Decision | None:
        return self.failures.find(pod, stamp)

    def failed(self, pod: PodInfo, decision: Decision, stamp: Hashable) -> None:
        self.failures.keep(pod, decision, stamp)


def asks_for_a_node(pod_class: PodClass) -> bool:
    """Whether pods ask for one node by name, as those of a DaemonSet do.

    No other pod is like them, and no other node is looked at: there is nothing to keep.
    """
    return bool(target_of(pod_class.spec))
