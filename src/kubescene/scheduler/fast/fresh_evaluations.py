"""A decision about a pod of a class that is seldom seen: nodes are looked at anew, nothing is kept.

What is kept of a class (`cpu_memory_rows`) pays if its next pod finds most of it up to date. Among
a thousand classes none does: much has changed before its next pod comes. Then it takes less to
judge and rate a window of nodes by the columns that all classes share (`cpu_memory_columns`).
"""

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.cycle.best_node import pick_small
from kubescene.scheduler.cycle.search import Found, search
from kubescene.scheduler.cycle.verdicts import FilterChain, Filtering
from kubescene.scheduler.fast.cpu_memory import CpuMemoryPlugins
from kubescene.scheduler.fast.cpu_memory_columns import CpuMemoryColumns, Pairs
from kubescene.scheduler.fast.cpu_memory_rows import CpuMemoryRows
from kubescene.scheduler.fast.routine_rows import Plan
from kubescene.scheduler.fast.spec_verdicts import SpecVerdicts
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_results import Window

NO_SCORES: NDArray[np.int8] = np.zeros((0, 0), dtype=np.int8)


class Visits:
    """What is remembered of a class: how many rows its pods have seen, and when the last came.

    ``spec`` is None if its pods need more than a look; ``rows`` is what is kept, if anything is.
    """

    __slots__ = ("_examined", "_plan", "_position", "plugins", "rows", "spec")

    def __init__(self, plan: Plan, plugins: CpuMemoryPlugins, spec: SpecVerdicts | None) -> None:
        self._plan = plan
        self.plugins = plugins
        self._examined = 0
        self._position = -1
        self.spec = spec
        self.rows: CpuMemoryRows | None = None

    def fits(self, plan: Plan) -> bool:
        mine = self._plan
        return mine is plan or (mine.filters is plan.filters and mine.scores is plan.scores)

    def are_rare(self, nodes: NodeTable, most: int) -> bool:
        """Whether too much has happened since the last pod, or that was one of the first."""
        position, self._position = self._position, nodes.changes
        if self._position - position > most:
            self._examined = 0
        return POLICY.filling * self._examined < len(nodes)

    def saw(self, rows: int) -> None:
        """A pod of the class was placed after so many rows were examined."""
        self._examined += rows

    def forget(self) -> None:
        """Keep nothing any more."""
        self.rows = None
        self._examined = 0


class FreshEvaluation:
    """Judges and rates nodes for one pod."""

    __slots__ = ("_chain", "_columns", "_pairs", "_plain", "_plan", "_pod", "_spec", "_visits")

    def __init__(
        self,
        columns: CpuMemoryColumns,
        chain: FilterChain,
        plan: Plan,
        pod: PodInfo,
        *,
        visits: Visits,
        spec: SpecVerdicts,
    ) -> None:
        self._visits = visits
        self._columns = columns
        self._chain = chain
        self._plan = plan
        self._pod = pod
        self._spec = spec
        self._pairs: Pairs | None = None
        self._plain = NO_SCORES

    def search(self, ring: Rows, start: int, wanted: int) -> Found:
        """Examine rows from ``start`` on, among all."""
        found = search(self, ring, start, wanted, every=True)
        self._visits.saw(found.rows.size)
        return found

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        """One verdict per row."""
        pairs = self._pairs = self._columns.of(rows, window)
        known = None if self._spec.codes is None else self._spec.codes.take(rows)
        verdicts = self._visits.plugins.judged(self._pod.pod_class, pairs, known)
        return np.zeros(rows.size, dtype=np.int64) if verdicts is None else verdicts

    @property
    def filtering(self) -> Filtering:
        """Who knows what the verdicts mean."""
        plan = self._plan
        assert plan.filters is not None
        return Filtering(self._chain, plan.state(), self._pod, plan.filters, self._chain.unkept)

    def best(self, found: Found, *, explains: bool) -> int:
        """The position of the best of the feasible rows.

        If somebody wants to know what their totals are made of, `plain` is.
        """
        plugins, rows, pairs = self._visits.plugins, found.feasible, self._pairs
        if found.window is None or pairs is None:
            pairs = self._columns.of(rows)
        if explains:
            self._plain = np.empty((len(plugins.raters), rows.size), dtype=np.int8)
        plain = self._plain if explains else None
        totals = plugins.rated(self._pod.pod_class, pairs.first(rows.size), plain)
        return pick_small(totals.astype(np.int64))

    def plain(self, found: Found) -> NDArray[np.int8]:
        """The scores of the feasible rows, a line per plugin, see `ClassScores`."""
        del found
        return self._plain
