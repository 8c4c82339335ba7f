"""What ``POST /run`` answers: Skenario's series as JSON, in pieces.

A run of a million requests has a reply of hundreds of megabytes. Rows are made from columns, some
thousand at a time, and whoever sends them needs no more than one piece in memory.

Rows of text are written from columns without an object for any of them. A row is a few *parts*,
each a value and the text behind it. All parts get the same width, with their text at the right end;
what is in front of it is litter. They are laid side by side from the last to the first, so that
each covers the litter of the one behind it.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from kubescene.clock.batches import Integers
from kubescene.flows.fields import Pattern
from kubescene.flows.records import FAILED, RequestOutcome
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.skenario.requests import UNIFORM
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

Items: TypeAlias = npt.NDArray[Any]
"""Texts of one width."""
MOST = 10**16
"""Numbers are less: nanoseconds of 115 days."""


class RowPart(NamedTuple):
    """Of every row: a value that fills its item from the right, and a text behind it."""

    values: Items
    lengths: npt.NDArray[Any]
    """How much of each value counts."""
    after: bytes = b""

    @property
    def width(self) -> int:
        return self.values.itemsize + len(self.after)


class Texts:
    """Some texts to choose from."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        width = max(map(len, texts))
        self._items: Items = np.frombuffer(
            b"".join([each.rjust(width) for each in texts]), _item(width)
        )
        self._lengths = np.array(list(map(len, texts)))

    def chosen(self, places: Integers) -> RowPart:
        return RowPart(self._items.take(places), self._lengths.take(places))


def numbers(column: Integers, after: bytes) -> RowPart:
    """Numbers from 0 to less than `MOST`, in decimal digits."""
    return RowPart(_digits(column), _powers().searchsorted(column, side="right"), after)


def laid(opening: bytes, parts: Sequence[RowPart]) -> memoryview:
    """All rows, one behind the other, and a text in front of the first; there is one at least."""
    texts, lengths = _filled(parts)
    width, ends = texts.itemsize, lengths.cumsum()
    start, size = width + len(opening), int(ends[-1])
    out = np.empty(start + size, dtype=np.uint8)
    anywhere: Items = np.ndarray(size + 1, texts.dtype, out, len(opening), (1,))
    anywhere[ends[::-1]] = texts[::-1]
    out[width:start] = np.frombuffer(opening, dtype=np.uint8)
    return out.data[width:]


def _filled(parts: Sequence[RowPart]) -> tuple[Items, Integers]:
    """All parts in one width, and the length of each, row by row."""
    rows, width = len(parts[0].values), max(each.width for each in parts)
    texts: Items = np.empty((rows, len(parts)), dtype=_item(width))
    lengths = np.empty((rows, len(parts)), dtype=np.int64)
    for place, (values, counted, after) in enumerate(parts):
        end = (place + 1) * width - len(after)
        _columns(texts, end - values.itemsize, values.itemsize)[:] = values
        if after:
            _columns(texts, end, len(after))[:] = np.frombuffer(after, _item(len(after)))
        np.add(counted, len(after), out=lengths[:, place])
    return texts.reshape(-1), lengths.reshape(-1)


def _columns(rows: Items, first: int, count: int) -> Items:
    """Some bytes of every row, from one on."""
    return np.ndarray(len(rows), _item(count), rows, first, rows.strides[:1])


def _digits(numbers: Integers) -> Items:
    """With zeros in front: four digits, or halves of eight, each in quarters of four."""
    most = numbers.max()
    if numbers.min() < 0 or most >= MOST:
        raise ValueError(f"numbers from {numbers.min()} to {most} are not from 0 to {MOST - 1}")
    if most < 10**4:
        return _four_digits().take(numbers).view(_item(4))
    upper = numbers // 10**8
    halves = np.empty((len(numbers), 2), dtype=np.uint32)
    halves[:, 0], halves[:, 1] = upper, numbers - upper * 10**8
    upper_four = halves // np.uint32(10**4)
    fours = np.empty((len(numbers), 2, 2), dtype=np.intp)
    fours[:, :, 0], fours[:, :, 1] = upper_four, halves - upper_four * np.uint32(10**4)
    return _four_digits().take(fours).reshape(-1).view(_item(16))


@cache
def _four_digits() -> npt.NDArray[np.uint32]:
    """The texts of 0000 to 9999, each as a number of four bytes."""
    digits = np.arange(10**4)[:, None] // [1000, 100, 10, 1] % 10 + ord("0")
    return digits.astype(np.uint8).view(np.uint32).reshape(-1)


@cache
def _powers() -> Integers:
    """From how many on a number has one digit more; 0 has one, too."""
    return np.array([0, *(10**each for each in range(1, 16))])


@cache
def _item(width: int) -> np.dtype[np.void]:
    return np.dtype((np.void, width))


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
    parts = (
        numbers(times, b',"stock_name":'),
        _stocks().chosen(stock),
        numbers(tallies, between),
    )
    return laid(opening, parts)[: 1 - len(between)]


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
        parts = list(map(numbers, here, after))
        yield laid(between[2:], parts)[: 1 - len(between)]


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
