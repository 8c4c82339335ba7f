"""Tables of the terminal: as wide as what is in them, and no wider than the terminal.

Where there is no room, columns are left out, those first that are missed least, and the title says
which. Names are never cut.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2
LEAST_TEXT = 24
"""Characters of a text that may stand in several lines."""
WIDEST_TITLE = 60

Cell: TypeAlias = str | Text


class TerminalColumn(NamedTuple):
    """``spare`` says how soon one can do without it: 0 is never, 1 goes last, 2 before it, ..."""

    name: str
    justify: Literal["left", "right"]
    cells: Sequence[Cell]
    spare: int = 0
    folds: bool = False

    @property
    def width(self) -> int:
        widest = max(map(_length, self.cells), default=0)
        return max(len(self.name), min(widest, LEAST_TEXT) if self.folds else widest)


def _length(cell: Cell) -> int:
    return len(cell.plain if isinstance(cell, Text) else cell)


def fitting(columns: Sequence[TerminalColumn], width: int) -> list[TerminalColumn]:
    """Those for which there is room."""
    kept = list(columns)
    for each in sorted(columns, key=lambda column: -column.spare):
        if sum(column.width for column in kept) + GAP * (len(kept) - 1) <= width:
            break
        if each.spare:
            kept.remove(each)
    return kept


def fitted_table(title: str, columns: Sequence[TerminalColumn], width: int) -> Table:
    """A table of these columns, or of as many of them as fit."""
    kept = fitting(columns, width)
    left_out = [each.name for each in columns if each not in kept]
    table = plain_table(title, *((each.name, each.justify) for each in kept))
    if left_out:
        table.title = f"{title} (no room for: {', '.join(left_out)})"
    for shown, each in zip(table.columns, kept, strict=True):
        shown.overflow = "fold"
        shown.no_wrap = not each.folds and each.width <= width
    for row in zip(*(each.cells for each in kept), strict=True):
        table.add_row(*row)
    return table


def put(console: Console, *shown: RenderableType) -> None:
    """Print, without blanks at the ends of lines where it is no terminal that shows them."""
    if console.is_terminal:
        console.print(*shown, sep="\n")
        return
    for each in shown:
        for line in console.render_lines(each, pad=False):
            console.out("".join(segment.text for segment in line).rstrip(), highlight=False)


def plain_table(title: str, *columns: tuple[str, str]) -> Table:
    """A table that is as wide as its title: rich would break that at the table's width."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.min_width = min(WIDEST_TITLE, max(map(len, title.splitlines())))
    for name, justify in columns:
        table.add_column(name, justify=justify, header_style="dim")  # type: ignore[arg-type]
    return table
