"""What a ledger tells of the order of things: who was bound when, and to which cluster.

Two schedulers that look at the same cluster and decide otherwise have a reason of their own; if
the clusters differ already, that may be the reason. So a history knows the cluster before every
step, as two checksums: one of the pods on nodes, one of the nodes. Sums of hashes do not depend on
the order, so two runs that came to the same state on different ways, or came back to it, have the
same ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from kubescene.api.text.encoding import encode
from kubescene.clock import ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry, PodEntry

MINOR_BITS = 48
"""Of a moment as one number: more minor steps than any run has."""


class ClusterChecksums(NamedTuple):
    """Checksums of a cluster: of the pods on nodes, and of the nodes."""

    pods: int
    nodes: int


class RunHistory:
    """One run. Pods of one name are told apart by the order in which they came.

    ``names`` are those by which pods are known here, by uid, if not by their own.
    """

    def __init__(self, ledger: Ledger, names: Mapping[str, str] | None = None) -> None:
        self.ledger = ledger
        self.names = names or {}
        self.pods: dict[str, list[PodEntry]] = {}
        self.namesakes: dict[str, list[PodEntry]] = {}
        for pod in ledger.pods:
            self.pods.setdefault(self.name_of(pod), []).append(pod)
            self.namesakes.setdefault(pod.pod, []).append(pod)
        self._pods = _Course(self._placements())
        self._nodes = _Course(self._nodes_coming())

    def name_of(self, pod: PodEntry) -> str:
        """What a pod is called in the comparison."""
        return self.names.get(pod.uid) or pod.pod

    def known_as(self) -> dict[str, str]:
        """The names of pods here, by their own, where these differ."""
        others = (pod for pod in self.ledger.pods if pod.uid in self.names)
        return {pod.pod: self.names[pod.uid] for pod in others}

    def before_binding(self, step: ScenarioStep) -> ClusterChecksums:
        """The cluster that a pod was bound to in a step."""
        moment = _moment(step, binds=True)
        return ClusterChecksums(self._pods.before(moment), self._nodes.before(moment))

    def pods_before_binding(self, step: ScenarioStep) -> int:
        """The first half of that."""
        return self._pods.before(_moment(step, binds=True))

    def after(self, step: ScenarioStep) -> ClusterChecksums:
        """The cluster in which an attempt of a step failed."""
        moment = _moment(step, binds=True)
        return ClusterChecksums(self._pods.after(moment), self._nodes.after(moment))

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

    def _placements(self) -> Iterator[tuple[int, int]]:
        """Pods that come to nodes and leave them."""
        for name, pods in self.pods.items():
            for pod in pods:
                if pod.bound_step is not None:
                    number = checksum(name, pod.node)
                    yield _moment(pod.bound_step, binds=not pod.came_with_node), number
                    if pod.ended_step is not None:
                        yield _moment(pod.ended_step, binds=False), -number

    def _nodes_coming(self) -> Iterator[tuple[int, int]]:
        """Nodes that come and go."""
        for node in self.ledger.nodes:
            number = _checksum_of(node)
            yield _moment(node.created_step, binds=False), number
            if node.ended_step is not None:
                yield _moment(node.ended_step, binds=False), -number


class _Course:
    """A checksum over the course of a run, from what adds to it when."""

    def __init__(self, changes: Iterator[tuple[int, int]]) -> None:
        ordered = sorted(changes)
        self._moments = [moment for moment, _ in ordered]
        self._sums = [*accumulate((number for _, number in ordered), initial=0)]

    def before(self, moment: int) -> int:
        return self._sums[bisect_left(self._moments, moment)]

    def after(self, moment: int) -> int:
        return self._sums[bisect_right(self._moments, moment)]


def _moment(step: ScenarioStep, *, binds: bool) -> int:
    """A step as a number; pods are bound after everything else of their step."""
    return ((step[0] << MINOR_BITS) + step[1] << 1) + binds


def checksum(*words: str) -> int:
    """A number that the sums are of. Of the joined text: hashes of tuples add up to equal sums
    when two members change places, and a hash need not be the same in another process."""
    return hash("\0".join(words))


def _checksum_of(node: NodeEntry) -> int:
    """A node by its name, what it offers, and its labels, as they were last."""
    parts = (sorted(node.allocatable.items()), sorted(node.labels.items()))
    return checksum(node.name, encode(parts).decode())


def _bound_step(pod: PodEntry) -> ScenarioStep:
    assert pod.bound_step is not None
    return pod.bound_step
