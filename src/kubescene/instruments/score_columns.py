"""Scores of one attempt in columns, one for each plugin, and what is told of them.

Plugins that give all nodes the same score do so for every pod of a class. Those columns are kept
once (`SharedScores`), with what is told of them; an attempt holds the others (`PackedScores`), a
byte for each score, since they lie in 0..100.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, overload

import orjson
from msgspec import Struct


class ListedScores(Struct, frozen=True, gc=False, rename="camel"):
    """One score plugin over the listed nodes that were scored."""

    plugin: str
    weight: int
    raw: tuple[int, ...]
    normalized: tuple[int, ...]


class ScoreColumn(Struct, frozen=True, gc=False):
    """One score plugin over the scored nodes, in their order."""

    plugin: str
    weight: int
    raw: Sequence[int]
    normalized: Sequence[int]

    def told(self) -> dict[str, Any]:
        """What a line of the side file says. Without ``normalized``, it is what is in ``raw``."""
        told = {"weight": self.weight, "raw": values(self.raw)}
        if self.normalized is not self.raw:
            told["normalized"] = values(self.normalized)
        return told

    def listed(self, begin: int, others: Sequence[int]) -> ListedScores:
        """The first ``begin`` scores, and some others."""
        raw = normalized = _taken(self.raw, begin, others)
        if self.normalized is not self.raw:
            normalized = _taken(self.normalized, begin, others)
        return ListedScores(self.plugin, self.weight, raw, normalized)


def values(column: Sequence[int]) -> Sequence[int] | int:
    """A column, or the value that all of it has."""
    return int(column[0]) if len(column) and _is_even(column) else column


def _is_even(column: Any) -> bool:
    """Whether all values are the same; of most columns that are not, the first and last differ."""
    if column[0] != column[-1]:
        return False
    if not hasattr(column, "tobytes"):
        return len(set(column)) == 1
    # Bytes are compared several times as fast as numbers.
    data: bytes = column.tobytes()
    return data == data[: column.itemsize] * len(column)


def _taken(column: Sequence[int], begin: int, others: Sequence[int]) -> tuple[int, ...]:
    taken = integers(column[:begin])
    for row in others:
        taken.append(int(column[row]))
    return tuple(taken)


def integers(column: Sequence[int]) -> list[int]:
    """A column as plain integers; arrays know how to do that at once."""
    convert: Callable[[], list[int]] | None = getattr(column, "tolist", None)
    return [int(value) for value in column] if convert is None else convert()


def told_of(columns: Sequence[ScoreColumn]) -> dict[str, Any]:
    """What a line of the side file says of all columns, by plugin."""
    if isinstance(columns, PackedScores):
        return columns.told()
    return {each.plugin: each.told() for each in columns}


def columns_encoded(value: Any) -> bytes:
    """JSON of what may hold columns; arrays become text without becoming numbers first."""
    return orjson.dumps(value, default=integers, option=orjson.OPT_SERIALIZE_NUMPY)


Line: TypeAlias = int | None
"""Which line of an attempt's own scores takes the place of a column; None if it is shared."""


class SharedScores:
    """``columns`` in their order, as the first attempt had them."""

    __slots__ = ("_even", "_listed", "columns", "told")

    def __init__(self, columns: Sequence[tuple[ScoreColumn, Line]]) -> None:
        self.columns = tuple(columns)
        self.told = tuple([each.told() if line is None else {} for each, line in columns])
        """What is told of each, but of those that are an attempt's own."""
        self._even = all(map(_is_of_one_value, filter(None, self.told)))
        self._listed: dict[int, tuple[ListedScores, ...]] = {}

    def listed(self, count: int) -> tuple[ListedScores, ...] | None:
        """The columns over so many nodes, as far as they are shared.

        None if it matters which nodes these are.
        """
        if not self._even:
            return None
        found = self._listed.get(count)
        if found is None:
            columns = [each.listed(count, ()) for each, _ in self.columns]
            found = self._listed[count] = tuple(columns)
        return found


def _is_of_one_value(told: dict[str, Any]) -> bool:
    return isinstance(told["raw"], int) and isinstance(told.get("normalized", 0), int)


class PackedScores(Sequence[ScoreColumn]):
    """Columns that are made for those who read them."""

    __slots__ = ("own", "shared")

    def __init__(self, shared: SharedScores, own: Any) -> None:
        """``own`` is an array of bytes, whose lines the shared columns name."""
        self.shared = shared
        self.own = own

    def told(self) -> dict[str, Any]:
        """What is told of each, by plugin."""
        shared = self.shared
        return {
            first.plugin: told or {"weight": first.weight, "raw": values(self.own[line])}
            for (first, line), told in zip(shared.columns, shared.told, strict=True)
        }

    def listed(self, begin: int, others: Sequence[int]) -> tuple[ListedScores, ...]:
        """The first ``begin`` scores of each column, and some others."""
        shared = self.shared.listed(begin + len(others))
        if shared is None:
            return tuple([each.listed(begin, others) for each in self])
        own = list(map(tuple, self._listed_own(begin, others)))
        return tuple(
            [
                each
                if line is None
                else ListedScores(each.plugin, each.weight, own[line], own[line])
                for each, (_, line) in zip(shared, self.shared.columns, strict=True)
            ]
        )

    def _listed_own(self, begin: int, others: Sequence[int]) -> list[list[int]]:
        lines: list[list[int]] = self.own[:, :begin].tolist()
        for row in others:
            for number, line in enumerate(lines):
                line.append(self.own.item(number, row))
        return lines

    def __len__(self) -> int:
        return len(self.shared.columns)

    @overload
    def __getitem__(self, at: int) -> ScoreColumn: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ScoreColumn, ...]: ...
    def __getitem__(self, at: int | slice) -> ScoreColumn | tuple[ScoreColumn, ...]:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[ScoreColumn]:
        return itertools.starmap(self._column, self.shared.columns)

    def _column(self, first: ScoreColumn, line: Line) -> ScoreColumn:
        if line is None:
            return first
        # Wide enough to be weighted.
        scores = self.own[line].astype("int32")
        return ScoreColumn(first.plugin, first.weight, scores, scores)
