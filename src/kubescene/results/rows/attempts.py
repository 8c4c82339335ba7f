"""What schedulers did: attempts at pods, and pods that had to leave."""

from collections.abc import Iterator

import msgspec

from kubescene.results.ledger import Ledger
from kubescene.results.rows.columns import Clockwork, row_of
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
