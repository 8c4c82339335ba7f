"""The rows of each table, and how a ledger becomes rows.

Times are seconds of virtual time since the run began. ``cpu`` is in thousandths of a core,
``memory`` in bytes; what else there is (extended resources, ephemeral storage) stands in a mapping.
What was there before the scenario was created at step 0.0.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.results.clockwork import SECOND, Clockwork, row_of, text
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry, PodEntry, StepEntry, StepNodeUse
from kubescene.results.sources import RunSource
from kubescene.results.states import Amounts

READY = "Ready"
"""The status of a node from which nothing keeps pods away."""
NAMED = (CPU, MEMORY, PODS)
"""Resources that have columns of their own."""


class ResourceUse(Protocol):
    """What is offered, and what is asked for: of a node, or of all of them."""

    @property
    def requested(self) -> Amounts: ...
    @property
    def allocatable(self) -> Amounts: ...


def ratio(part: int, whole: int) -> float | None:
    """A share; of nothing there is none."""
    return part / whole if whole else None


def amounts(use: ResourceUse, share: str) -> dict[str, int | float | None]:
    """The columns for cpu and memory: requested, allocatable, and their ``share`` of each other."""
    found: dict[str, int | float | None] = {}
    for resource in (CPU, MEMORY):
        asked, offered = use.requested.get(resource, 0), use.allocatable.get(resource, 0)
        found[f"{resource}_requested"] = asked
        found[f"{resource}_allocatable"] = offered
        found[f"{resource}_{share}"] = ratio(asked, offered)
    return found


def others(amounts: Amounts) -> dict[str, int]:
    """What has no column of its own, by name."""
    return {name: amounts[name] for name in sorted(amounts) if name not in NAMED and amounts[name]}


def peaks(use: ResourceUse, share: str = "peak") -> dict[str, float | None]:
    """The columns for cpu and memory at their highest."""
    return {
        f"{resource}_{share}": ratio(
            use.requested.get(resource, 0), use.allocatable.get(resource, 0)
        )
        for resource in (CPU, MEMORY)
    }


def other_peaks(use: ResourceUse) -> dict[str, float]:
    """The highest shares of what has no column of its own, by name."""
    return {
        name: use.requested.get(name, 0) / use.allocatable[name]
        for name in sorted(use.allocatable)
        if name not in NAMED and use.allocatable[name]
    }


# -- major steps, and the whole cluster at the end of each -------------------------------------


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One major step, and the cluster when it had come to rest.

    ``unschedulable`` are the pods that a scheduler tried in it and that still wait then;
    ``..._peak`` are the highest shares at any moment of it.
    """

    step: int
    minor_steps: int
    started_s: float
    ended_s: float
    operations: int
    controller_writes: int
    pods_created: int
    scheduled: int
    failed_attempts: int
    unschedulable: int
    preempted: int
    deleted: int
    nodes: int
    pods_pending: int
    pods_bound: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_allocation: float | None
    cpu_peak: float | None
    memory_requested: int
    memory_allocatable: int
    memory_allocation: float | None
    memory_peak: float | None


class AllocationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of the whole cluster at the end of one major step, and its peak in it."""

    step: int
    time_s: float
    resource: str
    requested: int
    allocatable: int
    allocation: float | None
    peak: float | None


def step_rows(ledger: Ledger) -> Iterator[StepRow]:
    clock = Clockwork(ledger)
    return (step_row(step, clock) for step in ledger.steps)


def step_row(step: StepEntry, clock: Clockwork) -> StepRow:
    allocation: dict[str, Any] = amounts(step.totals, "allocation")
    return row_of(
        StepRow,
        step,
        step=step.major,
        minor_steps=step.minor,
        started_s=clock.seconds(step.started_time),
        ended_s=clock.seconds(step.ended_time),
        pods_created=step.created_pods,
        nodes=step.totals.nodes,
        pods_pending=step.pending,
        pods_bound=step.bound,
        **allocation,
        **peaks(step.peak),
    )


def allocation_rows(ledger: Ledger) -> Iterator[AllocationRow]:
    """Every resource that nodes offer at the end of every step, by step and name."""
    clock = Clockwork(ledger)
    for step in ledger.steps:
        requested, allocatable = step.totals.requested, step.totals.allocatable
        for resource in sorted(allocatable):
            yield AllocationRow(
                step=step.major,
                time_s=clock.seconds(step.ended_time),
                resource=resource,
                requested=requested.get(resource, 0),
                allocatable=allocatable[resource],
                allocation=ratio(requested.get(resource, 0), allocatable[resource]),
                peak=ratio(
                    step.peak.requested.get(resource, 0), step.peak.allocatable.get(resource, 0)
                ),
            )


# -- pods, from their creation to their end ----------------------------------------------------


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pod. ``censored``: it never had a node, so it waited at least ``pending_s``."""

    namespace: str
    name: str
    uid: str
    state: str
    node: str
    owner: str
    priority: int
    created_step: str
    created_s: float
    bound_step: str | None
    bound_s: float | None
    ended_step: str | None
    ended_s: float | None
    pending_s: float
    pending_steps: int
    censored: bool
    attempts: int
    failed_attempts: int
    preempted_by: str
    message: str
    restarts: int
    exit_code: int | None
    cpu: int
    memory: int
    other: dict[str, int]
    labels: dict[str, str]


def pod_rows(ledger: Ledger) -> Iterator[PodRow]:
    """All pods that ever were, in the order of their creation."""
    clock = Clockwork(ledger)
    return (pod_row(pod, ledger, clock) for pod in ledger.pods)


def pod_row(pod: PodEntry, ledger: Ledger, clock: Clockwork) -> PodRow:
    requests = pod.requests
    return row_of(
        PodRow,
        pod,
        created_step=str(pod.created_step),
        created_s=clock.seconds(pod.created_time),
        bound_step=text(pod.bound_step),
        bound_s=clock.maybe(pod.bound_time),
        ended_step=text(pod.ended_step),
        ended_s=clock.maybe(pod.ended_time),
        pending_s=pod.pending_until(ledger.time) / SECOND,
        pending_steps=pod.pending_steps(ledger.step),
        censored=pod.is_censored,
        message=pod.reason,
        cpu=requests.get(CPU, 0),
        memory=requests.get(MEMORY, 0),
        other=others(requests),
        labels={**pod.labels},
    )


# -- nodes: each once, and each at the end of each step ----------------------------------------


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at the end, or when it was removed; ``status`` says what keeps pods away from it.

    ``..._peak`` are the highest shares that it had at any moment.
    """

    name: str
    present: bool
    status: str
    created_step: str
    created_s: float
    ended_step: str | None
    ended_s: float | None
    pods: int
    pods_allocatable: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_utilization: float | None
    cpu_peak: float | None
    memory_requested: int
    memory_allocatable: int
    memory_utilization: float | None
    memory_peak: float | None
    other_requested: dict[str, int]
    other_allocatable: dict[str, int]
    other_peak: dict[str, float]
    labels: dict[str, str]


class UtilizationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at the end of one major step; ``..._peak`` are its highest shares in the step."""

    step: int
    node: str
    status: str
    pods: int
    pods_allocatable: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_utilization: float | None
    cpu_peak: float | None
    memory_requested: int
    memory_allocatable: int
    memory_utilization: float | None
    memory_peak: float | None
    other_requested: dict[str, int]
    other_allocatable: dict[str, int]
    other_peak: dict[str, float]


def used(use: StepNodeUse, peak: StepNodeUse) -> dict[str, Any]:
    """The columns that tell how much of a node is asked for, and was at most."""
    return {
        "status": use.marks or READY,
        "pods": use.requested.get(PODS, 0),
        "pods_allocatable": use.allocatable.get(PODS, 0),
        **amounts(use, "utilization"),
        "other_requested": others(use.requested),
        "other_allocatable": others(use.allocatable),
        **peaks(peak),
        "other_peak": other_peaks(peak),
    }


def node_rows(ledger: Ledger) -> Iterator[NodeRow]:
    """All nodes that ever were, in the order of their creation."""
    clock = Clockwork(ledger)
    return (node_row(node, clock) for node in ledger.nodes)


def node_row(node: NodeEntry, clock: Clockwork) -> NodeRow:
    return row_of(
        NodeRow,
        node,
        present=node.ended_time is None,
        created_step=str(node.created_step),
        created_s=clock.seconds(node.created_time),
        ended_step=text(node.ended_step),
        ended_s=clock.maybe(node.ended_time),
        labels={**node.labels},
        **used(node.use, node.peak),
    )


def utilization_rows(ledger: Ledger) -> Iterator[UtilizationRow]:
    """Every node that exists at the end of every step, by step and name."""
    uses: dict[str, StepNodeUse] = {}
    for step in ledger.steps:
        for name, use in step.nodes.items():
            if use is None:
                uses.pop(name, None)
            else:
                uses[name] = use
        for name in sorted(uses):
            yield UtilizationRow(
                step=step.major, node=name, **used(uses[name], step.peaks.get(name, uses[name]))
            )


# -- attempts at pods, and pods that had to leave ----------------------------------------------


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a scheduler at a pod; ``node`` is empty if it found none."""

    pod: str
    attempt: int
    step: str
    time_s: float
    profile: str
    node: str
    evaluated: int
    feasible: int
    nominated: str
    reason: str
    message: str


class PreemptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that had to leave its node for another."""

    pod: str
    node: str
    preemptor: str
    step: str
    time_s: float


def attempt_rows(source: RunSource) -> Iterator[AttemptRow]:
    """Every attempt, read anew: the ledger keeps counts only."""
    clock = Clockwork(source.ledger)
    for each in source.attempts():
        yield row_of(
            AttemptRow,
            each,
            pod=f"{each.namespace}/{each.name}",
            step=str(each.step),
            time_s=clock.seconds(each.time),
        )


def preemption_rows(ledger: Ledger) -> Iterator[PreemptionRow]:
    clock = Clockwork(ledger)
    for each in ledger.preemptions:
        step, time_s = str(each.step), clock.seconds(each.time)
        yield row_of(PreemptionRow, each, step=step, time_s=time_s)


# -- operations -----------------------------------------------------------------------------------


class OutcomeRow(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an operation, or of a part of it: a node, a pod.

    ``state`` is Warning, Waiting, Refused, TimedOut, Drained, Completed, Incomplete or Unfinished.
    """

    operation: str
    kind: str
    state: str
    subject: str
    message: str
    step: str
    time_s: float


def outcome_rows(ledger: Ledger) -> Iterator[OutcomeRow]:
    clock = Clockwork(ledger)
    for each in ledger.outcomes:
        step, time_s = str(each.step), clock.seconds(each.time)
        yield row_of(OutcomeRow, each, step=step, time_s=time_s)


# -- facts that controllers and plugins of users told ------------------------------------------


class FactRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fact: its name, when, who told it, and what its author's struct says."""

    fact: str
    step: str
    time_s: float
    actor: str
    fields: dict[str, Any]


def fact_rows(source: RunSource) -> Iterator[FactRow]:
    """All of them, in their order, read anew."""
    clock = Clockwork(source.ledger)
    for each in source.custom_facts():
        step, time_s = str(each.step), clock.seconds(each.time)
        yield row_of(FactRow, each, fact=each.kind, step=step, time_s=time_s)


# -- measures ----------------------------------------------------------------------------------


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measure; ``value`` is None where there is nothing to measure."""

    measure: str
    value: float | int | None
    unit: str
    meaning: str
