"""Whom each node would lose, for many nodes, and kept for the next pod of the same kind.

Nodes are tried in order until there are enough candidates [PR-3, PR-4]. Where other pods matter by
their amounts alone, one look at the columns tells which nodes cannot help: only those that can are
tried one by one. Otherwise each node is a supposition of its own. Where the class of the pod and
the node decide, what a node came to stays true until something happens to it.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from kubescene.bounded import BoundedDict
from kubescene.instruments.attempts import TriedNode
from kubescene.scheduler.framework.interfaces import Rows, TryOut
from kubescene.scheduler.framework.status import Code, Status
from kubescene.scheduler.preemption.best_candidate import Cost, cost_of
from kubescene.scheduler.preemption.budgets import DisruptionBudgets
from kubescene.scheduler.preemption.victims import NO_VICTIMS, Victims, find_victims, pool_of
from kubescene.scheduler.state.deltas import Delta, DeltaKind, DeltaReader
from kubescene.scheduler.state.node_info import NO_ROW
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominated_amounts import Amounts
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Column

_UNTRIED = TriedNode("")

_Key: TypeAlias = tuple[Hashable, ...]


class Results:
    """What rows came to: 0 in ``outcome`` is a candidate, n the n-th status.

    ``reach`` is how many rows were looked at the last time, to look at as many at once again.
    """

    __slots__ = (
        "_names",
        "_numbers",
        "_seen",
        "costs",
        "outcome",
        "reach",
        "statuses",
        "told",
        "victims",
    )

    def __init__(self, names: Sequence[str]) -> None:
        rows = len(names)
        self._names = names
        self.reach = 0
        self._seen = np.full((2, rows), -1, dtype=np.int64)
        self._numbers: dict[Status, int] = {}
        self.statuses: list[Status] = []
        self.outcome: Column = np.zeros(rows, dtype=np.int64)
        self.costs = np.zeros((len(Cost._fields), rows), dtype=np.int64)
        self.victims: list[tuple[PodInfo, ...]] = [()] * rows
        self.told: list[TriedNode] = [_UNTRIED] * rows

    def outdated(self, rows: Rows, versions: Column, nominations: Column | None) -> Rows:
        """Those of the rows to which something has happened."""
        stale = self._seen[0].take(rows) != versions.take(rows)
        stale |= self._seen[1].take(rows) != (0 if nominations is None else nominations.take(rows))
        found: Rows = rows[stale]
        return found

    def renewed(self, rows: Rows, versions: Column, nominations: Column | None) -> None:
        self._seen[0, rows] = versions.take(rows)
        self._seen[1, rows] = 0 if nominations is None else nominations.take(rows)

    def forget(self, row: int) -> None:
        self._seen[0, row] = -1

    def refuse(self, rows: Rows, status: Status) -> None:
        self.outcome[rows] = self._number(status)
        plugin, code, reasons = status.plugin, int(status.code), status.reasons
        for row in rows.tolist():
            self.told[row] = TriedNode(self._names[row], (), 0, plugin, code, reasons)

    def put(self, row: int, victims: Victims) -> None:
        if not victims.status.ok:
            self.refuse(np.array([row]), victims.status)
            return
        self.outcome[row] = 0
        self.victims[row] = pods = victims.pods
        self.costs[:, row] = cost_of(pods, victims.violations)
        keys = tuple([pod.key for pod in pods])
        self.told[row] = TriedNode(self._names[row], keys, victims.violations)

    def _number(self, status: Status) -> int:
        found = self._numbers.get(status)
        if found is None:
            self.statuses.append(status)
            found = self._numbers[status] = len(self.statuses)
        return found


class DryRun(NamedTuple):
    """The rows tried, in order, and those of them that would do, non-violating ones first."""

    results: Results
    tried: Rows
    candidates: Rows

    def refusals(self) -> list[tuple[Status, int]]:
        """Why the others would not do, and how many of them."""
        counts = Counter(self.results.outcome.take(self.tried).tolist())
        statuses = self.results.statuses
        return [(statuses[number - 1], counts[number]) for number in sorted(counts) if number]

    def told(self) -> tuple[TriedNode, ...]:
        """What came of every row that was tried."""
        rows, told = self.tried, self.results.told
        if rows.size and int(rows[-1]) - int(rows[0]) == rows.size - 1:  # They ascend.
            return tuple(told[rows[0] : rows[-1] + 1])
        return tuple(map(told.__getitem__, rows.tolist()))

    def errors(self) -> list[str]:
        return [_told(each) for each, _ in self.refusals() if each.code is Code.ERROR]


def _told(error: Status) -> str:
    """The error of a Filter plugin is told as such, as in every cycle; others speak for themselves.
    [C-12]
    """
    if not error.plugin or error.message.startswith("running "):
        return error.message
    return f'running "{error.plugin}" filter plugin: {error.message}'


class DryRuns:
    """Dry runs of one profile."""

    def __init__(self, nodes: NodeTable, budgets: DisruptionBudgets) -> None:
        self._nodes = nodes
        self._budgets = budgets
        self._lower = LowerPods(nodes)
        self._kept: OrderedDict[_Key, Results] = OrderedDict()
        self._valid: tuple[int, int] = (-1, -1)

    def run(self, trying: TryOut, pod: PodInfo, rows: Rows, wanted: int) -> DryRun:
        """Try ``rows`` in order until ``wanted`` candidates are found, one of them harmless."""
        self._budgets.refresh()
        results = self._results(trying, pod)
        end = found = harmless = 0
        size = max(POLICY.dry_runs_at_once, 2 * wanted, results.reach) if trying.by_amounts else 1
        while end < rows.size:
            chunk = rows[end : end + size]
            self._renew(trying, pod, results, chunk)
            fits = results.outcome.take(chunk) == 0
            safe = fits & (results.costs[0].take(chunk) == 0)
            enough = (found + fits.cumsum() >= wanted) & (harmless + safe.cumsum() > 0)
            last = int(enough.argmax())
            if enough[last]:
                results.reach = end + chunk.size
                end += last + 1
                break
            end, found, harmless = end + chunk.size, found + fits.sum(), harmless + safe.sum()
        return DryRun(results, rows[:end], _in_order(results, rows[:end], wanted))

    def _results(self, trying: TryOut, pod: PodInfo) -> Results:
        nodes = self._nodes
        if not (trying.by_amounts and trying.by_class) or pod.is_resized:
            return Results(nodes.names)
        valid = (nodes.layout, self._budgets.version)
        if valid != self._valid:
            self._valid = valid
            self._kept.clear()
        key = (pod.pod_class, pod.priority, trying.plugins)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = Results(nodes.names)
            while len(self._kept) > max(4, POLICY.dry_run_cells_kept // max(1, len(nodes))):
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found

    def _renew(self, trying: TryOut, pod: PodInfo, results: Results, rows: Rows) -> None:
        versions, nominations = self._nodes.detail_versions, trying.nomination_versions
        stale = results.outdated(rows, versions, nominations)
        own = trying.own_row
        if trying.by_amounts and own is not None and (rows == own).any():
            # What is kept speaks of others, to whom this pod is a rival there.
            self._try(trying, pod, results, own, alone=True)
            results.forget(own)
            stale = stale[stale != own]
        if not stale.size:
            return
        if trying.by_amounts:
            self._try_by_amounts(trying, pod, results, stale)
        else:
            for row in stale.tolist():
                self._try(trying, pod, results, row, alone=True)
        results.renewed(stale, versions, nominations)

    def _try_by_amounts(self, trying: TryOut, pod: PodInfo, results: Results, rows: Rows) -> None:
        if rows.size <= POLICY.few_dry_runs:
            for row in rows.tolist():
                self._try(trying, pod, results, row)
            return
        lower = self._lower.below(pod.priority)
        some = lower.count.take(rows) > 0
        results.refuse(rows[~some], NO_VICTIMS)
        rows = rows[some]
        verdicts = trying.judge(rows, lower.columns)
        for verdict in sorted(set(verdicts.tolist())):
            same: Rows = rows[verdicts == verdict]
            if verdict:
                results.refuse(same, trying.describe(verdict))
                continue
            for row in same.tolist():
                self._try(trying, pod, results, row)

    def _try(
        self, trying: TryOut, pod: PodInfo, results: Results, row: int, *, alone: bool = False
    ) -> None:
        node = self._nodes.infos[row]
        pool = pool_of(pod, node.pods)
        if not pool:
            results.put(row, Victims(NO_VICTIMS))
            return
        trial = trying.by_itself(row) if alone else trying.on(row)
        results.put(row, find_victims(pool, trial, node.name, self._budgets))


def _in_order(results: Results, rows: Rows, wanted: int) -> Rows:
    """The candidates: first those that violate no budget, then some of the others."""
    fits = rows[results.outcome.take(rows) == 0]
    safe = results.costs[0].take(fits) == 0
    return np.concatenate([fits[safe][:wanted], fits[~safe][:wanted]])


class LowerPods:
    """Sums over the pods below some priority. Follows the table from the first question on."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._reader: DeltaReader | None = None
        self._layout = -1
        self._below: BoundedDict[int, Amounts] = BoundedDict(POLICY.priorities_kept)

    def below(self, priority: int) -> Amounts:
        """What all pods below a priority ask for. Valid until the next pod comes or goes."""
        self._follow()
        found = self._below.get(priority)
        if found is None:
            found = self._below[priority] = self._count(priority)
        return found

    def _follow(self) -> None:
        if self._reader is None:
            self._reader = self._nodes.follow()
        deltas = self._reader.read()
        if deltas is None or self._layout != self._nodes.layout:
            self._layout = self._nodes.layout
            self._below.clear()
            return
        if self._below:
            for delta in deltas:
                self._take(delta)

    def _take(self, delta: Delta) -> None:
        row = delta.node.row
        sign = {DeltaKind.POD_ADDED: 1, DeltaKind.POD_REMOVED: -1}.get(delta.kind, 0)
        if not sign or row == NO_ROW:
            return
        (pod,) = delta.pods
        for priority, amounts in self._below.items():
            if pod.priority < priority:
                amounts.add(row, pod, sign)

    def _count(self, priority: int) -> Amounts:
        amounts = Amounts(len(self._nodes))
        for row, info in enumerate(self._nodes.infos):
            for pod in info.pods:
                if pod.priority < priority:
                    amounts.add(row, pod, 1)
        return amounts
