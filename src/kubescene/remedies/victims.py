"""Pods that would have to go: one if one is enough, else as few as can be found.

The scheduler's Filters are asked about each pod of a node by supposition; what they say is proved
by a trial. Only nodes are looked at whose refusal other pods can have caused.
"""

from collections.abc import Iterator, Sequence

from kubescene.remedies.remedy import VICTIM_COST, Edit, Remedy, RemedyKind
from kubescene.remedies.trials import Trials
from kubescene.scheduler.cycle.suppositions import Supposition
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.pods import PodInfo

NODES_TRIED = 100
PODS_TRIED = 50
"""Of each node, the least important first."""


def victims(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """The best of all nodes: the fewest pods, and the least important ones."""
    del reasons
    supposed = trials.suppose()
    if supposed is None:
        return
    found = [(node, fewest(supposed, node)) for node in helped(trials)]
    for node, chosen in sorted(((n, c) for n, c in found if c), key=_worth):
        with trials.without(chosen, node.name):
            place = trials.place()
        if place:
            yield offered(trials, node, chosen, place)
            return


def offered(trials: Trials, node: NodeInfo, chosen: Sequence[PodInfo], place: str) -> Remedy:
    names = ", ".join(pod.key for pod in chosen)
    text = f"delete {names} from {node.name}"
    edits = tuple(Edit("delete", "Pod", pod.name, pod.namespace) for pod in chosen)
    cost = VICTIM_COST * len(chosen)
    return Remedy(RemedyKind.VICTIM, trials.key, text, cost, place, edits)


def helped(trials: Trials) -> list[NodeInfo]:
    """The nodes whose refusal may be due to the pods on them."""
    explanation = trials.decide().explanation
    if explanation is None:
        return []
    rows = [
        int(row)
        for group in explanation.filters
        if group.code == Code.UNSCHEDULABLE
        for row in group.nodes
    ]
    nodes = trials.nodes
    return [nodes[row] for row in sorted(rows) if nodes[row].pods][:NODES_TRIED]


def fewest(supposed: Supposition, node: NodeInfo) -> list[PodInfo]:
    """One pod of a node, else a few of which none can stay; nothing if not even all help."""
    pods = sorted((each for each in node.pods if not each.terminating), key=_importance)
    for pod in pods[:PODS_TRIED]:
        if helps(supposed, node, [pod]):
            return [pod]
    chosen = list(pods[:PODS_TRIED])
    if not helps(supposed, node, chosen):
        return []
    for pod in sorted(chosen, key=_size):
        others = [each for each in chosen if each is not pod]
        if helps(supposed, node, others):
            chosen = others
    return chosen


def helps(supposed: Supposition, node: NodeInfo, gone: Sequence[PodInfo]) -> bool:
    trial = supposed.clone()
    for pod in gone:
        trial.remove(pod, node.name)
    return trial.filter(node.name).ok


def _importance(pod: PodInfo) -> tuple[int, str]:
    return pod.priority, pod.key


def _size(pod: PodInfo) -> tuple[int, int, str]:
    return pod.nonzero_cpu, pod.nonzero_memory, pod.key


def _worth(found: tuple[NodeInfo, list[PodInfo]]) -> tuple[int, int, str]:
    node, chosen = found
    return len(chosen), max(pod.priority for pod in chosen), node.name
