"""How much work the scheduler had."""

from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import Measure, share


def attempts(ledger: Ledger) -> int:
    return sum(step.scheduled + step.failed_attempts for step in ledger.steps)


def failed(ledger: Ledger) -> int:
    return sum(step.failed_attempts for step in ledger.steps)


def per_placement(ledger: Ledger) -> float | None:
    return share(attempts(ledger), attempts(ledger) - failed(ledger))


MEASURES = (
    Measure(
        name="attempts",
        meaning="Attempts of schedulers at pods, with and without success.",
        formula="number of attempts",
        unit="attempts",
        of=attempts,
    ),
    Measure(
        name="attempts_failed",
        meaning="Attempts that found no node.",
        formula="number of attempts that did not bind",
        unit="attempts",
        of=failed,
    ),
    Measure(
        name="attempts_per_placement",
        meaning="Attempts that it takes to place a pod.",
        formula="attempts / (attempts - attempts_failed)",
        unit="attempts",
        of=per_placement,
    ),
)
