"""What schedulers did: attempts at pods, and pods that had to leave."""

from collections.abc import Iterator

import msgspec

from kubescene.results.ledger import Ledger
from kubescene.results.rows.columns import Clockwork
from kubescene.results.sources import RunSource


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
