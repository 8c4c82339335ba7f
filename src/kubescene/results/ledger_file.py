"""``ledger.jsonl``: the ledger that a run was followed with, for those who read its results.

Folding the timeline of 50,000 pods takes a second, and measures, report and comparison all begin
with it. The run has the ledger anyway, so it leaves it behind.

The timeline stays the only truth. The first line names its size and checksum, the version that has
written it, and the checksum of the second line, which has the ledger as columns. Where any of these
is not so, because a timeline was edited or cut, the file is not used and the timeline is read.

Columns and rows are those of the entries, as they declare them. What says the same over and over
(texts, what pods ask for, labels, amounts) stands in tables and is told apart by what it says, not
by who holds it: equal runs have equal columns.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints
from zlib import crc32

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.results.cost.machines import InstanceEntry, MachineEntries, ResizeEntry
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import (
    NodeEntry,
    OutcomeEntry,
    PodEntry,
    PreemptionEntry,
    Room,
    SharedValue,
    StepEntry,
    StepNodeUse,
    Totals,
    noted,
)
from kubescene.results.over_time.entries import BudgetEntry, WorkloadEntry
from kubescene.results.over_time.instants import Instants
from kubescene.results.states import Amounts, Labels, PodAsk
from kubescene.timeline import Outcome
from kubescene.version import __version__

SCHEMA = "kubescene.dev/ledger"
VERSION = 7
"""Raised when columns change, or what a ledger makes of the same facts."""
AT_ONCE = 1 << 20
GONE = -1
"""Stands for the use of a node that was removed."""

T = TypeVar("T")


def _columns(entry: type[msgspec.Struct], *without: str) -> Iterator[tuple[str, Any]]:
    """The fields of an entry with their types; those of shared values point into tables."""
    shared, hints = noted(entry, SharedValue), get_type_hints(entry)
    for name in entry.__struct_fields__:
        if name not in without:
            yield name, int if name in shared else hints[name]


def _list_of(kind: Any) -> Any:
    return list.__class_getitem__(kind)


NodeRow = msgspec.defstruct(
    "NodeRow",
    [*_columns(NodeEntry, "last_use", "room"), ("last_use", int | None)],
    frozen=True,
    array_like=True,
)
"""A `NodeEntry`; ``last_use`` is what pods took of it when it was removed."""

StepRow = msgspec.defstruct(
    "StepRow",
    [
        *_columns(StepEntry, "nodes", "peaks"),
        ("names", list[int]),
        ("offered", list[int]),
        ("requested", list[int]),
        ("marks", list[int]),
        ("peak_names", list[int]),
        ("peak_offered", list[int]),
        ("peak_requested", list[int]),
    ],
    frozen=True,
)
"""A `StepEntry`; of nodes that changed in it: names, what they offer, what pods take, marks."""

PodColumns = msgspec.defstruct(
    "PodColumns",
    [(name, _list_of(kind)) for name, kind in _columns(PodEntry)],
    frozen=True,
)
"""All `PodEntry`, a list for each field."""

COPIED: dict[str, Any] = {
    "phase": str,
    "message": str,
    "started_time": int | None,
    "time": int,
    "step": ScenarioStep,
    "facts": int,
    "custom_facts": dict[str, int],
    "ignored": list[str],
    "warnings": list[str],
    "expectations": tuple[Outcome, ...],
    "states": dict[str, int],
    "node_time": int,
    "allocatable_time": dict[str, int],
    "requested_time": dict[str, int],
    "totals": Totals,
    "preemptions": list[PreemptionEntry],
    "outcomes": list[OutcomeEntry],
    "workloads": list[WorkloadEntry],
    "budgets": list[BudgetEntry],
    "owners": dict[str, str],
}
"""The members of a ledger that are kept as they are."""

LedgerColumns = msgspec.defstruct(
    "LedgerColumns",
    [
        *COPIED.items(),
        ("instants", list[list[int]]),
        ("machines", list[InstanceEntry]),
        ("resizes", list[ResizeEntry]),
        ("rooms", dict[str, int]),
        ("nodes", _list_of(NodeRow)),
        ("steps", _list_of(StepRow)),
        ("pods", PodColumns),
        ("texts", list[str]),
        ("asks", list[PodAsk]),
        ("labels", list[dict[str, str]]),
        ("amounts", list[dict[str, int]]),
    ],
    frozen=True,
)
"""A whole ledger."""


@cache
def column_decoder() -> Any:
    """Of a whole ledger; a run that leaves one behind needs none."""
    return msgspec.json.Decoder(LedgerColumns)


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


def columns_of(ledger: Ledger) -> Any:
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
        self._tables: dict[str, _Table[Any]] = {
            "texts": self._texts,
            "asks": self._asks,
            "labels": self._labels,
            "amounts": self._amounts,
        }

    def columns(self) -> Any:
        ledger = self._ledger
        return LedgerColumns(
            **{name: getattr(ledger, name) for name in COPIED},
            instants=ledger.instants.columns(),
            machines=ledger.machines.all,
            resizes=ledger.machines.resizes,
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

    def _node(self, node: NodeEntry) -> Any:
        shared = noted(NodeEntry, SharedValue)
        *names, _ = NodeRow.__struct_fields__
        values = [
            self._tables[shared[name].table].place(value) if name in shared else value
            for name in names
            for value in (getattr(node, name),)
        ]
        use = node.last_use
        return NodeRow(*values, None if use is None else self._amounts.place(use.requested))

    def _step(self, step: StepEntry) -> Any:
        place, uses, peaks = self._amounts.place, step.nodes.values(), step.peaks.values()
        mark = self._texts.place
        return StepRow(
            *(getattr(step, name) for name in IN_STEP),
            names=self._texts.places([*step.nodes]),
            offered=[GONE if use is None else place(use.allocatable) for use in uses],
            requested=[GONE if use is None else place(use.requested) for use in uses],
            marks=[GONE if use is None else mark(use.marks) for use in uses],
            peak_names=self._texts.places([*step.peaks]),
            peak_offered=[place(use.allocatable) for use in peaks],
            peak_requested=[place(use.requested) for use in peaks],
        )

    def _pods(self) -> Any:
        names = PodEntry.__struct_fields__
        rows = [*map(msgspec.structs.astuple, self._ledger.pods)]
        columns: dict[str, Any] = dict.fromkeys(names, ())
        columns |= zip(names, zip(*rows, strict=True), strict=False)
        for name, shared in noted(PodEntry, SharedValue).items():
            columns[name] = self._tables[shared.table].places(columns[name])
        return PodColumns(**columns)


IN_STEP = tuple(name for name, _ in _columns(StepEntry, "nodes", "peaks"))
"""The members of a step that are kept as they are."""


def _ask_key(ask: PodAsk) -> Hashable:
    return (_items(ask.requests), ask.priority, ask.scheduler, ask.gates)


def _items(mapping: Amounts | Labels) -> Hashable:
    """In their order, which is kept."""
    return tuple(mapping.items())


def ledger_of(columns: Any) -> Ledger:
    """The ledger that columns were made of. What it shares is read-only, as ever."""
    ledger = Ledger()
    for name in COPIED:
        setattr(ledger, name, getattr(columns, name))
    ledger.instants = Instants(columns.instants)
    ledger.machines = MachineEntries(columns.machines, columns.resizes)
    ledger.rooms = {name: Room(columns.amounts[place]) for name, place in columns.rooms.items()}
    ledger.nodes = [_node(each, columns, ledger.rooms[each.name]) for each in columns.nodes]
    ledger.steps = [_step(each, columns) for each in columns.steps]
    ledger.pods = _pods(columns)
    ledger.reopen()
    return ledger


def _node(row: Any, columns: Any, room: Room) -> NodeEntry:
    shared = noted(NodeEntry, SharedValue)
    *names, _ = NodeRow.__struct_fields__
    values = {
        name: getattr(columns, shared[name].table)[value] if name in shared else value
        for name in names
        for value in (getattr(row, name),)
    }
    node = NodeEntry(**values, room=room)
    if row.last_use is not None:
        node.last_use = StepNodeUse(node.allocatable, columns.amounts[row.last_use], node.marks)
    return node


def _step(row: Any, columns: Any) -> StepEntry:
    texts, amounts = columns.texts, columns.amounts
    changed = zip(row.names, row.offered, row.requested, row.marks, strict=True)
    nodes = {
        texts[name]: None
        if offered == GONE
        else StepNodeUse(amounts[offered], amounts[requested], texts[marks])
        for name, offered, requested, marks in changed
    }
    highest = zip(row.peak_names, row.peak_offered, row.peak_requested, strict=True)
    peaks = {
        texts[name]: StepNodeUse(amounts[offered], amounts[requested])
        for name, offered, requested in highest
    }
    return StepEntry(**{name: getattr(row, name) for name in IN_STEP}, nodes=nodes, peaks=peaks)


def _pods(columns: Any) -> list[PodEntry]:
    shared, values = noted(PodEntry, SharedValue), []
    for name in PodEntry.__struct_fields__:
        column = getattr(columns.pods, name)
        if name in shared:
            column = [*map(getattr(columns, shared[name].table).__getitem__, column)]
        values.append(column)
    return [*map(PodEntry, *values)]


# -- the file ------------------------------------------------------------------------------------


class LedgerHeader(msgspec.Struct, frozen=True, rename="camel"):
    """The first line."""

    schema: str = SCHEMA
    version: int = VERSION
    kubescene: str = __version__
    timeline_bytes: int = 0
    timeline_crc32: int = 0
    columns_crc32: int = 0


def write_ledger(path: Path, timeline: Path, ledger: Ledger) -> None:
    """Leave a ledger behind, for the timeline that it was made from."""
    ledger.close()
    columns = msgspec.json.encode(columns_of(ledger))
    header = _header_of(timeline, columns)
    path.write_bytes(msgspec.json.encode(header) + b"\n" + columns + b"\n")


def read_ledger(path: Path, timeline: Path) -> Ledger | None:
    """The ledger of a timeline; None if there is none that is certain to be its own."""
    try:
        first, _, rest = path.read_bytes().partition(b"\n")
    except OSError:
        return None  # Nobody needs it: the timeline has everything.
    columns = rest.removesuffix(b"\n")
    if not _is_for(first, timeline.stat().st_size, columns):
        return None
    if first != msgspec.json.encode(_header_of(timeline, columns)):
        return None
    return ledger_of(column_decoder().decode(columns))


def _is_for(first: bytes, size: int, columns: bytes) -> bool:
    """What can be known without reading the timeline."""
    try:
        header = msgspec.json.decode(first, type=LedgerHeader)
    except ValueError:
        return False
    return (header.timeline_bytes, header.columns_crc32) == (size, crc32(columns))


def _header_of(timeline: Path, columns: bytes) -> LedgerHeader:
    size = checksum = 0
    with timeline.open("rb", buffering=0) as file:
        while part := file.read(AT_ONCE):
            size, checksum = size + len(part), crc32(part, checksum)
    return LedgerHeader(timeline_bytes=size, timeline_crc32=checksum, columns_crc32=crc32(columns))
