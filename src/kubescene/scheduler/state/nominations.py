"""Which pending pods hold which node: they preempted others there and wait for them to go."""

from collections.abc import Iterator

from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominated_amounts import NominatedAmounts, NominatedByPriority
from kubescene.scheduler.state.pods import PodInfo


class Nominations:
    """Nominated pods by node, in order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._left: dict[str, PodInfo] = {}
        self._nominated: NominatedByPriority | None = None
        self.version = 0
        """Grows with every change."""

    def amounts(self, pod: PodInfo, nodes: NodeTable) -> NominatedAmounts | None:
        """By row, those whom a pod must leave room, itself perhaps among them; None: nobody."""
        if not self._node_of:
            return None
        if self._nominated is None or self._nominated.nodes is not nodes:
            self._nominated = NominatedByPriority(nodes)
        return self._nominated.against(pod, self._all)

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def node_of(self, pod: PodInfo) -> str:
        return self._node_of.get(pod.uid, "")

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate; an earlier nomination of the pod ends. No node means no nomination."""
        if node and self._node_of.get(pod.uid) == node:
            nominated = self._by_node[node]
            before, nominated[pod.uid] = nominated[pod.uid], pod
            if before.signature is not pod.signature or before.requests is not pod.requests:
                self._withdraw(before, node)
                self._nominate(pod, node)
            return
        self.remove(pod)
        if node:
            self._node_of[pod.uid] = node
            self._by_node.setdefault(node, {})[pod.uid] = pod
            self._nominate(pod, node)

    def remove(self, pod: PodInfo) -> None:
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        self._withdraw(self._by_node[node].pop(pod.uid), node)
        if not self._by_node[node]:
            del self._by_node[node]

    def leave(self, pod: PodInfo) -> None:
        """A pod that will not be attempted any more keeps nobody out, though it is there. [Q-19]"""
        if pod.uid in self._node_of:
            self.remove(pod)
            self._left[pod.uid] = pod

    def gone(self, uid: str) -> PodInfo | None:
        """A pod is gone: the one that had left its node before, if it is one."""
        return self._left.pop(uid, None)

    def _nominate(self, pod: PodInfo, node: str) -> None:
        self.version += 1
        if self._nominated is not None:
            self._nominated.count(pod, node, 1)

    def _withdraw(self, pod: PodInfo, node: str) -> None:
        self.version += 1
        if self._nominated is not None:
            self._nominated.count(pod, node, -1)

    def on(self, node: str) -> list[PodInfo]:
        return list(self._by_node.get(node, {}).values())

    def _all(self) -> Iterator[tuple[PodInfo, str]]:
        for node, pods in self._by_node.items():
            for pod in pods.values():
                yield pod, node

    def rivals_on(self, node: str, pod: PodInfo) -> list[PodInfo]:
        """The other pods nominated to one node whose priority is not lower."""
        return [
            each
            for each in self._by_node.get(node, {}).values()
            if each.priority >= pod.priority and each.uid != pod.uid
        ]
