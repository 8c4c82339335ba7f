"""What nodes cost in an answer, if a price list says it."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from kubescene.durations import HOUR
from kubescene.results.cost.prices import Prices
from kubescene.types import JsonObject
from kubescene.what_if.answers import Cell
from kubescene.what_if.selecting import labels_of

HOURS_OF_A_MONTH = 730
_DIGITS = 2
_DIGITS_OF_AN_HOUR = 4
NOTHING = Fraction(0)


class NodeCosts:
    """Prices of nodes that are known by name; `ConfigurationError` for one that has none."""

    def __init__(self, prices: Prices | None, nodes: Mapping[str, JsonObject]) -> None:
        self.prices = prices
        self._nodes = nodes

    def of(self, name: str, duration: int) -> Fraction:
        """What a node costs in so many nanoseconds; nothing without a price list."""
        return self.hourly([name]) * Fraction(duration, HOUR)

    def hourly(self, names: Iterable[str]) -> Fraction:
        if self.prices is None:
            return NOTHING
        return sum((self.prices.of(name, labels_of(self._nodes[name])) for name in names), NOTHING)

    def told(self, amount: Fraction) -> str:
        """``12.5 USD``."""
        currency = self.prices.currency if self.prices else ""
        return f"{rounded(amount)} {currency}".rstrip()


def costs_of(prices: Prices | None, nodes: Iterable[JsonObject]) -> NodeCosts:
    return NodeCosts(prices, {node["metadata"]["name"]: node for node in nodes})


def hourly(prices: Prices, nodes: Iterable[JsonObject]) -> Fraction:
    """What these nodes cost in an hour."""
    listed = list(nodes)
    costs = costs_of(prices, listed)
    return costs.hourly(node["metadata"]["name"] for node in listed)


def an_hour(amount: Fraction) -> float:
    """As a measure."""
    return round(float(amount), _DIGITS_OF_AN_HOUR)


def monthly(amount: Fraction) -> float:
    """Of what an hour costs."""
    return rounded(amount * HOURS_OF_A_MONTH)


def rounded(amount: Fraction) -> float:
    return round(float(amount), _DIGITS)


def cost_row(when: str, amount: Fraction) -> tuple[Cell, ...]:
    """A line of a table of costs."""
    return when, an_hour(amount), monthly(amount)


COST_COLUMNS = ("when", "an hour", "a month")
