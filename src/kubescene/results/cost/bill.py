"""The bill: what each machine costs, and what for.

Paid are the Instances, from their launch to their end, whatever became of them; and nodes without
an Instance, while they exist, if a price list has their price. Money is kept in fractions of whole
numbers, so that sums are exact in any order.

Half of a price is for cpu and half for memory. What somebody asks for is *requested*, what a node
offers to nobody in particular *idle*, what it keeps for its system *unallocatable*, and what is
paid while there is no node (it boots, has failed, or is gone) *without a node*. The four are all.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.results.cost.machines import InstanceEntry, ResizeEntry
from kubescene.results.cost.prices import Prices
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry, PodEntry

HOUR = 3600 * 10**9
NOTHING = Fraction(0)
Span = tuple[int, int]


class Shares(NamedTuple):
    """Of what is paid for, so much was asked for, and so on; all of them are 1."""

    requested: Fraction
    idle: Fraction
    unallocatable: Fraction
    without_node: Fraction


PARTS = Shares._fields
NO_SHARES = Shares(NOTHING, NOTHING, NOTHING, NOTHING)


class Charge(NamedTuple):
    """One machine on the bill; ``per_hour`` None: nobody knows what it costs."""

    name: str
    group: str
    begin: int
    end: int
    is_over: bool
    per_hour: Fraction | None
    currency: str
    shares: "Shares"
    machine: InstanceEntry | None = None

    @property
    def span(self) -> int:
        return self.end - self.begin

    @property
    def hours(self) -> Fraction:
        return Fraction(self.span, HOUR)

    @property
    def price(self) -> Fraction:
        """What an hour costs, 0 if nobody knows."""
        return NOTHING if self.per_hour is None else self.per_hour

    def cost_until(self, time: int) -> Fraction:
        return self.price * Fraction(max(min(time, self.end) - self.begin, 0), HOUR)

    @property
    def cost(self) -> Fraction:
        return self.price * self.hours

    def part(self, name: str) -> Fraction:
        """The money for one of `PARTS`."""
        return self.cost * Fraction(getattr(self.shares, name))


class Bill:
    """All that is paid for in a run, so far."""

    def __init__(self, ledger: Ledger, prices: Prices | None = None) -> None:
        self.ledger = ledger
        self._prices = prices

    @cached_property
    def charges(self) -> Sequence[Charge]:
        """Machines in the order of their launch, then nodes that are none."""
        return (*self._of_machines(), *self._of_nodes())

    @property
    def priced(self) -> Iterator[Charge]:
        return (each for each in self.charges if each.per_hour is not None)

    @property
    def unpriced(self) -> int:
        """Machines and nodes whose price nobody knows."""
        return sum(each.per_hour is None for each in self.charges)

    @property
    def exists(self) -> bool:
        """Whether there is anything to pay for, or somebody asks by a price list."""
        return self._prices is not None or bool(self.ledger.machines)

    @cached_property
    def currency(self) -> str:
        """Empty if there are several: then nothing can be summed up."""
        found = {each.currency for each in self.priced}
        if not found and self._prices is not None:
            return self._prices.currency
        return found.pop() if len(found) == 1 else ""

    @property
    def total(self) -> Fraction | None:
        """None if nothing has a price, or prices are in several currencies."""
        return self.sum_of(each.cost for each in self.priced)

    @property
    def per_hour(self) -> Fraction | None:
        """What an hour costs at the end."""
        return self.sum_of(each.price for each in self.priced if not each.is_over)

    def part(self, name: str) -> Fraction | None:
        """The money for one of `PARTS`."""
        return self.sum_of(each.part(name) for each in self.priced)

    def sum_of(self, amounts: Iterable[Fraction]) -> Fraction | None:
        if not self.currency or not (self._prices or any(True for _ in self.priced)):
            return None
        return sum(amounts, NOTHING)

    @cached_property
    def groups(self) -> Mapping[str, list[Charge]]:
        """Charges by group, which is empty for nodes that belong to none."""
        found: dict[str, list[Charge]] = {}
        for each in self.charges:
            found.setdefault(each.group, []).append(each)
        return found

    # -- who is paid for -------------------------------------------------------------------

    def _of_machines(self) -> Iterator[Charge]:
        for each in self.ledger.machines:
            if each.launched_time is None:
                continue  # an order that failed: nobody pays for it
            end = self.ledger.time if each.ended_time is None else each.ended_time
            nodes = self._nodes_of.get(each.name, ())
            price, currency = self._price_of(each)
            shares = self._shares(nodes, (each.launched_time, max(end, each.launched_time)))
            is_over = each.ended_time is not None
            yield Charge(
                each.name,
                each.group,
                each.launched_time,
                max(end, each.launched_time),
                is_over,
                price,
                currency,
                shares,
                each,
            )

    def _of_nodes(self) -> Iterator[Charge]:
        paid = {id(node) for nodes in self._nodes_of.values() for node in nodes}
        for node in self.ledger.nodes:
            if id(node) in paid:
                continue
            end = self.ledger.time if node.ended_time is None else node.ended_time
            price = None if self._prices is None else self._prices.of(node.name, node.labels)
            currency = "" if self._prices is None else self._prices.currency
            shares = self._shares((node,), (node.created_time, end))
            is_over = node.ended_time is not None
            yield Charge(node.name, "", node.created_time, end, is_over, price, currency, shares)

    def _price_of(self, machine: InstanceEntry) -> tuple[Fraction | None, str]:
        """A price list wins; what it does not know, the machine may say itself."""
        prices, own = self._prices, _money(machine.per_hour)
        if prices is None or (own is not None and prices.find(machine.labels) is None):
            return own, machine.currency
        return prices.of(machine.name, machine.labels), prices.currency

    @cached_property
    def _nodes_of(self) -> Mapping[str, list[NodeEntry]]:
        """The nodes of each machine: those of its node's name, while it was there."""
        by_name: defaultdict[str, list[NodeEntry]] = defaultdict(list)
        for node in self.ledger.nodes:
            by_name[node.name].append(node)
        found: defaultdict[str, list[NodeEntry]] = defaultdict(list)
        for each in self.ledger.machines:
            begin, end = each.launched_time, each.ended_time
            for node in by_name.get(each.node or each.name, ()):
                came = node.created_time
                if begin is not None and begin <= came and (end is None or came <= end):
                    found[each.name].append(node)
        return found

    # -- what for --------------------------------------------------------------------------

    def _shares(self, nodes: Sequence[NodeEntry], paid: Span) -> Shares:
        whole = paid[1] - paid[0]
        found = [NOTHING] * 3
        if not whole:
            return NO_SHARES
        for node in nodes:
            there = _cut((node.created_time, self._end_of(node)), paid)
            kinds = [kind for kind in (CPU, MEMORY) if _capacity(node, kind)]
            for kind in kinds:
                parts = self._uses(node, kind, there)
                for at, part in enumerate(parts):
                    found[at] += Fraction(part, _capacity(node, kind) * whole * len(kinds))
            if not kinds:
                found[1] += Fraction(there[1] - there[0], whole)
        requested, idle, unallocatable = found
        return Shares(requested, idle, unallocatable, 1 - sum(found, NOTHING))

    def _uses(self, node: NodeEntry, kind: str, there: Span) -> tuple[int, int, int]:
        """Amounts times nanoseconds; what is asked for beyond what a node offers counts for none.

        A node counts as what it offered last.
        """
        span, capacity = there[1] - there[0], _capacity(node, kind)
        offered = min(node.allocatable.get(kind, 0), capacity)
        asked = sum(
            amounts[kind] * (cut[1] - cut[0])
            for while_there, amounts in self._asked.get(node.name, ())
            for cut in (_cut(while_there, there),)
        )
        requested = min(asked, offered * span)
        return requested, offered * span - requested, (capacity - offered) * span

    def _end_of(self, node: NodeEntry) -> int:
        return self.ledger.time if node.ended_time is None else node.ended_time

    @cached_property
    def _asked(self) -> Mapping[str, list[tuple[Span, Mapping[str, int]]]]:
        """What pods asked for, by node, from when until when."""
        resizes: defaultdict[tuple[str, str, str], list[ResizeEntry]] = defaultdict(list)
        for each in self.ledger.machines.resizes:
            resizes[each.namespace, each.name, each.uid].append(each)
        found: defaultdict[str, list[tuple[Span, Mapping[str, int]]]] = defaultdict(list)
        for pod in self.ledger.pods:
            if pod.bound_time is None or not pod.node:
                continue
            known = resizes.get((pod.namespace, pod.name, pod.uid), ()) if resizes else ()
            found[pod.node] += _asks(pod, known, self.ledger.time)
        return found


def _asks(
    pod: PodEntry, resizes: Sequence[ResizeEntry], now: int
) -> Iterator[tuple[Span, Mapping[str, int]]]:
    begin = pod.bound_time or 0
    for each in resizes:
        yield (begin, each.time), {CPU: each.cpu, MEMORY: each.memory}
        begin = each.time
    end = now if pod.ended_time is None else pod.ended_time
    requests = pod.requests
    yield (begin, end), {CPU: requests.get(CPU, 0), MEMORY: requests.get(MEMORY, 0)}


def _cut(span: Span, within: Span) -> Span:
    begin = max(span[0], within[0])
    return begin, max(min(span[1], within[1]), begin)


def _capacity(node: NodeEntry, kind: str) -> int:
    return node.capacity.get(kind, 0) or node.allocatable.get(kind, 0)


def _money(text: str | None) -> Fraction | None:
    try:
        found = None if text is None else Decimal(text)
    except InvalidOperation:
        return None
    return Fraction(found) if found is not None and found.is_finite() else None
