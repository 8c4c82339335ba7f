"""A ledger as columns: what pods, nodes and steps share is there once, the rest is lists.

Made from a ledger and turned back into one, with nothing left out. What stands in tables (texts,
what pods ask for, labels, amounts) is told apart by what it says, not by who holds it: equal runs
have equal columns.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import (
    NodeEntry,
    NodeUse,
    PodEntry,
    PreemptionEntry,
    Room,
    StepEntry,
    Totals,
)
from kubescene.results.states import Amounts, Labels, PodAsk
from kubescene.timeline import Outcome

GONE = -1
"""Stands for the use of a node that was removed."""

T = TypeVar("T")


class PodColumns(msgspec.Struct, frozen=True):
    """The members of every `PodEntry`, in its order; numbers point into tables."""

    namespace: list[int]
    name: list[str]
    uid: list[str]
    created_step: list[ScenarioStep]
    created_time: list[int]
    state: list[int]
    phase: list[int]
    node: list[int]
    ask: list[int]
    owner: list[int]
    came_with_node: list[bool]
    bound_step: list[ScenarioStep | None]
    bound_time: list[int | None]
    ended_step: list[ScenarioStep | None]
    ended_time: list[int | None]
    attempts: list[int]
    failed_attempts: list[int]
    message: list[int]
    preempted_by: list[int]
    labels: list[int]


TEXTS = ("namespace", "state", "phase", "node", "owner", "message", "preempted_by")
"""The columns that point into the table of texts."""


class NodeRow(msgspec.Struct, frozen=True, array_like=True):
    """A `NodeEntry`. ``last_use`` is what pods took of it when it was removed."""

    name: str
    created_step: ScenarioStep
    created_time: int
    ended_step: ScenarioStep | None
    ended_time: int | None
    allocatable: int
    labels: int
    last_use: int | None


class TotalsRow(msgspec.Struct, frozen=True):
    """`Totals`."""

    nodes: int
    allocatable: dict[str, int]
    requested: dict[str, int]


class StepRow(msgspec.Struct, frozen=True):
    """A `StepEntry`. Nodes that changed in it: their names, what they offer, what pods take."""

    major: int
    minor: int
    started_time: int
    ended_time: int
    facts: int
    operations: int
    controller_writes: int
    created_pods: int
    scheduled: int
    failed_attempts: int
    preempted: int
    deleted: int
    pending: int
    bound: int
    totals: TotalsRow
    names: list[int]
    offered: list[int]
    requested: list[int]


COUNTED = StepRow.__struct_fields__[: StepRow.__struct_fields__.index("totals")]
"""The members of a step that are plain numbers."""


class PreemptionRow(msgspec.Struct, frozen=True, array_like=True):
    """A `PreemptionEntry`."""

    pod: str
    node: str
    preemptor: str
    step: ScenarioStep
    time: int


class LedgerColumns(msgspec.Struct, frozen=True):
    """A whole ledger."""

    phase: str
    message: str
    started_time: int | None
    time: int
    step: ScenarioStep
    ignored: list[str]
    warnings: list[str]
    expectations: tuple[Outcome, ...]
    states: dict[str, int]
    node_time: int
    allocatable_time: dict[str, int]
    requested_time: dict[str, int]
    totals: TotalsRow
    preemptions: list[PreemptionRow]
    rooms: dict[str, int]
    nodes: list[NodeRow]
    steps: list[StepRow]
    pods: PodColumns
    texts: list[str]
    asks: list[PodAsk]
    labels: list[dict[str, str]]
    amounts: list[dict[str, int]]


COPIED = LedgerColumns.__struct_fields__[: LedgerColumns.__struct_fields__.index("totals")]
"""The members of a ledger that are kept as they are."""


class _Table(Generic[T]):
    """Different values in the order in which they came; `place` says where one is."""

    def __init__(self, key_of: Callable[[T], Hashable]) -> None:
        self.values: list[T] = []
        self._key_of = key_of
        self._places: dict[Hashable, int] = {}
        self._seen: dict[int, int] = {}
        """By identity, since most are shared; the ledger holds them meanwhile."""

    def place(self, value: T) -> int:
        place = self._seen.get(id(value))
        if place is None:
            place = self._places.setdefault(self._key_of(value), len(self.values))
            if place == len(self.values):
                self.values.append(value)
            self._seen[id(value)] = place
        return place

    def places(self, values: Sequence[T]) -> list[int]:
        """The same for many, which are looked at once each."""
        known = [*map(id, values)]
        for value in dict(zip(known, values, strict=True)).values():
            self.place(value)
        return [*map(self._seen.__getitem__, known)]


def columns_of(ledger: Ledger) -> LedgerColumns:
    """The columns of a ledger that is closed."""
    return _Writing(ledger).columns()


class _Writing:
    """Fills the tables."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._texts: _Table[str] = _Table(str)
        self._asks: _Table[PodAsk] = _Table(_ask_key)
        self._labels: _Table[Labels] = _Table(_items)
        self._amounts: _Table[Amounts] = _Table(_items)

    def columns(self) -> LedgerColumns:
        ledger = self._ledger
        return LedgerColumns(
            **{name: getattr(ledger, name) for name in COPIED},
            totals=_totals_row(ledger.totals),
            preemptions=[
                PreemptionRow(each.pod, each.node, each.preemptor, each.step, each.time)
                for each in ledger.preemptions
            ],
            rooms={
                name: self._amounts.place(room.requested) for name, room in ledger.rooms.items()
            },
            nodes=[*map(self._node, ledger.nodes)],
            steps=[*map(self._step, ledger.steps)],
            pods=self._pods(),
            texts=self._texts.values,
            asks=self._asks.values,
            labels=[dict(each) for each in self._labels.values],
            amounts=[dict(each) for each in self._amounts.values],
        )

    def _node(self, node: NodeEntry) -> NodeRow:
        return NodeRow(
            node.name,
            node.created_step,
            node.created_time,
            node.ended_step,
            node.ended_time,
            self._amounts.place(node.allocatable),
            self._labels.place(node.labels),
            None if node.last_use is None else self._amounts.place(node.last_use.requested),
        )

    def _step(self, step: StepEntry) -> StepRow:
        place, uses = self._amounts.place, step.nodes.values()
        return StepRow(
            **{name: getattr(step, name) for name in COUNTED},
            totals=_totals_row(step.totals),
            names=self._texts.places([*step.nodes]),
            offered=[GONE if use is None else place(use.allocatable) for use in uses],
            requested=[GONE if use is None else place(use.requested) for use in uses],
        )

    def _pods(self) -> PodColumns:
        names = PodEntry.__struct_fields__
        rows = [*map(msgspec.structs.astuple, self._ledger.pods)]
        columns: dict[str, Any] = dict.fromkeys(names, ())
        columns |= zip(names, zip(*rows, strict=True), strict=False)
        for name in TEXTS:
            columns[name] = self._texts.places(columns[name])
        columns["ask"] = self._asks.places(columns["ask"])
        columns["labels"] = self._labels.places(columns["labels"])
        return PodColumns(**columns)


def _ask_key(ask: PodAsk) -> Hashable:
    return (_items(ask.requests), ask.priority, ask.scheduler, ask.gates)


def _items(mapping: Amounts | Labels) -> Hashable:
    """In their order, which is kept."""
    return tuple(mapping.items())


def _totals_row(totals: Totals) -> TotalsRow:
    return TotalsRow(totals.nodes, totals.allocatable, totals.requested)


def ledger_of(columns: LedgerColumns) -> Ledger:
    """The ledger that columns were made of. What it shares is read-only, as ever."""
    ledger = Ledger()
    for name in COPIED:
        setattr(ledger, name, getattr(columns, name))
    ledger.totals = _totals(columns.totals)
    ledger.preemptions = [
        PreemptionEntry(each.pod, each.node, each.preemptor, each.step, each.time)
        for each in columns.preemptions
    ]
    ledger.rooms = {name: _room(columns.amounts[place]) for name, place in columns.rooms.items()}
    ledger.nodes = [_node(each, columns, ledger.rooms[each.name]) for each in columns.nodes]
    ledger.steps = [_step(each, columns) for each in columns.steps]
    ledger.pods = _pods(columns)
    ledger.reopen()
    return ledger


def _room(requested: dict[str, int]) -> Room:
    room = Room()
    room.requested = dict(requested)
    return room


def _totals(row: TotalsRow) -> Totals:
    totals = Totals()
    totals.nodes, totals.allocatable, totals.requested = row.nodes, row.allocatable, row.requested
    return totals


def _node(row: NodeRow, columns: LedgerColumns, room: Room) -> NodeEntry:
    node = NodeEntry(row.name, room, row.created_step, row.created_time)
    node.ended_step, node.ended_time = row.ended_step, row.ended_time
    node.allocatable, node.labels = columns.amounts[row.allocatable], columns.labels[row.labels]
    if row.last_use is not None:
        node.last_use = NodeUse(node.allocatable, columns.amounts[row.last_use])
    return node


def _step(row: StepRow, columns: LedgerColumns) -> StepEntry:
    step = StepEntry(row.major, row.started_time)
    for name in COUNTED:
        setattr(step, name, getattr(row, name))
    step.totals = _totals(row.totals)
    texts, amounts = columns.texts, columns.amounts
    step.nodes = {
        texts[name]: None if offered == GONE else NodeUse(amounts[offered], amounts[requested])
        for name, offered, requested in zip(row.names, row.offered, row.requested, strict=True)
    }
    return step


def _pods(columns: LedgerColumns) -> list[PodEntry]:
    tables: dict[str, list[Any]] = dict.fromkeys(TEXTS, columns.texts)
    tables |= {"ask": columns.asks, "labels": columns.labels}
    values = []
    for name in PodEntry.__struct_fields__:
        column = getattr(columns.pods, name)
        table = tables.get(name)
        values.append(column if table is None else [*map(table.__getitem__, column)])
    return [*map(PodEntry, *values)]
