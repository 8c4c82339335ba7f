"""Tables of results as aligned text, as kubectl shows its own: no borders, no wrapping.

So they are for pipes; `fitting` makes them fit into a terminal.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from kubescene.results.tables import Table

ABSENT = "-"
GAP = "   "


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
