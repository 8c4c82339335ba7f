"""Filter of a whole cycle that reads what is kept.

Verdicts of plugins that read nothing but the node are those of `KeptRows`. Codes of plugins that
count by topology domain (`Reads.DOMAIN`) are kept per signature as long as the plugin's stamp for
it stays the same. Plugins that look at the whole cluster are asked each time.
"""

from collections import OrderedDict

import numpy as np

from kubescene.scheduler.cycle.search import Found, among, search
from kubescene.scheduler.cycle.verdicts import FilterChain, Filtering, FilterSplit
from kubescene.scheduler.fast.kept_rows import KeptRows
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.framework.runtime import FilterExtension
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Window


class KeptCodes:
    """The codes of one plugin for one signature, made at one stamp."""

    __slots__ = ("codes", "errors", "layout", "seen", "stamp")

    def __init__(self, layout: int, rows: int, stamp: int) -> None:
        self.layout = layout
        self.stamp = stamp
        self.seen = np.full(rows, -1, dtype=np.int64)
        self.codes = np.zeros(rows, dtype=np.int64)
        self.errors = False


class DomainCodes:
    """All that plugins of one profile have said that count by topology domain."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._kept: OrderedDict[tuple[int, PodSignature], KeptCodes] = OrderedDict()

    def of(self, extension: FilterExtension, pod: PodInfo, stamp: int) -> KeptCodes:
        """What a plugin said about pods of this signature at this stamp."""
        nodes, key = self._nodes, (extension.position, pod.signature)
        kept = self._kept.get(key)
        if kept is None or kept.stamp != stamp or kept.layout != nodes.layout:
            kept = self._kept[key] = KeptCodes(nodes.layout, len(nodes), stamp)
            while len(self._kept) > POLICY.entries_kept(len(nodes)):
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return kept


class KeptFiltering(Filtering):
    """Filter of one attempt."""

    __slots__ = ("_domains", "_kept", "_stamps")

    def __init__(
        self,
        chain: FilterChain,
        state: CycleState,
        pod: PodInfo,
        split: FilterSplit,
        kept: KeptRows,
        domains: DomainCodes,
    ) -> None:
        super().__init__(chain, state, pod, split)
        self._kept = kept
        self._domains = domains
        self._stamps: dict[int, int] = {}

    @property
    def may_have_failed(self) -> bool:
        return self._kept.errors or self.state.filter_errors

    def by_node(self, rows: Rows, window: Window | None) -> Codes:
        return self._kept.judge(self.state, self._pod, rows, window)

    def by_domain(self, extension: FilterExtension, rows: Rows) -> Codes:
        kept = self._domains.of(extension, self._pod, self._stamp(extension))
        versions, state = self._nodes.spec_versions, self.state
        stale = rows[kept.seen.take(rows) != versions.take(rows)]
        if stale.size:
            kept.codes[stale] = super().by_domain(extension, stale)
            if not state.passing_codes:
                kept.seen[stale] = versions.take(stale)
            kept.errors |= state.filter_errors
        state.filter_errors |= kept.errors
        return kept.codes.take(rows)

    def _stamp(self, extension: FilterExtension) -> int:
        assert extension.stamp is not None
        known = self._stamps.get(extension.position)
        if known is None:
            known = self._stamps[extension.position] = extension.stamp(self.state, self._pod)
        return known


class UsualFiltering(Filtering):
    """Filter of a usual pod: no plugin reads more than the node, and rows are rated as well.

    What verdicts mean is the same for all pods of the class.
    """

    __slots__ = ("_kept",)

    def __init__(
        self,
        chain: FilterChain,
        state: CycleState,
        pod: PodInfo,
        split: FilterSplit,
        kept: KeptRows,
    ) -> None:
        super().__init__(chain, state, pod, split)
        self._kept = kept

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        """One verdict per row, to be read at once."""
        assert window is not None
        return self._kept.tell(self.state, self._pod, rows, window)

    def search(self, ring: Rows, start: int, wanted: int) -> Found:
        """The search among all rows, which is read from what is kept if nobody has to be asked."""
        known = self._kept.tell_all(self.state, self._pod)
        if known is None:
            return search(self, ring, start, wanted, every=True)
        return among(known, ring, start, wanted, refuses=self._kept.refuses)

    def describe(self, verdict: int) -> Status:
        meanings = self._kept.meanings
        found = meanings.get(verdict)
        if found is None:
            found = meanings[verdict] = super().describe(verdict)
        return found
