"""Resizing pods in place: whether the updater may, and when it gives up.

Mode InPlaceOrRecreate evicts a pod whose resize does not come about: at once where it is infeasible
or failed, after five minutes where the node has deferred it, after an hour in progress. Mode
InPlace never evicts: it remembers what was infeasible, and tries again when less is recommended.
"""

from enum import Enum

from kubescene.autoscalers.vertical.attempts import Attempts
from kubescene.autoscalers.vertical.disruption import Group, is_pending
from kubescene.autoscalers.vertical.objects import IN_PLACE, VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.clock import MINUTE
from kubescene.types import JsonObject

DEFERRED_TIMEOUT = 5 * MINUTE
IN_PROGRESS_TIMEOUT = 60 * MINUTE

_PENDING = "PodResizePending"
_IN_PROGRESS = "PodResizeInProgress"


class Decision(Enum):
    """What the updater may do with a pod in place.

    ``INFEASIBLE`` and ``RULED_OUT`` are of mode InPlace: the node refused, so this recommendation
    is the last to be tried; it was tried already.
    """

    APPROVED = "approved"
    DEFERRED = "deferred"
    EVICT = "evict"
    INFEASIBLE = "infeasible"
    RULED_OUT = "ruled out"


def decide(
    pod: JsonObject,
    group: Group | None,
    vpa: VerticalPodAutoscaler,
    now: int,
    options: UpdaterOptions,
    attempts: Attempts,
) -> Decision:
    """Resize now, later, not at all, or evict because a resize does not come about."""
    if group is None or is_pending(pod) or vpa.recommendations is None:
        return Decision.DEFERRED
    in_place = vpa.update_mode == IN_PLACE
    if in_place and attempts.rules_out(pod, vpa.recommendations):
        return Decision.RULED_OUT
    if is_resizing(pod):
        return _waiting(pod) if in_place else _giving_up(pod, group, now, attempts)
    if options.in_place_skip_disruption_budget and _restarts_nothing(pod):
        return Decision.APPROVED
    return Decision.APPROVED if group.can_lose_one else Decision.DEFERRED


def is_resizing(pod: JsonObject) -> bool:
    """By the first of the two conditions that the pod has."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") in (_PENDING, _IN_PROGRESS):
            return bool(condition.get("status") == "True")
    return False


def may_evict(pod: JsonObject, group: Group, now: int, attempts: Attempts) -> bool:
    """Whether a resize has been waited for long enough and the budget allows an eviction."""
    since = attempts.since(pod, now)
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


def _giving_up(pod: JsonObject, group: Group, now: int, attempts: Attempts) -> Decision:
    return Decision.EVICT if may_evict(pod, group, now, attempts) else Decision.DEFERRED


def _waiting(pod: JsonObject) -> Decision:
    """Mode InPlace: only what the node calls infeasible, or an error, ends the waiting."""
    pending, progress = _condition(pod, _PENDING), _condition(pod, _IN_PROGRESS)
    if pending is not None:
        failed = pending.get("reason") == "Infeasible"
    else:
        failed = progress is not None and progress.get("reason") == "Error"
    return Decision.INFEASIBLE if failed else Decision.DEFERRED


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
