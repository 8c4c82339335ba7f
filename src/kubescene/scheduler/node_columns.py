"""Labels and taints as columns of small numbers.

Nodes share few different label values and fewer different lists of taints. Each is numbered once,
and a node is then a number per label key. A selector is held against the values, not against the
nodes, and reaches all nodes by one array look-up. Columns of label keys are made when somebody
asks for the key.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from kubescene.types import ReadOnlyObject

Taints: TypeAlias = tuple[ReadOnlyObject, ...]
NodeSpec: TypeAlias = tuple[Mapping[str, str], Taints, bool]

ABSENT = -1
"""The number of a node that lacks the label; as an index, the last entry of a look-up table."""


class LabelColumn:
    """One label key over all nodes: ``ids`` point into ``values``, or are `ABSENT`."""

    __slots__ = ("ids", "numbers", "values")

    def __init__(self, texts: Sequence[str | None]) -> None:
        self.values: list[str] = []
        self.numbers: dict[str, int] = {}
        self.ids: NDArray[np.intp] = np.array([self.number(text) for text in texts], dtype=np.intp)

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
        self.fill([])

    def fill(self, specs: Sequence[NodeSpec]) -> None:
        """Start over with other rows. Numbers of taint lists stay what they were."""
        self._labels.clear()
        self._rows = [labels for labels, _, _ in specs]
        self.taint_ids: NDArray[np.intp] = np.array(
            [self._number(taints) for _, taints, _ in specs], dtype=np.intp
        )
        self.unschedulable: NDArray[np.bool_] = np.array(
            [cordoned for _, _, cordoned in specs], dtype=np.bool_
        )

    def update(
        self, row: int, labels: Mapping[str, str], taints: Taints, unschedulable: bool
    ) -> None:
        self._rows[row] = labels
        self.taint_ids[row] = self._number(taints)
        self.unschedulable[row] = unschedulable
        for key, column in self._labels.items():
            column.ids[row] = column.number(labels.get(key))

    def label(self, key: str) -> LabelColumn:
        found = self._labels.get(key)
        if found is None:
            found = self._labels[key] = LabelColumn([labels.get(key) for labels in self._rows])
        return found

    def _number(self, taints: Taints) -> int:
        key = orjson.dumps(taints)
        found = self._taint_numbers.get(key)
        if found is None:
            found = self._taint_numbers[key] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return found
