"""Kubelets that fall silent, and what the node monitor and a kubelet that is back make of it.

Nobody writes heartbeats: a kubelet stops when its node is annotated so, and the monitor counts from
that instant on.
"""

from kubescene.api.records import Record
from kubescene.clock import SECOND
from kubescene.types import JsonObject

ANNOTATION, STOPPED = "kubescene.dev/kubelet", "stopped"
GRACE_PERIOD = 50 * SECOND
"""The default of node-monitor-grace-period in v1.36."""
_MENTION = b'"kubescene.dev/kubelet"'
_HEALTHY = {
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "MemoryPressure": (
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
"""Conditions that a kubelet posts: status, reason and message while all is well."""


def has_stopped(record: Record) -> bool:
    """Whether the kubelet of a node was stopped; costs nothing if nobody speaks of it."""
    return record.metadata_mentions(_MENTION) and is_stopped(record.decode())


def is_stopped(node: JsonObject) -> bool:
    return (node["metadata"].get("annotations") or {}).get(ANNOTATION) == STOPPED


def unknown_conditions(node: JsonObject, now: str) -> list[JsonObject]:
    """The conditions of a node of which nothing was heard for too long."""
    conditions = conditions_of(node)
    posted = {each["type"] for each in conditions}
    created = node["metadata"]["creationTimestamp"]
    never = {
        "status": "Unknown",
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": created,
        "lastTransitionTime": now,
    }
    missing = [{"type": name, **never} for name in _HEALTHY if name not in posted]
    return [*(_unknown(each, now) for each in conditions), *missing]


def _unknown(condition: JsonObject, now: str) -> JsonObject:
    if condition["type"] not in _HEALTHY or condition["status"] == "Unknown":
        return condition
    return {
        **condition,
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": now,
    }


def healthy_conditions(node: JsonObject, now: str) -> list[JsonObject]:
    """The conditions of a node whose kubelet is back."""
    return [_healthy(each, now) for each in conditions_of(node)]


def _healthy(condition: JsonObject, now: str) -> JsonObject:
    if condition["type"] not in _HEALTHY or condition["status"] != "Unknown":
        return condition
    status, reason, message = _HEALTHY[condition["type"]]
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {**condition, "status": status, "reason": reason, "message": message, **times}


def conditions_of(node: JsonObject) -> list[JsonObject]:
    conditions: list[JsonObject] = (node.get("status") or {}).get("conditions") or []
    return conditions
