"""Columns of an explanation in few words, for the side file; and back.

Nodes stand next to each other, and most plugins give all of them the same score. So an ascending
run of indexes is a pair of the first and the last, a column of one value is that value, and what
follows from the rest is left out. Whatever is not of that kind is written out, number by number.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from kubescene.instruments.attempts import Explanation, FilterGroup
from kubescene.instruments.score_columns import integers, told_of
from kubescene.instruments.stretches import Stretches

Index: TypeAlias = int | tuple[int, int]
"""One index, or the first and the last of a run."""
_FEW = 32
"""So many indexes are looked through faster one by one."""


def compacted(explanation: Explanation, *, extended: bool = False) -> dict[str, Any]:
    """The members of a line, to be encoded by `columns_encoded`.

    Without ``scored``, all feasible nodes were. Without ``totals``, they are the weighted sums of
    the scores; where extenders added theirs (``extended``), totals are told.
    """
    row: dict[str, Any] = {
        "feasible": runs(explanation.feasible),
        "filters": [_group(group) for group in explanation.filters],
    }
    if explanation.scored is not explanation.feasible:
        row["scored"] = runs(explanation.scored)
    row["scores"] = told_of(explanation.scores)
    if extended:
        row["totals"] = explanation.totals
    return row


def _group(group: FilterGroup) -> dict[str, Any]:
    return {
        "plugin": group.plugin,
        "code": group.code,
        "reasons": group.reasons,
        "nodes": runs(group.nodes),
    }


def runs(indexes: Sequence[int]) -> list[int | list[int]]:
    """Indexes in their order, each run of ascending neighbours as a pair."""
    if isinstance(indexes, Stretches):
        return indexes.runs()
    if len(indexes) <= _FEW:
        return _few_runs(indexes)
    # Whoever explains has NumPy loaded already; whoever reads does without.
    import numpy as np

    array = np.asarray(indexes)
    if not array.size:
        return []
    ends = (array[1:] - array[:-1] != 1).nonzero()[0]
    begin, end = int(array[0]), int(array[-1])
    if not ends.size:
        return [_run(begin, end)]
    first, last = [begin, *array[ends + 1].tolist()], [*array[ends].tolist(), end]
    return [*map(_run, first, last)]


def _few_runs(indexes: Sequence[int]) -> list[int | list[int]]:
    found: list[int | list[int]] = []
    first = last = None
    for index in integers(indexes):
        if last is not None and first is not None and index != last + 1:
            found.append(_run(first, last))
            first = index
        elif first is None:
            first = index
        last = index
    return found if first is None or last is None else [*found, _run(first, last)]


def _run(first: int, last: int) -> int | list[int]:
    return first if first == last else [first, last]


def unfolded(indexes: Sequence[Index], count: int) -> list[int]:
    """The indexes behind runs; raises `IndexError` for one that is not among ``count``."""
    found: list[int] = []
    for each in indexes:
        first, last = (each, each) if isinstance(each, int) else each
        if not 0 <= first <= last < count:
            raise IndexError(f"there is no node {each} among {count}")
        found.extend(range(first, last + 1))
    return found


def written_out(column: Sequence[int] | int, count: int) -> Sequence[int]:
    """The column behind `values`; raises `IndexError` if it is not so long."""
    if isinstance(column, int):
        return [column] * count
    if len(column) != count:
        raise IndexError(f"a column has {len(column)} values for {count} nodes")
    return column
