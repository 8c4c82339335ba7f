"""The short account of a run: steps, placements, node use, and who is still waiting and why."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec import to_builtins

from kubescene.api.resource_requests import PODS
from kubescene.clock import MILLISECOND, MINUTE, SECOND, format_micro_time
from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import (
    BOUND,
    PENDING,
    NodeEntry,
    OutcomeEntry,
    PodEntry,
    StepEntry,
)
from kubescene.results.over_time.entries import JOB, WorkloadEntry
from kubescene.timeline import (
    PLAIN_MESSAGE,
    CustomFact,
    ExpectationsEvaluated,
    Fact,
    Outcome,
    PodScheduled,
    ScenarioEnded,
)
from kubescene.version import __version__

FAILED = "Failed"
"""A scenario that failed has no result to expect anything of."""
IF_ANY = ("outside", "outcomes", "workloads", "costs", "traffic", "scaling")
"""What stands in ``summary.json`` only where there is something to say."""
PARTS = 24
"""Of the run, of each of which is told how many pods a workload had."""
MORE_PARTS = 72
"""The same of a Traffic."""
TELLS = ("TrafficMeasured", "ReplicasDecided", "NodesDecided", "KarpenterDecided")
"""Custom facts that are summed up here."""
PLACEMENTS_KEPT = 1000
"""The newest are kept; the timeline has them all."""


@dataclass(slots=True)
class StepSummary:
    """One major step."""

    major: int
    minor_steps: int = 0
    operations: int = 0
    controller_writes: int = 0
    scheduled: int = 0
    failed_attempts: int = 0
    pending: int = 0
    """Pods that had no node when it had come to rest."""
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """One pod on its node: the winning score, and the best of the others.

    ``time_s`` is virtual time since the run began.
    """

    pod: str
    step: str
    node: str
    candidates: int
    feasible: int
    score: int | None = None
    runner_up: str = ""
    runner_up_score: int | None = None
    time_s: float = 0


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that no node took, with the message of its last attempt."""

    pod: str
    attempts: int
    message: str


@dataclass(slots=True)
class NodeUse:
    """What a node offers and what the pods on it ask for, at the end.

    ``status`` says what keeps pods away from it; it is empty if nothing does.
    """

    name: str
    status: str = ""
    pods: int = 0
    allocatable: dict[str, int] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """Whether an expectation holds; if not, what to tell people.

    ``seen`` are the values that were found, ``error`` says why the expression has none.
    """

    name: str
    expression: str
    holds: bool
    message: str = ""
    error: str = ""
    seen: str = ""

    @property
    def why(self) -> str:
        """In one text; empty where it holds."""
        told = f"{self.message} ({self.seen})" if self.seen else self.message
        return ": ".join(filter(None, (told, self.error)))

    @property
    def told(self) -> str:
        """The same with the expression, once, for where there is room."""
        if self.message.startswith(PLAIN_MESSAGE):
            return self.why
        return f"{self.why}\nexpression: {self.expression.strip()}"

    @property
    def own_message(self) -> str:
        """What its author says, if anything: without one, the message is the expression."""
        return "" if self.message.startswith(PLAIN_MESSAGE) else self.message


@dataclass(frozen=True, slots=True)
class OutsideOutcome:
    """A controller outside the process: the signs it was judged by, and what that is worth."""

    name: str
    kind: str
    judged_by: list[str] = field(default_factory=list)
    same_bytes: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class OperationTold:
    """What came of an operation, or of the node or pod that ``subject`` names."""

    operation: str
    state: str
    subject: str = ""
    message: str = ""
    step: str = ""
    time_s: float = 0


@dataclass(frozen=True, slots=True)
class CostTold:
    """What the machines of a node group cost; see the table ``costs``."""

    group: str
    instances: int
    instances_most: int
    failed: int
    hours: float
    cost: float
    currency: str
    requested: float | None = None


@dataclass(frozen=True, slots=True)
class WorkloadTold:
    """A workload at the end, and what it went through; see the table ``workloads``.

    ``levels`` are the fewest pods available in equal parts of the run; of a Job the most active.
    """

    workload: str
    kind: str
    desired: int | None = None
    ready: int = 0
    available: int | None = None
    least_available: int | None = None
    rollout: str = ""
    rollout_s: float | None = None
    below_budget_s: float | None = None
    restarts: int = 0
    completions: int = 0
    failures: int = 0
    levels: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TrafficTold:
    """What became of the requests of a Traffic; see the table ``traffic``.

    Times are said twice: of all that ended, failures at their time-outs, and of those served. The
    lists are the most of any window in equal parts of the run, ``rps`` and ``failed_rps`` a second.
    """

    traffic: str
    requests: int
    failed: int
    timed_out: int
    refused: int
    killed: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    served_p50_ms: float | None
    served_p95_ms: float | None
    served_p99_ms: float | None
    objective_ms: float
    slo_minutes: float
    minutes: float
    inexact: str = ""
    rps: list[int] = field(default_factory=list)
    failed_rps: list[int] = field(default_factory=list)
    p99_levels_ms: list[int] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScalingTold:
    """An autoscaler changed the scale of its target."""

    time_s: float
    autoscaler: str
    target: str
    replicas_from: int
    replicas_to: int
    reason: str


@dataclass(slots=True, repr=False)
class Summary:
    """Everything the terminal and ``summary.json`` show. Holds no wall-clock time."""

    scenario: str = ""
    phase: str = ""
    message: str = ""
    version: str = __version__
    seed: int = 0
    started: str = ""
    ended: str = ""
    events: int = 0
    steps: list[StepSummary] = field(default_factory=list)
    pods_bound: int = 0
    """Pods that are on a node at the end: not those that were, and are gone."""
    nodes: list[NodeUse] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    placements_total: int = 0
    pending: list[PendingPod] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Ids of operations that were never played: too late, or after the scenario was done."""
    warnings: list[str] = field(default_factory=list)
    """What the scenario uses and nobody acts on."""
    expectations: list[ExpectationOutcome] = field(default_factory=list)
    """What came of ``spec.expectations``; none if the scenario failed."""
    outside: list[OutsideOutcome] = field(default_factory=list)
    """How controllers outside the process were judged."""

    outcomes: list[OperationTold] = field(default_factory=list)
    """What came of operations that take time, or did less than they seem to say."""
    workloads: list[WorkloadTold] = field(default_factory=list)
    """Those that exist at the end, if time passed; Jobs that are done without a failure are not."""
    costs: list[CostTold] = field(default_factory=list)

    traffic: list[TrafficTold] = field(default_factory=list)
    scaling: list[ScalingTold] = field(default_factory=list)
    """The first thousand decisions of autoscalers."""

    @property
    def unmet(self) -> list[ExpectationOutcome]:
        """The expectations that do not hold."""
        return [each for each in self.expectations if not each.holds]

    @property
    def verdict(self) -> str:
        """What expectations say of the run, in words; empty if there are none."""
        of = len(self.expectations)
        if self.unmet:
            return f"{len(self.unmet)} of {of} expectation{'s' * (of != 1)} failed"
        return (
            "" if not of else "the expectation holds" if of == 1 else f"all {of} expectations hold"
        )

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = to_builtins(self)
        return {k: v for k, v in told.items() if v or k not in IF_ANY}

    def __repr__(self) -> str:
        bound, waiting = self.pods_bound, len(self.pending)
        return f"<Summary of {self.scenario}: {self.phase}, {bound} bound, {waiting} waiting>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import summary_html

        return summary_html(self)


def summarize(facts: Iterable[Fact], *, scenario: str, seed: int = 0) -> Summary:
    """Fold a log, from memory or from disk, into its summary."""
    return folded(facts).finish(scenario, seed=seed)


def folded(facts: Iterable[Fact]) -> "SummaryFold":
    """A whole log, from memory or from disk, in its ledger."""
    fold = SummaryFold(puts_off=True)
    for fact in facts:
        fold.add(fact)
    return fold


class SummaryFold(Entries):
    """A ledger, and what the summary tells beside it."""

    def __init__(self, *, puts_off: bool = False) -> None:
        super().__init__(puts_off=puts_off)
        self._placements: deque[PodScheduled] = deque(maxlen=PLACEMENTS_KEPT)
        self._expectations: list[ExpectationOutcome] = []
        self._summed: list[CustomFact] = []

    def _custom(self, fact: CustomFact) -> None:
        super()._custom(fact)
        if fact.kind in TELLS:
            self._summed.append(fact)

    def _scheduled(self, fact: PodScheduled) -> None:
        self._attempted(fact)
        self._placements.append(fact)

    def _evaluated(self, fact: ExpectationsEvaluated) -> None:
        super()._evaluated(fact)
        self._expectations = list(map(outcome, fact.outcomes))

    def _ended(self, fact: ScenarioEnded) -> None:
        super()._ended(fact)
        if fact.phase == FAILED:
            self._expectations = []

    def counts(self, until: int | None = None) -> dict[str, int]:
        """What operations wrote, how many pods were bound, how many attempts failed.

        So far, or up to a major step.
        """
        steps = [each for each in self.ledger.steps if until is None or each.major <= until]
        return {
            "written": sum(step.written for step in steps),
            "bound": sum(step.scheduled for step in steps),
            "failedAttempts": sum(step.failed_attempts for step in steps),
        }

    def finish(self, scenario: str, *, seed: int = 0) -> Summary:
        """The account so far, a value of its own: the fold may go on."""
        ledger = self.ledger
        summary = Summary(scenario=scenario, phase=ledger.phase, message=ledger.message, seed=seed)
        summary.ignored, summary.warnings = [*ledger.ignored], [*ledger.warnings]
        summary.expectations = [*self._expectations]
        if ledger.started_time is not None:
            summary.started = format_micro_time(ledger.started_time)
            summary.ended = format_micro_time(ledger.time)
        summary.events = sum(step.facts for step in ledger.steps)
        summary.steps = list(map(step_summary, ledger.steps))
        if summary.steps:  # the last may not have come to rest yet
            summary.steps[-1].pending = ledger.states[PENDING]
        summary.nodes = list(map(node_use, ledger.standing()))
        began = ledger.started_time or 0
        summary.pods_bound = ledger.states[BOUND]
        summary.outcomes = [told_of(each, began) for each in ledger.outcomes]
        summary.workloads = told_workloads(ledger)
        summary.costs = told_costs(ledger)
        if self._summed:
            summary.traffic = told_traffic(self._summed, ledger)
            summary.scaling = told_scaling(self._summed, ledger)
        summary.placements = [placement(fact, began) for fact in self._placements]
        summary.placements_total = sum(step.scheduled for step in ledger.steps)
        waiting = {(pod.namespace, pod.name): pod for pod in ledger.pods if pod.state == PENDING}
        summary.pending = [pending_pod(waiting[key]) for key in sorted(waiting)]
        return summary


def step_summary(step: StepEntry) -> StepSummary:
    return StepSummary(
        major=step.major,
        minor_steps=step.minor,
        operations=step.operations,
        controller_writes=step.controller_writes,
        scheduled=step.scheduled,
        failed_attempts=step.failed_attempts,
        pending=step.pending,
        deleted=step.deleted,
    )


def node_use(node: NodeEntry) -> NodeUse:
    asked = {name: amount for name, amount in node.room.requested.items() if amount}
    asked.pop(PODS, None)
    return NodeUse(node.name, node.marks, node.room.pods, dict(node.allocatable), asked)


def pending_pod(pod: PodEntry) -> PendingPod:
    return PendingPod(pod.pod, pod.failed_attempts, pod.reason)


def outcome(told: Outcome) -> ExpectationOutcome:
    return ExpectationOutcome(
        told.name, told.expression, told.holds, told.message, told.error, told.seen
    )


def told_of(each: OutcomeEntry, began: int) -> OperationTold:
    seconds = (each.time - began) / SECOND
    step = str(each.step)
    return OperationTold(each.operation, each.state, each.subject, each.message, step, seconds)


def told_costs(ledger: Ledger) -> list[CostTold]:
    """What node groups cost, where time passed and somebody said what it costs."""
    if not ledger.machines or not ledger.duration:
        return []
    # Most runs have none.
    from kubescene.results.cost.bill import Bill
    from kubescene.results.cost.rows import cost_rows

    return [
        CostTold(
            row.group,
            row.instances,
            row.instances_most,
            row.failed,
            row.hours,
            row.cost,
            row.currency,
            row.cost_requested,
        )
        for row in cost_rows(Bill(ledger))
        if row.cost is not None
    ]


def told_workloads(ledger: Ledger) -> list[WorkloadTold]:
    """How workloads went through a run in which time passed."""
    if not ledger.duration or not ledger.workloads:
        return []
    # Most runs have none.
    from kubescene.results.over_time.series import levels
    from kubescene.results.over_time.workloads import Workloads, taken

    workloads, told = Workloads(ledger), []
    for group in workloads.own:
        entry = group.entry
        if entry is None or entry.end_time is not None or is_done(entry):
            continue
        now, last = entry.now, entry.rollouts[-1] if entry.rollouts else None
        told.append(
            WorkloadTold(
                f"{group.namespace}/{group.name}",
                group.kind,
                now.desired,
                now.ready,
                now.available,
                entry.least_available,
                "" if last is None else last.state,
                None if last is None else taken(last),
                workloads.below(group),
                now.restarts,
                now.completions,
                now.failures,
                levels(entry, ledger, PARTS),
            )
        )
    return told


def told_traffic(facts: list[CustomFact], ledger: Ledger) -> list[TrafficTold]:
    """What became of requests."""
    from kubescene.results.over_time.requests import TrafficParts, measured, summed

    windows = [(time, told) for _, time, told in measured(facts)]
    courses: dict[str, TrafficParts] = {}
    for time, told in windows:
        if told.traffic not in courses:
            courses[told.traffic] = TrafficParts(
                ledger.started_time or 0, ledger.duration, MORE_PARTS
            )
        courses[told.traffic].add(time, told)
    found = []
    for totals in summed(told for _, told in windows).values():
        row, course = totals.row(), courses[totals.traffic]
        given = {name: getattr(row, name) for name in TRAFFIC_NAMES}
        found.append(
            TrafficTold(
                **given,
                objective_ms=totals.objective / MILLISECOND,
                slo_minutes=totals.missed / MINUTE,
                minutes=totals.length / MINUTE,
                rps=course.rps,
                failed_rps=course.failed,
                p99_levels_ms=course.p99_ms,
                ready=course.ready,
            )
        )
    return found


TRAFFIC_NAMES = (
    "traffic",
    "requests",
    "failed",
    "timed_out",
    "refused",
    "killed",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "served_p50_ms",
    "served_p95_ms",
    "served_p99_ms",
    "inexact",
)


def told_scaling(facts: list[CustomFact], ledger: Ledger) -> list[ScalingTold]:
    """What autoscalers decided."""
    from kubescene.results.over_time.scaling import decided

    return [
        ScalingTold(
            row.time_s,
            f"{row.namespace}/{row.autoscaler}".removeprefix("/"),
            row.target,
            row.replicas_from,
            row.replicas_to,
            row.reason,
        )
        for row in islice(decided(facts, ledger), PLACEMENTS_KEPT)
    ]


def is_done(entry: WorkloadEntry) -> bool:
    """Whether it is a Job of which there is nothing to say."""
    now = entry.now
    return entry.kind == JOB and now.completions == now.desired and not now.failures


def placement(fact: PodScheduled, began: int) -> Placement:
    """A pod on its node, with the two best totals if the attempt was explained."""
    result = fact.result
    totals = result.totals() if result is not None else {}
    score = totals.pop(fact.node, None)
    runner_up = max(totals, key=totals.__getitem__, default="")
    return Placement(
        pod=f"{fact.namespace}/{fact.name}",
        step=str(fact.step),
        time_s=(fact.time - began) / SECOND,
        node=fact.node,
        candidates=result.examined if result is not None else fact.evaluated,
        feasible=result.feasible if result is not None else fact.feasible,
        score=score,
        runner_up=runner_up,
        runner_up_score=totals.get(runner_up),
    )
