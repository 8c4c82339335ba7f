"""What pods of one class were told of every row of the node table: verdicts and scores.

A search asks for a window of rows. Those that have changed since they were told of are told of
anew (`renewers`), few one by one, many at a time; the rest is read. The decision about a usual pod
has rows judged and rated together (`tell`); a whole cycle has them judged first and rates those
that passed all Filters (`judge`, `rate`).

Rows that were refused are not rated: nobody asks for their scores before they change.
"""

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.cycle.best_node import pick_ranked, unranked
from kubescene.scheduler.fast.cpu_memory import CpuMemoryColumns, Pairs
from kubescene.scheduler.fast.renewers import Judges, Raters
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Codes, Rows, Scores
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.nodes import NodeTable, moved
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_results import RowResults
from kubescene.scheduler.state.row_types import Window


class KeptRows:
    """The verdicts and scores of one class, by one set of plugins."""

    __slots__ = (
        "_all",
        "_columns",
        "_judged",
        "_layout",
        "_nodes",
        "_told",
        "_was_asked",
        "_whole_at",
        "errors",
        "even_for",
        "has_raw",
        "is_summed",
        "judges",
        "meanings",
        "plain",
        "ranked",
        "raters",
        "raw",
        "refuses",
        "verdicts",
    )

    def __init__(self, nodes: NodeTable, judges: Judges) -> None:
        self._nodes = nodes
        self._columns = nodes.shared(CpuMemoryColumns)
        self._layout = nodes.layout
        self._all: Rows = np.arange(len(nodes), dtype=np.intp)
        self.judges = judges
        self._judged: RowResults | None = None
        """Which verdicts are up to date, but for those that `_told` says are."""
        self.verdicts: Codes = np.empty(len(nodes), dtype=np.int64)
        self.refuses = False
        """Whether some verdict was ever another than 0."""
        self.errors = False
        """Whether some verdict stands for an error rather than a refusal."""
        self.meanings: dict[int, Status] = {}
        """What verdicts mean, once somebody has asked."""
        self.raters: Raters | None = None
        self._was_asked = False
        self._whole_at = -1
        """After how many changes of nodes all rows were told of; -1 if never."""

    def rate_by(self, raters: Raters) -> None:
        """Keep the scores of these plugins from now on."""
        self.raters = raters
        self._whole_at = -1
        self._told = RowResults(self._nodes)
        """Of which rows the verdicts are up to date, and the scores if they pass."""
        self.plain: NDArray[np.int8] | None = None
        """What the sums are made of, if somebody wants to know."""
        self.ranked: Scores = np.empty(len(self._nodes), dtype=np.int64)
        """The weighted sum of those that need no normalisation, see `best_node.ranked`."""
        self.raw: Scores | None = None
        """Those that are to be normalized, if there are any."""
        self.has_raw = [False] * len(raters.normalized)
        """For each line of ``raw``, whether a score other than 0 was ever kept in it."""
        self.even_for = 0
        """Of how many nodes `KeptScoring` knows that the kept sums decide alone."""
        self.is_summed = raters.may_sum
        """Whether the kept sums decide alone: what is added to them is the same for all rows."""

    def keep_plain(self) -> None:
        """Keep what the sums are made of from now on: somebody wants to know."""
        if self.plain is None and self.raters is not None:
            # In little space: explanations keep parts of them.
            self.plain = np.empty((len(self.raters.plain), len(self._nodes)), dtype=np.int8)
            self._told, self._whole_at = RowResults(self._nodes), -1

    def keep_raw(self, line: int, at: Rows | slice | int, scores: Scores | int) -> None:
        """Keep scores that are to be normalized."""
        if self.raw is None:
            self.raw = np.zeros((len(self.has_raw), len(self._nodes)), dtype=np.int64)
        self.has_raw[line], self.is_summed = True, False
        self.raw[line][at] = scores

    def in_place(self) -> bool:
        """Whether all stands in the rows of the table, if need be after a move."""
        nodes = self._nodes
        if self._layout == nodes.layout:
            return True
        moves = nodes.moved_from(self._layout)
        if moves is None:
            return False
        self._layout = nodes.layout
        self._all, self._whole_at = np.arange(len(nodes), dtype=np.intp), -1
        if self._judged is not None:
            self._judged.move(moves)
        self.verdicts = moved(self.verdicts, moves)
        if self.raters is not None:
            self._told.move(moves)
            if self.plain is not None:
                self.plain = self.plain.take(moves, axis=1, mode="clip")
            if self.raw is not None:
                self.raw = self.raw.take(moves, axis=1, mode="clip")
            self.ranked = moved(self.ranked, moves)
        return True

    def judge(
        self, state: CycleState, pod: PodInfo, rows: Rows, window: Window | None = None
    ) -> Codes:
        """One verdict per row, to be written over; ``window`` is said if the rows are one."""
        judged = self._judged = self._judged or RowResults(self._nodes)
        stale = judged.outdated(self._nodes, rows, window)
        if len(stale) > POLICY.few_rows and self.raters is not None:
            many = np.asarray(stale, dtype=np.intp)
            stale = self._told.outdated(self._nodes, many, None)
        if len(stale):
            self._sync(state, pod)
            self.refuses = True  # Perhaps.
            if len(stale) <= POLICY.few_rows:
                for row in map(int, stale):
                    self.verdicts[row] = self.judges.row(state, pod, row)
            else:
                stale = np.asarray(stale, dtype=np.intp)
                pairs = self._pairs(stale, None) if self.judges.by_pairs else None
                found = self.judges.rows(state, pod, stale, pairs)
                self.verdicts[stale] = 0 if found is None else found
            self._note(judged, state, stale)
        return self.verdicts.take(rows) if window is None else window.of(self.verdicts, rows)

    def _pairs(self, rows: Rows, window: Window | None) -> Pairs | None:
        return self._columns.of(rows, window) if self._columns.is_exact() else None

    def _note(
        self,
        results: RowResults,
        state: CycleState,
        rows: list[int] | Rows,
        part: slice | None = None,
    ) -> None:
        """These rows were told of; ``part`` says where they are, if in one."""
        if not state.passing_codes:  # Such codes hold for this attempt only.
            results.renewed(self._nodes, rows, part)
        if state.filter_errors or self.judges.errors:
            self.errors = True

    def rate(
        self, state: CycleState, pod: PodInfo, rows: Rows, window: Window | None = None
    ) -> None:
        """Have the scores of rows that pass brought up to date."""
        raters = self.raters
        assert raters is not None
        stale = self._told.outdated(self._nodes, rows, window)
        if not len(stale):
            return
        self._sync(state, pod)
        if len(stale) <= POLICY.few_rows:
            for row in map(int, stale):
                raters.row(self, state, pod, row)
        else:
            stale = np.asarray(stale, dtype=np.intp)
            pairs = self._pairs(stale, None) if raters.by_pairs else None
            raters.rows(self, state, pod, stale, stale, pairs)
        self._told.renewed(self._nodes, stale)

    def tell(self, state: CycleState, pod: PodInfo, rows: Rows, window: Window) -> Codes:
        """One verdict per row, read at once; rows that pass have their scores as well."""
        stale = self._told.outdated(self._nodes, rows, window)
        if len(stale) <= POLICY.few_rows:
            if len(stale):
                self._tell_few(state, pod, stale if isinstance(stale, list) else stale.tolist())
        elif 2 * len(stale) > rows.size and self._is_arithmetic and self._was_asked:
            # Another window of one that comes again: all rows take hardly longer.
            count = len(self._nodes)
            self._tell_many(state, pod, self._all, Window(0, count, count))
        elif window.part is not None and 2 * len(stale) > rows.size:
            self._tell_many(state, pod, rows, window)
        else:
            self._tell_many(state, pod, np.asarray(stale, dtype=np.intp), None)
        return window.on(self.verdicts, rows)

    def tell_all(self, state: CycleState, pod: PodInfo) -> Codes | None:
        """The verdicts of all rows, if that takes hardly more than those of a window."""
        nodes, before = self._nodes, self._whole_at
        count, now = len(nodes), nodes.changes
        if count > POLICY.rows_told or not self._is_arithmetic:
            return None
        if before == now:
            return self.verdicts
        changed = nodes.changed_since(before) if before >= 0 else None
        rows = None if changed is None else list(dict.fromkeys(changed))
        if rows is None or len(rows) > POLICY.few_rows:
            self._tell_many(state, pod, self._all, Window(0, count, count))
        else:
            self._tell_few(state, pod, rows)
        if not state.passing_codes:
            self._whole_at = now
        return self.verdicts

    @property
    def _is_arithmetic(self) -> bool:
        """Whether no plugin would be asked about rows that nobody wants to know of."""
        raters = self.raters
        return self.judges.by_pairs_alone and raters is not None and raters.asks_nobody

    def _tell_few(self, state: CycleState, pod: PodInfo, rows: list[int]) -> None:
        judges, raters, verdicts = self.judges, self.raters, self.verdicts
        assert raters is not None
        self._sync(state, pod)
        for row in rows:
            verdicts[row] = verdict = judges.row(state, pod, row)
            if verdict:
                self.refuses = True
            else:
                raters.row(self, state, pod, row)
        self._note(self._told, state, rows)

    def _sync(self, state: CycleState, pod: PodInfo) -> None:
        """Take in what node objects say."""
        judges, raters, newest = self.judges, self.raters, self._nodes.newest_spec
        if judges.newest_spec != newest:
            judges.sync(state, pod)
        if raters is not None and raters.newest_spec != newest:
            raters.sync(self.has_raw, state, pod)

    def _tell_many(
        self, state: CycleState, pod: PodInfo, rows: Rows, window: Window | None
    ) -> None:
        judges, raters, told = self.judges, self.raters, rows
        assert raters is not None
        self._sync(state, pod)
        part = None if window is None else window.part
        at: Rows | slice = rows if part is None else part
        pairs = self._pairs(rows, window) if judges.by_pairs or raters.by_pairs else None
        verdicts = judges.rows(state, pod, rows, pairs)
        self.verdicts[at] = 0 if verdicts is None else verdicts
        self.refuses |= verdicts is not None
        if verdicts is not None and not (pairs is not None and raters.asks_nobody):
            # Plugins are asked only about nodes that pass.
            at = rows = rows.take((verdicts == 0).nonzero()[0])
            pairs = None if pairs is None else self._columns.of(rows)
        if rows.size:
            raters.rows(self, state, pod, rows, at, pairs)
        self._note(self._told, state, told, part)

    # -- reading ---------------------------------------------------------------------------

    def best(self, rows: Rows, window: Window | None) -> int:
        """The position of the best of some rows, if the kept sums decide."""
        self._was_asked = True
        return pick_ranked(self.ranked_of(rows, window))

    def ranked_of(self, rows: Rows, window: Window | None) -> Scores:
        """The kept sums of some rows, see `best_node.ranked`; to be read at once."""
        kept = self.ranked
        return kept.take(rows) if window is None else window.on(kept, rows)

    def sums(self, rows: Rows, window: Window | None) -> Scores:
        """The kept sums of some rows, to be written over."""
        return unranked(self.ranked_of(rows, window))

    def raw_of(self, line: int, rows: Rows, window: Window | None) -> Scores:
        """The scores of a plugin that are to be normalized; to be written over."""
        if self.raw is None:
            return np.zeros(rows.size, dtype=np.int64)
        column = self.raw[line]
        return column.take(rows) if window is None else window.of(column, rows)

    def own(self, rows: Rows, window: Window | None) -> NDArray[np.int8]:
        """The scores that need no normalisation, a line per plugin; to be kept."""
        assert self.plain is not None
        part = None if window is None else window.part
        return self.plain.take(rows, axis=1) if part is None else self.plain[:, part].copy()
