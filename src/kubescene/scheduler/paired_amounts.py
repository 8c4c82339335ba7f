"""Cpu and memory of all nodes as floating-point numbers, those of a node side by side.

Pods of a class that is seldom seen have a whole window of nodes judged and rated. That takes few
operations if one serves cpu and memory alike and the window is one piece of memory. So there is a
second picture of the `NodeTable`: cpu of row 0, memory of row 0, cpu of row 1, and so on. It is
brought up to date when somebody looks, by the rows that have changed.

All amounts up to `LARGEST` are integers that a float holds, and so is a hundred times each of them.
A quotient q of such numbers, at most 100, keeps its distance of 1/divisor from the next integer,
which is more than q is rounded by: rounding it down gives what dividing integers gives.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.scheduler.interfaces import MAX_NODE_SCORE, Rows
from kubescene.scheduler.node_info import NodeInfo
from kubescene.scheduler.nodes import Column, NodeTable
from kubescene.scheduler.pods import PodClass
from kubescene.scheduler.row_results import Window

Floats = NDArray[np.float64]

LARGEST = 1 << 46
_RESOURCES = (CPU, MEMORY)
_MANY_ROWS = 64
"""So many rows are brought up to date faster with all others."""
# NumPy takes its own scalars faster than those of Python.
ONE = np.float64(1)
HALF = np.float64(0.5)
FULL = np.float64(MAX_NODE_SCORE)


class Pairs(NamedTuple):
    """Some rows of the picture. All but ``full`` and ``balance`` hold two numbers per row.

    ``unused`` is what scoring counts as free, see `NodeTable.nonzero_cpu`. ``full`` says which
    nodes run as many pods as they may; None if none of all nodes does. ``balance`` is that of cpu
    and memory as they are used now, see `balance_of`.
    """

    offered: Floats
    requested: Floats
    unused: Floats
    balance: Floats
    full: NDArray[np.bool_] | None
    asked: "AskedPairs"

    def first(self, count: int) -> "Pairs":
        """Those of the first rows."""
        if count == self.balance.size:
            return self
        both, full = slice(2 * count), self.full
        return Pairs(
            self.offered[both],
            self.requested[both],
            self.unused[both],
            self.balance[:count],
            full if full is None else full[:count],
            self.asked,
        )

    def with_pod(self, cpu: int, memory: int) -> Floats:
        """What is requested if a pod comes that asks for so much."""
        return self.requested + self.asked.pairs(cpu, memory, self.requested.size)

    def left_by_pod(self, cpu: int, memory: int) -> Floats:
        """What is unused then; negative where the pod is too large."""
        return self.unused - self.asked.pairs(cpu, memory, self.unused.size)


class AskedPairs:
    """What pods ask for, repeated for many rows. The last answer is kept: alike pods come in rows.

    Nobody may change it.
    """

    __slots__ = ("_known", "_pairs")

    def __init__(self) -> None:
        self._known = (0, 0)
        self._pairs: Floats = np.zeros(0)

    def pairs(self, cpu: int, memory: int, size: int) -> Floats:
        """``cpu`` and ``memory`` in turn, ``size`` numbers in all."""
        if self._known != (cpu, memory) or self._pairs.size < size:
            self._known = (cpu, memory)
            if self._pairs.size < size:
                self._pairs = np.empty(size)
            self._pairs[0::2] = cpu
            self._pairs[1::2] = memory
        return self._pairs[:size]


class PairedFilter(Protocol):
    """A Filter plugin that can judge by a picture, if ``judges_pairs`` says so of the class."""

    def judges_pairs(self, pod_class: PodClass) -> bool: ...

    def passes_pairs(self, pod_class: PodClass, pairs: Pairs) -> bool:
        """Whether all rows pass. No answer but yes is final."""
        ...


class PairedScore(Protocol):
    """A Score plugin that can rate by a picture, if ``rates_pairs`` says so of the class."""

    def rates_pairs(self, pod_class: PodClass) -> bool: ...

    def score_pairs(self, pod_class: PodClass, pairs: Pairs) -> Floats:
        """The scores of ``score_nodes``, to be written over."""
        ...


class PairedAmounts:
    """The picture of a whole table."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._position = -1
        self._odd: set[int] = set()
        """Rows of which an amount is too large, or that lack cpu or memory."""
        self._crowded = 0
        self._asked = AskedPairs()
        self._draw(0)

    def _draw(self, count: int) -> None:
        self.offered: Floats = np.ones(2 * count)
        self.requested: Floats = np.zeros(2 * count)
        self.unused: Floats = np.zeros(2 * count)
        self.balance: Floats = np.zeros(count)
        self.full: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)

    def is_exact(self) -> bool:
        """Whether it may be used, now: every node has cpu and memory, and none too much."""
        self._sync()
        return not self._odd

    def of(self, rows: Rows, window: Window | None) -> Pairs:
        """Some rows, to be read at once; ``window`` is said if they are one."""
        crowded, part = self._crowded, None if window is None else window.part
        if part is None:
            return Pairs(
                _taken(self.offered, rows),
                _taken(self.requested, rows),
                _taken(self.unused, rows),
                self.balance.take(rows),
                self.full.take(rows) if crowded else None,
                self._asked,
            )
        pairs = slice(2 * part.start, 2 * part.stop)
        return Pairs(
            self.offered[pairs],
            self.requested[pairs],
            self.unused[pairs],
            self.balance[part],
            self.full[part] if crowded else None,
            self._asked,
        )

    def _sync(self) -> None:
        nodes = self._nodes
        if self._position == nodes.changes:
            return
        changed = nodes.changed_since(self._position)
        self._position = nodes.changes
        if changed is None or len(changed) > _MANY_ROWS:
            self._show_all()
            return
        for row in changed:
            self._show(row, nodes.infos[row])

    def _show(self, row: int, info: NodeInfo) -> None:
        allocatable, requested, at = info.allocatable, info.requested, 2 * row
        cpu, memory = allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)
        used_cpu, used_memory = requested[CPU], requested[MEMORY]
        largest = max(cpu, memory, used_cpu, used_memory, info.nonzero_cpu, info.nonzero_memory)
        if largest > LARGEST or not (cpu > 0 and memory > 0):
            self._odd.add(row)
            return
        self._odd.discard(row)
        self.offered[at], self.offered[at + 1] = cpu, memory
        self.requested[at], self.requested[at + 1] = used_cpu, used_memory
        self.unused[at], self.unused[at + 1] = cpu - info.nonzero_cpu, memory - info.nonzero_memory
        self.balance[row] = balance_of(min(used_cpu / cpu, 1.0), min(used_memory / memory, 1.0))
        is_full = requested[PODS] >= allocatable[PODS]
        if is_full != self.full[row]:
            self.full[row] = is_full
            self._crowded += 1 if is_full else -1

    def _show_all(self) -> None:
        nodes = self._nodes
        self._draw(len(nodes))
        nonzero = (nodes.nonzero_cpu, nodes.nonzero_memory)
        odd = np.zeros(len(nodes), dtype=np.bool_)
        for at, (resource, counted) in enumerate(zip(_RESOURCES, nonzero, strict=True)):
            offered, used = nodes.allocatable(resource), nodes.requested(resource)
            odd |= _is_odd(offered, used, counted)
            self.offered[at::2] = np.maximum(offered, 1)
            self.requested[at::2] = used
            self.unused[at::2] = offered - counted
        shares = self.requested / self.offered
        self.balance[:] = balances(np.minimum(shares, ONE, out=shares))
        self.full[:] = nodes.requested(PODS) >= nodes.allocatable(PODS)
        self._crowded = int(np.count_nonzero(self.full))
        self._odd = set(odd.nonzero()[0].tolist())


def _is_odd(offered: Column, used: Column, counted: Column) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (
        (offered <= 0) | (offered > LARGEST) | (used > LARGEST) | (counted > LARGEST)
    )
    return found


def _taken(column: Floats, rows: Rows) -> Floats:
    return column.reshape(-1, 2).take(rows, axis=0).reshape(-1)


def balance_of(first: float, second: float) -> int:
    """100 if two shares are equal, less the more they differ. [SC-4]"""
    return int((1 - abs((first - second) / 2)) * MAX_NODE_SCORE)


def balances(shares: Floats) -> Floats:
    """The same for pairs of shares: the same operations in the same order."""
    spread = shares[0::2] - shares[1::2]
    spread *= HALF
    np.abs(spread, out=spread)
    np.subtract(ONE, spread, out=spread)
    spread *= FULL
    return np.floor(spread, out=spread)
