"""Plots for a terminal, made of block characters.

A plot is a level over time, as columns: each shows the highest level in its share of the time,
in eighths of a row. A second level can be marked above it.
"""

from collections.abc import Sequence
from itertools import pairwise

BLOCKS = " ▁▂▃▄▅▆▇█"
MARK = "─"


def highest(points: Sequence[tuple[int, int]], end: int, width: int) -> list[int]:
    """The highest level of a step line in each of ``width`` equal parts of ``[0, end)``.

    ``points`` are instants and the levels from then on, in order.
    """
    levels = [0] * width
    for index, (start, level) in enumerate(points):
        stop = points[index + 1][0] if index + 1 < len(points) else end
        first = min(start * width // end, width - 1)
        last = max(min(-(-stop * width // end), width), first + 1)
        for place in range(first, last):
            levels[place] = max(levels[place], level)
    return levels


def plot(levels: Sequence[int], height: int, marks: Sequence[int] = ()) -> list[str]:
    """Rows from the top down, each with the level that it stands for at its left."""
    top = max([*levels, *marks, 1])
    label = len(f"{top:,}")
    rows = []
    for row in range(height, 0, -1):
        low, high = (row - 1) * top * 8 // height, row * top * 8 // height
        cells = [_cell(level, low, high) for level in levels]
        for place, mark in enumerate(marks):
            if mark > levels[place] and low < mark * 8 <= high:
                cells[place] = MARK
        shown = f"{top:,}" if row == height else "0" if row == 1 else ""
        rows.append(f"{shown:>{label}} │{''.join(cells)}")
    return rows


def bars(levels: Sequence[int], width: int = 72) -> str:
    """One line: the highest level of each share of them, as a part of the highest of all."""
    width = min(width, len(levels))
    ends = [len(levels) * place // width for place in range(width + 1)]
    shares = (max(levels[start:end]) for start, end in pairwise(ends))
    top, steps = max([*levels, 1]), len(BLOCKS) - 1
    return "".join(BLOCKS[-(-level * steps // top)] for level in shares)


def axis(width: int, label: int, end: str) -> list[str]:
    """The line under a plot, and what its ends stand for."""
    return [f"{'':{label}} └{'─' * width}", f"{'':{label}}  0s{end:>{width - 2}}"]


def _cell(level: int, low: int, high: int) -> str:
    """How much of a row a level fills; what is more than nothing is seen."""
    filled = min(max(level * 8 - low, 0), high - low)
    eighths = filled * 8 // (high - low)
    return BLOCKS[max(eighths, 1)] if filled else BLOCKS[0]
