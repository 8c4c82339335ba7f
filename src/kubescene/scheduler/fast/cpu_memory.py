"""NodeResourcesFit and NodeResourcesBalancedAllocation over columns of floats: same answers.

What these plugins say in ``filter_nodes`` and ``score_nodes`` is said here of many nodes by some
thirty operations, however many they are, and of one node by plain integers; for classes of pods
that ask for nothing else, and as long as all nodes have cpu and memory (`CpuMemoryColumns`). A
plugin that is configured otherwise, or is not one of these, has nobody here and is asked itself.

Many nodes are judged and rated for a pod by few operations if one of them serves cpu and memory
alike. So there are further columns of the `NodeTable`: a line for cpu and a line for memory of what
nodes offer, of what is requested, and of what is unused. It is brought up to date when somebody
looks, by the rows that have changed.

All amounts up to `LARGEST` are integers that a float holds, and so is a hundred times each of them.
A quotient q of such numbers, at most 100, keeps its distance of 1/divisor from the next integer,
which is more than q is rounded by: rounding it down gives what dividing integers gives.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Codes, Rows
from kubescene.scheduler.framework.runtime import FilterExtension
from kubescene.scheduler.plugins.node_resources_balanced_allocation import (
    EVEN,
    NodeResourcesBalancedAllocation,
    balance_of,
)
from kubescene.scheduler.plugins.node_resources_fit import (
    UNRESOLVABLE,
    NodeResourcesFit,
    compiled_checks,
    shortages,
)
from kubescene.scheduler.plugins.scoring_strategies import LeastAllocated
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Column, Window

Floats = NDArray[np.float64]

LARGEST = 1 << 46
PAIRED = (CPU, MEMORY)
"""The resources of the two lines."""
# NumPy takes its own scalars faster than those of Python.
ONE = np.float64(1)
HALF = np.float64(0.5)
FULL = np.float64(MAX_NODE_SCORE)
_NOTHING = np.float64(0)
_SUM = np.float64(EVEN + 2 * EVEN)
"""What NodeResourcesBalancedAllocation adds, before it halves."""


class Pairs(NamedTuple):
    """Some rows of the columns. The first three have a line for cpu and one for memory.

    ``unused`` is what scoring counts as free, see `NodeTable.nonzero_cpu`. ``balance`` is that of
    cpu and memory as they are used now, see `balance_of`. ``full`` says which nodes run as many
    pods as they may; None if none of all nodes does.
    """

    offered: Floats
    requested: Floats
    unused: Floats
    balance: Floats
    full: NDArray[np.bool_] | None


def requested_by(pod_class: PodClass) -> Floats:
    """What a pod requests, in a form that is added to two lines."""
    return pod_class.compiled(_requested)


def counted_by(pod_class: PodClass) -> Floats:
    """What scoring counts as requested, likewise."""
    return pod_class.compiled(_counted)


def _requested(pod_class: PodClass) -> Floats:
    return np.array([[float(pod_class.requests.get(name, 0))] for name in PAIRED])


def _counted(pod_class: PodClass) -> Floats:
    return np.array([[float(pod_class.scoring_requests.get(name, 0))] for name in PAIRED])


class CpuMemoryColumns:
    """The columns of a whole table."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._position = -1
        self._odd: set[int] = set()
        """Rows of which an amount is too large, or that lack cpu or memory."""
        self._full_rows = 0
        self._draw(0)

    def _draw(self, count: int) -> None:
        self._amounts: Floats = np.zeros((3, 2, count))
        self._amounts[0] = 1
        self._balance: Floats = np.zeros(count)
        self._full: NDArray[np.bool_] = np.zeros(count, dtype=np.bool_)

    def is_exact(self) -> bool:
        """Whether it may be used, now: every node has cpu and memory, and none too much."""
        self._sync()
        return not self._odd

    def of(self, rows: Rows, window: Window | None = None) -> Pairs:
        """Some rows, likewise; ``window`` is said if they are one."""
        part, full = None if window is None else window.part, None
        if part is None:
            offered, requested, unused = self._amounts.take(rows, axis=2)
            if self._full_rows:
                full = self._full.take(rows)
            return Pairs(offered, requested, unused, self._balance.take(rows), full)
        offered, requested, unused = self._amounts[:, :, part]
        if self._full_rows:
            full = self._full[part]
        return Pairs(offered, requested, unused, self._balance[part], full)

    def _sync(self) -> None:
        nodes = self._nodes
        if self._position == nodes.changes:
            return
        changed = nodes.changed_since(self._position)
        self._position = nodes.changes
        if changed is None or len(changed) > POLICY.many_columns:
            self._show_all()
            return
        for row in changed:
            self._show(row, nodes.infos[row])

    def _show(self, row: int, info: NodeInfo) -> None:
        if _is_odd(info):
            self._odd.add(row)
            return
        self._odd.discard(row)
        allocatable, requested, amounts = info.allocatable, info.requested, self._amounts
        cpu, memory = allocatable[CPU], allocatable[MEMORY]
        used_cpu, used_memory = requested[CPU], requested[MEMORY]
        amounts[0, 0, row], amounts[0, 1, row] = cpu, memory
        amounts[1, 0, row], amounts[1, 1, row] = used_cpu, used_memory
        amounts[2, 0, row] = cpu - info.nonzero_cpu
        amounts[2, 1, row] = memory - info.nonzero_memory
        self._balance[row] = balance_of(min(used_cpu / cpu, 1.0), min(used_memory / memory, 1.0))
        is_full = requested[PODS] >= allocatable[PODS]
        if is_full != self._full[row]:
            self._full[row] = is_full
            self._full_rows += 1 if is_full else -1

    def _show_all(self) -> None:
        nodes = self._nodes
        self._draw(len(nodes))
        nonzero = (nodes.nonzero_cpu, nodes.nonzero_memory)
        odd = np.zeros(len(nodes), dtype=np.bool_)
        for line, (resource, counted) in enumerate(zip(PAIRED, nonzero, strict=True)):
            offered, used = nodes.allocatable(resource), nodes.requested(resource)
            odd |= _are_odd(offered, used, counted)
            self._amounts[0, line] = np.maximum(offered, 1)
            self._amounts[1, line] = used
            self._amounts[2, line] = offered - counted
        shares = self._amounts[1] / self._amounts[0]
        self._balance[:] = balances(np.minimum(shares, ONE, out=shares))
        self._full[:] = nodes.requested(PODS) >= nodes.allocatable(PODS)
        self._full_rows = int(np.count_nonzero(self._full))
        self._odd = set(odd.nonzero()[0].tolist())


def _is_odd(info: NodeInfo) -> bool:
    """Whether a node lacks cpu or memory, or an amount is too large for the columns."""
    offered, used = info.allocatable, info.requested
    cpu, memory = offered.get(CPU, 0), offered.get(MEMORY, 0)
    if not (0 < cpu <= LARGEST and 0 < memory <= LARGEST):
        return True
    largest = max(used[CPU], used[MEMORY], info.nonzero_cpu, info.nonzero_memory)
    return largest > LARGEST


def _are_odd(offered: Column, used: Column, counted: Column) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (
        (offered <= 0) | (offered > LARGEST) | (used > LARGEST) | (counted > LARGEST)
    )
    return found


def balances(shares: Floats) -> Floats:
    """`balance_of` for two lines of shares: the same operations in the same order."""
    spread: Floats = shares[0] - shares[1]
    spread *= HALF
    np.abs(spread, out=spread)
    np.subtract(ONE, spread, out=spread)
    spread *= FULL
    return np.floor(spread, out=spread)


class FilterByPairs(Protocol):
    """Who judges in place of a Filter plugin."""

    def serves(self, pod_class: PodClass) -> bool:
        """Whether it comes to the same for pods of a class."""
        ...

    def judge(self, pod_class: PodClass, pairs: Pairs) -> Codes | None:
        """The codes of ``filter_nodes``; None if it is plain to see that all rows pass."""
        ...

    def judge_one(self, pod_class: PodClass, node: NodeInfo) -> int:
        """The code for one node, which offers cpu and memory, whatever is requested there."""
        ...


class ScoreByPairs(Protocol):
    """Who rates in place of a Score plugin."""

    def serves(self, pod_class: PodClass) -> bool:
        """Whether it comes to the same for pods of a class."""
        ...

    def rate(self, pod_class: PodClass, pairs: Pairs) -> Floats:
        """The scores of ``score_nodes``, to be written over."""
        ...

    def rate_one(self, pod_class: PodClass, node: NodeInfo) -> int:
        """The score of such a node."""
        ...


class FitFilter:
    """Filter of NodeResourcesFit."""

    def __init__(self, plugin: NodeResourcesFit) -> None:
        self._classes = plugin.classes

    def serves(self, pod_class: PodClass) -> bool:
        amounts = compiled_checks(pod_class).amounts
        return all(name in PAIRED and amount <= LARGEST for name, amount in amounts)

    def judge(self, pod_class: PodClass, pairs: Pairs) -> Codes | None:
        short, full = pairs.requested + requested_by(pod_class) > pairs.offered, pairs.full
        if not np.count_nonzero(short) and (full is None or not np.count_nonzero(full)):
            return None
        codes = np.zeros(short.shape[1], np.int64) if full is None else full.astype(np.int64)
        for bit, (resource, amount) in enumerate(compiled_checks(pod_class).amounts, 1):
            line = PAIRED.index(resource)
            rows = short[line].nonzero()[0]
            codes[rows] |= 1 << bit
            codes[rows[pairs.offered[line].take(rows) < amount]] |= UNRESOLVABLE
        return codes

    def judge_one(self, pod_class: PodClass, node: NodeInfo) -> int:
        requests, offered, used = pod_class.requests, node.allocatable, node.requested
        cpu, memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
        if (
            (cpu <= offered[CPU] - used[CPU] or not cpu)
            and (memory <= offered[MEMORY] - used[MEMORY] or not memory)
            and used[PODS] < offered[PODS]
        ):
            return 0
        return shortages(compiled_checks(pod_class), offered, used, self._classes)


class LeastAllocatedScore:
    """Score of NodeResourcesFit with the strategy LeastAllocated over cpu and memory."""

    def __init__(self, plugin: NodeResourcesFit) -> None:
        worth, names = dict(plugin.weights), sorted(name for name, _ in plugin.weights)
        self._possible = type(plugin.strategy) is LeastAllocated and names == sorted(PAIRED)
        self._shares = tuple(worth.get(name, 0) for name in PAIRED)
        self._weights = tuple(np.float64(weight) for weight in self._shares)

    def serves(self, pod_class: PodClass) -> bool:
        asked = pod_class.scoring_requests
        return self._possible and all(asked.get(name, 0) <= LARGEST for name in PAIRED)

    def rate(self, pod_class: PodClass, pairs: Pairs) -> Floats:
        cpu, memory = self._weights
        rated = pairs.unused - counted_by(pod_class)
        np.maximum(rated, _NOTHING, out=rated)
        rated *= FULL
        rated /= pairs.offered
        np.floor(rated, out=rated)
        total: Floats = rated[0] if cpu == 1 else rated[0] * cpu
        total += rated[1] if memory == 1 else rated[1] * memory
        total /= cpu + memory
        return np.floor(total, out=total)

    def rate_one(self, pod_class: PodClass, node: NodeInfo) -> int:
        asked, offered = pod_class.scoring_requests, node.allocatable
        cpu, memory = offered[CPU], offered[MEMORY]
        cpu_left = max(cpu - node.nonzero_cpu - asked.get(CPU, 0), 0)
        memory_left = max(memory - node.nonzero_memory - asked.get(MEMORY, 0), 0)
        of_cpu, of_memory = self._shares
        total = cpu_left * MAX_NODE_SCORE // cpu * of_cpu
        total += memory_left * MAX_NODE_SCORE // memory * of_memory
        return total // (of_cpu + of_memory)


class BalanceScore:
    """Score of NodeResourcesBalancedAllocation over cpu and memory."""

    def __init__(self, plugin: NodeResourcesBalancedAllocation) -> None:
        self._possible = {*plugin.resources} == {*PAIRED}

    def serves(self, pod_class: PodClass) -> bool:
        asked = [pod_class.requests.get(name, 0) for name in PAIRED]
        return self._possible and 0 < max(asked) <= LARGEST

    def rate(self, pod_class: PodClass, pairs: Pairs) -> Floats:
        shares = pairs.requested + requested_by(pod_class)
        shares /= pairs.offered
        change = balances(np.minimum(shares, ONE, out=shares))
        change -= pairs.balance
        change += _SUM
        change *= HALF
        return np.floor(change, out=change)

    def rate_one(self, pod_class: PodClass, node: NodeInfo) -> int:
        requests, offered, used = pod_class.requests, node.allocatable, node.requested
        used_cpu, used_memory = used[CPU], used[MEMORY]
        cpu, memory = float(offered[CPU]), float(offered[MEMORY])
        before = balance_of(min(used_cpu / cpu, 1.0), min(used_memory / memory, 1.0))
        used_cpu += requests.get(CPU, 0)
        used_memory += requests.get(MEMORY, 0)
        after = balance_of(min(used_cpu / cpu, 1.0), min(used_memory / memory, 1.0))
        return EVEN + (EVEN + after - before) // 2


def filter_by_pairs(
    plugin: Any, extension: FilterExtension, pod_class: PodClass
) -> FilterByPairs | None:
    """Who judges pods of a class in the place of a plugin, if anybody."""
    # Without its own form for one node somebody else stands in for it (`unprepared`).
    if type(plugin) is not NodeResourcesFit or extension.one is None:
        return None
    by = FitFilter(plugin)
    return by if by.serves(pod_class) else None


def score_by_pairs(plugin: Any, pod_class: PodClass) -> ScoreByPairs | None:
    """Who rates nodes for pods of a class, likewise."""
    by: ScoreByPairs | None = None
    if type(plugin) is NodeResourcesFit:
        by = LeastAllocatedScore(plugin)
    elif type(plugin) is NodeResourcesBalancedAllocation:
        by = BalanceScore(plugin)
    return by if by is not None and by.serves(pod_class) else None
