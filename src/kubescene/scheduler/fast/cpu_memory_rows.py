"""What is kept of a class of pods that ask for cpu and memory: verdicts and scores of all nodes.

A class follows the changes of the table: whatever nodes have changed since its last pod are judged
and rated anew, few of them one by one, many at a time by the columns that all classes share
(`cpu_memory_columns`). So everything is up to date whenever a pod is to be placed, and a search
comes down to reading.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.cycle.best_node import pick_ranked, ranked
from kubescene.scheduler.cycle.search import Found
from kubescene.scheduler.cycle.verdicts import FilterChain, SettledFiltering, verdict_of
from kubescene.scheduler.fast.cpu_memory import CpuMemoryPlugins
from kubescene.scheduler.fast.cpu_memory_columns import CpuMemoryColumns, Pairs
from kubescene.scheduler.fast.routine_rows import Plan
from kubescene.scheduler.fast.spec_verdicts import SpecVerdicts
from kubescene.scheduler.framework.interfaces import Codes, Rows, Scores
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodClass
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_results import Window


class CpuMemoryRows:
    """The verdicts and scores of one class. Any pod of the class stands for all of them."""

    __slots__ = (
        "_columns",
        "_newest_spec",
        "_nodes",
        "_plain",
        "_plugins",
        "_pod",
        "_position",
        "_ranked",
        "_refused",
        "_spec",
        "_state",
        "_verdicts",
        "filtering",
    )

    def __init__(
        self,
        columns: CpuMemoryColumns,
        chain: FilterChain,
        plan: Plan,
        pod: PodInfo,
        spec: SpecVerdicts,
        plugins: CpuMemoryPlugins,
    ) -> None:
        assert plan.filters is not None
        self._columns = columns
        self._nodes: NodeTable = chain.nodes
        self._pod = pod
        self._spec = spec
        self._state = plan.state()
        self._plugins = plugins
        self.filtering = SettledFiltering(chain, self._state, pod, plan.filters)
        self._fill()

    def _fill(self) -> None:
        """Judge and rate all nodes; the columns and the verdicts on node objects are up to date."""
        nodes, pairs = self._nodes, self._columns.all()
        self._position, self._newest_spec = nodes.changes, nodes.newest_spec
        verdicts = self._judged(pairs, self._spec.codes)
        self._verdicts: Codes = (
            np.zeros(len(nodes), dtype=np.int64) if verdicts is None else verdicts.copy()
        )
        self._refused = int(np.count_nonzero(self._verdicts))
        """How many nodes are refused."""
        # In little space: explanations keep parts of them.
        self._plain: NDArray[np.int8] = np.empty((len(self._plugins.raters), len(nodes)), np.int8)
        self._ranked: Scores = self._rated(pairs, self._plain)
        """The totals, see `picking.ranked`."""

    def follow(self, most: int) -> bool:
        """Take in what has changed; False if that is more than ``most`` or cannot be told."""
        nodes = self._nodes
        if self._position == nodes.changes:
            return True
        changed = nodes.changed_since(self._position)
        if changed is None or len(changed) > most:
            return False
        if self._newest_spec != nodes.newest_spec:
            self._spec.sync(nodes, self._state, self._pod)
            if self._spec.rates or not self._columns.is_exact():
                return False
            self._newest_spec = nodes.newest_spec
        if not self._renewed(changed):
            return False
        self._position = nodes.changes
        return True

    def renew(self, row: int) -> None:
        """Take in that one row has changed, and nothing else."""
        self._renew_few((row,))
        self._position = self._nodes.changes

    @property
    def refuses(self) -> bool:
        """Whether there are nodes to leave out: then it takes a `search`."""
        return self._refused > 0

    def best_of_all(self, start: int, wanted: int) -> int:
        """The row of the best node from ``start`` on, if none is refused."""
        kept, count = self._ranked, self._ranked.size
        size = min(wanted, count)
        end = start + size
        part = kept[start:end]
        if end > count:
            part = np.concatenate((part, kept[: end - count]))
        return (start + pick_ranked(part)) % count

    def _renewed(self, rows: Sequence[int]) -> bool:
        """Judge and rate these rows anew; False if an amount is too large for the columns."""
        if len(rows) <= POLICY.few_paired:
            self._renew_few(rows)
            return True
        if not self._columns.is_exact():
            return False
        if POLICY.part_paired * len(rows) <= len(self._nodes):
            self._renew_many(np.array(rows, dtype=np.intp))
        else:
            self._fill()
        return True

    def _renew_few(self, rows: Iterable[int]) -> None:
        known, infos, pod_class = self._spec.codes, self._nodes.infos, self._pod.pod_class
        for row in rows:
            verdict = 0 if known is None else known.item(row)
            verdict = verdict or self._verdict(pod_class, infos[row])
            before = self._verdicts.item(row)
            if verdict != before:
                self._refused += (verdict != 0) - (before != 0)
                self._verdicts[row] = verdict
            if not verdict:
                self._rate(pod_class, infos[row], row)

    def _verdict(self, pod_class: PodClass, info: NodeInfo) -> int:
        for extension, by in self._plugins.judges:
            code = by.judge_one(pod_class, info)
            if code:
                return verdict_of(extension, code)
        return 0

    def _rate(self, pod_class: PodClass, info: NodeInfo, row: int) -> None:
        plain, total = self._plain, 0
        for line, (extension, by) in enumerate(self._plugins.raters):
            plain[line, row] = score = by.rate_one(pod_class, info)
            total += extension.weight * score
        self._ranked[row] = ranked(total)

    def _renew_many(self, rows: Rows) -> None:
        pairs, known = self._columns.of(rows), self._spec.codes
        verdicts = self._judged(pairs, None if known is None else known.take(rows))
        if verdicts is not None or self._refused:
            self._verdicts[rows] = 0 if verdicts is None else verdicts
            self._refused = int(np.count_nonzero(self._verdicts))
        plain = np.empty((len(self._plain), rows.size), np.int8)
        self._ranked[rows] = self._rated(pairs, plain)
        self._plain[:, rows] = plain

    def _judged(self, pairs: Pairs, known: Codes | None) -> Codes | None:
        return self._plugins.judged(self._pod.pod_class, pairs, known)

    def _rated(self, pairs: Pairs, plain: NDArray[np.int8]) -> Scores:
        totals = self._plugins.rated(self._pod.pod_class, pairs, plain)
        return ranked(totals.astype(np.int64))

    def search(self, ring: Rows, start: int, wanted: int) -> Found:
        """What `search.search` finds among all rows, read from what is kept."""
        count = len(self._verdicts)
        if not self._refused:
            rows = ring[start : start + min(wanted, count)]
            return Found(rows, self._verdicts[: rows.size], rows, Window(start, rows.size, count))
        # More need not be examined, wherever those are that are refused.
        window = Window(start, min(wanted + 1 + self._refused, count), count)
        rows = ring[start : start + window.size]
        verdicts = window.on(self._verdicts, rows)
        passing = (verdicts == 0).nonzero()[0]
        if passing.size > wanted:
            end = passing.item(wanted)
            rows, verdicts, passing = rows[:end], verdicts[:end], passing[:wanted]
        if passing.size == rows.size:
            return Found(rows, verdicts, rows, Window(start, rows.size, count))
        return Found(rows, verdicts, rows.take(passing))

    def best(self, found: Found, *, explains: bool) -> int:
        """The position of the best of the feasible rows."""
        del explains  # Scores are kept in any case.
        rows, window = found.feasible, found.window
        kept = self._ranked
        return pick_ranked(kept.take(rows) if window is None else window.on(kept, rows))

    def plain(self, found: Found) -> NDArray[np.int8]:
        """The scores of the feasible rows, a line per plugin; to be kept."""
        part = None if found.window is None else found.window.part
        if part is None:
            return self._plain.take(found.feasible, axis=1)
        return self._plain[:, part].copy()
