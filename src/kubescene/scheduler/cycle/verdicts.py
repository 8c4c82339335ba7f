"""Which nodes can run a pod, and which plugin said no: Filter, many nodes at a time.

A verdict is one integer per row: 0 passes; otherwise the position of the first plugin that
refused, with its code in the lower bits. Verdicts of plugins that read nothing but the node
(`Reads.NODE`) are kept per class of pods, together with the version of the row they were made for;
the next pod of the class only has those rows judged again that changed in between. Verdicts of
plugins that count by topology domain (`Reads.DOMAIN`) are kept per signature as long as the
plugin's stamp for it stays the same. Plugins that look at the whole cluster are asked each time.
Both are asked only about rows that no earlier plugin refused, and end nobody else's fast path.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kubescene.errors import KubesceneError, PluginError
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.guarded_calls import failed
from kubescene.scheduler.framework.interfaces import Codes, Reads, Rows, SeesPods
from kubescene.scheduler.framework.normalization import highest
from kubescene.scheduler.framework.profile import ExtensionPoint
from kubescene.scheduler.framework.runtime import FilterExtension, PreFilterExtension
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import Moves, NodeTable, moved
from kubescene.scheduler.state.pod_kinds import PodClass, PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY, entries_kept
from kubescene.scheduler.state.row_results import RowResults, Window

_SHIFT = 48
_CODE_MASK = (1 << _SHIFT) - 1
_NOTED = 1 << 14
"""The position of verdicts that no Filter plugin gave."""


class ClassVerdicts(RowResults):
    """The kept verdicts of one class of pods."""

    __slots__ = ("active", "errors", "verdicts")

    def __init__(self, nodes: NodeTable, active: tuple[FilterExtension, ...]) -> None:
        super().__init__(nodes)
        self.active = active
        self.verdicts = np.zeros(len(nodes), dtype=np.int64)
        self.errors = False

    def move(self, moves: Moves) -> None:
        super().move(moves)
        self.verdicts = moved(self.verdicts, moves)


class DomainVerdicts:
    """The kept codes of one plugin for one signature, made at one stamp."""

    __slots__ = ("codes", "errors", "layout", "seen", "stamp")

    def __init__(self, layout: int, rows: int, stamp: int) -> None:
        self.layout = layout
        self.stamp = stamp
        self.seen = np.full(rows, -1, dtype=np.int64)
        self.codes = np.zeros(rows, dtype=np.int64)
        self.errors = False


class FilterChain:
    """The Filter plugins of one profile over one node table."""

    def __init__(
        self,
        filters: tuple[FilterExtension, ...],
        nodes: NodeTable,
        pre_filters: tuple[PreFilterExtension, ...] = (),
    ) -> None:
        self.filters = filters
        self.nodes = nodes
        self.pre_filters = tuple(each for each in pre_filters if each.add_pod or each.remove_pod)
        self._kept: OrderedDict[PodClass, ClassVerdicts] = OrderedDict()
        self._domains: OrderedDict[tuple[int, PodSignature], DomainVerdicts] = OrderedDict()
        self._splits: dict[frozenset[str], FilterSplit] = {}
        self.keeps = True
        """Whether verdicts are kept from one attempt to the next."""
        self.unkept = ClassVerdicts(nodes, ())
        """For those who judge without keeping anything."""

    def begin(self, state: CycleState, pod: PodInfo) -> "Filtering":
        """Filter for one attempt; the PreFilters have run."""
        split = self.split(state.skipped_filters)
        return Filtering(self, state, pod, split, self.verdicts_of(pod, split))

    def split(self, skipped: frozenset[str]) -> "FilterSplit":
        """The plugins that run if some are skipped; the same object for the same ones."""
        found = self._splits.get(skipped)
        if found is None:
            active = [each for each in self.filters if each.name not in skipped]
            found = self._splits[skipped] = FilterSplit(active)
        return found

    def verdicts_of(self, pod: PodInfo, split: "FilterSplit") -> ClassVerdicts:
        """What is kept of the class of a pod."""
        nodes, active = self.nodes, split.per_node
        if pod.node or not self.keeps:
            # The node's name is no part of the class, and such a pod never is in the queue.
            return ClassVerdicts(nodes, active)
        kept = self._kept.get(pod.pod_class)
        if kept is None or kept.active != active or not kept.in_place(nodes):
            kept = self._kept[pod.pod_class] = ClassVerdicts(nodes, active)
            while len(self._kept) > entries_kept(nodes):
                self._kept.popitem(last=False)
        self._kept.move_to_end(pod.pod_class)
        return kept

    def keep(self, pod: PodInfo, split: "FilterSplit", rows: Rows, verdicts: Codes) -> None:
        """Somebody has had these rows judged by the plugins whose verdicts are kept."""
        kept = self.verdicts_of(pod, split)
        kept.verdicts[rows] = verdicts
        kept.renewed(self.nodes, rows)

    def domains(self, extension: FilterExtension, pod: PodInfo, stamp: int) -> DomainVerdicts:
        """What a plugin said about pods of this signature at this stamp."""
        nodes, key = self.nodes, (extension.position, pod.signature)
        if not self.keeps:
            return DomainVerdicts(nodes.layout, len(nodes), stamp)
        kept = self._domains.get(key)
        if kept is None or kept.stamp != stamp or kept.layout != nodes.layout:
            kept = self._domains[key] = DomainVerdicts(nodes.layout, len(nodes), stamp)
            while len(self._domains) > entries_kept(nodes):
                self._domains.popitem(last=False)
        self._domains.move_to_end(key)
        return kept


class FilterSplit:
    """The plugins that run for a pod: those whose verdicts are kept, and the others."""

    __slots__ = (
        "active",
        "amounts",
        "by_pods",
        "by_spec",
        "is_ours",
        "names",
        "others",
        "per_node",
        "sees_amounts",
    )

    def __init__(self, active: Sequence[FilterExtension]) -> None:
        self.active = tuple(active)
        self.names = tuple([each.name for each in active])
        self.amounts = tuple(each for each in active if each.sees_pods is SeesPods.AMOUNTS)
        self.sees_amounts = all(
            each.sees_pods is not SeesPods.EVERYTHING and each.one is not None for each in active
        )
        """Whether nobody sees more of the pods on a node than their amounts."""
        self.per_node = tuple(each for each in active if each.per_node)
        self.others = tuple(each for each in active if not each.per_node)
        self.is_ours = all(each.is_ours for each in active)
        self.by_spec, self.by_pods = self._by_what_they_see()

    def _by_what_they_see(self) -> tuple[tuple[FilterExtension, ...], tuple[FilterExtension, ...]]:
        """First those that see no pods on a node, as long as these are the first ones anyway."""
        kept, blind = self.per_node, SeesPods.NOTHING
        first = next((at for at, each in enumerate(kept) if each.sees_pods is not blind), len(kept))
        return kept[:first], kept[first:]


class Filtering:
    """Filter of one attempt."""

    __slots__ = ("_chain", "_kept", "_nodes", "_noted", "_pod", "_split", "_stamps", "state")

    def __init__(
        self,
        chain: FilterChain,
        state: CycleState,
        pod: PodInfo,
        split: FilterSplit,
        kept: ClassVerdicts,
    ) -> None:
        self._chain = chain
        self._nodes = chain.nodes
        self._pod = pod
        self._split = split
        self._kept = kept
        self._noted: list[Status] = []
        self._stamps: dict[int, int] = {}
        self.state = state

    def supposing(self, nodes: NodeTable) -> "Filtering":
        """The same plugins with a clone of the state, to be asked about other nodes."""
        chain, state = self._chain, self.state.clone()
        copy = Filtering(chain, state, self._pod, self._split, self._kept)
        copy._nodes = nodes
        copy._noted = self._noted
        return copy

    def pod_added(self, pod: PodInfo, node: NodeInfo) -> Status:
        """Tell the PreFilter plugins of a supposed pod."""
        for extension in self._chain.pre_filters:
            if extension.add_pod is not None and extension.name not in self.state.skipped_filters:
                status = extension.add_pod(self.state, self._pod, pod, node)
                if not status.ok:
                    return _not_followed("AddPod", extension, status)
        return SUCCESS

    def pod_removed(self, pod: PodInfo, node: NodeInfo) -> Status:
        """Tell the PreFilter plugins that a pod is supposed to be gone."""
        skipped = self.state.skipped_filters
        for extension in self._chain.pre_filters:
            if extension.remove_pod is not None and extension.name not in skipped:
                status = extension.remove_pod(self.state, self._pod, pod, node)
                if not status.ok:
                    return _not_followed("RemovePod", extension, status)
        return SUCCESS

    @property
    def plugins(self) -> tuple[str, ...]:
        """The plugins that run for this pod."""
        return self._split.names

    @property
    def may_have_failed(self) -> bool:
        """Whether some verdict stands for an error rather than a refusal."""
        return self._kept.errors or self.state.filter_errors

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        """One verdict per row; ``window`` is said if the rows are one."""
        kept = self._kept
        outdated = kept.outdated(self._nodes, rows, window)
        if len(outdated):
            self._renew(outdated)
        verdicts = kept.verdicts
        verdicts = verdicts.take(rows) if window is None else window.of(verdicts, rows)
        for extension in self._split.others:
            self._judge_by(extension, rows, verdicts)
        return verdicts

    def judge_anew(self, row: int) -> int:
        """The verdict on one row as it stands this moment; nothing is kept."""
        info: NodeInfo | None = None
        for extension in self._split.active:
            if extension.one is not None:
                info = info or self._nodes.infos[row]
                if extension.one(self.state, self._pod, info).ok:
                    continue
            rows = np.array([row], dtype=np.intp)
            codes = self._codes(extension, rows)
            if codes[0]:
                return int(packed(extension, codes)[0])
        return 0

    @property
    def by_amounts(self) -> bool:
        """Whether other pods matter to this one by their amounts alone; see `judge_shifted`."""
        skipped = self.state.skipped_filters
        followers = self._chain.pre_filters
        return self._split.sees_amounts and all(each.name in skipped for each in followers)

    @property
    def by_class(self) -> bool:
        """Whether all plugins that run answer from the class of the pod and the node alone."""
        return not self._split.others

    @property
    def active(self) -> tuple[FilterExtension, ...]:
        """The plugins that run for this pod."""
        return self._split.active

    @property
    def amount_filters(self) -> tuple[FilterExtension, ...]:
        """Those of the plugins that run which see the amounts of pods."""
        return self._split.amounts

    def judge_crowded(self, nodes: NodeTable, rows: Rows, verdicts: Codes) -> Codes:
        """Verdicts for a table on which more is asked for, given those for the real one.

        Only for pods judged `by_amounts`: nobody else's verdict can have changed.
        """
        crowded = verdicts.copy()
        for extension in self._split.amounts:
            position = extension.position
            at = ((crowded == 0) | (crowded >> _SHIFT >= position)).nonzero()[0]
            codes = extension.filter_nodes(self.state, self._pod, nodes, rows.take(at))
            if (refused := codes.nonzero()[0]).size:
                crowded[at[refused]] = packed(extension, codes[refused])
        return crowded

    def judge_shifted(self, nodes: NodeTable, rows: Rows) -> Codes:
        """Verdicts for a table of other amounts; nothing is kept."""
        return self.judge_rows(rows, self._split.active, nodes)

    def note(self, status: Status) -> int:
        """A verdict for the answer of somebody who is no Filter plugin."""
        self.state.filter_errors |= not status.code.is_rejection
        self._noted.append(status)
        return _NOTED << _SHIFT | len(self._noted) - 1

    def describe(self, verdict: int) -> Status:
        """The status a verdict stands for, with the plugin that gave it."""
        if verdict == 0:
            return SUCCESS
        position = verdict >> _SHIFT
        if position == _NOTED:
            return self._noted[verdict & _CODE_MASK]
        extension = self._chain.filters[position - 1]
        status = extension.describe(self.state, self._pod, verdict & _CODE_MASK)
        return status.by(extension.name)

    def _judge_by(self, extension: FilterExtension, rows: Rows, verdicts: Codes) -> None:
        judge = self._domain_codes if extension.reads is Reads.DOMAIN else self._codes
        if not highest(verdicts):
            codes = judge(extension, rows)
            refused = codes.nonzero()[0]
            if refused.size:
                verdicts[refused] = packed(extension, codes[refused])
            return
        open_at = ((verdicts == 0) | (verdicts >> _SHIFT > extension.position)).nonzero()[0]
        if open_at.size:
            codes = judge(extension, rows.take(open_at))
            refused = codes.nonzero()[0]
            if refused.size:
                verdicts[open_at[refused]] = packed(extension, codes[refused])

    def _domain_codes(self, extension: FilterExtension, rows: Rows) -> Codes:
        """The codes of a plugin that says when they may have changed."""
        kept = self._chain.domains(extension, self._pod, self._stamp(extension))
        versions = self._nodes.spec_versions
        stale = rows[kept.seen.take(rows) != versions.take(rows)]
        if stale.size:
            kept.codes[stale] = self._codes(extension, stale)
            if not self.state.passing_codes:
                kept.seen[stale] = versions.take(stale)
            kept.errors |= self.state.filter_errors
        self.state.filter_errors |= kept.errors
        return kept.codes.take(rows)

    def _stamp(self, extension: FilterExtension) -> int:
        assert extension.stamp is not None
        known = self._stamps.get(extension.position)
        if known is None:
            known = extension.stamp(self.state, self._pod)
            self._stamps[extension.position] = known
        return known

    def _codes(
        self, extension: FilterExtension, rows: Rows, nodes: NodeTable | None = None
    ) -> Codes:
        nodes = self._nodes if nodes is None else nodes
        return codes_of(extension, self.state, self._pod, nodes, rows)

    def _renew(self, rows: list[int] | Rows) -> None:
        kept = self._kept
        if len(rows) <= POLICY.few_judged:
            for row in map(int, rows):
                kept.verdicts[row] = self.judge_row(row, self._split.per_node)
        else:
            renewed = np.asarray(rows, dtype=np.intp)
            kept.verdicts[rows] = self.judge_rows(renewed, self._split.per_node, self._nodes)
        if not self.state.passing_codes:
            kept.renewed(self._nodes, rows)
        kept.errors |= self.state.filter_errors

    def judge_row(self, row: int, extensions: tuple[FilterExtension, ...]) -> int:
        """The verdict of some plugins on one row."""
        info = self._nodes.infos[row]
        for extension in extensions:
            try:
                if extension.inner is not None:
                    status = extension.inner(self.state, self._pod, info)
                    if status is SUCCESS or status.ok:
                        continue
            except KubesceneError:
                raise
            except Exception as error:
                raise failed(error, extension.name, ExtensionPoint.FILTER) from error
            rows: NDArray[np.intp] = np.array([row], dtype=np.intp)
            codes = self._codes(extension, rows)
            if codes[0]:
                return int(packed(extension, codes)[0])
        return 0

    def judge_rows(
        self, rows: Rows, extensions: tuple[FilterExtension, ...], nodes: NodeTable
    ) -> Codes:
        """The same on many rows."""
        return judge_rows(self.state, self._pod, extensions, nodes, rows)


class SettledFiltering(Filtering):
    """Filter for all pods of a class, by plugins of our own that look at nothing but the node.

    What their verdicts mean is the same for all of these pods, and told once.
    """

    __slots__ = ("_told",)

    def __init__(
        self, chain: FilterChain, state: CycleState, pod: PodInfo, split: FilterSplit
    ) -> None:
        super().__init__(chain, state, pod, split, chain.unkept)
        self._told: dict[int, Status] = {}

    def describe(self, verdict: int) -> Status:
        told = self._told.get(verdict)
        if told is None:
            told = self._told[verdict] = super().describe(verdict)
        return told


def judge_rows(
    state: CycleState,
    pod: PodInfo,
    extensions: tuple[FilterExtension, ...],
    nodes: NodeTable,
    rows: Rows,
) -> Codes:
    """The verdicts of some plugins on many rows; nothing is kept."""
    verdicts = np.zeros(rows.size, dtype=np.int64)
    remaining, at = rows, np.arange(rows.size)
    for extension in extensions:
        codes = codes_of(extension, state, pod, nodes, remaining)
        refused = codes.nonzero()[0]
        if refused.size:
            verdicts[at[refused]] = packed(extension, codes[refused])
            passing = codes == 0
            remaining, at = remaining[passing], at[passing]
        if not at.size:
            break
    return verdicts


def codes_of(
    extension: FilterExtension, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows
) -> Codes:
    """What one plugin says of rows, one code each."""
    codes = extension.filter_nodes(state, pod, nodes, rows)
    if codes.shape != rows.shape:
        raise PluginError(
            f"filter_nodes answered with {codes.size} codes for {rows.size} nodes",
            plugin=extension.name,
            extension_point="Filter",
        )
    return codes


def _not_followed(call: str, extension: PreFilterExtension, status: Status) -> Status:
    text = f'running {call} on PreFilter plugin "{extension.name}": {status.message}'
    return Status.error(text).by(extension.name)


def packed(extension: FilterExtension, codes: Codes) -> Codes:
    """The verdicts that codes of a plugin are."""
    if codes.min() < 0 or codes.max() > _CODE_MASK:
        raise PluginError(
            f"filter_nodes answered with a code outside 0..2**{_SHIFT}-1",
            plugin=extension.name,
            extension_point="Filter",
        )
    return placed(extension, codes)


def placed(extension: FilterExtension, codes: Codes) -> Codes:
    """The same for codes that are known to be some."""
    return codes | (extension.position << _SHIFT)


def verdict_of(extension: FilterExtension, code: int) -> int:
    """The verdict that one code is."""
    return extension.position << _SHIFT | code
