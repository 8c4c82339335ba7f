"""Which nodes can run a pod, and which plugin said no: Filter, many nodes at a time.

A verdict is one integer per row: 0 passes; otherwise the position of the first plugin that
refused, with its code in the lower bits. Verdicts of plugins that read nothing but the node
(`Reads.NODE`) are kept per class of pods, together with the version of the row they were made for;
the next pod of the class only has those rows judged again that changed in between. Plugins that
look at the whole cluster are asked each time, for the rows no earlier plugin refused.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kubescene.errors import PluginError
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.interfaces import Codes, Rows
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.pods import PodClass, PodInfo
from kubescene.scheduler.runtime import FilterExtension
from kubescene.scheduler.status import SUCCESS, Status

_SHIFT = 48
_CODE_MASK = (1 << _SHIFT) - 1
_FEW_ROWS = 4
_CELLS_KEPT = 500_000


class ClassVerdicts:
    """The kept verdicts of one class of pods."""

    __slots__ = ("active", "errors", "layout", "seen", "verdicts")

    def __init__(self, layout: int, rows: int, active: tuple[FilterExtension, ...]) -> None:
        self.layout = layout
        self.active = active
        self.seen = np.full(rows, -1, dtype=np.int64)
        self.verdicts = np.zeros(rows, dtype=np.int64)
        self.errors = False


class FilterChain:
    """The Filter plugins of one profile over one node table."""

    def __init__(self, filters: tuple[FilterExtension, ...], nodes: NodeTable) -> None:
        self.filters = filters
        self.nodes = nodes
        self._kept: OrderedDict[PodClass, ClassVerdicts] = OrderedDict()
        self._splits: dict[frozenset[str], _Split] = {}

    def begin(self, state: CycleState, pod: PodInfo) -> "Filtering":
        """Filter for one attempt; the PreFilters have run."""
        split = self._split(state.skipped_filters)
        return Filtering(self, state, pod, split, self._verdicts(pod, split.per_node))

    def _split(self, skipped: set[str]) -> "_Split":
        key = frozenset(skipped)
        found = self._splits.get(key)
        if found is None:
            active = [each for each in self.filters if each.name not in key]
            found = self._splits[key] = _Split(active)
        return found

    def _verdicts(self, pod: PodInfo, active: tuple[FilterExtension, ...]) -> ClassVerdicts:
        nodes = self.nodes
        if pod.node:
            # The node's name is no part of the class, and such a pod never is in the queue.
            return ClassVerdicts(nodes.layout, len(nodes), active)
        kept = self._kept.get(pod.pod_class)
        if kept is None or kept.layout != nodes.layout or kept.active is not active:
            kept = self._kept[pod.pod_class] = ClassVerdicts(nodes.layout, len(nodes), active)
            while len(self._kept) > max(8, _CELLS_KEPT // max(1, len(nodes))):
                self._kept.popitem(last=False)
        self._kept.move_to_end(pod.pod_class)
        return kept


class _Split:
    """The plugins that run for a pod: those whose verdicts are kept, and the others."""

    __slots__ = ("others", "per_node")

    def __init__(self, active: Sequence[FilterExtension]) -> None:
        self.per_node = tuple(each for each in active if each.per_node)
        self.others = tuple(each for each in active if not each.per_node)


class Filtering:
    """Filter of one attempt."""

    __slots__ = ("_chain", "_kept", "_nodes", "_pod", "_split", "_state")

    def __init__(
        self,
        chain: FilterChain,
        state: CycleState,
        pod: PodInfo,
        split: _Split,
        kept: ClassVerdicts,
    ) -> None:
        self._chain = chain
        self._nodes = chain.nodes
        self._state = state
        self._pod = pod
        self._split = split
        self._kept = kept

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that run for this pod."""
        skipped = self._state.skipped_filters
        return tuple(each.name for each in self._chain.filters if each.name not in skipped)

    @property
    def may_have_failed(self) -> bool:
        """Whether some verdict stands for an error rather than a refusal."""
        return self._kept.errors or self._state.filter_errors

    def judge(self, rows: Rows) -> Codes:
        """One verdict per row."""
        kept = self._kept
        stale = (kept.seen.take(rows) != self._nodes.versions.take(rows)).nonzero()[0]
        if stale.size:
            self._renew(rows.take(stale))
        verdicts = kept.verdicts.take(rows)
        for extension in self._split.others:
            self._judge_by(extension, rows, verdicts)
        return verdicts

    def judge_anew(self, row: int) -> int:
        """The verdict on one row as it stands this moment; nothing is kept."""
        rows = np.array([row], dtype=np.intp)
        verdicts = self._judge_rows(rows)
        for extension in self._split.others:
            self._judge_by(extension, rows, verdicts)
        return int(verdicts[0])

    def describe(self, verdict: int) -> Status:
        """The status a verdict stands for, with the plugin that gave it."""
        if verdict == 0:
            return SUCCESS
        extension = self._chain.filters[(verdict >> _SHIFT) - 1]
        status = extension.describe(self._state, self._pod, verdict & _CODE_MASK)
        return status.by(extension.name)

    def _judge_by(self, extension: FilterExtension, rows: Rows, verdicts: Codes) -> None:
        open_at = ((verdicts == 0) | (verdicts >> _SHIFT > extension.position)).nonzero()[0]
        if not open_at.size:
            return
        codes = self._codes(extension, rows.take(open_at))
        refused = codes.nonzero()[0]
        if refused.size:
            verdicts[open_at[refused]] = _packed(extension, codes[refused])

    def _codes(self, extension: FilterExtension, rows: Rows) -> Codes:
        codes = extension.filter_nodes(self._state, self._pod, self._nodes, rows)
        if codes.shape != rows.shape:
            raise PluginError(
                f"filter_nodes answered with {codes.size} codes for {rows.size} nodes",
                plugin=extension.name,
                extension_point="Filter",
            )
        return codes

    def _renew(self, rows: Rows) -> None:
        kept = self._kept
        if rows.size <= _FEW_ROWS:
            for row in rows.tolist():
                kept.verdicts[row] = self._judge_row(row)
        else:
            kept.verdicts[rows] = self._judge_rows(rows)
        kept.seen[rows] = self._nodes.versions.take(rows)
        kept.errors |= self._state.filter_errors

    def _judge_row(self, row: int) -> int:
        info = self._nodes.infos[row]
        for extension in self._split.per_node:
            if extension.one is not None:
                status = extension.one(self._state, self._pod, info)
                if status is SUCCESS or status.ok:
                    continue
            rows: NDArray[np.intp] = np.array([row], dtype=np.intp)
            codes = self._codes(extension, rows)
            if codes[0]:
                return int(_packed(extension, codes)[0])
        return 0

    def _judge_rows(self, rows: Rows) -> Codes:
        verdicts = np.zeros(rows.size, dtype=np.int64)
        remaining, at = rows, np.arange(rows.size)
        for extension in self._split.per_node:
            codes = self._codes(extension, remaining)
            refused = codes.nonzero()[0]
            if refused.size:
                verdicts[at[refused]] = _packed(extension, codes[refused])
                passing = codes == 0
                remaining, at = remaining[passing], at[passing]
            if not at.size:
                break
        return verdicts


def _packed(extension: FilterExtension, codes: Codes) -> Codes:
    if codes.min() < 0 or codes.max() > _CODE_MASK:
        raise PluginError(
            f"filter_nodes answered with a code outside 0..2**{_SHIFT}-1",
            plugin=extension.name,
            extension_point="Filter",
        )
    return codes | (extension.position << _SHIFT)
