"""Which pods go first when a controller has too many.

The order of kube-controller-manager: unassigned before assigned, pending before running, not ready
before ready, lower deletion cost, crowded nodes, ready for a shorter time, more restarts, newer.
The two times are compared in buckets of powers of two, so that small differences do not decide.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kubescene.clock import parse_time
from kubescene.controllers.builtin.pod_tally import ready_since
from kubescene.types import JsonObject

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def deletion_order(pods: Sequence[JsonObject], now: int) -> list[JsonObject]:
    """The same pods, the first to be deleted first; full ties by name."""
    crowd = Counter(pod["spec"].get("nodeName", "") for pod in pods)
    return sorted(pods, key=lambda pod: _rank(pod, crowd, now))


def _rank(pod: JsonObject, crowd: Counter[str], now: int) -> tuple[Any, ...]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    node = pod["spec"].get("nodeName", "")
    ready_at = ready_since(status)
    created = parse_time(metadata["creationTimestamp"])
    return (
        bool(node),
        _PHASES.get(status.get("phase", ""), 1),
        ready_at is not None,
        deletion_cost(metadata),
        -crowd[node] if node else 0,
        bucket(now - ready_at) if ready_at is not None else 0,
        -most_restarts(status),
        bucket(now - created),
        metadata["uid"] if bucket(now - created) else "",
        metadata["name"],
    )


def deletion_cost(metadata: JsonObject) -> int:
    """The annotation as int32; anything unreadable counts as zero."""
    text = (metadata.get("annotations") or {}).get(DELETION_COST, "0")
    digits = text[1:] if text[:1] in "+-" else text
    if not digits.isascii() or not digits.isdigit() or text[:1] == "+":
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def most_restarts(status: JsonObject) -> int:
    statuses = status.get("containerStatuses") or ()
    return max((int(s.get("restartCount", 0)) for s in statuses), default=0)


def bucket(age: int) -> int:
    """The power of two below an age in nanoseconds; zero for no age at all."""
    return age.bit_length() if age > 0 else 0
