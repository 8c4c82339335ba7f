"""Which pending pods hold which node: they preempted others there and wait for them to go."""

from collections.abc import Iterator
from typing import Protocol

from kubescene.scheduler.pods import PodInfo


class NominationObserver(Protocol):
    """Keeps something per node that depends on who is nominated there."""

    def nominated(self, pod: PodInfo, node: str) -> None: ...

    def withdrawn(self, pod: PodInfo, node: str) -> None: ...


class Nominations:
    """Nominated pods by node, in order of nomination."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self._observers: list[NominationObserver] = []

    def tell(self, observer: NominationObserver) -> None:
        """Tell somebody of what happens from now on."""
        self._observers.append(observer)

    def __bool__(self) -> bool:
        return bool(self._node_of)

    def node_of(self, pod: PodInfo) -> str:
        return self._node_of.get(pod.uid, "")

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate; an earlier nomination of the pod ends. No node means no nomination."""
        if node and self._node_of.get(pod.uid) == node:
            self._withdraw(self._by_node[node][pod.uid], node)
            self._by_node[node][pod.uid] = pod
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

    def _nominate(self, pod: PodInfo, node: str) -> None:
        for observer in self._observers:
            observer.nominated(pod, node)

    def _withdraw(self, pod: PodInfo, node: str) -> None:
        for observer in self._observers:
            observer.withdrawn(pod, node)

    def on(self, node: str) -> list[PodInfo]:
        return list(self._by_node.get(node, {}).values())

    def all(self) -> Iterator[tuple[PodInfo, str]]:
        """Every nominated pod and its node."""
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
