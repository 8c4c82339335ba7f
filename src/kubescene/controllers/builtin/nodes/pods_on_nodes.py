"""Pods by node, for controllers that need to know only once something happens to a node, and how
they say in a pod's status that they end it, and why.
"""

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.clock import format_time
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")


class PodsOnNodes:
    """The keys of those pods that have a node."""

    def __init__(self) -> None:
        self._by_node: dict[str, set[ObjectKey]] = {}

    def observe(self, change: Change) -> None:
        record = change.record
        if not record.node:
            return
        key = ObjectKey(record.namespace, record.name)
        if change.type is not ChangeType.DELETED:
            self._by_node.setdefault(record.node, set()).add(key)
        elif keys := self._by_node.get(record.node):
            keys.discard(key)
            if not keys:
                del self._by_node[record.node]

    def on(self, node: str) -> list[ObjectKey]:
        """By namespace and name, whenever they came."""
        return sorted(self._by_node.get(node, ()))


DISRUPTION_TARGET = "DisruptionTarget"
ENDED = ("Succeeded", "Failed")


def disruption(pod: JsonObject, reason: str, message: str, now: int) -> JsonObject:
    """The condition that tells of it; the time is that of before if the pod has it already."""
    condition: JsonObject = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": _since(pod) or format_time(now),
    }
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    return condition


def _since(pod: JsonObject) -> str:
    for condition in pod["status"].get("conditions") or ():
        if condition.get("type") == DISRUPTION_TARGET and condition.get("status") == "True":
            return str(condition.get("lastTransitionTime") or "")
    return ""
