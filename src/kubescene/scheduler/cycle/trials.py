"""What if pods were gone: asked of many nodes, for preemption.

`Supposition` (see `suppositions`) can suppose anything and costs accordingly. Where all Filters of
a pod see no more of other pods than what these ask for, nodes without some of their pods are a
table of smaller numbers, judged at once, and a single node is a copy of its `NodeInfo`.
"""

from collections.abc import Hashable, Mapping

from kubescene.errors import KubesceneError
from kubescene.scheduler.cycle.suppositions import Supposition
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.framework.guarded_calls import check_answer, failed
from kubescene.scheduler.framework.interfaces import Codes, Rows, Trial
from kubescene.scheduler.framework.profile import ExtensionPoint
from kubescene.scheduler.framework.runtime import FilterExtension
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominated_amounts import ShiftedNodes
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Column


class TryingOut:
    """Filter for one pod, as if others were gone."""

    def __init__(
        self, filtering: Filtering, nodes: NodeTable, nominations: Nominations, pod: PodInfo
    ) -> None:
        self._filtering = filtering
        self._nodes = nodes
        self._nominations = nominations
        self._pod = pod
        self._nominated = nominations.amounts(pod, nodes)
        self.by_amounts = filtering.by_amounts
        self.by_class = filtering.by_class
        own = nominations.node_of(pod)
        self.own_row = nodes.row_of(own) if own else None

    @property
    def plugins(self) -> Hashable:
        return self._filtering.state.skipped_filters

    @property
    def nomination_versions(self) -> Column | None:
        return None if self._nominated is None else self._nominated.versions

    def judge(self, rows: Rows, gone: Mapping[str, Column]) -> Codes:
        verdicts = self._filtering.judge_shifted(ShiftedNodes(self._nodes, less=gone), rows)
        nominated = self._nominated
        if nominated is not None and (at := nominated.count.take(rows).nonzero()[0]).size:
            crowded = ShiftedNodes(self._nodes, nominated.columns, gone)
            verdicts[at] = self._filtering.judge_crowded(crowded, rows.take(at), verdicts.take(at))
        return verdicts

    def describe(self, verdict: int) -> Status:
        return self._filtering.describe(verdict)

    def on(self, row: int) -> Trial:
        if not self.by_amounts:
            return self.by_itself(row)
        info = self._nodes.infos[row]
        return AmountsTrial(self._filtering, self._pod, info, self._rivals(info))

    def by_itself(self, row: int) -> Trial:
        supposed = Supposition(self._filtering, self._nodes, self._nominations, self._pod)
        return SupposedTrial(supposed, self._nodes.names[row])

    def _rivals(self, info: NodeInfo) -> list[PodInfo]:
        if self._nominated is None or not self._nominated.count[info.row]:
            return []
        return self._nominations.rivals_on(info.name, self._pod)


class SupposedTrial:
    """A node in a supposition of its own."""

    __slots__ = ("_node", "_supposed")

    def __init__(self, supposed: Supposition, node: str) -> None:
        self._supposed = supposed
        self._node = node

    def remove(self, pod: PodInfo) -> None:
        self._supposed.remove(pod, self._node)

    def add(self, pod: PodInfo) -> None:
        self._supposed.add(pod, self._node)

    def filter(self) -> Status:
        return self._supposed.filter(self._node)


class AmountsTrial:
    """A copy of a node, and a second one with the pods that are nominated to it.

    Plugins that see nothing of pods are asked once.
    """

    __slots__ = ("_filtering", "_infos", "_passed", "_pod")

    def __init__(
        self, filtering: Filtering, pod: PodInfo, info: NodeInfo, rivals: list[PodInfo]
    ) -> None:
        self._filtering = filtering
        self._pod = pod
        self._passed = False
        self._infos = [info.copy()]
        if rivals:
            crowded = info.copy()
            for rival in rivals:
                crowded.add(rival)
            self._infos.insert(0, crowded)

    def remove(self, pod: PodInfo) -> None:
        for info in self._infos:
            info.remove(pod)

    def add(self, pod: PodInfo) -> None:
        for info in self._infos:
            info.add(pod)

    def filter(self) -> Status:
        filtering = self._filtering
        filters = filtering.amount_filters if self._passed else filtering.active
        for info in self._infos:
            for extension in filters:
                status = self._ask(extension, info)
                if status is not SUCCESS and not status.ok:
                    return status.by(extension.name)
        self._passed = True
        return SUCCESS

    def _ask(self, extension: FilterExtension, info: NodeInfo) -> Status:
        assert extension.inner is not None
        try:
            status = extension.inner(self._filtering.state, self._pod, info)
        except KubesceneError:
            raise
        except Exception as error:
            raise failed(error, extension.name, ExtensionPoint.FILTER) from error
        if status is not SUCCESS:
            check_answer(status, extension.name, "filter", ExtensionPoint.FILTER)
        return status
