"""Tables in a terminal that is too narrow for them: fewer columns, and texts in several lines.

What goes first is told: columns in which there is nothing, then those that people rarely look for.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from kubescene.reports.tables import ABSENT, GAP, aligned, cell
from kubescene.results.tables import Table

FOLDED = ("meaning", "message")
"""Texts, which may stand in several lines."""
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


class Fitted(NamedTuple):
    """Lines that fit, and the columns that have no room."""

    lines: Iterator[str]
    left_out: list[str]


class _Column(NamedTuple):
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
    columns = [_Column(*each) for each in zip(table.columns, zip(*rows, strict=True), strict=True)]
    kept = list(columns)
    for each in _dispensable(columns):
        if _needed(kept) <= width:
            break
        kept.remove(each)
    left_out = [each.name for each in columns if each not in kept]
    return Fitted(_lines(kept, width), left_out)


def _dispensable(columns: Sequence[_Column]) -> Iterator[_Column]:
    """All but the first and the texts, those first that are missed least."""
    rest = [each for each in columns[1:] if each.name not in FOLDED]
    empty = [each for each in rest if each.is_empty]
    yield from empty
    known = {each.name: each for each in rest if each not in empty}
    yield from (known[name] for name in RARE if name in known)
    yield from (each for name, each in reversed(known.items()) if name not in RARE)


def _needed(columns: Sequence[_Column]) -> int:
    return sum(each.least for each in columns) + len(GAP) * (len(columns) - 1)


def _lines(columns: Sequence[_Column], width: int) -> Iterator[str]:
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
