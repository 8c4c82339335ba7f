"""Major steps, and the whole cluster at the end of each."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import StepEntry
from kubescene.results.rows.columns import Clockwork, amounts, ratio, row_of


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
