"""Pods, from their creation to their end."""

from collections.abc import Iterator

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PodEntry
from kubescene.results.rows.columns import SECOND, Clockwork, others, row_of, text


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
