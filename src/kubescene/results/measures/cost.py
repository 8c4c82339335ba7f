"""What machines and nodes cost, and what for. Without a price there is no cost, not a cost of 0."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import msgspec

from kubescene.api.resource_requests import PODS
from kubescene.results.cost.bill import HOUR, NOTHING, Bill
from kubescene.results.measures.measure import Measured, Reading, Value, word
from kubescene.results.over_time.requests import totals_of_all

CURRENCY = "currency"
"""Stands for the one that prices are in."""
GROUP = "GROUP"


class CostMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of the bill; of runs in which nothing is paid for there is none.

    In ``name``, GROUP stands for a node group: then there is one value for each.
    """

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Reading], Value]
    of_group: Callable[[Bill, str], Value] | None = None

    def values(self, reading: Reading) -> Iterator[Measured]:
        bill = reading.bill
        if not bill.exists:
            return
        unit = self.unit.replace(CURRENCY, bill.currency or CURRENCY)
        if self.of_group is None:
            yield Measured(self.name, self.of(reading), self.meaning, self.name, unit)
            return
        for group in sorted(filter(None, bill.groups)):
            name, exact = (self.name.replace(GROUP, each) for each in (word(group), group))
            meaning = self.meaning.replace(GROUP, group)
            yield Measured(name, self.of_group(bill, group), meaning, exact, unit)


def number(amount: Fraction | None) -> Value:
    return None if amount is None else float(amount)


def total(reading: Reading) -> Value:
    return number(reading.bill.total)


def hourly(reading: Reading) -> Value:
    return number(reading.bill.per_hour)


def part(reading: Reading, *, name: str) -> Value:
    return number(reading.bill.part(name))


def by_pod_hour(reading: Reading) -> Value:
    cost, time = reading.bill.total, reading.ledger.requested_time.get(PODS, 0)
    return None if cost is None or not time else float(cost / Fraction(time, HOUR))


def by_requests(reading: Reading) -> Value:
    cost, totals = reading.bill.total, reading.made(totals_of_all)
    if cost is None or totals is None or not totals.requests:
        return None
    return float(cost * 1_000_000 / totals.requests)


def hours(reading: Reading) -> Value:
    machines = [each for each in reading.bill.charges if each.machine is not None]
    return float(sum((each.hours for each in machines), NOTHING)) if machines else None


def unpriced(reading: Reading) -> Value:
    return reading.bill.unpriced


def of_group(bill: Bill, group: str) -> Value:
    charges = bill.groups[group]
    if any(each.per_hour is None for each in charges):
        return None
    return float(sum((each.cost for each in charges), NOTHING))


def nothing(reading: Reading) -> Value:
    del reading
    return None


MEASURES = (
    CostMeasure(
        name="cost",
        meaning=(
            "What the machines cost for the virtual time that they were paid for, and nodes that "
            "belong to none for the time that they existed."
        ),
        formula=(
            "sum over instances of hourly price * hours from launch to end, and over other nodes "
            "of hourly price * hours from creation to removal, or end of the run"
        ),
        unit=CURRENCY,
        of=total,
    ),
    CostMeasure(
        name="cost_per_hour",
        meaning="What those that are there at the end cost in an hour.",
        formula="sum over instances that have not ended, and other nodes, of hourly price",
        unit=f"{CURRENCY} per hour",
        of=hourly,
    ),
    *(
        CostMeasure(
            name=f"cost_{name}",
            meaning=meaning,
            formula=formula,
            unit=CURRENCY,
            of=partial(part, name=name),
        )
        for name, meaning, formula in (
            (
                "requested",
                "The part of the cost that pods asked for.",
                "sum of cost * mean over cpu, memory of requested * time / (capacity * paid time)",
            ),
            (
                "idle",
                "The part of the cost that nodes offered and no pod asked for.",
                "sum of cost * mean over cpu, memory of (allocatable - requested) * time / "
                "(capacity * paid time)",
            ),
            (
                "unallocatable",
                "The part of the cost that nodes keep for themselves.",
                "sum of cost * mean over cpu, memory of (capacity - allocatable) * time / "
                "(capacity * paid time)",
            ),
            (
                "without_node",
                "The part of the cost for machines without a node: they boot, failed, or are gone.",
                "sum of cost * (paid time - time with a node) / paid time",
            ),
        )
    ),
    CostMeasure(
        name="cost_per_pod_hour",
        meaning="The cost for each hour that a pod was on a node.",
        formula="cost / sum over pods of hours on a node that exists",
        unit=f"{CURRENCY} per pod and hour",
        of=by_pod_hour,
    ),
    CostMeasure(
        name="cost_per_million_requests",
        meaning="The cost for each million requests of all Traffic; absent without a request.",
        formula="cost * 1000000 / sum over Traffic of requests",
        unit=f"{CURRENCY} per million requests",
        of=by_requests,
    ),
    CostMeasure(
        name="instance_hours",
        meaning="Hours for which instances of node groups were paid for.",
        formula="sum over instances of end, or end of the run, - launch",
        unit="hours",
        of=hours,
    ),
    CostMeasure(
        name="unpriced",
        meaning="Machines and nodes whose price nobody knows, and which no cost counts.",
        formula="number of instances that were launched, and other nodes, without a price",
        unit="machines",
        of=unpriced,
    ),
    CostMeasure(
        name=f"cost_of_{GROUP}",
        meaning=f"What the machines of {GROUP} cost.",
        formula="sum over its instances of hourly price * hours from launch to end",
        unit=CURRENCY,
        of=nothing,
        of_group=of_group,
    ),
)
