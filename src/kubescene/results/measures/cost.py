"""What the nodes cost, by a price list. Without one there is no cost, not a cost of 0."""

from fractions import Fraction
from functools import partial

from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import Measure
from kubescene.results.prices import Prices

HOUR = 3600 * 10**9


def total(ledger: Ledger, *, prices: Prices) -> float:
    spent = Fraction(0)
    for node in ledger.nodes:
        until = ledger.time if node.ended_time is None else node.ended_time
        spent += prices.of(node) * Fraction(until - node.created_time, HOUR)
    return float(spent)


def hourly(ledger: Ledger, *, prices: Prices) -> float:
    return float(sum((prices.of(node) for node in ledger.standing()), Fraction(0)))


def cost_measures(prices: Prices) -> tuple[Measure, ...]:
    """The measures that a price list gives a value."""
    return (
        Measure(
            name="cost",
            meaning="What the nodes cost for the virtual time that they existed.",
            formula="sum over nodes of hourly price * hours from creation to removal or end",
            unit=prices.currency,
            of=partial(total, prices=prices),
        ),
        Measure(
            name="cost_per_hour",
            meaning="What the nodes that exist at the end cost in an hour.",
            formula="sum over nodes of hourly price",
            unit=f"{prices.currency} per hour",
            of=partial(hourly, prices=prices),
        ),
    )
