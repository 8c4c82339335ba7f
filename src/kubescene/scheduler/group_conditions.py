"""The condition PodGroupScheduled: what a cycle of the group came to."""

from kubescene.scheduler.group_trials import GroupVerdict, Outcome
from kubescene.types import JsonObject, ReadOnlyObject

TYPE = "PodGroupScheduled"
REASONS = {
    Outcome.SCHEDULED: "Scheduled",
    Outcome.UNSCHEDULABLE: "Unschedulable",
    Outcome.PREEMPTING: "Unschedulable",
    Outcome.FAILED: "SchedulerError",
}
_COMPARED = ("status", "reason", "message", "observedGeneration")


def group_condition(group: ReadOnlyObject, verdict: GroupVerdict, now: str) -> JsonObject | None:
    """The condition to write; None if it would change nothing.

    A group that was scheduled once stays so, whatever becomes of pods that join later.
    """
    status: ReadOnlyObject = group.get("status") or {}
    held: JsonObject = next(
        (each for each in status.get("conditions") or () if each.get("type") == TYPE), {}
    )
    scheduled = verdict.outcome is Outcome.SCHEDULED
    if held.get("status") == "True" and not scheduled:
        return None
    condition: JsonObject = {
        "type": TYPE,
        "status": "True" if scheduled else "False",
        "reason": REASONS[verdict.outcome],
        "message": verdict.message,
    }
    if generation := group["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if all(held.get(field) == condition.get(field) for field in _COMPARED):
        return None
    changed = held.get("status") != condition["status"]
    moment = now if changed else held.get("lastTransitionTime", now)
    return condition | {"lastTransitionTime": moment}
