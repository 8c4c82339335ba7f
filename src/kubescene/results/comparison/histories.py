"""What a ledger tells of the order of things: who was bound when, and to which cluster.

Two schedulers that look at the same cluster and decide otherwise have a reason of their own; if
the clusters differ already, that may be the reason. So a history knows the cluster before every
step, as two checksums: one of the pods on nodes, one of the nodes. Sums of hashes do not depend on
the order, so two runs that came to the same state on different ways, or came back to it, have the
same ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from kubescene.api.encoding import encode
from kubescene.clock import ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry, PodEntry

MODULUS = 1 << 64


class ClusterState(NamedTuple):
    """Checksums of a cluster: of the pods on nodes, and of the nodes."""

    pods: int
    nodes: int


class _Event(NamedTuple):
    """Something that changes the cluster, binds after everything else of their step."""

    step: ScenarioStep
    binds: bool
    pods: int = 0
    nodes: int = 0


class History:
    """One run. Pods of one name are told apart by the order in which they came."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.pods: dict[str, list[PodEntry]] = {}
        for pod in ledger.pods:
            self.pods.setdefault(pod.pod, []).append(pod)
        self._moments: list[tuple[ScenarioStep, bool]] = []
        self._states: list[ClusterState] = [ClusterState(0, 0)]
        for event in sorted(self._events()):
            pods, nodes = self._states[-1]
            state = ClusterState((pods + event.pods) % MODULUS, (nodes + event.nodes) % MODULUS)
            self._moments.append((event.step, event.binds))
            self._states.append(state)

    def before_binding(self, step: ScenarioStep) -> ClusterState:
        """The cluster that a pod was bound to in a step."""
        return self._states[bisect_left(self._moments, (step, True))]

    def after(self, step: ScenarioStep) -> ClusterState:
        """The cluster in which an attempt of a step failed."""
        return self._states[bisect_right(self._moments, (step, True))]

    def bound(self) -> list[PodEntry]:
        """The pods that a scheduler bound, in that order."""
        found = [pod for pod in self.ledger.pods if pod.bound_step and not pod.came_with_node]
        return sorted(found, key=_bound_step)

    def had_node(self, name: str, step: ScenarioStep) -> bool:
        """Whether a node of that name was there."""
        return any(
            node.created_step <= step and (node.ended_step is None or step <= node.ended_step)
            for node in self.ledger.nodes
            if node.name == name
        )

    def _events(self) -> Iterator[_Event]:
        for pod in self.ledger.pods:
            if pod.bound_step is not None:
                number = checksum(pod.pod, pod.node)
                yield _Event(pod.bound_step, binds=not pod.came_with_node, pods=number)
                if pod.ended_step is not None:
                    yield _Event(pod.ended_step, binds=False, pods=-number)
        for node in self.ledger.nodes:
            number = _checksum_of(node)
            yield _Event(node.created_step, binds=False, nodes=number)
            if node.ended_step is not None:
                yield _Event(node.ended_step, binds=False, nodes=-number)


def checksum(*words: str) -> int:
    return int.from_bytes(blake2b("\0".join(words).encode(), digest_size=8).digest(), "big")


def _checksum_of(node: NodeEntry) -> int:
    """A node by its name, what it offers, and its labels, as they were last."""
    parts = (sorted(node.allocatable.items()), sorted(node.labels.items()))
    return checksum(node.name, encode(parts).decode())


def _bound_step(pod: PodEntry) -> ScenarioStep:
    assert pod.bound_step is not None
    return pod.bound_step
