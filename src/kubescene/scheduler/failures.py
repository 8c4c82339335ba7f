"""What a failed attempt leaves behind: the pod's condition, and the words in it."""

from kubescene.scheduler.decisions import UNSCHEDULABLE, Decision
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.status import Code, Status
from kubescene.types import JsonObject


def failure_patch(pod: PodInfo, decision: Decision, now: str) -> JsonObject | None:
    """The change of status that a failed attempt asks for; None if there is none. [E-2, E-6]"""
    status = pod.object.get("status") or {}
    patch: JsonObject = {}
    held: JsonObject = next(
        (each for each in status.get("conditions") or () if each.get("type") == "PodScheduled"), {}
    )
    condition: JsonObject = {
        "type": "PodScheduled",
        "status": "False",
        "reason": decision.reason,
        "message": decision.message,
    }
    if generation := pod.generation:
        condition["observedGeneration"] = generation
    if any(held.get(field) != value for field, value in condition.items()):
        changed = held.get("status") != "False"
        moment = now if changed else held.get("lastTransitionTime", now)
        patch["conditions"] = [condition | {"lastProbeTime": None, "lastTransitionTime": moment}]
    nominated = decision.nominated
    if nominated is not None and nominated != (status.get("nominatedNodeName") or ""):
        patch["nominatedNodeName"] = nominated or None
    return patch or None


def refuse(decision: Decision, status: Status) -> None:
    """The chosen node did not work out. [M-8]"""
    if status.code.is_rejection:
        decision.plugins = (status.plugin,) if status.code is not Code.PENDING else ()
        decision.pending_plugins = (status.plugin,) if status.code is Code.PENDING else ()
        reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
        decision.fail(f"0/1 nodes are available: {reasons}.", UNSCHEDULABLE)
    else:
        decision.fail(status.message)
