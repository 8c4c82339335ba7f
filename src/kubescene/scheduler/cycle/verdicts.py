"""Which nodes can run a pod, and which plugin said no: Filter, many nodes at a time.

A verdict is one integer per row: 0 passes; otherwise the position of the first plugin that
refused, with its code in the lower bits. Plugins that read nothing but the node (`Reads.NODE`) are
asked first, the others only about rows that no earlier plugin has refused.

This is the rule. What a world keeps of verdicts is kept by `kubescene.scheduler.fast`, which puts
its own `Filtering` in the place of this one.
"""

from collections.abc import Sequence

import numpy as np

from kubescene.errors import PluginError
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.extensions import PreFilterExtension
from kubescene.scheduler.framework.interfaces import Codes, Reads, Rows, SeesPods
from kubescene.scheduler.framework.normalization import highest
from kubescene.scheduler.framework.runtime import FilterExtension
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Window

_SHIFT = 48
_CODE_MASK = (1 << _SHIFT) - 1
_NOTED = 1 << 14
"""The position of verdicts that no Filter plugin gave."""


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
        self._splits: dict[frozenset[str], FilterSplit] = {}

    def begin(self, state: CycleState, pod: PodInfo) -> "Filtering":
        """Filter for one attempt; the PreFilters have run."""
        return Filtering(self, state, pod, self.split(state.skipped_filters))

    def split(self, skipped: frozenset[str]) -> "FilterSplit":
        """The plugins that run if some are skipped; the same object for the same ones."""
        found = self._splits.get(skipped)
        if found is None:
            active = [each for each in self.filters if each.name not in skipped]
            found = self._splits[skipped] = FilterSplit(active)
        return found


class FilterSplit:
    """The plugins that run for a pod: those that read nothing but the node, and the others."""

    __slots__ = (
        "active",
        "amounts",
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


class Filtering:
    """Filter of one attempt."""

    __slots__ = ("_chain", "_nodes", "_noted", "_pod", "_split", "state")

    def __init__(
        self, chain: FilterChain, state: CycleState, pod: PodInfo, split: FilterSplit
    ) -> None:
        self._chain = chain
        self._nodes = chain.nodes
        self._pod = pod
        self._split = split
        self._noted: list[Status] = []
        self.state = state

    def supposing(self, nodes: NodeTable) -> "Filtering":
        """The same plugins with a clone of the state, to be asked about other nodes."""
        copy = Filtering(self._chain, self.state.clone(), self._pod, self._split)
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
        return self.state.filter_errors

    def judge(self, rows: Rows, window: Window | None = None) -> Codes:
        """One verdict per row; ``window`` is said if the rows are one."""
        verdicts = self.by_node(rows, window)
        for extension in self._split.others:
            self._judge_by(extension, rows, verdicts)
        return verdicts

    def by_node(self, rows: Rows, window: Window | None) -> Codes:
        """The verdicts of the plugins that read nothing but the node; to be written over."""
        return judge_rows(self.state, self._pod, self._split.per_node, self._nodes, rows)

    def by_domain(self, extension: FilterExtension, rows: Rows) -> Codes:
        """The codes of a plugin that counts by topology domain."""
        return self._codes(extension, rows)

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
        return judge_rows(self.state, self._pod, self._split.active, nodes, rows)

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
        judge = self.by_domain if extension.reads is Reads.DOMAIN else self._codes
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

    def _codes(self, extension: FilterExtension, rows: Rows) -> Codes:
        return codes_of(extension, self.state, self._pod, self._nodes, rows)


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
