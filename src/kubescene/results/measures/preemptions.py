"""Who had to make room for others."""

from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import Measure


def preemptions(ledger: Ledger) -> int:
    return len(ledger.preemptions)


def preemptors(ledger: Ledger) -> int:
    return len({each.preemptor for each in ledger.preemptions})


MEASURES = (
    Measure(
        name="preemptions",
        meaning="Pods that had to leave their node for a pod of higher priority.",
        formula="number of preemptions",
        unit="pods",
        of=preemptions,
    ),
    Measure(
        name="preemptors",
        meaning="Pods for which others had to leave.",
        formula="number of distinct preemptors, by name",
        unit="pods",
        of=preemptors,
    ),
)
