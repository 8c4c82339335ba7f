"""NodeResourcesFit and NodeResourcesBalancedAllocation by `cpu_memory_columns`: the same answers.

What these plugins say in ``filter_nodes`` and ``score_nodes`` is said here of many nodes by some
thirty operations, however many they are, and of one node by plain integers; for classes of pods
that ask for nothing else, and as long as all nodes have cpu and memory (`CpuMemoryColumns`). A
plugin that is configured otherwise, or is not one of these, has nobody here and is asked itself.
"""

from typing import Any, Protocol

import numpy as np

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.scheduler.fast.cpu_memory_columns import (
    FULL,
    HALF,
    LARGEST,
    ONE,
    PAIRED,
    Floats,
    Pairs,
    balances,
    counted_by,
    requested_by,
)
from kubescene.scheduler.framework.interfaces import MAX_NODE_SCORE, Codes
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
from kubescene.scheduler.state.pod_kinds import PodClass

_NOTHING = np.float64(0)
_SUM = np.float64(EVEN + 2 * EVEN)
"""What NodeResourcesBalancedAllocation adds, before it halves."""


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
