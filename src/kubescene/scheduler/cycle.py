"""One scheduling cycle: from a pod and the state of all nodes to a decision.

PreFilter may reject the pod or narrow the nodes. The node that a pod was nominated to is tried
first, alone. Then the search (`search`) filters nodes until it has enough of them. None: the
PostFilter plugins may make room. One: it is taken, unscored. Several: PreScore and Score choose.

Extenders have their say after Filter, after Score and in PostFilter. A cycle that waits for one
stands still (`Deciding.run` says so) and goes on when it is called again. It is a plain object that
knows its next step, so that a world can be copied in the middle of it.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.api.records import Record
from kubescene.clock import Clock, Stream, VirtualClock
from kubescene.errors import ConfigurationError
from kubescene.scheduler.bare_nodes import BareNodes
from kubescene.scheduler.batching import Batch, Signing
from kubescene.scheduler.consulting import consultation
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.decisions import UNSCHEDULABLE, Decision
from kubescene.scheduler.explanations import Diagnosis, explain_attempt
from kubescene.scheduler.extenders import (
    MAX_EXTENDER_SCORE,
    NO_EXTENDERS,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    Extenders,
    ExtenderVerb,
    PendingCall,
)
from kubescene.scheduler.informers import Informers
from kubescene.scheduler.interfaces import MAX_NODE_SCORE, PostFilterResult, Rows
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.nominations import Nominations
from kubescene.scheduler.picking import pick, pick_any
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.preparing import PreFilterOutcome, Preparing
from kubescene.scheduler.repeating import RepeatedFailures
from kubescene.scheduler.routine import Routines
from kubescene.scheduler.runtime import Framework
from kubescene.scheduler.scoring import ScoreChain, Scored, ScoringError
from kubescene.scheduler.search import Found, NominatedFiltering, StartIndex, nodes_to_find, search
from kubescene.scheduler.status import Code, Status
from kubescene.scheduler.supposing import Supposition
from kubescene.scheduler.trying import TryingOut
from kubescene.scheduler.verdicts import FilterChain, Filtering
from kubescene.timeline.attempts import ScoreColumn
from kubescene.timeline.explanations import Explain

NO_NODES = "no nodes available to schedule pods"  # C-1


class Cycle:
    """Cycles of one profile. The start index of the search is shared by all profiles.

    Ties between nodes that an extender had a look at are broken by ``random``.
    """

    def __init__(
        self,
        framework: Framework,
        nodes: NodeTable,
        nominations: Nominations,
        start: StartIndex,
        *,
        extenders: Extenders = NO_EXTENDERS,
        random: Stream | None = None,
        informers: Informers | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.framework = framework
        self.nodes = nodes
        self.nominations = nominations
        self.start = start
        self.extenders = extenders
        self.random = random or Stream(0)
        self.filters = FilterChain(framework.filters, nodes, framework.pre_filter)
        self.scores = ScoreChain(framework.scores, nodes)
        self._ring: Rows = np.zeros(0, dtype=np.intp)
        self._ring_layout = -1
        self._preparing = Preparing(framework, nodes)
        self._informers = informers
        self.failures = RepeatedFailures(framework, nominations)
        signing = Signing(framework, possible=extenders.is_empty)
        self.batch = Batch(signing, clock or VirtualClock())
        self.routines = Routines(self)

    def decide(self, pod: PodInfo, *, explain: Explain | None = None) -> Decision:
        """Find a node for the pod, now; every extender must answer at once."""
        deciding = self.begin(pod, explain)
        if not deciding.run():
            raise ConfigurationError("an extender answers later: this decision cannot wait for it")
        return deciding.decision

    def begin(
        self, pod: PodInfo, explain: Explain | None = None, number: int | None = None
    ) -> "Deciding":
        """A decision that may have to wait for extenders.

        ``number`` counts the cycles of the scheduler. Without it the decision is asked for by
        somebody else: no hint is taken from the cycle before, and none left to the next.
        """
        return Deciding(self, pod, explain, number)

    def stamp(self) -> Hashable:
        """Another one whenever something has changed that a decision may depend on."""
        others = 0 if self._informers is None else self._informers.version
        nodes = self.nodes
        return (nodes.version, nodes.layout, self.nominations.version, others, self.start.index)

    def suppose(self, state: CycleState, pod: PodInfo) -> Supposition:
        """Filter for a pod under other circumstances; its PreFilters have run."""
        filtering = self.filters.begin(state, pod)
        return Supposition(filtering, self.nodes, self.nominations, pod)

    def try_out(self, state: CycleState, pod: PodInfo) -> TryingOut:
        """Filter for a pod as if others were gone; its PreFilters have run."""
        filtering = self.filters.begin(state, pod)
        return TryingOut(filtering, self.nodes, self.nominations, pod)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        """What the PreFilters say about a pod."""
        return self._preparing.pre_filter(state, pod)

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> str:
        """Run PreScore; returns the text of what went wrong or is bound to, or nothing."""
        fault = self._preparing.pre_score(state, pod, rows)
        return fault or self.framework.unprepared.scoring

    def bare_scores(self) -> ScoreChain:
        """The Score plugins over nodes on which nothing runs (X-5)."""
        return ScoreChain(self.framework.scores, BareNodes(self.nodes))

    def candidates(self, names: frozenset[str] | None) -> Rows:
        """The rows to search, twice in a row."""
        nodes = self.nodes
        if names is not None:
            rows = sorted(row for name in names if (row := nodes.row_of(name)) is not None)
            return np.array([*rows, *rows], dtype=np.intp)
        if self._ring_layout != nodes.layout:
            self._ring = np.tile(np.arange(len(nodes), dtype=np.intp), 2)
            self._ring_layout = nodes.layout
        return self._ring


class Deciding:
    """One cycle on its way to a decision."""

    __slots__ = (
        "_asked",
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
        "_post_filter",
        "_prefilter",
        "_rated",
        "_reasons",
        "_scored",
        "_stamp",
        "_then",
        "_to_ask",
        "decision",
    )

    def __init__(
        self, cycle: Cycle, pod: PodInfo, explain: Explain | None, number: int | None = None
    ) -> None:
        self._number = number
        self._hint = ""
        self._cycle = cycle
        self._pod = pod
        self._explain = explain
        self.decision = Decision(CycleState())
        self._asked: PendingCall | None = None
        self._bare = False
        self._post_filter = 0
        self._next: Callable[[], None] | None = self._begin

    @property
    def is_waiting(self) -> bool:
        """Whether an extender has to answer before `run` can go on."""
        return self._asked is not None and not self._asked.answered

    def run(self) -> bool:
        """Go on; False as long as an extender has to answer first."""
        while (step := self._next) is not None:
            if self._asked is not None and not self._asked.answered:
                return False
            self._next = None
            step()
        return True

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
        concern = self.decision.state.concern
        if self._number is None or not batch.may_hint(self._pod, self._number, concern):
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

    # -- extenders -------------------------------------------------------------------------

    def _consult(self, verb: ExtenderVerb, then: Callable[[], None]) -> None:
        """Ask the interested extenders one after the other, then go on."""
        if not self._extenders:
            then()
            return
        self._to_ask: list[Extender] = [each for each in self._extenders if verb in each.verbs]
        if not self._to_ask:
            then()
            return
        self._then = then
        take = self._take_filter if verb is ExtenderVerb.FILTER else self._take_scores
        self._ask(verb, take)

    def _ask(self, verb: ExtenderVerb, take: Callable[[], None]) -> None:
        extender = self._to_ask[0]
        infos = [self._cycle.nodes.infos[row] for row in self._found.feasible.tolist()]
        records: tuple[Record, ...] = ()
        if not extender.node_cache_capable:
            records = tuple(info.record for info in infos if info.record is not None)
        names = tuple(info.name for info in infos)
        call = ExtenderCall(extender, verb, self._pod, names, records)
        self._asked = self._cycle.extenders.ask(call)
        self._next = take

    def _answer(self) -> ExtenderAnswer:
        assert self._asked is not None
        answer, self._asked = self._asked.result(), None
        return answer

    def _take_filter(self) -> None:
        asked, extender, answer = self._asked, self._to_ask.pop(0), self._answer()
        assert asked is not None
        # Whoever sends whole nodes back may send others than it got: upstream takes them as new.
        known = self._cycle.nodes.names if answer.bare else asked.call.nodes
        error = answer.error or _foreign(extender.name, answer.nodes, known)
        self._note(asked.call, answer, error)
        if not error:
            self._apply_filter(answer)
        elif not extender.ignorable:
            self._diagnosis.error = error
        if self._to_ask and self._found.feasible.size and not self._diagnosis.error:
            self._ask(ExtenderVerb.FILTER, self._take_filter)
        else:
            self._to_ask = []
            self._then()

    def _apply_filter(self, answer: ExtenderAnswer) -> None:
        nodes, found = self._cycle.nodes, self._found
        refuse = self._diagnosis.refused_by_extender
        for name, text in answer.unresolvable.items():
            refuse(name, nodes.row_of(name), Status.unresolvable(text))
        for name, text in answer.failed.items():
            if name not in answer.unresolvable:
                refuse(name, nodes.row_of(name), Status.unschedulable(text))
        rows = [row for name in answer.nodes if (row := nodes.row_of(name)) is not None]
        self._found = Found(found.rows, found.verdicts, np.array(rows, dtype=np.intp))
        self._bare |= answer.bare

    def _take_scores(self) -> None:
        asked, extender, answer = self._asked, self._to_ask.pop(0), self._answer()
        assert asked is not None
        self._note(asked.call, answer, answer.error)
        if not answer.error:
            self._add_scores(extender, answer)
        if self._to_ask:
            self._ask(ExtenderVerb.PRIORITIZE, self._take_scores)
        else:
            self._then()

    def _note(self, call: ExtenderCall, answer: ExtenderAnswer, error: str) -> None:
        """Keep what an extender said, if somebody may want to know."""
        if self._explains(failed=True):
            record = consultation(call, answer, error)
            self.decision.extenders = [*(self.decision.extenders or ()), record]

    def _add_scores(self, extender: Extender, answer: ExtenderAnswer) -> None:
        """An extender's scores on top of those of the plugins (X-8)."""
        names = [self._cycle.nodes.names[row] for row in self._found.feasible.tolist()]
        told = [_as_int64(answer.scores.get(name, 0)) for name in names]
        scores = np.array(told, dtype=np.int64)
        weight = _as_int64(extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_SCORE))
        self._scored.totals = self._scored.totals + scores * np.int64(weight)
        self._rated |= np.array([name in answer.scores for name in names], dtype=np.bool_)
        if self._explains():
            arrays: tuple[Any, Any] = (scores, scores)
            self._scored.columns.append(ScoreColumn(extender.name, weight, *arrays))

    # -- no node ---------------------------------------------------------------------------

    def _give_up(self) -> None:
        if self._cycle.framework.post_filter:
            self.decision.state.explains = self._explains(failed=True)
            self._reasons: list[str] = []
            self._run_post_filter()
        else:
            self._refuse("")

    def _run_post_filter(self) -> None:
        """Run PostFilter until one plugin succeeds, fails or says it is hopeless. [M-3, M-5]"""
        extension = self._cycle.framework.post_filter[self._post_filter]
        state = self.decision.state
        self._take_post_filter(extension.call(state, self._pod, self._diagnosis))

    def _post_filter_answered(self) -> None:
        extension = self._cycle.framework.post_filter[self._post_filter]
        asked, answer = self._asked, self._answer()
        assert asked is not None
        self._note(asked.call, answer, answer.error)
        if extension.answered is None:
            raise ConfigurationError(
                f'plugin "{extension.name}" asks an extender but has no method post_filter_answered'
            )
        state = self.decision.state
        self._take_post_filter(extension.answered(state, self._pod, self._diagnosis, answer))

    def _take_post_filter(self, result: PostFilterResult | ExtenderCall) -> None:
        if isinstance(result, ExtenderCall):
            self._asked = self._cycle.extenders.ask(result)
            self._next = self._post_filter_answered
            return
        decision, status = self.decision, result.status
        decision.post_filtered = self._cycle.framework.post_filter[self._post_filter].name
        if result.victims:
            decision.victims = result.victims
        if result.preemption is not None:
            decision.preemption = result.preemption
        if result.effect is not None:
            decision.effect = result.effect
        if status.ok or status.code is Code.UNRESOLVABLE or not status.code.is_rejection:
            self._diagnosis.post_filter_message = status.message
            failed = not (status.ok or status.code.is_rejection)
            self._refuse(None if failed else result.nominated)
            return
        self._reasons.extend(status.reasons)
        if result.nominated is not None:
            decision.nominated = result.nominated
        self._post_filter += 1
        if self._post_filter < len(self._cycle.framework.post_filter):
            self._run_post_filter()
            return
        self._diagnosis.post_filter_message = ", ".join(self._reasons)
        self._refuse(decision.nominated)

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
            self._cycle.failures.keep(self._pod, decision, self._stamp)

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
            self._rated: NDArray[np.bool_] = np.full(rows.size, silent, dtype=np.bool_)
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
                concern=self.decision.state.concern,
            )
        if self._explains():
            chosen = int(found.feasible[best])
            self.decision.explanation = explain_attempt(
                names, self._diagnosis, found, scored, chosen
            )

    def _explains(self, *, failed: bool = False) -> bool:
        explain = self._explain
        return explain is not None and explain.wanted(failed=failed, nodes=len(self._cycle.nodes))


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


def _as_int64(number: int) -> int:
    """A number as Go's arithmetic leaves it, for extenders that exaggerate."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _foreign(extender: str, answered: Iterable[str], asked: Iterable[str]) -> str:
    """The error of an extender that answers with nodes it was not asked about (X-4)."""
    known = set(asked)
    for name in answered:
        if name not in known:
            return (
                f'extender "{extender}" claims a filtered node "{name}" which is not found in the '
                "input node list"
            )
    return ""
