"""ImageLocality: prefer nodes that already hold large images of the pod, unless few others do.

An image counts with its size times the share of nodes that hold it, so that not all pods run after
the one node that has it. As upstream, that share is as old as the last change of the node, see
`image_states`.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    ClusterScorePlugin,
    Handle,
    Plugin,
    Rows,
    ScorePlugin,
    Scores,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import Moves, NodeTable, moved
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_results import RowResults

_MIB = 1 << 20
LOWEST = 23 * _MIB
HIGHEST_PER_CONTAINER = 1000 * _MIB


class ImagesOfPod(NamedTuple):
    """The images of a pod, by normalized name, and how many containers it has."""

    names: tuple[str, ...]
    containers: int


class ImageScores(RowResults):
    """The kept scores of all pods with the same images. They hold for one number of nodes."""

    __slots__ = ("scores", "total")

    def __init__(self, nodes: NodeTable) -> None:
        super().__init__(nodes)
        self.total = len(nodes)
        self.scores = np.zeros(len(nodes), dtype=np.int64)

    def move(self, moves: Moves) -> None:
        super().move(moves)
        self.scores = moved(self.scores, moves)


class ImageLocality(ScorePlugin, ClusterScorePlugin):
    name = "ImageLocality"
    concerns_by_kind = True

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._kept: OrderedDict[ImagesOfPod, ImageScores] = OrderedDict()

    @property
    def concern_version(self) -> int:
        return self._nodes.images.version

    def concerns_scoring(self, signature: PodSignature) -> bool:
        """Whether some node holds one of the images."""
        known = self._nodes.images
        return any(name in known for name in signature.compiled(images_of).names)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:  # SC-5
        return _rate(self._nodes, pod.signature.compiled(images_of), node)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        if nodes.bare:  # nor is it known which images they hold.
            return np.zeros(rows.size, dtype=np.int64)
        images = pod.signature.compiled(images_of)
        kept = self._scores(images, nodes)
        outdated = kept.outdated(nodes, rows, None)
        if len(outdated):
            for row in map(int, outdated):
                kept.scores[row] = _rate(nodes, images, nodes.infos[row])
            kept.renewed(nodes, outdated)
        return kept.scores.take(rows)

    def _scores(self, images: ImagesOfPod, nodes: NodeTable) -> ImageScores:
        kept = self._kept.get(images)
        if kept is None or kept.total != len(nodes) or not kept.in_place(nodes):
            kept = self._kept[images] = ImageScores(nodes)
            while len(self._kept) > POLICY.entries_kept(len(nodes)):
                self._kept.popitem(last=False)
        self._kept.move_to_end(images)
        return kept

    def sign(self, signature: PodSignature) -> Part | None:
        """Images of volumes are scored, but not signed."""
        spec = signature.pod_class.spec
        containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        return signing.images(normalized(each.get("image") or "") for each in containers)


def images_of(signature: PodSignature) -> ImagesOfPod:
    """All images of a pod: those of init containers, containers and volumes."""
    spec = signature.pod_class.spec
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    names = [each.get("image") or "" for each in containers]
    mounted = [each["image"] for each in signature.volumes if each.get("image") is not None]
    names += [each.get("reference") or "" for each in mounted]
    return ImagesOfPod(tuple(map(normalized, names)), len(containers))


def normalized(name: str) -> str:
    """An image name with its tag; without one it means the latest."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


def _rate(nodes: NodeTable, images: ImagesOfPod, node: NodeInfo) -> int:
    held = nodes.images.held_by(node.name)
    if not held:
        return 0
    total = sum(_spread(nodes, name, node) for name in images.names if name in held)
    return in_percent(total, images.containers)


def _spread(nodes: NodeTable, name: str, node: NodeInfo) -> int:
    """The size of an image in bytes, the less the fewer nodes hold it."""
    states, row = nodes.images, node.row
    count = states.nodes_with(name, row, int(nodes.versions[row]))
    return int(float(states.size(name)) * (count / len(nodes)))


def in_percent(total: int, containers: int) -> int:
    highest = HIGHEST_PER_CONTAINER * containers
    if total < LOWEST:
        total = LOWEST
    elif total > highest:
        total = highest
    return MAX_NODE_SCORE * (total - LOWEST) // (highest - LOWEST)


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments
    return ImageLocality(handle.nodes)
