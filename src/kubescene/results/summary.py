"""The short account of a run: steps, placements, node use, and who is still waiting and why."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from kubescene.api.kinds import NODE, POD
from kubescene.api.resource_requests import node_allocatable
from kubescene.clock import format_micro_time
from kubescene.results.pod_resources import PodRequests, known_resources
from kubescene.timeline import (
    Advanced,
    Done,
    ExpectationsEvaluated,
    Fact,
    NotSimulated,
    ObjectCreated,
    ObjectDeleted,
    ObjectFact,
    ObjectPatched,
    OperationsIgnored,
    Outcome,
    PodAttempt,
    PodPreempted,
    PodScheduled,
    ScenarioEnded,
)
from kubescene.timeline.object_facts import ObjectState
from kubescene.version import __version__

FINAL_PHASES = ("Succeeded", "Failed")
"""Of pods that are through: what they asked for is free again."""
FAILED = "Failed"
"""A scenario that failed has no result to expect anything of."""
PLACEMENTS_KEPT = 1000
"""The newest are kept; the timeline has them all."""

PodKey = tuple[str, str]


@dataclass(slots=True)
class StepSummary:
    """One major step."""

    major: int
    minor_steps: int = 0
    operations: int = 0
    controller_writes: int = 0
    scheduled: int = 0
    failed_attempts: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """One pod on its node: the winning score, and the best of the others."""

    pod: str
    step: str
    node: str
    candidates: int
    feasible: int
    score: int | None = None
    runner_up: str = ""
    runner_up_score: int | None = None


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that no node took, with the message of its last attempt."""

    pod: str
    attempts: int
    message: str


@dataclass(slots=True)
class NodeUse:
    """What a node offers and what the pods on it ask for, at the end."""

    name: str
    pods: int = 0
    allocatable: dict[str, int] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """Whether an expectation holds; if not, what to tell people, and why it has no value."""

    name: str
    expression: str
    holds: bool
    message: str = ""
    error: str = ""

    @property
    def why(self) -> str:
        """In one text; empty where it holds."""
        return ": ".join(filter(None, (self.message, self.error)))


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

    @property
    def unmet(self) -> list[ExpectationOutcome]:
        """The expectations that do not hold."""
        return [each for each in self.expectations if not each.holds]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        bound, waiting = self.placements_total, len(self.pending)
        return f"<Summary of {self.scenario}: {self.phase}, {bound} bound, {waiting} waiting>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import summary_html

        return summary_html(self)


def summarize(facts: Iterable[Fact], *, scenario: str, seed: int = 0) -> Summary:
    """Fold a log, from memory or from disk, into its summary."""
    fold = SummaryFold()
    for fact in facts:
        fold.add(fact)
    return fold.finish(scenario, seed=seed)


class SummaryFold:
    """Follows a log: the state of the world as far as the summary needs it, fact by fact."""

    def __init__(self) -> None:
        self._summary = Summary()
        self._started: int | None = None
        self._ended = 0
        self._steps: dict[int, StepSummary] = {}
        self._unwritten: Counter[int] = Counter()
        """Operations that write nothing (done, advance), by major step."""
        self._nodes: dict[str, ObjectState] = {}
        self._bound: dict[PodKey, tuple[str, dict[str, int]]] = {}
        self._waiting: dict[PodKey, PendingPod] = {}
        self._untried: dict[PodKey, ObjectState] = {}
        self._placements: deque[PodScheduled] = deque(maxlen=PLACEMENTS_KEPT)
        self._requests = PodRequests()

    def add(self, fact: Fact) -> None:
        """Take in the next fact; kinds that the summary knows nothing of leave no trace."""
        if isinstance(fact, ObjectFact):
            self._wrote(fact, self._count(fact))
        elif isinstance(fact, PodAttempt):
            self._attempted(fact, self._count(fact))
        elif isinstance(fact, Done | Advanced):
            self._count(fact).operations += 1
            self._unwritten[fact.step.major] += 1
        elif isinstance(fact, PodPreempted):
            self._count(fact).controller_writes += 1
        elif isinstance(fact, OperationsIgnored):
            self._summary.ignored += fact.operations
        elif isinstance(fact, NotSimulated):
            self._summary.warnings += fact.warnings
        elif isinstance(fact, ExpectationsEvaluated):
            self._summary.expectations = list(map(outcome, fact.outcomes))
        elif isinstance(fact, ScenarioEnded):
            self._ended_as(fact)

    def counts(self, until: int | None = None) -> dict[str, int]:
        """What operations wrote, how many pods were bound, how many attempts failed.

        So far, or up to a major step.
        """
        steps = [each for each in self._steps.values() if until is None or each.major <= until]
        return {
            "written": sum(step.operations - self._unwritten[step.major] for step in steps),
            "bound": sum(step.scheduled for step in steps),
            "failedAttempts": sum(step.failed_attempts for step in steps),
        }

    def finish(self, scenario: str, *, seed: int = 0) -> Summary:
        """The account so far, a value of its own: the fold may go on."""
        summary = replace(self._summary, scenario=scenario, seed=seed)
        summary.ignored, summary.warnings = [*summary.ignored], [*summary.warnings]
        summary.expectations = [*summary.expectations]
        if self._started is not None:
            summary.started = format_micro_time(self._started)
            summary.ended = format_micro_time(self._ended)
        summary.steps = [replace(self._steps[major]) for major in sorted(self._steps)]
        summary.nodes = self._node_uses()
        summary.placements = [placement(fact) for fact in self._placements]
        waiting = self._waiting | {key: untried(key, pod) for key, pod in self._untried.items()}
        summary.pending = [waiting[key] for key in sorted(waiting)]
        return summary

    def _ended_as(self, fact: ScenarioEnded) -> None:
        self._summary.phase, self._summary.message = fact.phase, fact.message
        self._ended = fact.time
        if fact.phase == FAILED:
            self._summary.expectations = []

    def _count(self, fact: Fact) -> StepSummary:
        self._summary.events += 1
        if self._started is None:
            self._started = fact.time
        self._ended = fact.time
        major, minor = fact.step
        step = self._steps.get(major)
        if step is None:
            step = self._steps[major] = StepSummary(major)
        step.minor_steps = max(step.minor_steps, minor)
        return step

    def _attempted(self, fact: PodAttempt, step: StepSummary) -> None:
        key = (fact.namespace, fact.name)
        self._untried.pop(key, None)
        if isinstance(fact, PodScheduled):
            step.scheduled += 1
            self._waiting.pop(key, None)
            self._assign(key, fact.record, fact.node)
            self._summary.placements_total += 1
            self._placements.append(fact)
            return
        step.failed_attempts += 1
        attempts = self._waiting[key].attempts if key in self._waiting else 0
        self._waiting[key] = PendingPod("/".join(key), attempts + 1, fact.message)

    def _wrote(self, fact: ObjectFact, step: StepSummary) -> None:
        if fact.origin is not None:
            step.operations += 1
        else:
            step.controller_writes += 1
        if isinstance(fact, ObjectDeleted):
            step.deleted += 1
            self._gone(fact)
        elif isinstance(fact, ObjectCreated | ObjectPatched):
            self._changed(fact, fact.record)

    def _gone(self, fact: ObjectDeleted) -> None:
        if fact.gvk == NODE:
            self._nodes.pop(fact.name, None)
        elif fact.gvk == POD:
            self._over((fact.namespace, fact.name))

    def _over(self, key: PodKey) -> None:
        """The pod neither waits nor takes anything from its node any more."""
        self._bound.pop(key, None)
        self._waiting.pop(key, None)
        self._untried.pop(key, None)

    def _changed(self, fact: ObjectFact, record: ObjectState) -> None:
        if fact.gvk == NODE:
            self._nodes[fact.name] = record
        elif fact.gvk == POD and not record.deleting:
            key = (fact.namespace, fact.name)
            if record.phase in FINAL_PHASES:
                self._over(key)
            elif record.node:
                self._waiting.pop(key, None)
                self._untried.pop(key, None)
                self._assign(key, record, record.node)
            elif key not in self._waiting:
                self._untried[key] = record

    def _assign(self, key: PodKey, pod: ObjectState, node: str) -> None:
        if key not in self._bound:
            self._bound[key] = (node, self._requests.of(pod))

    def _node_uses(self) -> list[NodeUse]:
        uses = {name: NodeUse(name, allocatable=offered(self._nodes[name])) for name in self._nodes}
        for node, requests in self._bound.values():
            if (use := uses.get(node)) is not None:
                use.pods += 1
                for resource, amount in requests.items():
                    use.requested[resource] = use.requested.get(resource, 0) + amount
        return [uses[name] for name in sorted(uses)]


def outcome(told: Outcome) -> ExpectationOutcome:
    return ExpectationOutcome(told.name, told.expression, told.holds, told.message, told.error)


def untried(key: PodKey, pod: ObjectState) -> PendingPod:
    """A pod that no scheduler has looked at, and why."""
    spec = orjson.loads(pod.unversioned_data).get("spec") or {}
    gates = [str(gate.get("name")) for gate in spec.get("schedulingGates") or ()]
    if gates:
        why = f"it waits for its scheduling gates: {', '.join(gates)}"
    else:
        name = spec.get("schedulerName", "")
        why = f"no scheduler has tried to place it (schedulerName {name!r})"
    return PendingPod("/".join(key), 0, why)


def offered(node: ObjectState) -> dict[str, int]:
    return known_resources(node_allocatable(orjson.loads(node.unversioned_data)))


def placement(fact: PodScheduled) -> Placement:
    """A pod on its node, with the two best totals if the attempt was explained."""
    result = fact.result
    totals = result.totals() if result is not None else {}
    others = [(total, node) for node, total in totals.items() if node != fact.node]
    best = max(others, key=lambda pair: pair[0], default=None)
    return Placement(
        pod=f"{fact.namespace}/{fact.name}",
        step=str(fact.step),
        node=fact.node,
        candidates=result.examined if result is not None else fact.evaluated,
        feasible=result.feasible if result is not None else fact.feasible,
        score=totals.get(fact.node),
        runner_up=best[1] if best else "",
        runner_up_score=best[0] if best else None,
    )
