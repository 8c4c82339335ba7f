"""Tables of money: machines, groups of them, and groups over virtual time."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from kubescene.results.clockwork import Clockwork, text
from kubescene.results.cost.bill import NOTHING, PARTS, Bill, Charge
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.series import CHANGE, Every, When, marks_of

ALL = "*"
"""All groups together."""


class InstanceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of a node group. It is paid for from ``launched_s`` to ``ended_s``.

    ``cost`` is the sum of what was requested, idle, unallocatable, and paid without a node.
    """

    name: str
    group: str
    zone: str
    capacity_type: str
    state: str
    node: str
    ordered_step: str
    ordered_s: float
    launched_s: float | None
    registered_s: float | None
    ready_s: float | None
    ended_s: float | None
    hours: float
    per_hour: float | None
    currency: str
    cost: float | None
    cost_requested: float | None
    cost_idle: float | None
    cost_unallocatable: float | None
    cost_without_node: float | None
    error: str
    message: str


class CostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node group, or nodes of none (``-``): what its machines cost, and what for.

    ``instances`` are those that are paid for at the end, ``launched`` all that ever were,
    ``failed`` those that came to nothing.
    """

    group: str
    instances: int
    instances_most: int
    launched: int
    failed: int
    hours: float
    currency: str
    per_hour: float | None
    cost: float | None
    cost_requested: float | None
    cost_idle: float | None
    cost_unallocatable: float | None
    cost_without_node: float | None


class CostSeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node group (``*``: all of them) from an instant on; ``cost`` is what it has cost so far."""

    group: str
    step: int
    time_s: float
    until_s: float
    instances: int
    per_hour: float | None
    cost: float | None


def instance_rows(bill: Bill) -> Iterator[InstanceRow]:
    """All machines that were ever ordered, in their order."""
    clock = Clockwork(bill.ledger)
    charged = {id(each.machine): each for each in bill.charges if each.machine is not None}
    for each in bill.ledger.machines:
        charge = charged.get(id(each))
        yield InstanceRow(
            name=each.name,
            group=each.group,
            zone=each.zone,
            capacity_type=each.capacity_type,
            state=each.state,
            node=each.node,
            ordered_step=text(each.step) or "",
            ordered_s=clock.seconds(each.time),
            launched_s=clock.maybe(each.launched_time),
            registered_s=clock.maybe(each.registered_time),
            ready_s=clock.maybe(each.ready_time),
            ended_s=clock.maybe(each.ended_time),
            hours=0.0 if charge is None else float(charge.hours),
            per_hour=None if charge is None else number(charge.per_hour),
            currency=each.currency if charge is None else charge.currency,
            **parts([] if charge is None else [charge]),
            error=each.error,
            message=each.message,
        )


def cost_rows(bill: Bill) -> Iterator[CostRow]:
    """Every group, by name; nodes of none come last."""
    for group in sorted(bill.groups, key=lambda name: (not name, name)):
        charges = bill.groups[group]
        going = [each for each in charges if not each.is_over]
        machines = [each.machine for each in charges if each.machine is not None]
        failed = [each for each in bill.ledger.machines if each.group == group and each.error]
        yield CostRow(
            group=group or "-",
            instances=len(going),
            instances_most=most_at_once(charges),
            launched=len(machines) or len(charges),
            failed=len(failed) if group else 0,
            hours=float(sum((each.hours for each in charges), NOTHING)),
            currency=", ".join(sorted({each.currency for each in charges})),
            per_hour=summed([each.per_hour for each in going]) if going else 0.0,
            **parts(charges),
        )


def parts(charges: Sequence[Charge]) -> dict[str, float | None]:
    """The columns of money; none of them if a price is not known."""
    if not charges or any(each.per_hour is None for each in charges):
        return dict.fromkeys(("cost", *(f"cost_{name}" for name in PARTS)))
    found: dict[str, float | None] = {"cost": summed([each.cost for each in charges])}
    for name in PARTS:
        found[f"cost_{name}"] = summed([each.part(name) for each in charges])
    return found


def summed(amounts: Sequence[Fraction | None]) -> float | None:
    known = [each for each in amounts if each is not None]
    return float(sum(known, NOTHING)) if len(known) == len(amounts) else None


def number(amount: Fraction | None) -> float | None:
    return None if amount is None else float(amount)


def most_at_once(charges: Sequence[Charge]) -> int:
    """One that ends at an instant makes room for one that begins then."""
    changes = sorted(
        change for each in charges for change in ((each.begin, 1), (each.end, -1)) if each.span
    )
    there = most = 0
    for _, change in changes:
        there += change
        most = max(most, there)
    return most


# -- over time -----------------------------------------------------------------------------


def cost_series_rows(bill: Bill, every: Every = CHANGE) -> Iterator[CostSeriesRow]:
    """Each group over virtual time, all of them together first."""
    if not bill.exists or not bill.charges:
        return
    everything = list(bill.charges)
    yield from series_of(ALL, everything, bill.ledger, every, several=not bill.currency)
    for group in sorted(bill.groups, key=lambda name: (not name, name)):
        charges = bill.groups[group]
        several = len({each.currency for each in charges}) > 1
        yield from series_of(group or "-", charges, bill.ledger, every, several=several)


def series_of(
    group: str, charges: Sequence[Charge], ledger: Ledger, every: Every, *, several: bool
) -> Iterator[CostSeriesRow]:
    clock, steps = Clockwork(ledger), [each.started_time for each in ledger.steps]

    def when(time: int) -> When:
        place = bisect_right(steps, time) - 1
        return time, ledger.steps[place].major if place >= 0 else 0

    changes = {each.begin for each in charges} | {each.end for each in charges if each.is_over}
    for mark in marks_of(ledger, every, map(when, sorted(changes))):
        time, step = (mark.until, mark.when[1]) if mark.at_end else mark.when
        there = [each for each in charges if is_there(each, time)]
        per_hour = None if several else summed([each.per_hour for each in there])
        begun = [each for each in charges if each.begin <= time]
        is_known = not several and all(each.per_hour is not None for each in begun)
        so_far = sum((each.cost_until(time) for each in begun), NOTHING) if is_known else None
        yield CostSeriesRow(
            group=group,
            step=step,
            time_s=clock.seconds(mark.when[0]),
            until_s=clock.seconds(mark.until),
            instances=len(there),
            per_hour=per_hour,
            cost=number(so_far),
        )


def is_there(charge: Charge, time: int) -> bool:
    """Whether it is paid for from then on."""
    return charge.begin <= time and (not charge.is_over or time < charge.end)
