"""Which pending pods hold which node: they preempted others there and wait for them to go."""

from collections.abc import Iterator

from kubescene.scheduler.pods import PodInfo


class Nominations:
    """Nominated pods by node, in order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def node_of(self, pod: PodInfo) -> str:
        return self._node_of.get(pod.uid, "")

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate; an earlier nomination of the pod ends. No node means no nomination."""
        if node and self._node_of.get(pod.uid) == node:
            self._by_node[node][pod.uid] = pod
            return
        self.remove(pod)
        if node:
            self._node_of[pod.uid] = node
            self._by_node.setdefault(node, {})[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        node = self._node_of.pop(pod.uid, None)
        if node is None:
            return
        del self._by_node[node][pod.uid]
        if not self._by_node[node]:
            del self._by_node[node]

    def on(self, node: str) -> list[PodInfo]:
        return list(self._by_node.get(node, {}).values())

    def rivals(self, pod: PodInfo) -> Iterator[tuple[str, list[PodInfo]]]:
        """Per node, the other nominated pods whose priority is not lower."""
        for node in self._by_node:
            if rivals := self.rivals_on(node, pod):
                yield node, rivals

    def rivals_on(self, node: str, pod: PodInfo) -> list[PodInfo]:
        """The other pods nominated to one node whose priority is not lower."""
        return [
            each
            for each in self._by_node.get(node, {}).values()
            if each.priority >= pod.priority and each.uid != pod.uid
        ]
