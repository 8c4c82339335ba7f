"""One scheduling cycle: from a pod and the state of all nodes to a decision. Writes nothing.

PreFilter may reject the pod or narrow the nodes. The node that a pod was nominated to is tried
first, alone. Then the search (`search`) filters nodes until it has enough of them. None: the
PostFilter plugins may make room. One: it is taken, unscored. Several: PreScore and Score choose.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.explanations import Diagnosis, explain_attempt
from kubescene.scheduler.interfaces import Rows
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.nominations import Nominations
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.runtime import Framework
from kubescene.scheduler.scoring import ScoreChain, Scored, ScoringError, pick
from kubescene.scheduler.search import Found, NominatedFiltering, nodes_to_find, search
from kubescene.scheduler.status import SUCCESS, Code, Status
from kubescene.scheduler.verdicts import FilterChain, Filtering
from kubescene.timeline.attempts import Explanation
from kubescene.timeline.explanations import Explain

NO_NODES = "no nodes available to schedule pods"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(slots=True)
class Decision:
    """What a cycle came to.

    Either ``node`` is set, or ``message`` and ``reason`` say why not and ``plugins`` who refused
    (they decide which events bring the pod back; with none of them it is an error and comes back
    after a while). ``nominated`` is the node to nominate, empty to end a nomination, None to
    leave it.
    """

    state: CycleState
    node: str = ""
    evaluated: int = 0
    feasible: int = 0
    message: str = ""
    reason: str = ""
    plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    nominated: str | None = None
    explanation: Explanation | None = None

    def fail(
        self, message: str, reason: str = SCHEDULER_ERROR, *, nominated: str | None = ""
    ) -> "Decision":
        """Make this a failed attempt."""
        self.node = ""
        self.message = message
        self.reason = reason
        self.nominated = nominated
        return self


@dataclass(slots=True)
class PreFilterOutcome:
    """What the PreFilters said together."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    plugins_with_nodes: list[str] = field(default_factory=list)


class Cycle:
    """Cycles of one profile. The start index of the search is shared by all profiles."""

    def __init__(
        self, framework: Framework, nodes: NodeTable, nominations: Nominations, start: "StartIndex"
    ) -> None:
        self.framework = framework
        self.nodes = nodes
        self._nominations = nominations
        self._start = start
        self._filters = FilterChain(framework.filters, nodes)
        self._scores = ScoreChain(framework.scores, nodes)
        self._ring: Rows = np.zeros(0, dtype=np.intp)
        self._ring_layout = -1

    def decide(self, pod: PodInfo, *, explain: Explain | None = None) -> Decision:
        """Find a node for the pod."""
        self.nodes.refresh()
        decision = Decision(CycleState())
        if not len(self.nodes):
            return decision.fail(NO_NODES, UNSCHEDULABLE)
        prefilter = self.pre_filter(decision.state, pod)
        if not prefilter.status.ok and not prefilter.status.code.is_rejection:
            return decision.fail(prefilter.status.message)
        diagnosis = Diagnosis(self.nodes.names)
        if not prefilter.status.ok:
            diagnosis.reject_all(prefilter.status)
            return self._give_up(decision, pod, diagnosis, explain)
        filtering = self._filters.begin(decision.state, pod)
        return self._choose(decision, pod, prefilter, filtering, diagnosis, explain)

    def _choose(
        self,
        decision: Decision,
        pod: PodInfo,
        prefilter: PreFilterOutcome,
        filtering: Filtering,
        diagnosis: Diagnosis,
        explain: Explain | None,
    ) -> Decision:
        judge = NominatedFiltering(filtering, self.nodes, self._nominations, pod)
        found = self._nominated_node(pod, judge, filtering, diagnosis)
        if found is None:
            found = self._search(prefilter, judge, filtering, diagnosis)
        diagnosis.filter_plugins = filtering.plugins
        if diagnosis.error:
            return decision.fail(diagnosis.error)
        decision.feasible = found.feasible.size
        decision.evaluated = decision.feasible + diagnosis.recorded
        if not decision.feasible:
            return self._give_up(decision, pod, diagnosis, explain)
        return self._take_best(decision, pod, found, diagnosis, explain)

    # -- Filter ----------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        outcome = PreFilterOutcome()
        for extension in self.framework.pre_filter:
            status, names = extension.call(state, pod, self.nodes)
            if status is SUCCESS and names is None:
                continue
            if status.code is Code.SKIP:
                state.skipped_filters.add(extension.name)
            elif status.code is Code.UNRESOLVABLE:
                outcome.status = status.by(extension.name)
                return outcome
            elif status.code is Code.UNSCHEDULABLE:
                outcome.status = status.by(extension.name)
            elif not status.ok:
                text = f'running PreFilter plugin "{extension.name}": {status.message}'
                outcome.status = Status.error(text)
                return outcome
            elif names is not None and not _narrow(outcome, extension.name, names):
                return outcome
        return outcome

    def _nominated_node(
        self,
        pod: PodInfo,
        judge: NominatedFiltering,
        filtering: Filtering,
        diagnosis: Diagnosis,
    ) -> Found | None:
        if not pod.nominated_node:
            return None
        row = self.nodes.row_of(pod.nominated_node)
        if row is None:
            return None
        rows = np.array([row], dtype=np.intp)
        verdicts = judge.judge(rows)
        if verdicts[0] == 0:
            return Found(rows, verdicts, rows)
        diagnosis.record(row, filtering.describe(int(verdicts[0])))
        return None

    def _search(
        self,
        prefilter: PreFilterOutcome,
        judge: NominatedFiltering,
        filtering: Filtering,
        diagnosis: Diagnosis,
    ) -> Found:
        ring = self._candidates(prefilter.node_names)
        diagnosis.narrow(prefilter.plugins_with_nodes)
        count = ring.size // 2
        wanted = 1
        if self.framework.scores:
            wanted = nodes_to_find(count, self.framework.profile.percentage_of_nodes_to_score)
        found = search(judge, ring, self._start.index % count if count else 0, wanted)
        if filtering.may_have_failed:
            found = _until_error(found, filtering, diagnosis)
        diagnosis.examine(found, filtering)
        self._start.advance(found.feasible.size + diagnosis.recorded, len(self.nodes))
        return found

    def _candidates(self, names: frozenset[str] | None) -> Rows:
        nodes = self.nodes
        if names is not None:
            rows = sorted(row for name in names if (row := nodes.row_of(name)) is not None)
            return np.array([*rows, *rows], dtype=np.intp)
        if self._ring_layout != nodes.layout:
            self._ring = np.tile(np.arange(len(nodes), dtype=np.intp), 2)
            self._ring_layout = nodes.layout
        return self._ring

    # -- no node ---------------------------------------------------------------------------

    def _give_up(
        self,
        decision: Decision,
        pod: PodInfo,
        diagnosis: Diagnosis,
        explain: Explain | None,
    ) -> Decision:
        nominated: str | None = ""
        if self.framework.post_filter:
            nominated = self._post_filter(decision.state, pod, diagnosis)
        decision.plugins = diagnosis.plugins
        decision.pending_plugins = diagnosis.pending_plugins
        decision.fail(diagnosis.message(), UNSCHEDULABLE, nominated=nominated)
        if explain is not None and explain.wanted(failed=True, nodes=len(self.nodes)):
            decision.explanation = explain_attempt(self.nodes.names, diagnosis)
        return decision

    def _post_filter(self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> str | None:
        """Run PostFilter until one plugin succeeds, fails or says it is hopeless."""
        statuses: Mapping[str, Status] = diagnosis.statuses()
        reasons: list[str] = []
        nominated: str | None = None
        for extension in self.framework.post_filter:
            status, node = extension.call(state, pod, statuses)
            if status.ok:
                diagnosis.post_filter_message = status.message
                return str(node)
            if status.code is Code.UNRESOLVABLE or not status.code.is_rejection:
                diagnosis.post_filter_message = status.message
                return str(node) if status.code is Code.UNRESOLVABLE else None
            reasons.extend(status.reasons)
            nominated = node
        diagnosis.post_filter_message = ", ".join(reasons)
        return nominated

    # -- Score -----------------------------------------------------------------------------

    def _take_best(
        self,
        decision: Decision,
        pod: PodInfo,
        found: Found,
        diagnosis: Diagnosis,
        explain: Explain | None,
    ) -> Decision:
        wanted = explain is not None and explain.wanted(failed=False, nodes=len(self.nodes))
        scored: Scored | None = None
        rows, best = found.feasible, 0
        if rows.size > 1:
            if fault := self.pre_score(decision.state, pod, rows):
                return decision.fail(fault)
            try:
                scored = self._scores.score(decision.state, pod, rows, explain=wanted)
            except ScoringError as error:
                return decision.fail(str(error))
            best = pick(scored.totals)
        decision.node = self.nodes.names[rows[best]]
        if wanted:
            decision.explanation = explain_attempt(self.nodes.names, diagnosis, found, scored)
        return decision

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> str:
        """Run PreScore; returns the text of what went wrong, or nothing."""
        for extension in self.framework.pre_score:
            status = extension.call(state, pod, self.nodes, rows)
            if status is SUCCESS:
                continue
            if status.code is Code.SKIP:
                state.skipped_scores.add(extension.name)
            elif not status.ok:
                return f'running PreScore plugin "{extension.name}": {status.message}'
        return ""


class StartIndex:
    """Where the next search starts. One for all profiles of a scheduler."""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = 0

    def advance(self, processed: int, nodes: int) -> None:
        self.index = (self.index + processed) % nodes


def _narrow(outcome: PreFilterOutcome, plugin: str, names: frozenset[str]) -> bool:
    """Intersect the node names; False if none is left, which ends the PreFilters."""
    outcome.plugins_with_nodes.append(plugin)
    held = outcome.node_names
    outcome.node_names = names if held is None else held & names
    if outcome.node_names:
        return True
    plugins = sorted(outcome.plugins_with_nodes)
    text = f"node(s) didn't satisfy plugin {plugins[0]}"
    if len(plugins) > 1:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
    outcome.status = Status(Code.UNRESOLVABLE, (text,), plugin)
    return False


def _until_error(found: Found, filtering: Filtering, diagnosis: Diagnosis) -> Found:
    """Cut the search at the first node whose Filter failed; that ends the cycle."""
    for at, verdict in enumerate(found.verdicts.tolist()):
        if verdict == 0:
            continue
        status = filtering.describe(verdict)
        if not status.code.is_rejection:
            diagnosis.error = f'running "{status.plugin}" filter plugin: {status.message}'
            rows, verdicts = found.rows[:at], found.verdicts[:at]
            return Found(rows, verdicts, rows[verdicts == 0])
    return found
