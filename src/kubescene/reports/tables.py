"""Tables of results as aligned text, as kubectl shows its own: no borders, no wrapping.

So they are for pipes. In a terminal that is too narrow for them there are fewer columns, and texts
in several lines (`fitted`). What goes first is told: columns in which there is nothing, then
those that people rarely look for.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import orjson

from kubescene.results.tables import Table

ABSENT = "-"
GAP = "   "
FOLDED = ("meaning", "message")
"""Texts, which may stand in several lines."""
ESSENTIAL = ("name", "state", "node", "value", "step", "status")
"""What a row is about: not even a text is worth more."""
LEAST_TEXT = 24
"""Characters of such a text in one line."""
RARE = (
    "uid",
    "labels",
    "other",
    "other_requested",
    "other_allocatable",
    "created_s",
    "bound_s",
    "ended_s",
    "started_s",
    "owner",
    "priority",
    "pending_steps",
    "censored",
    "minor_steps",
    "controller_writes",
    "nominated",
    "profile",
    "evaluated",
    "reason",
    "memory_requested",
    "memory_allocatable",
    "cpu_requested",
    "cpu_allocatable",
    "pods_allocatable",
    "ended_step",
    "created_step",
    "memory",
    "cpu",
    "failed_attempts",
)
"""Columns in the order in which one can do without them."""


def text_lines(table: Table[Any]) -> Iterator[str]:
    """A header and one line per row."""
    names = table.columns
    rows = [list(map(cell, table.values(row))) for row in table]
    header = [name.upper() for name in names]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield aligned(row, widths)


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text.ljust(width) for text, width in zip(cells, widths, strict=True))
    return GAP.join(padded).rstrip() + "\n"


def cell(value: Any) -> str:
    """A value in one line; one that is not there is a dash."""
    if value is None or value in ("", {}):
        return ABSENT
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return orjson.dumps(value).decode()
    return "".join(c if c.isprintable() else " " for c in str(value))


class Fitted(NamedTuple):
    """Lines that fit, and the columns that have no room."""

    lines: Iterator[str]
    left_out: list[str]


class _FittedColumn(NamedTuple):
    name: str
    cells: Sequence[str]
    """With the header."""

    @property
    def width(self) -> int:
        return max(map(len, self.cells))

    @property
    def least(self) -> int:
        return min(self.width, LEAST_TEXT) if self.name in FOLDED else self.width

    @property
    def is_empty(self) -> bool:
        return all(each == ABSENT for each in self.cells[1:])


def fitted(table: Table[Any], width: int) -> Fitted:
    """A header and the rows of a table, no wider than ``width`` if that can be."""
    rows = [[name.upper() for name in table.columns]]
    rows += [[*map(cell, table.values(row))] for row in table]
    columns = [
        _FittedColumn(*each) for each in zip(table.columns, zip(*rows, strict=True), strict=True)
    ]
    kept = list(columns)
    for each in _dispensable(columns):
        if _needed(kept) <= width:
            break
        kept.remove(each)
    left_out = [each.name for each in columns if each not in kept]
    return Fitted(_lines(kept, width), left_out)


def _dispensable(columns: Sequence[_FittedColumn]) -> Iterator[_FittedColumn]:
    """All but the first, those first that are missed least."""
    rest = columns[1:]
    empty = [each for each in rest if each.is_empty]
    yield from empty
    known = {each.name: each for each in rest if not each.is_empty}
    yield from (known[name] for name in RARE if name in known)
    others = [each for name, each in known.items() if name not in RARE]
    kept = (*FOLDED, *ESSENTIAL)
    yield from (each for each in reversed(others) if each.name not in kept)
    yield from (each for each in others if each.name in FOLDED)
    yield from (each for each in reversed(others) if each.name in ESSENTIAL)


def _needed(columns: Sequence[_FittedColumn]) -> int:
    return sum(each.least for each in columns) + len(GAP) * (len(columns) - 1)


def _lines(columns: Sequence[_FittedColumn], width: int) -> Iterator[str]:
    room = width - _needed(columns)
    widths = []
    for each in columns:
        more = min(each.width - each.least, max(room, 0))
        widths.append(each.least + more)
        room -= more
    for row in zip(*(each.cells for each in columns), strict=True):
        yield from _folded(row, widths)


def _folded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """One row, in as many lines as its longest text needs."""
    parts = [
        [text] if len(text) <= width else wrap(text, width, break_on_hyphens=False)
        for text, width in zip(row, widths, strict=True)
    ]
    for number in range(max(map(len, parts))):
        yield aligned([each[number] if number < len(each) else "" for each in parts], widths)
