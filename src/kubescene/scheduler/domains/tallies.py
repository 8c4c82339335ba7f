"""What the nodes of each topology domain add up to.

A domain is a value of a label; domains go by the numbers of the label column. The last entry of
every array by domain stands for nodes without the label, so that ``ids`` of a column can be used as
they are; it counts nothing.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from itertools import count
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.state.node_columns import LabelColumn
from kubescene.scheduler.state.nodes import NodeTable

_NO_COLUMN = LabelColumn(())
_NOTHING: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
_SERIAL = count(1)
_SERIAL_SHIFT = 40


class CountedNodes(Protocol):
    """Which nodes count: a hashable value, decided by the node objects alone."""

    def mask(self, nodes: NodeTable) -> NDArray[np.bool_] | None:
        """Which rows count; None means all."""
        ...


class AllNodes:
    """Every node counts."""

    def mask(self, nodes: NodeTable) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AllNodes)

    def __hash__(self) -> int:
        return hash(AllNodes)


ALL_NODES = AllNodes()


class DomainTally:
    """Amounts by domain, over the nodes that count.

    ``by_domain`` counts matches, whatever each of them amounts to, and ``matches`` is their sum.
    ``present`` says which domains have a node that counts, ``unlabelled`` is what nodes without the
    label add up to. ``version`` grows with every change, ``crossings`` when a domain gets its first
    match or loses its last; no two tallies ever have the same.
    """

    __slots__ = (
        "_at_lowest",
        "_lowest",
        "_mask",
        "amounts",
        "by_domain",
        "column",
        "counted",
        "crossings",
        "domains",
        "epoch",
        "ids",
        "is_stale",
        "key",
        "lacks_label",
        "matches",
        "present",
        "unlabelled",
        "version",
    )

    def __init__(self, key: str, counted: CountedNodes) -> None:
        self.key = key
        self.counted = counted
        self.epoch = -1
        self.is_stale = True
        self.version = self.crossings = next(_SERIAL) << _SERIAL_SHIFT
        self.column = _NO_COLUMN
        self.ids = _NO_COLUMN.ids
        self.amounts = self.by_domain = _NOTHING
        self.present: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        self.domains = 0
        self.matches = 0
        self.unlabelled = 0
        self.lacks_label = False
        self._mask: NDArray[np.bool_] | None = None
        self._lowest: int | None = None
        self._at_lowest = 0

    def count(
        self, nodes: NodeTable, amounts: NDArray[np.int32], matches: NDArray[np.int32]
    ) -> None:
        """Add up all nodes."""
        self.version += 1
        self.crossings += 1
        self.column = column = nodes.label(self.key)
        self.ids = ids = column.ids
        self._mask = mask = self.counted.mask(nodes)
        self.lacks_label = bool((ids < 0).any())
        if mask is not None:
            ids, amounts, matches = ids[mask], amounts[mask], matches[mask]
        # One further, so that nodes without the label come first; they move to the end.
        size, places = len(column.values) + 1, ids + 1
        self.amounts = _by_place(places, amounts, size)
        self.by_domain = _by_place(places, matches, size)
        self.present = np.roll(np.bincount(places, minlength=size) > 0, -1)
        self.unlabelled = int(self.amounts[-1])
        self.amounts[-1] = self.by_domain[-1] = self.present[-1] = 0
        self.matches = int(self.by_domain.sum())
        self.domains = int(self.present.sum())
        self._lowest = None

    def add(self, row: int, amount: int, matches: int) -> None:
        """More, or less, on one node."""
        if self.is_stale or row >= self.ids.size:
            # Rows have moved; whoever asks next makes it anew.
            self.is_stale = True
            return
        if self._mask is not None and not self._mask[row]:
            return
        self.version += 1
        domain = self.ids.item(row)
        if domain < 0:
            self.unlabelled += amount
            return
        self.matches += matches
        before = self.by_domain.item(domain)
        self.by_domain[domain] = before + matches
        self.crossings += (before == 0) != (before + matches == 0)
        was = self.amounts.item(domain)
        self.amounts[domain] = was + amount
        self._follow_lowest(was, was + amount)

    def without(self, parts: Iterable[tuple[int, int, int]]) -> "DomainTally":
        """A copy with less on some nodes: rows, each with an amount and a number of matches."""
        less = copy(self)
        less.version = less.crossings = next(_SERIAL) << _SERIAL_SHIFT
        less.amounts, less.by_domain = self.amounts.copy(), self.by_domain.copy()
        for row, amount, matches in parts:
            less.add(row, -amount, -matches)
        return less

    def _follow_lowest(self, was: int, now: int) -> None:
        lowest = self._lowest
        if lowest is None or was == now:
            return
        if now < lowest:
            self._lowest, self._at_lowest = now, 1
        else:
            self._at_lowest += (now == lowest) - (was == lowest)
            if not self._at_lowest:
                self._lowest = None

    def lowest(self) -> int:
        """The lowest amount of a domain that has a node; 0 if there is none."""
        if self._lowest is None:
            amounts = self.amounts[self.present]
            self._lowest = int(amounts.min()) if amounts.size else 0
            self._at_lowest = int((amounts == self._lowest).sum())
        return self._lowest

    def lowest_with(self, changes: Mapping[int, int]) -> int:
        """What `lowest` would be if some domains had more or less."""
        others = self.present.copy()
        others[[*changes]] = False
        amounts = self.amounts[others]
        changed = [self.amounts.item(domain) + more for domain, more in changes.items()]
        return min([int(amounts.min()), *changed] if amounts.size else changed)

    def domain(self, value: str | None) -> int:
        """The number of a domain; that of nodes without the label if it has none."""
        return -1 if value is None else self.column.numbers.get(value, -1)


def _by_place(places: NDArray[np.intp], amounts: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """Sums by place, what stands first moved to the end."""
    # Sums of integers far below 2**53: exact as floats.
    sums = np.bincount(places, weights=amounts, minlength=size)
    return np.roll(sums, -1).astype(np.int64)
