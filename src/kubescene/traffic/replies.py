"""What ``POST /run`` answers: Skenario's series as JSON, in pieces.

A run of a million requests has a reply of hundreds of megabytes. Rows are made from columns, some
thousand at a time, and whoever sends them needs no more than one piece in memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

import msgspec
import numpy as np
import orjson

from kubescene.traffic.entities import Kind
from kubescene.traffic.records import FAILED, Outcome
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.run_requests import UNIFORM
from kubescene.traffic.series import (
    PROCESSING,
    arrivals_by_second,
    count_tallies,
    cpu_utilizations,
    levels,
    response_columns,
    tally_lines,
)
from kubescene.traffic.spec import Mode, Pattern

Column: TypeAlias = Any
"""An array of one dimension."""
Piece: TypeAlias = bytes | memoryview
STOCKS = (
    ("ReplicasActive", Kind.REPLICA),
    ("ReplicasDesired", Kind.REPLICA),
    ("RequestsFailed", Kind.REQUEST),
    (PROCESSING, Kind.REQUEST),
)
"""Of which levels are told, in order of their names."""
LEVELS = 4096
"""Of lower levels the text is kept: there are few of them, and each occurs often."""
NEXT = b'},{"occurs_at":'
ROWS_AT_ONCE = 4096
"""As many rows as fit the caches of a CPU, with what they are made of."""
_json = msgspec.json.Encoder()


class _Row(msgspec.Struct, frozen=True, gc=False):
    """A row of a series, as it is written."""


class Response(_Row, frozen=True, gc=False):
    arrived_at: int
    completed_at: int
    response_time: int


class Tally(_Row, frozen=True, gc=False):
    """``stock_name`` is the text of the name, and of ``kind_stocked`` behind it."""

    occurs_at: int
    stock_name: msgspec.Raw
    tally: int


class Second(_Row, frozen=True, gc=False):
    second: int
    requests: int


def reply(result: TrafficResult) -> Iterator[Piece]:
    """The whole reply. ``ran_for`` is as far as it came."""
    pattern = result.spec.traffic.pattern
    name = UNIFORM if pattern is Pattern.UNIFORM else pattern.value
    yield b'{"ran_for":%d,"traffic_pattern":%s' % (result.end, msgspec.json.encode(name))
    yield from _series("tally_lines", _tallies(result))
    yield from _series("response_times", _rows(Response, response_columns(result)))
    yield from _series("requests_per_second", _rows(Second, arrivals_by_second(result)))
    cpu = [each._asdict() for each in cpu_utilizations(result)]
    yield b',"cpu_utilizations":' + _json.encode(cpu) + b"}\n"


def _tallies(result: TrafficResult) -> Iterator[Piece]:
    if result.spec.mode is Mode.FAITHFUL:
        lines = tally_lines(result)
        return _parts(Tally(at, _stock(name, kind), tally) for at, name, kind, tally in lines)
    return _tallies_of_columns(result)


def _tallies_of_columns(result: TrafficResult) -> Iterator[Piece]:
    """The same as `tally_lines`, from columns alone."""
    requests, replicas = result.requests, list(count_tallies(result.counts, result.end))
    inside = requests.outcome != Outcome.REFUSED
    left = inside & (requests.outcome != Outcome.OPEN)
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
        shown = tallies[here]
        write = _low_tallies if shown.max() < LEVELS else _high_tallies
        yield write(times[here], stock[here], shown)


def _low_tallies(times: Column, stock: Column, tallies: Column) -> Piece:
    """Instants with texts that are ready between them."""
    pieces = [b'{"occurs_at":'] * (2 * len(times) + 1)
    pieces[1::2] = orjson.dumps(times, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    pieces[2::2] = _levels()[stock * np.int64(LEVELS) + tallies].tolist()
    pieces[-1] = pieces[-1].removesuffix(NEXT[1:])
    return b"".join(pieces)


def _high_tallies(times: Column, stock: Column, tallies: Column) -> Piece:
    names = map([_stock(*each) for each in STOCKS].__getitem__, stock.tolist())
    return _encoded(list(map(Tally, times.tolist(), names, tallies.tolist())))


@cache
def _levels() -> Column:
    """What stands behind an instant, up to the next one: by stock, then by level."""
    stocks = [b',"stock_name":%s,"tally":' % bytes(_stock(*each)) for each in STOCKS]
    texts = [b"%s%d%s" % (stock, level, NEXT) for stock in stocks for level in range(LEVELS)]
    return np.array(texts, dtype=object)


@cache
def _stock(name: str, kind: Kind) -> msgspec.Raw:
    return msgspec.Raw(b'"%s","kind_stocked":"%s"' % (name.encode(), kind.encode()))


def _counted(lines: Iterable[Any], name: str) -> tuple[Column, Column]:
    own = [(each.occurs_at, each.tally) for each in lines if each.stock_name == name]
    table = np.array(own, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _rows(row: Callable[..., _Row], columns: Sequence[Column]) -> Iterator[Piece]:
    for first in range(0, len(columns[0]), ROWS_AT_ONCE):
        here = slice(first, first + ROWS_AT_ONCE)
        yield _encoded(list(map(row, *(column[here].tolist() for column in columns))))


def _parts(rows: Iterator[_Row]) -> Iterator[Piece]:
    while part := list(islice(rows, ROWS_AT_ONCE)):
        yield _encoded(part)


def _encoded(rows: list[_Row]) -> Piece:
    """Rows as text, without the brackets around them."""
    return memoryview(_json.encode(rows))[1:-1]


def _series(name: str, parts: Iterable[Piece]) -> Iterator[Piece]:
    before = b',"%s":[' % name.encode()
    for part in parts:
        yield before
        yield part
        before = b","
    yield b"]" if before == b"," else before + b"]"
