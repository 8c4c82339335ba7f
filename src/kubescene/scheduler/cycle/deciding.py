"""One scheduling cycle: from a pod and the state of all nodes to a decision.

PreFilter may reject the pod or narrow the nodes. The node that a pod was nominated to is tried
first, alone. Then the search (`search`) filters nodes until it has enough of them. None: the
PostFilter plugins may make room (`post_filter`). One: it is taken, unscored. Several:
PreScore and Score choose. Extenders have their say in between (`extender_steps`).
"""

from typing import TYPE_CHECKING

import numpy as np

from kubescene.scheduler.cycle.best_node import pick, pick_any
from kubescene.scheduler.cycle.decisions import UNSCHEDULABLE, Decision
from kubescene.scheduler.cycle.explanations import Diagnosis, explain_attempt
from kubescene.scheduler.cycle.post_filter import PostFilterSteps
from kubescene.scheduler.cycle.scoring import Scored, ScoringError
from kubescene.scheduler.cycle.search import Found, NominatedFiltering, nodes_to_find, search
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.extenders.extenders import ExtenderVerb
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.state.pods import PodInfo
from kubescene.timeline.explanations import Explain

if TYPE_CHECKING:
    from kubescene.scheduler.cycle.cycle import Cycle

NO_NODES = "no nodes available to schedule pods"  # C-1


class Deciding(PostFilterSteps):
    """One cycle on its way to a decision."""

    __slots__ = ("_filtering", "_hint", "_judge", "_number", "_passing", "_prefilter")

    def __init__(
        self, cycle: "Cycle", pod: PodInfo, explain: Explain | None, number: int | None = None
    ) -> None:
        self._number = number
        self._hint = ""
        self._cycle = cycle
        self._pod = pod
        self._explain = explain
        self.decision = Decision(CycleState())
        self._asked = None
        self._bare = False
        self._post_filter = 0
        self._next = self._begin

    # -- Filter ----------------------------------------------------------------------------

    def _begin(self) -> None:
        cycle, pod, decision = self._cycle, self._pod, self.decision
        cycle.nodes.refresh()
        if not len(cycle.nodes):
            decision.fail(NO_NODES, UNSCHEDULABLE)
            return
        self._stamp = cycle.stamp()
        if self._repeat(cycle.failures.find(pod, self._stamp)):
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
        self._filtering = cycle.filters.begin(decision.state, pod)
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
        self._consult(ExtenderVerb.FILTER, self._nominated_node_tried)

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
            self._consult(ExtenderVerb.FILTER, self._extenders_filtered)
        else:
            self._filtered()

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
        scores = self._cycle.bare_scores() if self._bare else self._cycle.scores
        try:
            self._scored = scores.score(
                decision.state, self._pod, rows, self._found.window, explain=self._explains()
            )
        except ScoringError as error:
            decision.fail(str(error))
            return
        if self._extenders:
            # Who does not rate nodes gives all of them nothing, which counts as a score.
            silent = any(ExtenderVerb.PRIORITIZE not in each.verbs for each in self._extenders)
            self._rated = np.full(rows.size, silent, dtype=np.bool_)
            self._consult(ExtenderVerb.PRIORITIZE, self._pick_extended)
        else:
            self._choose(pick(self._scored.totals), self._scored)

    def _pick_extended(self) -> None:
        scored = self._scored
        self._choose(pick_any(scored.totals, self._rated, self._cycle.random), scored)

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
