"""Labels and taints as columns of small numbers.

Nodes share few different label values and fewer different lists of taints. Each is numbered once,
and a node is then a number per label key. A selector is held against the values, not against the
nodes, and reaches all nodes by one array look-up. Columns of label keys are made when somebody
asks for the key.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import ReadOnlyObject

Taints: TypeAlias = tuple[ReadOnlyObject, ...]

_NOTHING: Mapping[str, str] = {}
_TAINT_FIELDS = ("key", "value", "effect")

ABSENT = -1
"""The number of a node that lacks the label; as an index, the last entry of a look-up table."""


class LabelColumn:
    """One label key over all nodes: ``ids`` point into ``values``, or are `ABSENT`."""

    __slots__ = ("_is_complete", "ids", "numbers", "values")

    def __init__(self, texts: Sequence[str | None]) -> None:
        self.values: list[str] = []
        self.numbers: dict[str, int] = {}
        self.ids: NDArray[np.intp] = np.array([self.number(text) for text in texts], dtype=np.intp)
        self._is_complete: bool | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every node has the label."""
        if self._is_complete is None:
            self._is_complete = not (self.ids < 0).any()
        return self._is_complete

    def put(self, row: int, text: str | None) -> None:
        self.ids[row] = self.number(text)
        self._is_complete = None

    def move(self, moves: NDArray[np.intp]) -> None:
        """Take other rows, as `SpecColumns.move` does."""
        self.ids = _moved(self.ids, moves)
        self._is_complete = None

    def number(self, text: str | None) -> int:
        """The number of a value; new values get the next one."""
        if text is None:
            return ABSENT
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.values)
            self.values.append(text)
        return found


class SpecColumns:
    """What node objects say, over the rows of a `NodeTable`."""

    def __init__(self) -> None:
        self.taint_sets: list[Taints] = []
        self._taint_numbers: dict[bytes, int] = {}
        self._labels: dict[str, LabelColumn] = {}
        self._rows: list[Mapping[str, str]] = []
        self.taint_ids: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.unschedulable: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def move(self, moves: NDArray[np.intp]) -> None:
        """Take other rows: for each, where it was, or -1 if it is new and will be updated.

        Numbers stay what they were, except that a column most of whose values no node has any
        more is forgotten.
        """
        rows = self._rows
        self._rows = [_NOTHING if at < 0 else rows[at] for at in moves.tolist()]
        self.taint_ids = _moved(self.taint_ids, moves)
        self.unschedulable = _moved(self.unschedulable, moves)
        limit = 2 * moves.size + POLICY.label_values_kept
        for key in [key for key, column in self._labels.items() if len(column.values) > limit]:
            del self._labels[key]
        for column in self._labels.values():
            column.move(moves)

    def update(
        self, row: int, labels: Mapping[str, str], taints: Taints, unschedulable: bool
    ) -> None:
        self._rows[row] = labels
        self.taint_ids[row] = self._number(taints)
        self.unschedulable[row] = unschedulable
        for key, column in self._labels.items():
            column.put(row, labels.get(key))

    def label(self, key: str) -> LabelColumn:
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = LabelColumn([labels.get(key) for labels in self._rows])
        return found

    def _number(self, taints: Taints) -> int:
        # When a taint came says nothing about who tolerates it, and differs from node to node.
        key = orjson.dumps([[each.get(field) for field in _TAINT_FIELDS] for each in taints])
        found = self._taint_numbers.get(key)
        if found is None:
            found = self._taint_numbers[key] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return found


def _moved(column: NDArray[Any], moves: NDArray[np.intp]) -> NDArray[Any]:
    """A column over other rows; what stands in new ones does not matter."""
    return column.take(moves, mode="clip") if column.size else np.zeros(moves.size, column.dtype)
