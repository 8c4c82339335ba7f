"""Tables of results as aligned text, as kubectl shows its own: no borders, no wrapping.

Only on a terminal a last column of sentences is folded, if there is room for it.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

import orjson

from kubescene.results.tables import Table

ABSENT = "-"
GAP = "   "
LEAST_FOLDED = 15


def text_lines(table: Table[Any], width: int | None = None) -> Iterator[str]:
    """A header and one line per row; those of a terminal of some width are folded."""
    names = table.columns
    rows = [list(map(cell, table.values(row))) for row in table]
    header = [name.upper() for name in names]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    room = 0 if width is None else width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    for row in (header, *rows):
        for line in folded(row, room):
            yield aligned(line, widths)


def folded(cells: Sequence[str], room: int) -> Iterator[Sequence[str]]:
    """The lines of one row whose last cell may take so much room, or more if that is too little."""
    *rest, last = cells
    folds = room >= LEAST_FOLDED
    pieces = wrap(last, room, break_on_hyphens=False) if folds else [last]
    for number, piece in enumerate(pieces or [last]):
        yield [*(rest if number == 0 else [""] * len(rest)), piece]


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
