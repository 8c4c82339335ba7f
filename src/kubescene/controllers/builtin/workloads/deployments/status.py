"""The status of a Deployment: counts over its sets, and the conditions Available and Progressing.

Progress is judged by comparing the counts with those of the stored status: if nothing has moved for
``progressDeadlineSeconds`` since the last progress, the rollout is called stuck.
"""

from collections.abc import Sequence
from typing import TypeAlias

from kubescene.clock import SECOND, format_time, parse_time
from kubescene.controllers.builtin.workloads.deployments.rollout import Rollout
from kubescene.controllers.builtin.workloads.deployments.sets import MAX_INT32
from kubescene.types import JsonObject

AVAILABLE = "Available"
PROGRESSING = "Progressing"
REPLICA_FAILURE = "ReplicaFailure"

CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
UPDATED = "ReplicaSetUpdated"
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
NOT_CREATED = "ReplicaSetCreateError"

_ENOUGH = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
_NOT_ENOUGH = (
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)
_MEMBERS = {"type", "status", "lastUpdateTime", "lastTransitionTime", "reason", "message"}
_WHOLE = ("updatedReplicas", "replicas", "availableReplicas")
_PROGRESS = ("updatedReplicas", "readyReplicas", "availableReplicas")

Conditions: TypeAlias = Sequence[JsonObject]


# -- conditions --------------------------------------------------------------------------------


def condition(kind: str, status: str, reason: str, message: str, now: int) -> JsonObject:
    moment = format_time(now)
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def progressing(status: str, reason: str, message: str, now: int) -> JsonObject:
    return condition(PROGRESSING, status, reason, message, now)


def find(conditions: Conditions, kind: str) -> JsonObject | None:
    for it in conditions:
        if it.get("type") == kind:
            return it
    return None


def without(conditions: Conditions, kind: str) -> Conditions:
    return [it for it in conditions if it.get("type") != kind]


def with_condition(conditions: Conditions, new: JsonObject) -> Conditions:
    """Add or replace; the same status for the same reason stays as it was first told."""
    if is_told(conditions, new["type"], new["status"], new["reason"]):
        return conditions
    return refreshed(conditions, new)


def is_told(conditions: Conditions, kind: str, status: str, reason: str) -> bool:
    """Whether a condition says this already."""
    old = find(conditions, kind)
    return old is not None and old.get("status") == status and old.get("reason") == reason


def is_fresh(current: JsonObject, reason: str, message: str, now: int) -> bool:
    """Whether a condition was told with this reason within the second."""
    return (
        current.get("reason") == reason
        and current.get("lastUpdateTime") == format_time(now)
        and current.get("message") == message
        and current.get("status") == "True"
        and current.keys() == _MEMBERS
    )


def refreshed(conditions: Conditions, new: JsonObject) -> Conditions:
    """Add or replace in any case; the transition is as old as the status."""
    old = find(conditions, new["type"])
    if old is not None and old.get("status") == new["status"] and "lastTransitionTime" in old:
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    if old == new and conditions[-1] is old:
        return conditions
    return [*without(conditions, new["type"]), new]


# -- the whole status --------------------------------------------------------------------------


def counted_status(rollout: Rollout, conditions: Conditions, now: int) -> JsonObject:
    """Counts and availability; what is said of progress stays as it is."""
    counts, terminating = counts_of(rollout)
    status: JsonObject = {"observedGeneration": rollout.deployment["metadata"].get("generation", 1)}
    for name, count in counts.items():
        if count:
            status[name] = count
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    if "collisionCount" in rollout.status:
        status["collisionCount"] = rollout.status["collisionCount"]
    enough = counts["availableReplicas"] >= rollout.limits.least
    status["conditions"] = with_availability(conditions, enough=enough, now=now)
    return status


def rollout_status(rollout: Rollout, conditions: Conditions, now: int) -> JsonObject:
    """Counts, availability, progress and what keeps sets from having their pods."""
    status = counted_status(rollout, conditions, now)
    told = with_progress(rollout, status, now)
    told = with_failure(rollout, told)
    return {**status, "conditions": told}


def counts_of(rollout: Rollout) -> tuple[dict[str, int], int | None]:
    """The counts, and how many pods are terminating: unknown if a set does not say."""
    replicas = ready = available = size = 0
    terminating: int | None = 0
    for it in rollout.sets:
        told = it.obj.get("status") or {}
        replicas += told.get("replicas") or 0
        ready += told.get("readyReplicas") or 0
        available += it.available
        size += it.size
        # Sets that nobody has looked after yet have none.
        if terminating is not None and told.get("observedGeneration"):
            its = told.get("terminatingReplicas")
            terminating = None if its is None else terminating + its
    counts = {
        "replicas": replicas,
        "updatedReplicas": rollout.new.counted("replicas") if rollout.new else 0,
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": max(size - available, 0),
    }
    return counts, terminating


def with_availability(conditions: Conditions, *, enough: bool, now: int) -> Conditions:
    status, reason, message = _ENOUGH if enough else _NOT_ENOUGH
    if is_told(conditions, AVAILABLE, status, reason):
        return conditions
    return refreshed(conditions, condition(AVAILABLE, status, reason, message, now))


# -- progress ----------------------------------------------------------------------------------


def progress_deadline(deployment: JsonObject) -> int | None:
    """In nanoseconds; None if progress is not watched."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds in (None, MAX_INT32) else int(seconds) * SECOND


def is_complete(deployment: JsonObject, status: JsonObject) -> bool:
    """Whether all pods are of the new template and available, and no others exist."""
    wanted = int(deployment["spec"].get("replicas", 1))
    for name in _WHOLE:
        if status.get(name, 0) != wanted:
            return False
    generation = deployment["metadata"].get("generation", 1)
    return bool(status.get("observedGeneration", 0) >= generation)


def has_progressed(before: JsonObject, after: JsonObject) -> bool:
    """More pods are updated, ready or available than before, or fewer old ones exist."""
    for name in _PROGRESS:
        if after.get(name, 0) > before.get(name, 0):
            return True
    return outdated(after) < outdated(before)


def outdated(status: JsonObject) -> int:
    """How many pods are not of the new template."""
    return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))


def is_timed_out(deployment: JsonObject, conditions: Conditions, now: int) -> bool:
    due = progress_due(deployment, conditions)
    return due is not None and due < now


def progress_due(deployment: JsonObject, conditions: Conditions) -> int | None:
    """When a rollout that does not move is called stuck; None if it cannot be or has been."""
    current = find(conditions, PROGRESSING)
    deadline = progress_deadline(deployment)
    if current is None or deadline is None or current.get("reason") in (COMPLETE, TIMED_OUT):
        return None
    since = current.get("lastUpdateTime") or current.get("lastTransitionTime")
    return None if since is None else parse_time(since) + deadline


def until_deadline(deployment: JsonObject, status: JsonObject, now: int) -> int | None:
    """How long until the deadline can have passed: a second later, as times have no fractions."""
    due = progress_due(deployment, status.get("conditions") or ())
    if due is None or is_complete(deployment, status):
        return None
    return max(due - now, 0) + SECOND


def with_progress(rollout: Rollout, status: JsonObject, now: int) -> Conditions:
    conditions: Conditions = status["conditions"]
    deployment = rollout.deployment
    if progress_deadline(deployment) is None:
        return without(conditions, PROGRESSING)
    current = find(conditions, PROGRESSING) or {}
    all_updated = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if current.get("reason") == COMPLETE and all_updated:
        return conditions  # a pod comes or goes, but nothing is being rolled out
    subject = subject_of(rollout)
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(conditions, progressing("True", COMPLETE, message, now))
    if has_progressed(rollout.status, status):
        message = f"{subject} is progressing."
        if is_fresh(current, UPDATED, message, now) and current is conditions[-1]:
            return conditions
        return refreshed(conditions, progressing("True", UPDATED, message, now))
    if is_timed_out(deployment, conditions, now):
        message = f"{subject} has timed out progressing."
        return with_condition(conditions, progressing("False", TIMED_OUT, message, now))
    return conditions


def subject_of(rollout: Rollout) -> str:
    if rollout.new is not None:
        return f'ReplicaSet "{rollout.new.name}"'
    return f'Deployment "{rollout.deployment["metadata"]["name"]}"'


def with_failure(rollout: Rollout, conditions: Conditions) -> Conditions:
    """Pass on why a set cannot have its pods; the new set's reason comes first."""
    newest_first = rollout.sets if rollout.new is None else (rollout.new, *rollout.olds)
    for it in newest_first:
        failure = find((it.obj.get("status") or {}).get("conditions") or (), REPLICA_FAILURE)
        if failure is not None:
            since = failure.get("lastTransitionTime")
            return with_condition(conditions, {**failure, "lastUpdateTime": since})
    told = find(conditions, REPLICA_FAILURE) is not None
    return without(conditions, REPLICA_FAILURE) if told else conditions
