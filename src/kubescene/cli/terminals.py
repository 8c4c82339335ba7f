"""Output as plain text: what a stream can show, the width of a terminal, and tables without it."""

import codecs
import io
import sys
from collections.abc import Sequence
from shutil import get_terminal_size

SIMPLER = "kubescene.simpler"
_SIMPLER = {
    **dict.fromkeys("█▇▆▅▄▃▂▁", "#"),
    "░": ".",
    "─": "-",
    "│": "|",
    "└": "+",
    "→": "->",
    "±": "+-",
    "…": "...",
    "×": "x",
    "•": "*",
    "✅": "ok:",
}
"""What stands for the characters that Kubescene draws with, where they cannot be written."""


def write_what_can_be_written() -> None:
    """Let standard streams that know fewer characters (ASCII, a Windows code page) have simpler
    ones, instead of an error. Characters of others are written by their number.
    """
    codecs.register_error(SIMPLER, simpler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SIMPLER)


def simpler(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    kept = error.object[error.start : error.end]
    if any(each not in _SIMPLER for each in kept):
        kept = kept[:1]
        if kept not in _SIMPLER:
            one = UnicodeEncodeError(
                error.encoding, error.object, error.start, error.start + 1, error.reason
            )
            return codecs.backslashreplace_errors(one)
    return "".join(map(_SIMPLER.__getitem__, kept)), error.start + len(kept)


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
