"""What plugins that look at many nodes at a time are given, and answer with."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.intp]
"""Positions in the `NodeTable`, which holds the nodes in snapshot order."""

Codes: TypeAlias = NDArray[np.int64]
"""One verdict per row: 0 passes, anything else is a number the plugin can explain."""

Scores: TypeAlias = NDArray[np.int64]
"""One score per row."""

Column: TypeAlias = NDArray[np.int64]
"""One number per row."""


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
