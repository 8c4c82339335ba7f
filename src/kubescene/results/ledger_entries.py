"""What stands in a `Ledger`: pods, nodes, steps and preemptions, from beginning to end.

A field says by its type what else has to be known of it: a `SharedValue` stands in a table where a
ledger is written down (`ledger_file`), and `From` a kind of facts a pod's entry takes over the
member of the same name, the newest each time.
"""

from functools import cache
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, get_type_hints

import msgspec

from kubescene.api.resource_requests import PODS
from kubescene.clock import ScenarioStep
from kubescene.results.states import NO_ASK, NO_LABELS, Amounts, Labels, PodAsk
from kubescene.timeline import (
    PodAttempt,
    PodFact,
    PodFinished,
    PodLifeFact,
    PodPreempted,
    PodRestarted,
)


class Peak(msgspec.Struct, eq=False):
    """Empty until it has looked at something; each resource has a moment of its own."""

    requested: dict[str, int] = {}
    allocatable: dict[str, int] = {}

    def look(self, requested: Amounts, allocatable: Amounts) -> None:
        """What is asked of what at one moment; a resource of which there is nothing has no share.

        Shares are compared by products: integers are exact.
        """
        asked, offered = self.requested, self.allocatable
        if allocatable == offered:  # as it mostly is
            for name, part in requested.items():
                if part > asked.get(name, part):
                    asked[name] = part
            return
        for name, whole in allocatable.items():
            part, known = requested.get(name, 0), offered.get(name)
            if whole == known:
                asked[name] = max(asked[name], part)
            elif whole and (known is None or part * known > asked[name] * whole):
                asked[name], offered[name] = part, whole

    @classmethod
    def of(cls, requested: Amounts, allocatable: Amounts) -> Self:
        """Of one moment."""
        offered = {name: whole for name, whole in allocatable.items() if whole}
        return cls({name: requested.get(name, 0) for name in offered}, offered)

    def is_now(self, requested: Amounts, allocatable: Amounts) -> bool:
        """Whether these amounts are the peak of every resource."""
        now = Peak.of(requested, allocatable)
        return now.requested == self.requested and now.allocatable == self.allocatable


PENDING, BOUND, TERMINATING = "Pending", "Bound", "Terminating"
FINISHED, DELETED = "Finished", "Deleted"
STATES = (PENDING, BOUND, TERMINATING, FINISHED, DELETED)

PodKey = tuple[str, str]
"""Namespace and name."""


class SharedValue(NamedTuple):
    """The value is one of few, which stand in a table of that name."""

    table: str


class From(NamedTuple):
    """The value is the member of the same name of such facts."""

    kind: type[PodFact | PodLifeFact]


Text: TypeAlias = Annotated[str, SharedValue("texts")]
SharedAsk: TypeAlias = Annotated[PodAsk, SharedValue("asks")]
SharedLabels: TypeAlias = Annotated[Labels, SharedValue("labels")]
SharedAmounts: TypeAlias = Annotated[Amounts, SharedValue("amounts")]


class PodEntry(msgspec.Struct, gc=False):
    """One pod from its creation to its end. Times are nanoseconds since 1970, None if not yet.

    ``gc=False`` is sound: an entry refers to values only.
    """

    namespace: Text
    name: str
    uid: str
    created_step: ScenarioStep
    created_time: int
    state: Text = PENDING
    phase: Text = ""
    node: Text = ""
    ask: SharedAsk = NO_ASK
    owner: Text = ""
    came_with_node: bool = False
    bound_step: ScenarioStep | None = None
    bound_time: int | None = None
    ended_step: ScenarioStep | None = None
    ended_time: int | None = None
    attempts: int = 0
    failed_attempts: int = 0
    message: Annotated[Text, From(PodAttempt)] = ""
    preempted_by: Annotated[Text, From(PodPreempted)] = ""
    labels: SharedLabels = NO_LABELS
    restarts: Annotated[int, From(PodRestarted)] = 0
    exit_code: Annotated[int | None, From(PodFinished)] = None

    @property
    def requests(self) -> Amounts:
        return self.ask.requests

    @property
    def priority(self) -> int:
        return self.ask.priority

    @property
    def scheduler(self) -> str:
        return self.ask.scheduler

    @property
    def gates(self) -> tuple[str, ...]:
        return self.ask.gates

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def reason(self) -> str:
        """What its last attempt said; of a pod that waits without one, why nobody tried."""
        if self.attempts or self.state != PENDING:
            return self.message
        if self.gates:
            return f"it waits for its scheduling gates: {', '.join(self.gates)}"
        return f"no scheduler has tried to place it (schedulerName {self.scheduler!r})"

    def pending_until(self, end: int) -> int:
        """Nanoseconds from creation to the first node, the pod's end, or ``end``."""
        until = self.bound_time
        if until is None:
            until = end if self.ended_time is None else self.ended_time
        return until - self.created_time

    def pending_steps(self, end: ScenarioStep) -> int:
        """The same in major steps; 0 if it was bound in the step in which it came."""
        until = self.bound_step or self.ended_step or end
        return until.major - self.created_step.major

    @property
    def holds_room(self) -> bool:
        return bool(self.node) and self.state in (BOUND, TERMINATING)

    @property
    def is_censored(self) -> bool:
        """Whether it never got a node: it might have waited longer than was seen."""
        return self.bound_time is None


@cache
def noted(entry: type[msgspec.Struct], note: type[Any]) -> dict[str, Any]:
    """What the fields of an entry say of themselves in that respect, by their names."""
    hints = get_type_hints(entry, include_extras=True)
    return {
        name: each
        for name in entry.__struct_fields__
        for each in getattr(hints[name], "__metadata__", ())
        if isinstance(each, note)
    }


def _feeds() -> dict[type[PodFact | PodLifeFact], tuple[str, ...]]:
    feeds: dict[type[PodFact | PodLifeFact], tuple[str, ...]] = {}
    for name, fed in noted(PodEntry, From).items():
        feeds[fed.kind] = (*feeds.get(fed.kind, ()), name)
    return feeds


FEEDS = _feeds()
"""What a pod's entry takes over, by kind of facts."""


class Room:
    """What pods take of a node, whether it exists or not."""

    __slots__ = ("requested",)

    def __init__(self, requested: Amounts | None = None) -> None:
        self.requested: dict[str, int] = {PODS: 0} if requested is None else {**requested}
        """Every pod takes one of the ``pods``, too."""

    @property
    def pods(self) -> int:
        """How many take room of it."""
        return self.requested.get(PODS, 0)


def add_amounts(sums: dict[str, int], amounts: Amounts, factor: int) -> None:
    """Add amounts to sums, ``factor`` times."""
    for resource, amount in amounts.items():
        sums[resource] = sums.get(resource, 0) + factor * amount


class StepNodeUse:
    """A node at the end of a step: what it offers, and what the pods on it ask for.

    ``marks`` say what keeps pods away from it, see `states.NodeState`.
    """

    __slots__ = ("allocatable", "marks", "requested")

    def __init__(self, allocatable: Amounts, requested: Amounts, marks: str = "") -> None:
        self.allocatable = allocatable
        self.requested = requested
        self.marks = marks

    @property
    def pods(self) -> int:
        """How many take room of it."""
        return self.requested.get(PODS, 0)


NO_AMOUNTS: Amounts = {}


class NodeEntry(msgspec.Struct, eq=False):
    """One node from its creation to its end, with the room that pods take of it."""

    name: str
    created_step: ScenarioStep
    created_time: int
    ended_step: ScenarioStep | None = None
    ended_time: int | None = None
    stated: SharedAmounts = NO_AMOUNTS
    """What it says itself that it offers; ``allocatable`` has its devices, too."""
    capacity: SharedAmounts = NO_AMOUNTS
    allocatable: SharedAmounts = NO_AMOUNTS
    labels: SharedLabels = NO_LABELS
    marks: Text = ""
    """What keeps pods away from it, at its end."""
    peak_allocatable: SharedAmounts = NO_AMOUNTS
    peak_requested: SharedAmounts = NO_AMOUNTS
    """Of each resource, when its share was highest."""
    last_use: StepNodeUse | None = None
    """What it was when it was removed."""
    room: Room = msgspec.field(default_factory=Room)

    @property
    def use(self) -> StepNodeUse:
        if self.last_use is not None:
            return self.last_use
        return StepNodeUse(self.allocatable, dict(self.room.requested), self.marks)

    @property
    def peak(self) -> StepNodeUse:
        return StepNodeUse(self.peak_allocatable, self.peak_requested)

    def reach(self, peak: Peak) -> None:
        """It has come that high in a step."""
        if not self.peak_allocatable:
            self.peak_requested, self.peak_allocatable = {**peak.requested}, {**peak.allocatable}
            return
        so_far = Peak({**self.peak_requested}, {**self.peak_allocatable})
        so_far.look(peak.requested, peak.allocatable)
        self.peak_requested, self.peak_allocatable = so_far.requested, so_far.allocatable


class Totals(msgspec.Struct, eq=False):
    """Sums over the nodes that exist."""

    nodes: int = 0
    allocatable: dict[str, int] = {}
    requested: dict[str, int] = msgspec.field(default_factory=lambda: {PODS: 0})

    @property
    def pods(self) -> int:
        """How many take room of them."""
        return self.requested[PODS]

    def copy(self) -> "Totals":
        return Totals(self.nodes, dict(self.allocatable), dict(self.requested))


class StepEntry(msgspec.Struct, eq=False):
    """One major step: what was done in it, and the cluster when it came to rest."""

    major: int
    minor: int = 0
    started_time: int = 0
    ended_time: int = 0
    facts: int = 0
    operations: int = 0
    written: int = 0
    """Writes that operations asked for: one of several objects is several."""
    controller_writes: int = 0
    created_pods: int = 0
    scheduled: int = 0
    failed_attempts: int = 0
    preempted: int = 0
    deleted: int = 0
    pending: int = 0
    bound: int = 0
    unschedulable: int = 0
    """Pods that a scheduler tried to place in it, and that still wait."""
    peak: Peak = msgspec.field(default_factory=Peak)
    """Of the cluster, at any moment of it."""
    totals: Totals = msgspec.field(default_factory=Totals)
    nodes: dict[str, StepNodeUse | None] = {}
    """Those whose use changed in it, None for one that was removed."""
    peaks: dict[str, StepNodeUse] = {}
    """Of nodes that changed, where they were fuller at some moment of it than at its end."""


class PreemptionEntry(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """A pod that had to leave its node for another."""

    pod: str
    node: str
    preemptor: str
    step: ScenarioStep
    time: int


class OutcomeEntry(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """What came of an operation, or of the part of it that ``subject`` names."""

    operation: str
    kind: str
    state: str
    subject: str
    message: str
    step: ScenarioStep
    time: int
