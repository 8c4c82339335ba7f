"""Nodes as the autoscaler sees them: readiness, taints, size."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from kubescene.api.quantity import milli_value, value
from kubescene.clock.timestamps import parse_time
from kubescene.durations import MINUTE, SECOND
from kubescene.types import JsonObject

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"
HOSTNAME = "kubernetes.io/hostname"
BEING_DELETED = 5 * MINUTE
"""So long after its taint a node counts as being deleted."""

_STARTUP = (
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
)
_STATUS = "status-taint.cluster-autoscaler.kubernetes.io/"
_BROKEN = frozenset({"DiskPressure", "NetworkUnavailable"})
_NOT_READY = frozenset(
    f"node.kubernetes.io/{each}" for each in ("not-ready", "disk-pressure", "network-unavailable")
)
_OF_CONDITIONS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
    }
)


class SeenNode:
    """One node at one revision; never changed."""

    def __init__(self, obj: JsonObject) -> None:
        self.object = obj
        self.name: str = obj["metadata"]["name"]

    def __deepcopy__(self, memo: dict[int, Any]) -> "SeenNode":
        return self

    def __repr__(self) -> str:
        return f"<SeenNode {self.name}>"

    @property
    def provider_id(self) -> str:
        return str((self.object.get("spec") or {}).get("providerID") or "")

    @property
    def labels(self) -> dict[str, str]:
        return self.object["metadata"].get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.object["metadata"].get("annotations") or {}

    @property
    def taints(self) -> Sequence[JsonObject]:
        return (self.object.get("spec") or {}).get("taints") or ()

    def has_taint(self, key: str) -> bool:
        return any(each["key"] == key for each in self.taints)

    @property
    def is_cordoned(self) -> bool:
        return bool((self.object.get("spec") or {}).get("unschedulable"))

    @cached_property
    def created(self) -> int:
        stamp = self.object["metadata"].get("creationTimestamp")
        return 0 if stamp is None else parse_time(stamp)

    @property
    def is_ready(self) -> bool:
        return self._readiness[0]

    @property
    def readiness_since(self) -> int | None:
        """When something last changed in its readiness; None if nothing says so."""
        return self._readiness[1]

    @cached_property
    def _readiness(self) -> tuple[bool, int | None]:
        ready, found, since = True, False, None
        for each in (self.object.get("status") or {}).get("conditions") or ():
            if each["type"] == "Ready":
                found = True
                ready = ready and each["status"] not in ("False", "Unknown")
            elif each["type"] in _BROKEN:
                ready = ready and each["status"] != "True"
            else:
                continue
            since = _later(since, each.get("lastTransitionTime"))
        for each in self.taints:
            if each["key"] in _NOT_READY:
                ready, since = False, _later(since, each.get("timeAdded"))
        return (ready, since) if found else (False, None)

    @property
    def is_suspended(self) -> bool:
        conditions = (self.object.get("status") or {}).get("conditions") or ()
        return any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions)

    def tainted_at(self, key: str) -> int | None:
        """The instant that a taint of ours says; None if there is none, or it says none."""
        for each in self.taints:
            if each["key"] == key:
                text = each.get("value", "")
                return int(text) * SECOND if text.lstrip("-").isdigit() else None
        return None

    def is_being_deleted(self, now: int) -> bool:
        since = self.tainted_at(TO_BE_DELETED)
        return since is not None and now - since < BEING_DELETED

    @property
    def may_be_scaled_down(self) -> bool:
        return self.annotations.get(SCALE_DOWN_DISABLED) != "true"

    @cached_property
    def capacity(self) -> JsonObject:
        return (self.object.get("status") or {}).get("capacity") or {}

    @cached_property
    def allocatable(self) -> JsonObject:
        return (self.object.get("status") or {}).get("allocatable") or {}

    @cached_property
    def milli_cpu(self) -> int:
        return milli_value(self.capacity.get("cpu", 0))

    @cached_property
    def cores(self) -> int:
        return max(value(self.capacity.get("cpu", 0)), 0)

    @cached_property
    def memory(self) -> int:
        return max(value(self.capacity.get("memory", 0)), 0)

    # -- nodes made of it ------------------------------------------------------------------

    def renamed(self, name: str) -> "SeenNode":
        """A node like this one."""
        metadata = self.object["metadata"]
        labels = {**self.labels, HOSTNAME: name}
        return SeenNode({**self.object, "metadata": {**metadata, "name": name, "labels": labels}})

    def tainted(self, taints: Sequence[JsonObject]) -> "SeenNode":
        """This node with these taints and no others."""
        spec = {**(self.object.get("spec") or {}), "taints": [*taints]}
        return SeenNode({**self.object, "spec": spec})

    def starting(self) -> "SeenNode":
        """This node as not ready, because of a taint that it has until it is set up."""
        status = self.object["status"]
        others = [each for each in status.get("conditions") or () if each["type"] != "Ready"]
        ready = {
            "type": "Ready",
            "status": "False",
            "lastTransitionTime": self.object["metadata"].get("creationTimestamp"),
        }
        return SeenNode({**self.object, "status": {**status, "conditions": [ready, *others]}})


def _later(since: int | None, stamp: str | None) -> int | None:
    if stamp is None:
        return since
    at = parse_time(stamp)
    return at if since is None or at > since else since


def deletion_taint(now: int) -> JsonObject:
    return {"key": TO_BE_DELETED, "value": str(now // SECOND), "effect": "NoSchedule"}


def candidate_taint(now: int) -> JsonObject:
    return {"key": DELETION_CANDIDATE, "value": str(now // SECOND), "effect": "PreferNoSchedule"}


class TaintKinds:
    """Which taints are there only for a while, and so not on the next node of a group."""

    def __init__(
        self, startup: Iterable[str], prefixes: Iterable[str], status: Iterable[str]
    ) -> None:
        self._startup = frozenset(startup)
        self._prefixes = (*_STARTUP, *prefixes)
        self._status = frozenset(status)

    def is_startup(self, key: str) -> bool:
        return key in self._startup or key.startswith(self._prefixes)

    def stays(self, key: str) -> bool:
        if key in (TO_BE_DELETED, DELETION_CANDIDATE) or key in _OF_CONDITIONS:
            return False
        return not (self.is_startup(key) or key in self._status or key.startswith(_STATUS))

    def seen(self, node: SeenNode) -> SeenNode:
        """The node, as not ready while it has a taint of its start."""
        is_open = node.is_ready and not node.is_cordoned
        if is_open and any(self.is_startup(each["key"]) for each in node.taints):
            return node.starting()
        return node
