"""Resizing pods in place: whether the updater may, and when it gives up and evicts.

Mode InPlaceOrRecreate. A resize that is on its way is waited for: five minutes where the node
has deferred it, an hour where it is in progress, not at all where it is infeasible or failed.
"""

from enum import Enum

from kubescene.autoscalers.vertical.disruption import Group, is_pending
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.clock import MINUTE
from kubescene.types import JsonObject

DEFERRED_TIMEOUT = 5 * MINUTE
IN_PROGRESS_TIMEOUT = 60 * MINUTE

_PENDING = "PodResizePending"
_IN_PROGRESS = "PodResizeInProgress"

FirstSeen = dict[str, int]
"""Since when the updater has seen each pod with a resize on its way."""


class Decision(Enum):
    """What the updater may do with a pod in place."""

    APPROVED = "approved"
    DEFERRED = "deferred"
    EVICT = "evict"


def decide(
    pod: JsonObject,
    group: Group | None,
    now: int,
    options: UpdaterOptions,
    first_seen: FirstSeen,
) -> Decision:
    """Resize now, later, or evict because a resize does not come about."""
    if group is None or is_pending(pod):
        return Decision.DEFERRED
    if is_resizing(pod):
        gave_up = may_evict(pod, group, now, first_seen)
        return Decision.EVICT if gave_up else Decision.DEFERRED
    if options.in_place_skip_disruption_budget and _restarts_nothing(pod):
        return Decision.APPROVED
    return Decision.APPROVED if group.can_lose_one else Decision.DEFERRED


def is_resizing(pod: JsonObject) -> bool:
    """By the first of the two conditions that the pod has."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") in (_PENDING, _IN_PROGRESS):
            return bool(condition.get("status") == "True")
    return False


def may_evict(pod: JsonObject, group: Group, now: int, first_seen: FirstSeen) -> bool:
    """Whether a resize has been waited for long enough and the budget allows an eviction."""
    since = first_seen.setdefault(pod["metadata"]["name"], now)
    if not group.can_lose_one:
        return False
    pending = _condition(pod, _PENDING)
    if pending is not None:
        is_deferred = pending.get("reason") == "Deferred"
        return not is_deferred or now - since > DEFERRED_TIMEOUT
    progress = _condition(pod, _IN_PROGRESS)
    if progress is None:
        return False
    goes_on = not progress.get("reason") and not progress.get("message")
    return not goes_on or now - since > IN_PROGRESS_TIMEOUT


def _condition(pod: JsonObject, kind: str) -> JsonObject | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), None)


def _restarts_nothing(pod: JsonObject) -> bool:
    """Whether no container has a resize policy that restarts it."""
    return all(
        policy.get("restartPolicy") != "RestartContainer"
        for container in (pod.get("spec") or {}).get("containers") or ()
        for policy in container.get("resizePolicy") or ()
    )
