"""What the conditions of a node mean: the taints that tell them to scheduler and evictions."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubescene.types import JsonObject

READY, UNREACHED = "True", "Unknown"
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TOPOLOGY = "topology.kubernetes.io"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"

READY_TAINTS: Mapping[str, str] = {"False": NOT_READY, UNREACHED: UNREACHABLE}
"""The taint of a node by the status of its condition Ready."""
CONDITION_TAINTS: Mapping[str, Mapping[str, str]] = {
    "Ready": READY_TAINTS,
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_KEPT_IN_STEP = frozenset(
    {UNSCHEDULABLE, *(key for keys in CONDITION_TAINTS.values() for key in keys.values())}
)
"""Keys of taints with the effect NoSchedule that are there if, and only if, a condition is."""


_ZONE_LABELS = tuple(
    (f"failure-domain.beta.kubernetes.io/{name}", f"{TOPOLOGY}/{name}")
    for name in ("region", "zone")
)


class Zone(NamedTuple):
    """Where a node is; nodes without labels are all in one."""

    region: str
    zone: str

    def __deepcopy__(self, memo: object) -> "Zone":
        return self  # nothing of it ever changes


def zone_of(labels: Mapping[str, str]) -> Zone:
    """That of a node with these labels; a beta label that is present wins."""
    return Zone(*[labels.get(old, labels.get(new, "")) for old, new in _ZONE_LABELS])


def readiness(node: JsonObject) -> str:
    """The status of the condition Ready; empty while nobody has said anything."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("status", ""))
    return ""


def taints_of(node: JsonObject) -> list[JsonObject]:
    taints: list[JsonObject] = node["spec"].get("taints") or []
    return taints


def has_taint(node: JsonObject, key: str, effect: str) -> bool:
    return any(each["key"] == key and each["effect"] == effect for each in taints_of(node))


def in_step(node: JsonObject, now: str) -> list[JsonObject]:
    """The taints of a node with those of the effect NoSchedule that its conditions call for."""
    wanted = dict.fromkeys(_wanted(node))
    if not wanted and not taints_of(node):
        return []
    kept = [each for each in taints_of(node) if not _is_out_of_step(each, wanted)]
    there = {each["key"] for each in kept if each["effect"] == NO_SCHEDULE}
    return [*kept, *(taint(key, NO_SCHEDULE, now) for key in wanted if key not in there)]


def without_verdict(taints: list[JsonObject]) -> list[JsonObject]:
    """Taints without those that drive pods away from a node that is not ready."""
    verdicts = READY_TAINTS.values()
    return [t for t in taints if t["effect"] != NO_EXECUTE or t["key"] not in verdicts]


def with_verdict(taints: list[JsonObject], key: str, now: str) -> list[JsonObject]:
    """Taints with the one that drives pods away; not ready and unreachable exclude each other."""
    kept = [t for t in taints if t["effect"] == NO_EXECUTE and t["key"] == key]
    return [*without_verdict(taints), *(kept or [taint(key, NO_EXECUTE, now)])]


def taint(key: str, effect: str, now: str) -> JsonObject:
    return {"key": key, "effect": effect, "timeAdded": now}


def _wanted(node: JsonObject) -> Iterator[str]:
    for condition in (node.get("status") or {}).get("conditions") or ():
        keys = CONDITION_TAINTS.get(condition.get("type", ""), {})
        if key := keys.get(condition.get("status", "")):
            yield key
    if node["spec"].get("unschedulable"):
        yield UNSCHEDULABLE


def _is_out_of_step(taint: JsonObject, wanted: Mapping[str, None]) -> bool:
    key = taint["key"]
    return taint["effect"] == NO_SCHEDULE and key in _KEPT_IN_STEP and key not in wanted
