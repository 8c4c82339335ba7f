"""Why a pod was not placed, in the words of kube-scheduler, and why it was, for those who ask.

`Diagnosis` gathers what Filter said during one cycle. Verdicts stay numbers until a message, a
PostFilter plugin or an explanation needs them in words.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.instruments.attempts import Explanation, FilterGroup
from kubescene.instruments.score_columns import ScoreColumn
from kubescene.instruments.stretches import Stretches
from kubescene.scheduler.cycle.search import Found
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.extenders.extenders import EXTENDER
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.framework.status import Code, Status

_FEW_GROUPS = 4
"""Most pods are refused for one or two reasons, which are found faster one by one."""
_FEW_REFUSED = 48
"""So many rows are sorted faster by hand."""
_MOST_STRETCHES = 256
"""More of them are told faster, and in less room, node by node."""


class Diagnosis:
    """What is known about the nodes that cannot run a pod."""

    __slots__ = (
        "_absent",
        "_codes",
        "_extended",
        "_extender",
        "_found",
        "_ghosts",
        "_groups",
        "_narrowed_by",
        "_nominated",
        "_pre_filter",
        "_rejecting",
        "error",
        "filtering",
        "nodes",
        "post_filter_message",
        "recorded",
    )

    def __init__(self, nodes: Sequence[str]) -> None:
        self.nodes = nodes
        self.recorded = 0
        """The number of nodes with a status of their own."""
        self.error = ""
        self.post_filter_message = ""
        self.filtering: Filtering | None = None
        self._absent: Status | None = None
        self._pre_filter: Status | None = None
        self._narrowed_by: tuple[str, ...] = ()
        self._rejecting: set[str] = set()
        """Who turned the pod away before the search."""
        self._nominated: dict[int, Status] = {}
        self._found: Found | None = None
        self._groups: list[tuple[Status, Rows]] | None = None
        self._extended: dict[int, Status] = {}
        self._ghosts: dict[str, Status] = {}
        self._extender = False
        self._codes: NDArray[np.int8] | None = None

    # -- gathering -------------------------------------------------------------------------

    def reject_all(self, status: Status, plugins: Iterable[str] = ()) -> None:
        """PreFilter turned the pod away; ``plugins`` left only some nodes to look at. [C-4]"""
        self._pre_filter = self._absent = status
        self._rejecting.update(plugins)

    def narrow(self, plugins: Sequence[str]) -> None:
        """PreFilter plugins left only some nodes to look at. [C-5]

        As in kube-scheduler, the text also names who has refused the nominated node by then.
        """
        if plugins:
            self._narrowed_by = tuple(sorted(plugins))
            named = sorted({*plugins, *self._rejecting})
            text = f"node(s) didn't satisfy plugin(s) [{' '.join(named)}]"
            self._absent = Status(Code.UNRESOLVABLE, (text,))

    def record(self, row: int, status: Status) -> None:
        """The nominated node was tried and refused."""
        self._nominated[row] = status
        self._rejecting.add(status.plugin)
        self.recorded = len(self._nominated)

    def examine(self, found: Found, filtering: Filtering) -> None:
        """The search is over."""
        self._found = found
        self.filtering = filtering
        self.recorded = found.rows.size - found.feasible.size
        if self._nominated:
            seen = set(found.rows.tolist())
            self._nominated = {r: s for r, s in self._nominated.items() if r not in seen}
            self.recorded += len(self._nominated)
        if self._extended:
            refused = set(found.rows[found.verdicts != 0].tolist())
            self._extended = {r: s for r, s in self._extended.items() if r not in refused}
            self.recorded += len(self._extended)
        self.recorded += len(self._ghosts)

    def refused_by_extender(self, node: str, row: int | None, status: Status) -> None:
        """An extender said why a node will not do, one that it was asked about or not (M-9)."""
        if row is None:
            self.recorded += node not in self._ghosts
            self._ghosts[node] = status.by(EXTENDER)
            return
        self.recorded += not self._has_status(row)
        self._extended[row] = status.by(EXTENDER)

    def narrowed_by_extenders(self) -> None:
        """Extenders dropped nodes that had passed Filter, whether or not they said why (X-7)."""
        self._extender = True

    def _has_status(self, row: int) -> bool:
        if row in self._extended or row in self._nominated:
            return True
        found = self._found
        return found is not None and bool(found.verdicts[found.rows == row].any())

    # -- telling ---------------------------------------------------------------------------

    def groups(self) -> list[tuple[Status, Rows]]:
        """Refused rows by status: the nominated node, then in order of the search."""
        nominated = [(status, np.array([row])) for row, status in self._nominated.items()]
        if not self._extended:
            return [*nominated, *self._found_groups()]
        # What an extender says takes the place of what was known before.
        taken = np.fromiter(self._extended, dtype=np.intp)
        before = [
            (status, np.setdiff1d(rows, taken, assume_unique=True))
            for status, rows in (*nominated, *self._found_groups())
        ]
        extended = [(status, np.array([row])) for row, status in self._extended.items()]
        return [*(each for each in before if each[1].size), *extended]

    def _found_groups(self) -> list[tuple[Status, Rows]]:
        if self._groups is None:
            self._groups = []
            if self._found is not None and self.filtering is not None:
                self._groups = _grouped(self._found, self.filtering)
        return self._groups

    @property
    def plugins(self) -> tuple[str, ...]:
        """Who refused the pod, sorted by name."""
        return self._rejectors(pending=False)

    @property
    def filter_plugins(self) -> tuple[str, ...]:
        """The Filter plugins that ran."""
        return () if self.filtering is None else self.filtering.plugins

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        return self._rejectors(pending=True)

    def _rejectors(self, *, pending: bool) -> tuple[str, ...]:
        statuses = [status for status, _ in self._found_groups()]
        if self._pre_filter is not None:
            statuses.append(self._pre_filter)
        names = {each.plugin for each in statuses if (each.code is Code.PENDING) is pending}
        if not pending:
            names.update(self._narrowed_by, self._rejecting)
            names.update((EXTENDER,) if self._extender else ())
        return tuple(sorted(names))

    def message(self) -> str:
        """The text of the pod's condition. [M-1]"""
        total = len(self.nodes)
        text = f"0/{total} nodes are available:"
        if self._pre_filter is not None:
            text += f" {self._pre_filter.message}."
        elif histogram := self._histogram():
            text += f" {', '.join(histogram)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def _histogram(self) -> list[str]:
        """How many nodes each reason holds for, in order of the text. [M-2]"""
        counts: Counter[str] = Counter()
        for status, rows in self.groups():
            for reason in status.reasons:
                counts[reason] += len(rows)
        for status in self._ghosts.values():
            counts.update(status.reasons)
        if self._absent is not None and self.recorded < len(self.nodes):
            for reason in self._absent.reasons:
                counts[reason] += len(self.nodes) - self.recorded
        return sorted(f"{count} {reason}" for reason, count in counts.items())

    @property
    def codes(self) -> NDArray[np.int8]:
        """The code of every row, as PostFilter plugins get it."""
        if self._codes is None:
            self._codes = np.full(len(self.nodes), self._otherwise.code, dtype=np.int8)
            for status, rows in self.groups():
                self._codes[rows] = status.code
        return self._codes

    def status(self, row: int) -> Status:
        """The answer for one row."""
        for status, rows in self.groups():
            if (rows == row).any():
                return status
        return self._otherwise

    def rows_with(self, code: Code) -> Rows:
        rows: Rows = (self.codes == code).nonzero()[0]
        return rows

    def nodes_with(self, code: Code) -> list[str]:
        return [self.nodes[row] for row in self.rows_with(code).tolist()]

    @property
    def _otherwise(self) -> Status:
        """What holds for rows that nobody has said anything about."""
        return self._absent or Status.unresolvable()

    def filter_groups(self) -> tuple[FilterGroup, ...]:
        """The refused nodes for an explanation, those that were not looked at included."""
        if not self.recorded and self._absent is None:
            return ()
        groups = [_filter_group(status, rows) for status, rows in self.groups()]
        if self._absent is not None:
            others = np.ones(len(self.nodes), dtype=np.bool_)
            others[self.examined()] = False
            others[[*self._nominated, *self._extended]] = False
            plugin = ", ".join(self._narrowed_by)
            groups.append(_filter_group(self._absent.by(plugin), others.nonzero()[0]))
        return tuple(groups)

    def examined(self) -> Rows:
        """The rows that Filter looked at, in order."""
        return np.zeros(0, dtype=np.intp) if self._found is None else self._found.rows


def _grouped(found: Found, filtering: Filtering) -> list[tuple[Status, Rows]]:
    """Refused rows by verdict, in order of first appearance."""
    refused = found.verdicts.nonzero()[0]
    verdicts, rows = found.verdicts.take(refused), found.rows.take(refused)
    if refused.size <= _FEW_REFUSED:
        alike = _alike(verdicts, rows)
        return [(filtering.describe(each), np.array(alike[each])) for each in alike]
    groups: list[tuple[Status, Rows]] = []
    while verdicts.size and len(groups) < _FEW_GROUPS:
        verdict = verdicts[0]
        same = verdicts == verdict
        groups.append((filtering.describe(int(verdict)), rows[same]))
        verdicts, rows = verdicts[~same], rows[~same]
    if not verdicts.size:
        return groups
    distinct, first = np.unique(verdicts, return_index=True)
    ordered = distinct[first.argsort()].tolist()
    return groups + [(filtering.describe(each), rows[verdicts == each]) for each in ordered]


def _alike(verdicts: Codes, rows: Rows) -> dict[int, list[int]]:
    """Rows by verdict, in order of first appearance."""
    told, where = verdicts.tolist(), rows.tolist()
    distinct = dict.fromkeys(told)
    if len(distinct) == 1:
        return {told[0]: where}
    return {
        each: [row for row, verdict in zip(where, told, strict=True) if verdict == each]
        for each in distinct
    }


def _filter_group(status: Status, rows: Rows) -> FilterGroup:
    # Columns stay arrays until somebody reads them; to readers they are sequences.
    ascending: Any = rows.astype(np.int32)
    ascending.sort()
    return FilterGroup(status.plugin, int(status.code), status.reasons, ascending)


class Rated(Protocol):
    """What is told of the scores of an attempt, see `Scored`."""

    @property
    def totals(self) -> Any: ...

    @property
    def columns(self) -> Sequence[ScoreColumn]: ...


def _columns(scored: Rated) -> Sequence[ScoreColumn]:
    columns = scored.columns
    return tuple(columns) if isinstance(columns, list) else columns


def explain_choice(
    nodes: Sequence[str],
    found: Found,
    filtering: Filtering,
    scored: Rated | None,
    best: int,
) -> Explanation:
    """The same as `explain_attempt` for a search among all nodes; the best of those found it is."""
    rows, chosen = found.rows, found.feasible.item(best)
    examined = feasible = Stretches.around(rows.item(0), rows.size, len(nodes))
    filters: tuple[FilterGroup, ...] = ()
    if rows is not found.feasible:
        told = stretches_by_verdict(found, len(nodes))
        if told is None:
            diagnosis = Diagnosis(nodes)
            diagnosis.examine(found, filtering)
            return explain_attempt(nodes, diagnosis, found, scored, chosen)
        feasible = Stretches(told.pop(0), found.feasible.size)
        filters = _told_groups(told, rows.item(0), filtering)
    if scored is None:
        return Explanation(nodes, examined, feasible, filters, filtering.plugins, chosen=chosen)
    totals: Any = scored.totals
    columns, plugins = _columns(scored), filtering.plugins
    return Explanation(
        nodes, examined, feasible, filters, plugins, feasible, columns, totals, chosen, best
    )


def stretches_by_verdict(found: Found, total: int) -> dict[int, list[int]] | None:
    """Where stretches of rows with one verdict begin and end, by verdict in order of the search.

    None if there are too many of them.
    """
    rows, verdicts = found.rows, found.verdicts
    start, size = rows.item(0), rows.size
    changes = (verdicts[1:] != verdicts[:-1]).nonzero()[0]
    if changes.size >= _MOST_STRETCHES:
        return None
    ends = [*changes.tolist(), size - 1]
    if (last_row := total - 1 - start) < size and last_row not in ends:
        insort(ends, last_row)
    told: dict[int, list[int]] = {}
    at, first = np.array(ends), start
    for verdict, last in zip(verdicts.take(at).tolist(), rows.take(at).tolist(), strict=True):
        if verdict in told:
            told[verdict] += (first, last)
        else:
            told[verdict] = [first, last]
        first = (last + 1) % total
    return told


def _told_groups(
    told: dict[int, list[int]], start: int, filtering: Filtering
) -> tuple[FilterGroup, ...]:
    groups = []
    for verdict, bounds in told.items():
        status = filtering.describe(verdict)
        nodes = Stretches(bounds if bounds[-1] >= start else _ascending(bounds, start))
        groups.append(FilterGroup(status.plugin, int(status.code), status.reasons, nodes))
    return tuple(groups)


def _ascending(bounds: list[int], start: int) -> list[int]:
    """Stretches of a search that began at ``start`` and went on with row 0, in order of rows."""
    bounds = sorted(bounds)
    at = bisect_left(bounds, start)
    if 0 < at < len(bounds) and bounds[at - 1] + 1 == bounds[at] == start:
        # It has come round to where it began.
        del bounds[at - 1 : at + 1]
    return bounds


def explain_attempt(
    nodes: Sequence[str],
    diagnosis: Diagnosis,
    found: Found | None = None,
    scored: Rated | None = None,
    chosen: int | None = None,
) -> Explanation:
    """All that is known about an attempt, per node and plugin."""
    examined: Any = diagnosis.examined()
    feasible: Any = examined[:0] if found is None else found.feasible
    totals: Any = () if scored is None else scored.totals
    return Explanation(
        nodes=nodes,
        examined=examined if examined.size else feasible,
        feasible=feasible,
        filters=diagnosis.filter_groups(),
        filter_plugins=diagnosis.filter_plugins,
        scored=() if scored is None else feasible,
        scores=() if scored is None else _columns(scored),
        totals=totals,
        chosen=chosen,
    )
