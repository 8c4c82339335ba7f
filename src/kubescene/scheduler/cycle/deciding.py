"""One scheduling cycle: from a pod and the state of all nodes to a decision.

PreFilter may reject the pod or narrow the nodes. The node that a pod was nominated to is tried
first, alone. Then the search (`search`) filters nodes until it has enough of them. None: the
PostFilter plugins may make room, and say for whom. One: it is taken, unscored. Several: PreScore
and Score choose. Extenders have their say in between (`extender_rounds`).
"""

from collections.abc import Callable, Hashable

import numpy as np

from kubescene.errors import ConfigurationError
from kubescene.scheduler.cycle.best_node import pick, pick_any
from kubescene.scheduler.cycle.decisions import UNSCHEDULABLE, Decision
from kubescene.scheduler.cycle.explanations import Diagnosis, explain_attempt
from kubescene.scheduler.cycle.extender_rounds import FilterRound, ScoreRound, note
from kubescene.scheduler.cycle.profile_cycles import ProfileCycles
from kubescene.scheduler.cycle.scoring import Scored, ScoringError
from kubescene.scheduler.cycle.search import Found, NominatedFiltering, nodes_to_find, search
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.extenders.extenders import ExtenderCall, PendingCall
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.interfaces import PostFilterResult, Rows
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.state.pods import PodInfo


class PostFilterRun:
    """Asks one plugin after the other until one succeeds, fails or says it is hopeless. [M-3, M-5]

    What they ask for stands in the decision afterwards, ``nominated`` apart.
    """

    def __init__(
        self,
        cycle: ProfileCycles,
        pod: PodInfo,
        decision: Decision,
        diagnosis: Diagnosis,
        *,
        explains: bool,
    ) -> None:
        self.nominated: str | None = None
        decision.state.explains = explains
        self._cycle = cycle
        self._pod = pod
        self._decision = decision
        self._diagnosis = diagnosis
        self._explains = explains
        self._position = 0
        self._reasons: list[str] = []
        self._asked: PendingCall | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether an extender has to answer first."""
        return self._asked is not None and not self._asked.answered

    def run(self) -> bool:
        """Go on as far as possible; False as long as an extender has to answer first."""
        plugins = self._cycle.framework.post_filter
        while self._position < len(plugins):
            result = self._answered() if self._asked is not None else self._call()
            if isinstance(result, ExtenderCall):
                self._asked = self._cycle.extenders.ask(result)
                if not self._asked.answered:
                    return False
            elif self._take(result):
                return True
        self._diagnosis.post_filter_message = ", ".join(self._reasons)
        self.nominated = self._decision.nominated
        return True

    def _call(self) -> PostFilterResult | ExtenderCall:
        extension = self._cycle.framework.post_filter[self._position]
        result: PostFilterResult | ExtenderCall = extension.call(
            self._decision.state, self._pod, self._diagnosis
        )
        return result

    def _answered(self) -> PostFilterResult | ExtenderCall:
        extension = self._cycle.framework.post_filter[self._position]
        assert self._asked is not None
        call, answer = self._asked.call, self._asked.result()
        self._asked = None
        if self._explains:
            note(self._decision, call, answer, answer.error)
        if extension.answered is None:
            raise ConfigurationError(
                f'plugin "{extension.name}" asks an extender but has no method post_filter_answered'
            )
        result: PostFilterResult | ExtenderCall = extension.answered(
            self._decision.state, self._pod, self._diagnosis, answer
        )
        return result

    def _take(self, result: PostFilterResult) -> bool:
        """Take what a plugin says; returns whether it was the last word."""
        decision, status = self._decision, result.status
        decision.post_filtered = self._cycle.framework.post_filter[self._position].name
        if result.victims:
            decision.victims = result.victims
        if result.preemption is not None:
            decision.preemption = result.preemption
        if result.effect is not None:
            decision.effect = result.effect
        if status.ok or status.code is Code.UNRESOLVABLE or not status.code.is_rejection:
            self._diagnosis.post_filter_message = status.message
            failed = not (status.ok or status.code.is_rejection)
            self.nominated = None if failed else result.nominated
            return True
        self._reasons.extend(status.reasons)
        if result.nominated is not None:
            decision.nominated = result.nominated
        self._position += 1
        return False


NO_NODES = "no nodes available to schedule pods"  # C-1


class Deciding:
    """One cycle on its way to a decision.

    A cycle that waits for an extender stands still (`run` says so) and goes on when it is called
    again. It is a plain object that knows its next step, so that a world can be copied in the
    middle of it.
    """

    __slots__ = (
        "_bare",
        "_cycle",
        "_diagnosis",
        "_explain",
        "_extenders",
        "_filtering",
        "_found",
        "_hint",
        "_judge",
        "_next",
        "_number",
        "_passing",
        "_pod",
        "_prefilter",
        "_scored",
        "_stamp",
        "_then",
        "_waits_for",
        "decision",
    )

    def __init__(
        self, cycle: ProfileCycles, pod: PodInfo, explain: Explain | None, number: int | None = None
    ) -> None:
        self.decision = Decision(CycleState())
        self._cycle = cycle
        self._pod = pod
        self._explain = explain
        self._number = number
        self._hint = ""
        self._bare = False
        self._stamp: Hashable = None
        self._waits_for: FilterRound | ScoreRound | PostFilterRun | None = None
        self._next: Callable[[], None] | None = self._begin

    @property
    def is_waiting(self) -> bool:
        """Whether an extender has to answer before `run` can go on."""
        return self._waits_for is not None and self._waits_for.is_waiting

    def run(self) -> bool:
        """Go on; False as long as an extender has to answer first."""
        while (step := self._next) is not None:
            if self._waits_for is not None and self._waits_for.is_waiting:
                return False
            self._next = None
            step()
        return True

    def _explains(self, *, failed: bool = False) -> bool:
        explain = self._explain
        return explain is not None and explain.wanted(failed=failed, nodes=len(self._cycle.nodes))

    # -- Filter ----------------------------------------------------------------------------

    def _begin(self) -> None:
        cycle, pod, decision = self._cycle, self._pod, self.decision
        cycle.nodes.refresh()
        if not len(cycle.nodes):
            decision.fail(NO_NODES, UNSCHEDULABLE)
            return
        self._stamp = cycle.stamp()
        if self._repeat(cycle.fast.failure(pod, self._stamp)):
            return
        self._prefilter = prefilter = cycle.pre_filter(decision.state, pod)
        decision.pre_filter = prefilter
        if not prefilter.status.ok and not prefilter.status.code.is_rejection:
            decision.fail(prefilter.status.message)
            return
        self._diagnosis = Diagnosis(cycle.nodes.names)
        if not prefilter.status.ok:
            self._diagnosis.reject_all(prefilter.status, prefilter.plugins_with_nodes)
            self._give_up()
            return
        self._extenders = cycle.extenders.interested(pod)
        self._filtering = cycle.filter(decision.state, pod)
        self._judge = NominatedFiltering(self._filtering, cycle.nodes, cycle.nominations, pod)
        self._try_nominated_node()

    def _repeat(self, failure: Decision | None) -> bool:
        """Fail as another pod did, if that is how it would end."""
        if failure is None or (failure.explanation is None and self._explains(failed=True)):
            return False
        self.decision = failure.repeated()
        return True

    def _take_hint(self) -> None:
        """If the node of the last pod does not fit this one, the next best node may."""
        batch, nodes = self._cycle.batch, self._cycle.nodes
        relevant = self.decision.state.relevant
        if self._number is None or not batch.may_hint(self._pod, self._number, relevant):
            return
        if (row := nodes.row_of(batch.last_node)) is not None:
            verdict = int(self._filtering.judge(np.array([row], dtype=np.intp))[0])
            if self._filtering.describe(verdict).code.is_rejection:
                self._hint = batch.hint()

    def _try_nominated_node(self) -> None:
        """The nominated node first, and alone. [C-6]"""
        pod, nodes = self._pod, self._cycle.nodes
        self._take_hint()
        name = pod.nominated_node or self._hint
        row = nodes.row_of(name) if name else None
        if row is None:
            self._search()
            return
        rows = np.array([row], dtype=np.intp)
        verdicts = self._judge.judge(rows)
        if verdicts[0]:
            status = self._filtering.describe(int(verdicts[0]))
            if status.code.is_rejection:
                self._diagnosis.record(row, status)
            self._search()
            return
        self._found = Found(rows, verdicts, rows)
        self._ask_filters(self._nominated_node_tried)

    def _nominated_node_tried(self) -> None:
        if self._found.feasible.size and not self._diagnosis.error:
            self._filtered()
            return
        # Whatever went wrong with this one node, there are others.
        self._diagnosis.error, self._bare = "", False
        self._search()

    def _search(self) -> None:
        cycle, diagnosis, filtering = self._cycle, self._diagnosis, self._filtering
        ring = cycle.candidates(self._prefilter.node_names)
        diagnosis.narrow(self._prefilter.plugins_with_nodes)
        count = ring.size // 2
        wanted = 1  # Without scores all nodes are alike (C-16).
        if cycle.framework.scores or cycle.extenders.have_a_say:
            wanted = nodes_to_find(count, cycle.framework.profile.percentage_of_nodes_to_score)
        start = cycle.start.index % count if count else 0
        every = self._prefilter.node_names is None
        found = search(self._judge, ring, start, wanted, every=every)
        if filtering.may_have_failed:
            found = _until_error(found, filtering, diagnosis)
        diagnosis.examine(found, filtering)
        cycle.start.advance(found.feasible.size + diagnosis.recorded, len(cycle.nodes))
        self._found = found
        if self._extenders and found.feasible.size and not diagnosis.error:
            self._passing = found.feasible.size
            self._ask_filters(self._extenders_filtered)
        else:
            self._filtered()

    def _ask_filters(self, then: Callable[[], None]) -> None:
        """Extenders may refuse nodes that the plugins let pass; then it goes on."""
        if not self._extenders:
            then()
            return
        self._then = then
        self._waits_for = FilterRound(
            self._cycle,
            self._pod,
            self.decision,
            self._extenders,
            self._found,
            diagnosis=self._diagnosis,
            notes=self._explains(failed=True),
        )
        self._next = self._filters_answered

    def _filters_answered(self) -> None:
        asked = self._waits_for
        assert isinstance(asked, FilterRound)
        if asked.take():
            self._next = self._filters_answered
            return
        self._waits_for = None
        self._found, self._bare = asked.found, self._bare or asked.bare
        self._then()

    def _extenders_filtered(self) -> None:
        if self._found.feasible.size != self._passing:
            self._diagnosis.narrowed_by_extenders()
        self._filtered()

    def _filtered(self) -> None:
        decision, diagnosis = self.decision, self._diagnosis
        diagnosis.filtering = self._filtering
        if diagnosis.error:
            decision.fail(diagnosis.error)
            return
        decision.feasible = self._found.feasible.size
        decision.evaluated = decision.feasible + diagnosis.recorded
        if decision.feasible:
            self._score()
        else:
            self._give_up()

    # -- Score -----------------------------------------------------------------------------

    def _score(self) -> None:
        decision, rows = self.decision, self._found.feasible
        if rows.size == 1:
            self._choose(0, None)
            return
        if fault := self._cycle.pre_score(decision.state, self._pod, rows):
            decision.fail(fault)
            return
        try:
            self._scored = self._rate(decision.state, rows)
        except ScoringError as error:
            decision.fail(str(error))
            return
        if self._extenders:
            self._ask_raters()
        else:
            self._choose(pick(self._scored.totals), self._scored)

    def _rate(self, state: CycleState, rows: Rows) -> Scored:
        cycle, explain = self._cycle, self._explains()
        if self._bare:
            return cycle.bare_scores().score(state, self._pod, rows, explain=explain)
        return cycle.score(state, self._pod, self._found, explain=explain)

    def _ask_raters(self) -> None:
        """Extenders may rate the nodes on top of the plugins."""
        self._waits_for = ScoreRound(
            self._cycle,
            self._pod,
            self.decision,
            self._extenders,
            self._found,
            scored=self._scored,
            notes=self._explains(failed=True),
            explains=self._explains(),
        )
        self._next = self._raters_answered

    def _raters_answered(self) -> None:
        asked = self._waits_for
        assert isinstance(asked, ScoreRound)
        if asked.take():
            self._next = self._raters_answered
            return
        self._waits_for, scored = None, self._scored
        self._choose(pick_any(scored.totals, asked.rated, self._cycle.random), scored)

    def _choose(self, best: int, scored: Scored | None) -> None:
        names, found = self._cycle.nodes.names, self._found
        self.decision.node = node = names[found.feasible[best]]
        if self._number is not None:
            self._cycle.batch.store(
                self._pod,
                self._number,
                hint=self._hint,
                node=node,
                names=names,
                scored=None if scored is None else (found.feasible, scored.totals),
                relevant=self.decision.state.relevant,
            )
        if self._explains():
            chosen = int(found.feasible[best])
            self.decision.explanation = explain_attempt(
                names, self._diagnosis, found, scored, chosen
            )

    # -- no node ---------------------------------------------------------------------------

    def _give_up(self) -> None:
        """PostFilter plugins may make room."""
        if not self._cycle.framework.post_filter:
            self._refuse("")
            return
        explains = self._explains(failed=True)
        self._waits_for = PostFilterRun(
            self._cycle, self._pod, self.decision, self._diagnosis, explains=explains
        )
        self._run_post_filter()

    def _run_post_filter(self) -> None:
        asked = self._waits_for
        assert isinstance(asked, PostFilterRun)
        if not asked.run():
            self._next = self._run_post_filter
            return
        self._waits_for = None
        self._refuse(asked.nominated)

    def _refuse(self, nominated: str | None) -> None:
        decision, diagnosis = self.decision, self._diagnosis
        names = self._cycle.nodes.names
        decision.plugins = diagnosis.plugins
        decision.pending_plugins = diagnosis.pending_plugins
        decision.fail(diagnosis.message(), UNSCHEDULABLE, nominated=nominated)
        if self._explains(failed=True):
            decision.explanation = explain_attempt(names, diagnosis)
        # An extender may say something else the next time.
        asked = bool(self._cycle.extenders.interested(self._pod))
        same = not asked and self._stamp == self._cycle.stamp()
        if same and not (decision.victims or decision.effect or nominated):
            self._cycle.fast.failed(self._pod, decision, self._stamp)


def _until_error(found: Found, filtering: Filtering, diagnosis: Diagnosis) -> Found:
    """Cut the search at the first node whose Filter failed; that ends the cycle. [C-12]"""
    for at, verdict in enumerate(found.verdicts.tolist()):
        if verdict == 0:
            continue
        status = filtering.describe(verdict)
        if not status.code.is_rejection:
            diagnosis.error = f'running "{status.plugin}" filter plugin: {status.message}'
            rows, verdicts = found.rows[:at], found.verdicts[:at]
            return Found(rows, verdicts, rows[verdicts == 0])
    return found
