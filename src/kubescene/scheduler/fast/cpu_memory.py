"""NodeResourcesFit and NodeResourcesBalancedAllocation by `cpu_memory_columns`: the same answers.

For pods which no plugin looks at for anything but cpu, memory and the node object. What the plugins
say in ``filter_nodes`` and ``score_nodes`` is said here of many nodes by some thirty operations,
however many they are, and of one node by plain integers. A plugin that is configured otherwise, or
is not one of these, has nobody here; then its class is decided about another way.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.scheduler.cycle.class_scores import ScoreSplit
from kubescene.scheduler.cycle.verdicts import FilterSplit, placed
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
from kubescene.scheduler.framework.runtime import FilterExtension, Framework, ScoreExtension
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


class Judge(NamedTuple):
    extension: FilterExtension
    by: FilterByPairs


class Rater(NamedTuple):
    extension: ScoreExtension
    by: ScoreByPairs


class CpuMemoryPlugins:
    """The plugins that run for some pods, as far as cpu and memory are all that they look at."""

    __slots__ = ("_complete", "judges", "raters")

    def __init__(self, framework: Framework, filters: FilterSplit, scores: ScoreSplit) -> None:
        plugins, plain = framework.plugins, scores.plain
        judging = [_filter_of(plugins[each.name], each) for each in filters.by_pods]
        rating = [_score_of(plugins[each.name]) for each in plain]
        self.judges = tuple(
            Judge(each, by) for each, by in zip(filters.by_pods, judging, strict=True) if by
        )
        self.raters = tuple(Rater(each, by) for each, by in zip(plain, rating, strict=True) if by)
        rated = len(self.raters) + len(scores.blind) == len(scores.kept)
        self._complete = (
            len(self.judges) == len(judging) and rated and scores.is_small and not scores.others
        )

    def serve(self, pod_class: PodClass) -> bool:
        """Whether verdicts and scores of a class can be told from the columns.

        Those who look at the node object alone are known (`spec_verdicts`), if they give no node a
        score.
        """
        return (
            self._complete
            and all(each.by.serves(pod_class) for each in self.judges)
            and all(each.by.serves(pod_class) for each in self.raters)
        )

    def judged(self, pod_class: PodClass, pairs: Pairs, known: Codes | None) -> Codes | None:
        """One verdict per row, or None if all pass; ``known`` are those on the node objects."""
        verdicts: Codes | None = None
        for extension, by in reversed(self.judges):
            codes = by.judge(pod_class, pairs)
            if codes is None:
                continue
            refused = codes.nonzero()[0]
            if verdicts is None:
                verdicts = np.zeros(codes.size, dtype=np.int64)
            verdicts[refused] = placed(extension, codes.take(refused))
        if known is None or verdicts is None:
            return verdicts if known is None else known
        return np.where(known == 0, verdicts, known)

    def rated(self, pod_class: PodClass, pairs: Pairs, plain: NDArray[np.int8] | None) -> Floats:
        """The totals, but for what is the same for all rows; ``plain`` takes a line per plugin."""
        total: Floats | None = None
        for line, (extension, by) in enumerate(self.raters):
            found = by.rate(pod_class, pairs)
            if plain is not None:
                plain[line] = found
            if extension.weight != 1:
                found *= extension.weight
            total = found if total is None else np.add(total, found, out=total)
        return np.zeros(pairs.balance.size) if total is None else total


def _filter_of(plugin: Any, extension: FilterExtension) -> FilterByPairs | None:
    # Without its own form for one node somebody else stands in for it (`unprepared`).
    is_fit = type(plugin) is NodeResourcesFit and extension.one is not None
    return FitFilter(plugin) if is_fit else None


def _score_of(plugin: Any) -> ScoreByPairs | None:
    if type(plugin) is NodeResourcesFit:
        return LeastAllocatedScore(plugin)
    return BalanceScore(plugin) if type(plugin) is NodeResourcesBalancedAllocation else None
