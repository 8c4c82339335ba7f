"""PodDisruptionBudgets: which pods one covers, and the condition that says whether it allows more.

Shared by the two that write a budget's status: the eviction of a pod takes from it, the disruption
controller counts anew.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.selectors import LabelSelector, SelectorError, from_label_selector
from kubescene.api.selectors.label_selectors import NOTHING
from kubescene.clock import MINUTE
from kubescene.types import JsonObject

BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
BUDGETS = GroupResource("policy", "poddisruptionbudgets")
DISRUPTION_ALLOWED = "DisruptionAllowed"
SYNC_FAILED = "SyncFailed"
DELETION_TIMEOUT = 2 * MINUTE
"""How long an evicted pod may be there unmarked before it counts as healthy again."""


def budget_selector(budget: Mapping[str, Any]) -> LabelSelector:
    """The pods that a budget covers; a selector that makes no sense covers none."""
    try:
        return from_label_selector((budget.get("spec") or {}).get("selector"))
    except SelectorError:
        return NOTHING


def with_allowance(status: JsonObject, now: str) -> JsonObject:
    """The status with a condition that fits its ``disruptionsAllowed``."""
    if status.get("disruptionsAllowed", 0) > 0:
        return with_verdict(status, "True", "SufficientPods", "", now)
    return with_verdict(status, "False", "InsufficientPods", "", now)


def with_verdict(
    status: JsonObject, verdict: str, reason: str, message: str, now: str
) -> JsonObject:
    """The status with this condition; its time moves only when the verdict changes."""
    told = status.get("conditions") or []
    before = allowance(status) or {}
    since = before.get("lastTransitionTime", now) if before.get("status") == verdict else now
    condition = {
        "type": DISRUPTION_ALLOWED,
        "status": verdict,
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    if not before:
        return {**status, "conditions": [*told, condition]}
    kept = [condition if it is before else it for it in told]
    return {**status, "conditions": kept}


def allowance(status: Mapping[str, Any]) -> JsonObject | None:
    """The condition DisruptionAllowed, if it has been told."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == DISRUPTION_ALLOWED:
            found: JsonObject = condition
            return found
    return None
