"""Results that are kept per row of the node table, and which of them are out of date.

The truth is a version per row: a result is as old as the version it was made for. Comparing the
versions of a whole window for every pod costs more than the few results that are out of date, so a
class of pods that is asked for all the time follows the changes of the table instead and remembers
these few. A class that is asked for seldom, or has many to renew, compares versions.
"""

from typing import NamedTuple

import numpy as np

from kubescene.scheduler.state.nodes import Column, Moves, NodeTable, moved
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Rows


class Window(NamedTuple):
    """``size`` rows from ``start`` on, of all ``total`` rows, the last followed by the first."""

    start: int
    size: int
    total: int

    @property
    def part(self) -> slice | None:
        """Where it stands in a column; None if it goes on at the beginning."""
        end = self.start + self.size
        return slice(self.start, end) if end <= self.total else None

    def holds(self, rows: set[int]) -> list[int]:
        """Those of the rows that it holds, in its order."""
        start, size, total = self
        if len(rows) == 1:
            (row,) = rows
            return [row] if (row - start) % total < size else []
        found = [offset for row in rows if (offset := (row - start) % total) < size]
        return [(start + offset) % total for offset in sorted(found)]

    def of(self, column: Column, rows: Rows) -> Column:
        """A copy of the part of a column that it shows; ``rows`` are its rows."""
        end = self.start + self.size
        return column[self.start : end].copy() if end <= self.total else column.take(rows)

    def on(self, column: Column, rows: Rows) -> Column:
        """The same for those who only look, and at once."""
        end = self.start + self.size
        return column[self.start : end] if end <= self.total else column.take(rows)


class RowResults:
    """The base of what is kept: the versions that results were made for."""

    __slots__ = ("_hopeless", "_outdated", "_position", "layout", "seen")

    def __init__(self, nodes: NodeTable) -> None:
        self.layout = nodes.layout
        self.seen: Column = np.full(len(nodes), -1, dtype=np.int64)
        self._position = -1
        self._outdated: set[int] | None = None
        """All rows that are out of date, if they are few and known."""
        self._hopeless = 0
        """So many looks will not find them few: too many are out of date."""

    def in_place(self, nodes: NodeTable) -> bool:
        """Whether the results stand in the rows of the table, if need be after a move."""
        if self.layout == nodes.layout:
            return True
        moves = nodes.moved_from(self.layout)
        if moves is None:
            return False
        self.layout = nodes.layout
        self.move(moves)
        return True

    def move(self, moves: Moves) -> None:
        """Follow the rows of the table to their new places."""
        self.seen = moved(self.seen, moves, -1)
        self._outdated = None
        self._hopeless = 0

    def outdated(self, nodes: NodeTable, rows: Rows, window: Window | None) -> list[int] | Rows:
        """Those of the rows that are out of date. ``window`` is said if they are one."""
        if window is not None:
            known = self._follow(nodes, window)
            if known is not None:
                return window.holds(known) if known else []
        if window is not None and (part := window.part) is not None:
            stale = (self.seen[part] != nodes.versions[part]).nonzero()[0]
        else:
            stale = (self.seen.take(rows) != nodes.versions.take(rows)).nonzero()[0]
        return rows if stale.size == rows.size else rows.take(stale)

    def renewed(self, nodes: NodeTable, rows: list[int] | Rows, part: slice | None = None) -> None:
        """The results of these rows were made anew; ``part`` says where they are, if in one."""
        if isinstance(rows, list):
            for row in rows:
                self.seen[row] = nodes.versions[row]
        elif part is not None:
            self.seen[part] = nodes.versions[part]
        else:
            self.seen[rows] = nodes.versions.take(rows)
        if self._outdated is not None:
            self._outdated.difference_update(rows if isinstance(rows, list) else rows.tolist())

    def _follow(self, nodes: NodeTable, window: Window) -> set[int] | None:
        changed, known = nodes.changed_since(self._position), self._outdated
        self._position = nodes.changes if changed is None else self._position + len(changed)
        if changed is None or len(changed) > POLICY.few_outdated:
            known = None
        elif known is not None and len(known) <= POLICY.few_outdated:
            known.update(changed)
        else:
            known = self._few(nodes, window)
        self._outdated = known
        return known

    def _few(self, nodes: NodeTable, window: Window) -> set[int] | None:
        """All rows that are out of date, unless they are many; each look renews a window."""
        if self._hopeless:
            self._hopeless -= 1
            return None
        rows = (self.seen != nodes.versions).nonzero()[0]
        if rows.size <= POLICY.few_outdated:
            return set(rows.tolist())
        self._hopeless = (rows.size - POLICY.few_outdated) // max(1, window.size)
        return None
