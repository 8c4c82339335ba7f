"""How many nodes are looked at, and which: the sampling search of kube-scheduler.

In a large cluster the search stops once it has found enough nodes. It starts where the last one
ended, so that all nodes get their turn. We follow the order of a scheduler with ``parallelism:
1`` (C-10): nodes are examined one after the other until one more than wanted was found; that last
one is dropped (C-9). Judging runs in chunks, and what a chunk judged beyond the end of the search
is thrown away.
"""

from typing import NamedTuple, Protocol

import numpy as np

from kubescene.scheduler.cycle.suppositions import Supposition
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.framework.normalization import highest
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominated_amounts import ShiftedNodes
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Window

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE = 5
_SMALLEST_CHUNK = 64


def nodes_to_find(count: int, percentage: int = 0) -> int:
    """How many feasible nodes are enough among ``count``; 0 percent adapts to the count. [C-7]"""
    if count < MIN_FEASIBLE_NODES:
        return count
    if percentage == 0:
        percentage = max(50 - count // 125, MIN_PERCENTAGE)
    return max(count * percentage // 100, MIN_FEASIBLE_NODES)


class Found(NamedTuple):
    """``rows`` were examined, in this order, with these verdicts; ``feasible`` are those that
    pass: if nothing is missing, ``window`` is where they are.
    """

    rows: Rows
    verdicts: Codes
    feasible: Rows
    window: Window | None = None


class Judge(Protocol):
    """Who knows which rows pass."""

    def judge(self, rows: Rows, window: Window | None = None) -> Codes: ...


def search(filtering: Judge, ring: Rows, start: int, wanted: int, *, every: bool = False) -> Found:
    """Examine rows from ``start`` on. ``ring`` holds all candidates twice in a row.

    ``every`` says that these are all rows of the table.
    """
    count = ring.size // 2
    at = found = 0
    parts: list[Found] = []
    while at < count and found <= wanted:
        missing = wanted + 1 - found
        chunk = _chunk(missing, at, found) if at else missing
        size = min(count - at, max(chunk, _SMALLEST_CHUNK))
        rows = ring[start + at : start + at + size]
        window = Window((start + at) % count, size, count) if every else None
        verdicts = filtering.judge(rows, window)
        if at == 0 and not highest(verdicts):
            return _all_pass(rows[:wanted], verdicts[:wanted], window)
        passing = (verdicts == 0).nonzero()[0]
        if found + passing.size > wanted:
            end = passing[wanted - found]
            rows, verdicts, passing = rows[:end], verdicts[:end], passing[: wanted - found]
            found = wanted + 1
        found += passing.size
        at += size
        feasible = rows if passing.size == rows.size else rows.take(passing)
        parts.append(Found(rows, verdicts, feasible))
    return parts[0] if len(parts) == 1 else _joined(parts)


def among(verdicts: Codes, ring: Rows, start: int, wanted: int, *, refuses: bool = True) -> Found:
    """What `search` finds among all rows where every verdict is known.

    ``refuses`` says that some of them may be refused.
    """
    count = verdicts.size
    refused = int(np.count_nonzero(verdicts)) if refuses else 0
    # More need not be examined, wherever those are that are refused.
    size = min(wanted + 1 + refused if refused else wanted, count)
    window = Window(start, size, count)
    rows = ring[start : start + size]
    seen = window.on(verdicts, rows)
    if not refused:
        return Found(rows, seen, rows, window)
    passing = (seen == 0).nonzero()[0]
    if passing.size > wanted:
        end = passing.item(wanted)
        rows, seen, passing = rows[:end], seen[:end], passing[:wanted]
    if passing.size == rows.size:
        return Found(rows, seen, rows, Window(start, rows.size, count))
    return Found(rows, seen, rows.take(passing))


def _chunk(missing: int, examined: int, found: int) -> int:
    """How many rows to judge next, going by how many of those before have passed."""
    return examined if not found else missing * examined // found + 1


def _all_pass(rows: Rows, verdicts: Codes, window: Window | None) -> Found:
    """The first rows are all that is wanted."""
    whole = None if window is None else Window(window.start, rows.size, window.total)
    return Found(rows, verdicts, rows, whole)


def _joined(parts: list[Found]) -> Found:
    if not parts:
        nothing = np.zeros(0, dtype=np.intp)
        return Found(nothing, np.zeros(0, dtype=np.int64), nothing)
    return Found(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.verdicts for part in parts]),
        np.concatenate([part.feasible for part in parts]),
    )


class StartIndex:
    """Where the next search starts. One for all profiles of a scheduler. [C-8]"""

    __slots__ = ("index",)

    def __init__(self) -> None:
        self.index = 0

    def advance(self, processed: int, nodes: int) -> None:
        self.index = (self.index + processed) % nodes


class NominatedFiltering:
    """Filter that keeps room for pods which preempted others and wait for their node. [C-11]

    A node to which pods of the same or a higher priority are nominated must be able to run this pod
    both with and without them. Where these matter by their amounts alone, all nodes are judged at
    once; otherwise one by one.
    """

    __slots__ = ("_filtering", "_nodes", "_nominated", "_nominations", "_own_row", "_pod")

    def __init__(
        self, filtering: Filtering, nodes: NodeTable, nominations: Nominations, pod: PodInfo
    ) -> None:
        self._filtering = filtering
        self._nodes = nodes
        self._nominations = nominations
        self._pod = pod
        self._nominated = nominations.amounts(pod, nodes)
        own = "" if self._nominated is None else nominations.node_of(pod)
        self._own_row = nodes.row_of(own) if own else None

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        verdicts = self._filtering.judge(rows, window)
        if self._nominated is None:
            return verdicts
        at = self._nominated.count.take(rows).nonzero()[0]
        if self._own_row is not None:
            at = at[rows.take(at) != self._own_row]
            for own in (rows == self._own_row).nonzero()[0].tolist():
                verdicts[own] = self._judge_with(self._own_row) or verdicts[own]
        if at.size:
            self._judge_crowded(at, rows, verdicts)
        return verdicts

    def _judge_crowded(self, at: Rows, rows: Rows, verdicts: Codes) -> None:
        if self._filtering.by_amounts and self._nominated is not None:
            nodes = ShiftedNodes(self._nodes, self._nominated.columns)
            verdicts[at] = self._filtering.judge_crowded(nodes, rows.take(at), verdicts.take(at))
            return
        for place in at.tolist():
            verdicts[place] = self._judge_with(int(rows[place])) or verdicts[place]

    def _judge_with(self, row: int) -> int:
        """The verdict on one row with all its rivals; the pod itself is none."""
        name, filtering = self._nodes.names[row], self._filtering
        rivals = self._nominations.rivals_on(name, self._pod)
        if not rivals:
            return 0
        supposed = Supposition(filtering, self._nodes, self._nominations, self._pod)
        for pod in rivals:
            supposed.add(pod, name)
        if not supposed.failed.ok:
            return filtering.note(supposed.failed)
        verdict = supposed.judge(row)
        filtering.state.filter_errors |= supposed.state.filter_errors
        return verdict
