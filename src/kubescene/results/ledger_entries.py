"""What stands in a `Ledger`: pods, nodes, steps and preemptions, from beginning to end."""

import msgspec

from kubescene.api.resource_requests import PODS
from kubescene.clock import ScenarioStep
from kubescene.results.states import NO_ASK, NO_LABELS, Amounts, Labels, PodAsk

PENDING, BOUND, TERMINATING = "Pending", "Bound", "Terminating"
FINISHED, DELETED = "Finished", "Deleted"
STATES = (PENDING, BOUND, TERMINATING, FINISHED, DELETED)

PodKey = tuple[str, str]
"""Namespace and name."""


class PodEntry(msgspec.Struct, gc=False):
    """One pod from its creation to its end. Times are nanoseconds since 1970, None if not yet.

    ``gc=False`` is sound: an entry refers to values only.
    """

    namespace: str
    name: str
    uid: str
    created_step: ScenarioStep
    created_time: int
    state: str = PENDING
    phase: str = ""
    node: str = ""
    ask: PodAsk = NO_ASK
    owner: str = ""
    came_with_node: bool = False
    bound_step: ScenarioStep | None = None
    bound_time: int | None = None
    ended_step: ScenarioStep | None = None
    ended_time: int | None = None
    attempts: int = 0
    failed_attempts: int = 0
    message: str = ""
    preempted_by: str = ""
    labels: Labels = NO_LABELS

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


class Room:
    """What pods take of a node, whether it exists or not."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested: dict[str, int] = {PODS: 0}
        """Every pod takes one of the ``pods``, too."""

    @property
    def pods(self) -> int:
        """How many take room of it."""
        return self.requested.get(PODS, 0)


def add_amounts(sums: dict[str, int], amounts: Amounts, factor: int) -> None:
    """Add amounts to sums, ``factor`` times."""
    for resource, amount in amounts.items():
        sums[resource] = sums.get(resource, 0) + factor * amount


class NodeEntry:
    """One node from its creation to its end, with the room that pods take of it."""

    __slots__ = (
        "allocatable",
        "created_step",
        "created_time",
        "ended_step",
        "ended_time",
        "labels",
        "last_use",
        "name",
        "room",
    )

    def __init__(self, name: str, room: Room, step: ScenarioStep, time: int) -> None:
        self.name = name
        self.created_step, self.created_time = step, time
        self.ended_step: ScenarioStep | None = None
        self.ended_time: int | None = None
        self.allocatable: Amounts = {}
        self.labels: Labels = NO_LABELS
        self.room = room
        self.last_use: NodeUse | None = None
        """What it was when it was removed."""

    @property
    def use(self) -> "NodeUse":
        if self.last_use is not None:
            return self.last_use
        return NodeUse(self.allocatable, dict(self.room.requested))


class NodeUse:
    """A node at the end of a step: what it offers, and what the pods on it ask for."""

    __slots__ = ("allocatable", "requested")

    def __init__(self, allocatable: Amounts, requested: Amounts) -> None:
        self.allocatable = allocatable
        self.requested = requested

    @property
    def pods(self) -> int:
        """How many take room of it."""
        return self.requested.get(PODS, 0)


class Totals:
    """Sums over the nodes that exist."""

    __slots__ = ("allocatable", "nodes", "requested")

    def __init__(self) -> None:
        self.nodes = 0
        self.allocatable: dict[str, int] = {}
        self.requested: dict[str, int] = {PODS: 0}

    @property
    def pods(self) -> int:
        """How many take room of them."""
        return self.requested[PODS]

    def copy(self) -> "Totals":
        copy = Totals()
        copy.nodes = self.nodes
        copy.allocatable, copy.requested = dict(self.allocatable), dict(self.requested)
        return copy


class StepEntry:
    """One major step: what was done in it, and the cluster when it came to rest.

    ``nodes`` has those whose use changed in it, None for one that was removed.
    """

    __slots__ = (
        "bound",
        "controller_writes",
        "created_pods",
        "deleted",
        "ended_time",
        "facts",
        "failed_attempts",
        "major",
        "minor",
        "nodes",
        "operations",
        "pending",
        "preempted",
        "scheduled",
        "started_time",
        "totals",
    )

    def __init__(self, major: int, time: int) -> None:
        self.major, self.minor = major, 0
        self.started_time = self.ended_time = time
        self.facts = self.operations = self.controller_writes = 0
        self.created_pods = self.scheduled = self.failed_attempts = 0
        self.preempted = self.deleted = 0
        self.pending = self.bound = 0
        self.totals = Totals()
        self.nodes: dict[str, NodeUse | None] = {}


class PreemptionEntry:
    """A pod that had to leave its node for another."""

    __slots__ = ("node", "pod", "preemptor", "step", "time")

    def __init__(self, pod: str, node: str, preemptor: str, step: ScenarioStep, time: int) -> None:
        self.pod, self.node, self.preemptor = pod, node, preemptor
        self.step, self.time = step, time
