"""Which pods go first when a controller has too many.

The order of kube-controller-manager: unassigned before assigned, pending before running, not ready
before ready, lower deletion cost, crowded nodes, ready for a shorter time, more restarts, newer.
The two times are compared in buckets of powers of two, so that small differences do not decide.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

from msgspec import Struct

from kubescene.clock import parse_time
from kubescene.controllers.builtin.workloads.pod_tally import ready_since
from kubescene.types import JsonObject

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"0|[1-9]\d*|-\d+", re.ASCII)
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class RankedPod(Struct, frozen=True):
    """What the order looks at. ``rank`` decides before the times, ``restarts`` between them."""

    pod: JsonObject
    rank: tuple[Any, ...]
    ready_at: int | None
    restarts: tuple[int, int]
    created_at: int
    uid: str


def deletion_order(
    pods: Sequence[JsonObject], now: int, related: Sequence[JsonObject] = ()
) -> list[JsonObject]:
    """The same pods, given in order of creation, the first to be deleted first.

    Of equals the newest goes: names are made by lot, and nothing shall depend on them.

    Nodes with more of the ``related`` pods are relieved first.
    """
    by_node = Counter(pod["spec"].get("nodeName", "") for pod in related)
    candidates = [candidate(pod, by_node) for pod in reversed(pods)]
    candidates.sort(key=cmp_to_key(lambda one, other: compare(one, other, now)))
    return [found.pod for found in candidates]


def candidate(pod: JsonObject, by_node: Counter[str]) -> RankedPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    node = pod["spec"].get("nodeName", "")
    ready_at = ready_since(status)
    rank = (
        bool(node),
        _PHASES.get(status.get("phase", ""), 1),
        ready_at is not None,
        deletion_cost(metadata),
        -by_node[node],
    )
    created_at = parse_time(metadata["creationTimestamp"])
    return RankedPod(pod, rank, ready_at, most_restarts(pod), created_at, metadata["uid"])


def compare(one: RankedPod, other: RankedPod, now: int) -> int:
    """Negative if ``one`` is to be deleted before ``other``; the first difference decides."""
    if one.rank != other.rank:
        return -1 if one.rank < other.rank else 1
    if one.ready_at is not None and other.ready_at is not None and one.ready_at != other.ready_at:
        return compare_ages(one, other, bucket(now - one.ready_at), bucket(now - other.ready_at))
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_at != other.created_at:
        ages = bucket(now - one.created_at), bucket(now - other.created_at)
        return compare_ages(one, other, *ages)
    return 0


def compare_ages(one: RankedPod, other: RankedPod, age: int, other_age: int) -> int:
    """The younger first; ages that are much the same leave it to the uid."""
    if age != other_age:
        return age - other_age
    return -1 if one.uid < other.uid else 1


def deletion_cost(metadata: JsonObject) -> int:
    """The annotation as int32; anything unreadable counts as zero, a leading zero included."""
    text = (metadata.get("annotations") or {}).get(DELETION_COST, "0")
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def most_restarts(pod: JsonObject) -> tuple[int, int]:
    """The highest restart count among the containers, and among the sidecars."""
    status = pod.get("status") or {}
    before = pod["spec"].get("initContainers") or ()
    sidecars = {c["name"] for c in before if c.get("restartPolicy") == "Always"}
    regular = [int(s.get("restartCount", 0)) for s in status.get("containerStatuses") or ()]
    beside = [
        int(s.get("restartCount", 0))
        for s in status.get("initContainerStatuses") or ()
        if s["name"] in sidecars
    ]
    return max(regular, default=0), max(beside, default=0)


def bucket(age: int) -> int:
    """The power of two below an age in nanoseconds; zero for no age at all."""
    return age.bit_length() if age > 0 else 0
