"""Output as plain text: the width of a terminal, and tables that do not care for it."""

import sys
from collections.abc import Sequence
from shutil import get_terminal_size


def terminal_width() -> int | None:
    """The columns of the terminal that standard output is; None if it is a file or a pipe."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Rows with their columns under each other: those of ``left`` to the left, others to the right.

    The first row is the heading.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)
