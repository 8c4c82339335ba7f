"""How a controller says in a pod's status that it ends the pod, and why."""

from kubescene.clock import format_time
from kubescene.types import JsonObject

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
