"""Results that are kept per row of the node table, and which of them are out of date.

The truth is a version per row: a result is as old as the version it was made for. Comparing the
versions of a whole window for every pod costs more than the few results that are out of date, so a
class of pods that is asked for all the time follows the changes of the table instead and remembers
these few. A class that is asked for seldom, or has many to renew, compares versions.
"""

from collections.abc import Sequence

import numpy as np

from kubescene.scheduler.state.nodes import Moves, NodeTable, moved
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Column, Rows, Window

_FEW = POLICY.few_outdated


class RowResults:
    """The base of what is kept: the versions that results were made for."""

    __slots__ = ("_hopeless", "_is_blank", "_outdated", "_position", "layout", "seen")

    def __init__(self, nodes: NodeTable) -> None:
        self.layout = nodes.layout
        self.seen: Column = np.empty(len(nodes), dtype=np.int64)
        self.seen.fill(-1)
        self._position = -1
        self._is_blank = True
        """Whether there is no result at all."""
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
        if self._is_blank:
            return rows
        if window is not None:
            changed, known = nodes.changed_since(self._position), self._outdated
            if known is None or changed is None or len(known) + len(changed) > _FEW:
                known = self._outdated = self._find_few(nodes, changed, window)
                self._position = nodes.changes
            elif changed:
                known.update(changed)
                self._position += len(changed)
            if known is not None:
                return window.holds(known) if known else []
        if window is not None and (part := window.part) is not None:
            stale = (self.seen[part] != nodes.versions[part]).nonzero()[0]
        else:
            stale = (self.seen.take(rows) != nodes.versions.take(rows)).nonzero()[0]
        return rows if stale.size == rows.size else rows.take(stale)

    def renewed(self, nodes: NodeTable, rows: list[int] | Rows, part: slice | None = None) -> None:
        """The results of these rows were made anew; ``part`` says where they are, if in one."""
        self._is_blank = False
        if isinstance(rows, list):
            for row in rows:
                self.seen[row] = nodes.versions[row]
        elif part is not None:
            self.seen[part] = nodes.versions[part]
        else:
            self.seen[rows] = nodes.versions.take(rows)
        if self._outdated is not None:
            self._outdated.difference_update(rows if isinstance(rows, list) else rows.tolist())

    def _find_few(
        self, nodes: NodeTable, changed: Sequence[int] | None, window: Window
    ) -> set[int] | None:
        """All rows that are out of date, unless they are many; each look renews a window."""
        if changed is None or len(changed) > _FEW:
            return None
        if self._hopeless:
            self._hopeless -= 1
            return None
        rows = (self.seen != nodes.versions).nonzero()[0]
        if rows.size <= _FEW:
            return set(rows.tolist())
        self._hopeless = (rows.size - _FEW) // max(1, window.size)
        return None
