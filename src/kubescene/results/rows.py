"""The rows of each table. Times are seconds of virtual time since the run began.

``cpu`` is in thousandths of a core, ``memory`` in bytes; what else there is (extended resources,
ephemeral storage) stands in a mapping.
"""

from collections.abc import Iterator

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.clock import ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry, NodeUse, PodEntry, StepEntry
from kubescene.results.sources import RunSource
from kubescene.results.states import Amounts

SECOND = 10**9


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
    cpu: int
    memory: int
    other: dict[str, int]


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at the end, or when it was removed."""

    name: str
    present: bool
    created_step: str
    created_s: float
    ended_step: str | None
    ended_s: float | None
    pods: int
    pods_allocatable: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_utilization: float | None
    memory_requested: int
    memory_allocatable: int
    memory_utilization: float | None
    other_requested: dict[str, int]
    other_allocatable: dict[str, int]
    labels: dict[str, str]


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One major step, and the cluster when it had come to rest."""

    step: int
    minor_steps: int
    started_s: float
    ended_s: float
    operations: int
    controller_writes: int
    pods_created: int
    scheduled: int
    failed_attempts: int
    preempted: int
    deleted: int
    nodes: int
    pods_pending: int
    pods_bound: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_allocation: float | None
    memory_requested: int
    memory_allocatable: int
    memory_allocation: float | None


class AllocationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of the whole cluster at the end of one major step."""

    step: int
    time_s: float
    resource: str
    requested: int
    allocatable: int
    allocation: float | None


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


class UtilizationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at the end of one major step."""

    step: int
    node: str
    pods: int
    pods_allocatable: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_utilization: float | None
    memory_requested: int
    memory_allocatable: int
    memory_utilization: float | None
    other_requested: dict[str, int]
    other_allocatable: dict[str, int]


class MeasureRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measure; ``value`` is None where there is nothing to measure."""

    measure: str
    value: float | int | None
    unit: str
    meaning: str


def ratio(part: int, whole: int) -> float | None:
    """A share; of nothing there is none."""
    return part / whole if whole else None


def others(amounts: Amounts) -> dict[str, int]:
    named = (CPU, MEMORY, PODS)
    return {name: amounts[name] for name in sorted(amounts) if name not in named and amounts[name]}


class Clockwork:
    """Times of one run as seconds since its beginning."""

    def __init__(self, ledger: Ledger) -> None:
        self._began = ledger.started_time or 0

    def seconds(self, time: int) -> float:
        return (time - self._began) / SECOND

    def maybe(self, time: int | None) -> float | None:
        return None if time is None else self.seconds(time)


def text(step: ScenarioStep | None) -> str | None:
    return None if step is None else str(step)


def pod_rows(ledger: Ledger) -> Iterator[PodRow]:
    """All pods that ever were, in the order of their creation."""
    clock = Clockwork(ledger)
    return (pod_row(pod, ledger, clock) for pod in ledger.pods)


def pod_row(pod: PodEntry, ledger: Ledger, clock: Clockwork) -> PodRow:
    requests = pod.requests
    return PodRow(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        state=pod.state,
        node=pod.node,
        owner=pod.owner,
        priority=pod.priority,
        created_step=str(pod.created_step),
        created_s=clock.seconds(pod.created_time),
        bound_step=text(pod.bound_step),
        bound_s=clock.maybe(pod.bound_time),
        ended_step=text(pod.ended_step),
        ended_s=clock.maybe(pod.ended_time),
        pending_s=pod.pending_until(ledger.time) / SECOND,
        pending_steps=pod.pending_steps(ledger.step),
        censored=pod.is_censored,
        attempts=pod.attempts,
        failed_attempts=pod.failed_attempts,
        preempted_by=pod.preempted_by,
        message=pod.reason,
        cpu=requests.get(CPU, 0),
        memory=requests.get(MEMORY, 0),
        other=others(requests),
    )


def node_rows(ledger: Ledger) -> Iterator[NodeRow]:
    """All nodes that ever were, in the order of their creation."""
    clock = Clockwork(ledger)
    return (node_row(node, clock) for node in ledger.nodes)


def node_row(node: NodeEntry, clock: Clockwork) -> NodeRow:
    use = node.use
    requested, allocatable = use.requested, use.allocatable
    cpu, memory = requested.get(CPU, 0), requested.get(MEMORY, 0)
    return NodeRow(
        name=node.name,
        present=node.ended_time is None,
        created_step=str(node.created_step),
        created_s=clock.seconds(node.created_time),
        ended_step=text(node.ended_step),
        ended_s=clock.maybe(node.ended_time),
        pods=requested.get(PODS, 0),
        pods_allocatable=allocatable.get(PODS, 0),
        cpu_requested=cpu,
        cpu_allocatable=allocatable.get(CPU, 0),
        cpu_utilization=ratio(cpu, allocatable.get(CPU, 0)),
        memory_requested=memory,
        memory_allocatable=allocatable.get(MEMORY, 0),
        memory_utilization=ratio(memory, allocatable.get(MEMORY, 0)),
        other_requested=others(requested),
        other_allocatable=others(allocatable),
        labels=dict(node.labels),
    )


def step_rows(ledger: Ledger) -> Iterator[StepRow]:
    clock = Clockwork(ledger)
    return (step_row(step, clock) for step in ledger.steps)


def step_row(step: StepEntry, clock: Clockwork) -> StepRow:
    requested, allocatable = step.totals.requested, step.totals.allocatable
    cpu, memory = requested.get(CPU, 0), requested.get(MEMORY, 0)
    return StepRow(
        step=step.major,
        minor_steps=step.minor,
        started_s=clock.seconds(step.started_time),
        ended_s=clock.seconds(step.ended_time),
        operations=step.operations,
        controller_writes=step.controller_writes,
        pods_created=step.created_pods,
        scheduled=step.scheduled,
        failed_attempts=step.failed_attempts,
        preempted=step.preempted,
        deleted=step.deleted,
        nodes=step.totals.nodes,
        pods_pending=step.pending,
        pods_bound=step.bound,
        cpu_requested=cpu,
        cpu_allocatable=allocatable.get(CPU, 0),
        cpu_allocation=ratio(cpu, allocatable.get(CPU, 0)),
        memory_requested=memory,
        memory_allocatable=allocatable.get(MEMORY, 0),
        memory_allocation=ratio(memory, allocatable.get(MEMORY, 0)),
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
            )


def attempt_rows(source: RunSource) -> Iterator[AttemptRow]:
    """Every attempt, read anew: the ledger keeps counts only."""
    clock = Clockwork(source.ledger)
    for each in source.attempts():
        yield AttemptRow(
            pod=f"{each.namespace}/{each.name}",
            attempt=each.attempt,
            step=str(each.step),
            time_s=clock.seconds(each.time),
            profile=each.profile,
            node=each.node,
            evaluated=each.evaluated,
            feasible=each.feasible,
            nominated=each.nominated,
            reason=each.reason,
            message=each.message,
        )


def preemption_rows(ledger: Ledger) -> Iterator[PreemptionRow]:
    clock = Clockwork(ledger)
    for each in ledger.preemptions:
        yield PreemptionRow(
            pod=each.pod,
            node=each.node,
            preemptor=each.preemptor,
            step=str(each.step),
            time_s=clock.seconds(each.time),
        )


def utilization_rows(ledger: Ledger) -> Iterator[UtilizationRow]:
    """Every node that exists at the end of every step, by step and name."""
    uses: dict[str, NodeUse] = {}
    for step in ledger.steps:
        for name, use in step.nodes.items():
            if use is None:
                uses.pop(name, None)
            else:
                uses[name] = use
        for name in sorted(uses):
            yield utilization_row(step.major, name, uses[name])


def utilization_row(step: int, node: str, use: NodeUse) -> UtilizationRow:
    requested, allocatable = use.requested, use.allocatable
    cpu, memory = requested.get(CPU, 0), requested.get(MEMORY, 0)
    return UtilizationRow(
        step=step,
        node=node,
        pods=requested.get(PODS, 0),
        pods_allocatable=allocatable.get(PODS, 0),
        cpu_requested=cpu,
        cpu_allocatable=allocatable.get(CPU, 0),
        cpu_utilization=ratio(cpu, allocatable.get(CPU, 0)),
        memory_requested=memory,
        memory_allocatable=allocatable.get(MEMORY, 0),
        memory_utilization=ratio(memory, allocatable.get(MEMORY, 0)),
        other_requested=others(requested),
        other_allocatable=others(allocatable),
    )
