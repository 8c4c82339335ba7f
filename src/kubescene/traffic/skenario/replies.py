"""What ``POST /run`` answers: Skenario's series as JSON, in pieces.

A run of a million requests has a reply of hundreds of megabytes. Rows are made from columns, some
thousand at a time, and whoever sends them needs no more than one piece in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

import msgspec
import numpy as np

from kubescene.flows.fields import Pattern
from kubescene.flows.records import FAILED, RequestOutcome
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.skenario.requests import UNIFORM
from kubescene.traffic.skenario.row_texts import Texts, laid, numbers
from kubescene.traffic.skenario.series import (
    PROCESSING,
    arrivals_by_second,
    count_tallies,
    cpu_utilizations,
    levels,
    response_columns,
    tally_lines,
)
from kubescene.traffic.spec.fields import Mode
from kubescene.traffic.world.entities import EntityKind

Column: TypeAlias = Any
"""An array of one dimension."""
Piece: TypeAlias = bytes | memoryview
STOCKS = (
    ("ReplicasActive", EntityKind.REPLICA),
    ("ReplicasDesired", EntityKind.REPLICA),
    ("RequestsFailed", EntityKind.REQUEST),
    (PROCESSING, EntityKind.REQUEST),
)
"""Of which levels are told, in order of their names."""
RESPONSE = ("arrived_at", "completed_at", "response_time")
SECOND = ("second", "requests")
ROWS_AT_ONCE = 2048
"""As many rows as fit the caches of a CPU, with what they are made of."""
_json = msgspec.json.Encoder()


class StockTally(msgspec.Struct, frozen=True, gc=False):
    """A row as it is written. ``stock_name`` is its text, and that of ``kind_stocked`` behind."""

    occurs_at: int
    stock_name: msgspec.Raw
    tally: int


def reply(result: TrafficResult) -> Iterator[Piece]:
    """The whole reply. ``ran_for`` is as far as it came."""
    pattern = result.spec.traffic.pattern
    name = UNIFORM if pattern is Pattern.UNIFORM else pattern.value
    yield b'{"ran_for":%d,"traffic_pattern":%s' % (result.end, msgspec.json.encode(name))
    yield from _series("tally_lines", _tallies(result))
    yield from _series("response_times", _rows(RESPONSE, response_columns(result)))
    yield from _series("requests_per_second", _rows(SECOND, arrivals_by_second(result)))
    cpu = [each._asdict() for each in cpu_utilizations(result)]
    yield b',"cpu_utilizations":' + _json.encode(cpu) + b"}\n"


def _tallies(result: TrafficResult) -> Iterator[Piece]:
    if result.spec.mode is Mode.FAITHFUL:
        lines = tally_lines(result)
        return _parts(StockTally(at, _stock(name, kind), tally) for at, name, kind, tally in lines)
    return _tallies_of_columns(result)


def _tallies_of_columns(result: TrafficResult) -> Iterator[Piece]:
    """The same as `tally_lines`, from columns alone."""
    requests, replicas = result.requests, list(count_tallies(result.counts, result.end))
    inside = requests.outcome != RequestOutcome.REFUSED
    left = inside & (requests.outcome != RequestOutcome.OPEN)
    failed = requests.outcome >= FAILED[0]
    lines = (
        _counted(replicas, "ReplicasActive"),
        _counted(replicas, "ReplicasDesired"),
        levels(requests.completed[failed]),
        levels(requests.arrived[inside], requests.completed[left]),
    )
    times, tallies = map(np.concatenate, zip(*lines, strict=True))
    stock = np.repeat(np.arange(len(lines), dtype=np.int8), [len(each) for each, _ in lines])
    # Lines are in order of their names, and stay so where instants are equal.
    order = np.argsort(times, kind="stable")
    for first in range(0, len(order), ROWS_AT_ONCE):
        here = order[first : first + ROWS_AT_ONCE]
        yield _tallies_text(times[here], stock[here], tallies[here])


def _tallies_text(times: Column, stock: Column, tallies: Column) -> Piece:
    opening, between = b'{"occurs_at":', b'},{"occurs_at":'
    pieces = (
        numbers(times, b',"stock_name":'),
        _stocks().chosen(stock),
        numbers(tallies, between),
    )
    return laid(opening, pieces)[: 1 - len(between)]


@cache
def _stocks() -> Texts:
    return Texts([bytes(_stock(*each)) + b',"tally":' for each in STOCKS])


@cache
def _stock(name: str, kind: EntityKind) -> msgspec.Raw:
    return msgspec.Raw(b'"%s","kind_stocked":"%s"' % (name.encode(), kind.encode()))


def _counted(lines: Iterable[Any], name: str) -> tuple[Column, Column]:
    own = [(each.occurs_at, each.tally) for each in lines if each.stock_name == name]
    table = np.array(own, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _rows(names: Sequence[str], columns: Sequence[Column]) -> Iterator[Piece]:
    """Rows of numbers, with the names of their columns."""
    keys = [b'"%s":' % name.encode() for name in names]
    between = b"},{" + keys[0]
    after = [*(b"," + key for key in keys[1:]), between]
    for first in range(0, len(columns[0]), ROWS_AT_ONCE):
        here = [column[first : first + ROWS_AT_ONCE] for column in columns]
        pieces = list(map(numbers, here, after))
        yield laid(between[2:], pieces)[: 1 - len(between)]


def _parts(rows: Iterator[StockTally]) -> Iterator[Piece]:
    """Rows as text, without the brackets around them."""
    while part := list(islice(rows, ROWS_AT_ONCE)):
        yield memoryview(_json.encode(part))[1:-1]


def _series(name: str, parts: Iterable[Piece]) -> Iterator[Piece]:
    before = b',"%s":[' % name.encode()
    for part in parts:
        yield before
        yield part
        before = b","
    yield b"]" if before == b"," else before + b"]"
