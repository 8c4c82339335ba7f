"""NodeResourcesBalancedAllocation: prefer nodes whose resources a pod brings into balance. [SC-4]

A node is balanced if its resources are used to the same share. Rated is what the pod changes: the
balance with it against the balance without it; about 75 means no change (SC-9).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.api.resource_requests import CPU, MEMORY, is_counted, is_scalar
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    ClusterScorePlugin,
    EnqueueExtensions,
    EventRegistration,
    Handle,
    Plugin,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo

EVEN = MAX_NODE_SCORE // 2
"""What stands for no change, before it is halved."""
_DEFAULT_RESOURCES = ({"name": CPU}, {"name": MEMORY})


class NodeResourcesBalancedAllocation(
    PreScorePlugin,
    ScorePlugin,
    ClusterScorePlugin,
    EnqueueExtensions,
):
    name = "NodeResourcesBalancedAllocation"
    reads = Reads.NODE
    prepares_by_class = True

    def __init__(self, resources: Sequence[str]) -> None:
        self.resources = tuple(name for name in resources if is_counted(name))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        return SUCCESS if self._concerns(pod) else SKIP

    def _concerns(self, pod: PodInfo) -> bool:
        return any(map(pod.requests.get, self.resources))

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        if not self._concerns(pod):
            return 0  # Nobody asked PreScore.
        before: list[float] = []
        after: list[float] = []
        requests, allocatable, requested = pod.requests, node.allocatable, node.requested
        for resource in self.resources:
            asked, offered = requests.get(resource, 0), allocatable.get(resource, 0)
            if offered == 0 or (asked == 0 and is_scalar(resource)):
                continue
            # Converted first, as upstream does: beyond 2**53 the quotients would differ.
            used, whole = requested.get(resource, 0), float(offered)
            share, later = float(used) / whole, float(used + asked) / whole
            before.append(share if share < 1.0 else 1.0)
            after.append(later if later < 1.0 else 1.0)
        return EVEN + (EVEN + balance(after) - balance(before)) // 2

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        resources = self.resources
        if not self._concerns(pod):
            return np.zeros(rows.size, dtype=np.int64)
        plain = len(resources) == 2 and all(map(nodes.is_offered_everywhere, resources))
        if not plain or any(map(is_scalar, resources)):
            infos = nodes.infos
            scores = [self.score(state, pod, infos[row]) for row in rows.tolist()]
            return np.array(scores, dtype=np.int64)
        shares = np.empty((2, 2, rows.size))  # by resource, before and after
        for of_resource, resource in zip(shares, resources, strict=True):
            offered = nodes.allocatable(resource).take(rows)
            used = nodes.requested(resource).take(rows)
            np.divide(used, offered, out=of_resource[0])
            used += pod.requests.get(resource, 0)
            np.divide(used, offered, out=of_resource[1])
        np.minimum(shares, 1.0, out=shares)
        before, after = _balances(*shares)
        change: Scores = after - before
        change += EVEN
        change >>= 1  # Halved and rounded down, as `score` does.
        change += EVEN
        return change

    def events_to_register(self) -> Sequence[EventRegistration]:
        return ()

    def sign(self, signature: PodSignature) -> Part | None:
        return signing.resources(signature)


def balance(shares: Sequence[float]) -> int:
    """100 if all shares are equal, less the more they differ."""
    if len(shares) < 2:
        return MAX_NODE_SCORE
    if len(shares) == 2:
        return balance_of(*shares)
    total = 0.0
    for share in shares:
        total += share
    mean, squares = total / len(shares), 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int((1 - math.sqrt(squares / len(shares))) * MAX_NODE_SCORE)


def balance_of(first: float, second: float) -> int:
    """The same of two shares."""
    return int((1 - abs((first - second) / 2)) * MAX_NODE_SCORE)


def _balances(first: NDArray[np.float64], second: NDArray[np.float64]) -> Scores:
    """`balance` of two shares over many nodes: the same operations in the same order."""
    spread = first - second
    spread /= 2
    np.abs(spread, out=spread)
    np.subtract(1, spread, out=spread)
    spread *= MAX_NODE_SCORE
    return spread.astype(np.int64)


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del handle
    resources = arguments.get("resources") or _DEFAULT_RESOURCES
    return NodeResourcesBalancedAllocation([each["name"] for each in resources])
