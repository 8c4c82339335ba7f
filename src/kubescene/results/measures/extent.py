"""How large the run was."""

from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import Measure

SECOND = 10**9
HOUR = 3600 * SECOND


def steps(ledger: Ledger) -> int:
    return len(ledger.steps)


def seconds(ledger: Ledger) -> float:
    return ledger.duration / SECOND


def node_hours(ledger: Ledger) -> float:
    return ledger.node_time / HOUR


MEASURES = (
    Measure(
        name="steps",
        meaning="Major steps in which something happened.",
        formula="number of major steps",
        unit="steps",
        of=steps,
    ),
    Measure(
        name="virtual_seconds",
        meaning="Virtual time from the first event of the run to its end.",
        formula="time of the last fact - time of the first",
        unit="seconds",
        of=seconds,
    ),
    Measure(
        name="node_hours",
        meaning="Virtual time that nodes existed, summed over them.",
        formula="integral of the number of nodes over virtual time",
        unit="hours",
        of=node_hours,
    ),
)
