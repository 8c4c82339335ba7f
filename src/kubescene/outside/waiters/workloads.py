"""The waiter ``workloads``: what a controller manager makes of workloads is made.

KEP-140's rule for ReplicaSets, and its kin: the status is about the newest spec, and the pods that
it counts are there, as many as can be. "As can be" matters, since these controllers react before
the scheduler has its turn: a rollout that waits for pods to be available has come to rest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import Reader
from kubescene.controllers.builtin.workloads.deployments.deployment import (
    recreating,
    rolling_writes,
    scaling_writes,
)
from kubescene.controllers.builtin.workloads.deployments.rollout import Rollout, rollout_of
from kubescene.outside.waiters.waiter import listed, name_of
from kubescene.types import JsonObject

Rule: TypeAlias = Callable[[JsonObject, Reader], str]
"""What is not yet so with an object; empty if its controller has nothing left to do."""

ENDED = ("Succeeded", "Failed")
REVISION_LABEL = "controller-revision-hash"
JOB_CONTROLLER = "kubernetes.io/job-controller"


def unmet_deployment(obj: JsonObject, reader: Reader) -> str:
    """Whether it has brought its ReplicaSets as far as it can for now.

    The sizes that a rollout strives for are those of our own Deployment controller; only they are
    compared, since annotations and conditions are every controller manager's own.
    """
    if why := unobserved(obj):
        return why
    rollout = rollout_of(obj, reader.owned(REPLICA_SET, obj["metadata"]["uid"]))
    pods = sum(each.counted("replicas") for each in rollout.sets)
    if count(obj, "replicas") != pods:
        return f"{pods} pods in its ReplicaSets, its status counts {count(obj, 'replicas')}"
    if has(obj, "ReplicaFailure") or (rollout.new is None and has(obj, "Progressing", "False")):
        return ""
    return unmet_rollout(rollout, reader)


def unmet_rollout(rollout: Rollout, reader: Reader) -> str:
    if rollout.is_paused:
        return "its ReplicaSets do not have their sizes" if scaling_writes(rollout) else ""
    if rollout.is_scaled:
        return "its ReplicaSets were not told that it was scaled"
    rolling = rollout.limits.rolling
    if rolling_writes(rollout) if rolling else recreating(rollout, reader):
        new = 0 if rollout.new is None else rollout.new.size
        return f"a rollout that can go on: {new} of {rollout.limits.replicas} of the new template"
    return ""


def status_of(obj: JsonObject) -> JsonObject:
    return obj.get("status") or {}


def count(obj: JsonObject, field: str) -> int:
    """One of the counts in its status; one that is zero is left out there."""
    return int(status_of(obj).get(field) or 0)


def replicas_of(obj: JsonObject) -> int:
    return int(obj["spec"].get("replicas", 1))


def has(obj: JsonObject, condition: str, status: str = "True") -> bool:
    """Whether its status has a condition."""
    return any(
        each.get("type") == condition and each.get("status") == status
        for each in status_of(obj).get("conditions") or ()
    )


def unobserved(obj: JsonObject) -> str:
    """Whether its controller has not seen its newest spec."""
    newest = int(obj["metadata"].get("generation") or 0)
    seen = count(obj, "observedGeneration")
    return "" if seen >= newest else f"generation {newest} of its spec, status of {seen}"


def is_active(pod: JsonObject) -> bool:
    """Whether it counts as a replica."""
    return status_of(pod).get("phase") not in ENDED and not is_leaving(pod)


def is_leaving(pod: JsonObject) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_ready(pod: JsonObject) -> bool:
    """Whether nobody waits for it: one that leaves is waited for, too."""
    return status_of(pod).get("phase") == "Running" and has(pod, "Ready") and not is_leaving(pod)


def pods_of(obj: JsonObject, reader: Reader) -> Sequence[JsonObject]:
    return reader.owned(POD, obj["metadata"]["uid"])


# -- ReplicaSet and ReplicationController ------------------------------------------------------


def unmet_replica_set(obj: JsonObject, reader: Reader) -> str:
    """KEP-140: all replicas are there with their labels, or it says that it cannot make them."""
    if why := unobserved(obj):
        return why
    active = sum(map(is_active, pods_of(obj, reader)))
    if count(obj, "replicas") != active:
        return f"{active} pods, its status counts {count(obj, 'replicas')}"
    wanted, labelled = replicas_of(obj), count(obj, "fullyLabeledReplicas")
    if wanted == labelled or has(obj, "ReplicaFailure"):
        return ""
    return f"{labelled} of {wanted} replicas"


# -- StatefulSet -------------------------------------------------------------------------------


def unmet_stateful_set(obj: JsonObject, reader: Reader) -> str:
    """One pod after the other: until one is ready, the next one's turn does not come."""
    if why := unobserved(obj):
        return why
    pods = pods_of(obj, reader)
    present = len(pods)
    if any(map(is_leaving, pods)):
        return ""
    if count(obj, "replicas") != present:
        return f"{present} pods, its status counts {count(obj, 'replicas')}"
    wanted, old = replicas_of(obj), outdated(obj, pods)
    if present == wanted and not old:
        return ""
    in_order = obj["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    if (in_order or present == wanted) and not all(map(is_ready, pods)):
        return ""
    return f"{old} pods of an old revision" if present == wanted else f"{present} of {wanted} pods"


def outdated(obj: JsonObject, pods: Sequence[JsonObject]) -> int:
    """Pods that a rolling update has to replace yet."""
    strategy = obj["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0
    least = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    least += int((obj["spec"].get("ordinals") or {}).get("start") or 0)
    revision = status_of(obj).get("updateRevision")
    concerned = [pod for pod in pods if ordinal_of(pod) >= least]
    return sum(label_of(pod, REVISION_LABEL) != revision for pod in concerned)


def ordinal_of(pod: JsonObject) -> int:
    end = pod["metadata"]["name"].rpartition("-")[2]
    return int(end) if end.isascii() and end.isdecimal() else 0


def label_of(obj: JsonObject, name: str) -> str | None:
    return (obj["metadata"].get("labels") or {}).get(name)


# -- DaemonSet ---------------------------------------------------------------------------------


def unmet_daemon_set(obj: JsonObject, reader: Reader) -> str:
    """A pod for every node that it counts. Whether it has counted a new node is not to be seen."""
    if why := unobserved(obj):
        return why
    current, desired = count(obj, "currentNumberScheduled"), count(obj, "desiredNumberScheduled")
    if current < desired:
        return f"pods for {current} of {desired} nodes"
    strategy = (obj["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate")
    if strategy != "RollingUpdate" or count(obj, "updatedNumberScheduled") == desired:
        return ""
    if all(map(is_ready, pods_of(obj, reader))):
        return f"{count(obj, 'updatedNumberScheduled')} of {desired} pods updated"
    return ""


# -- Job ---------------------------------------------------------------------------------------


def unmet_job(obj: JsonObject, reader: Reader) -> str:
    """As many pods as may run at once, none that has ended uncounted; or it is over."""
    if obj["spec"].get("managedBy", JOB_CONTROLLER) != JOB_CONTROLLER:
        return ""
    pods = pods_of(obj, reader)
    active, leaving = sum(map(is_active, pods)), sum(map(is_leaving, pods))
    if has(obj, "Complete") or has(obj, "Failed"):
        return f"{active} pods, and it is over" if active else ""
    if any((status_of(obj).get("uncountedTerminatedPods") or {}).values()):
        return "pods that have ended are not counted yet"
    if count(obj, "active") != active:
        return f"{active} active pods, its status counts {count(obj, 'active')}"
    wanted = wanted_pods(obj, active)
    held = leaving if obj["spec"].get("podReplacementPolicy") == "Failed" else 0
    if active + held < wanted or active > wanted:
        return f"{active} of {wanted} active pods"
    if has_succeeded(obj) and not active and not leaving:
        return "all have succeeded, and it does not say that it is complete"
    return ""


def wanted_pods(obj: JsonObject, active: int) -> int:
    """Pods of a Job that should be active now."""
    parallelism = int(obj["spec"].get("parallelism", 1))
    if obj["spec"].get("suspend"):
        return 0
    if (left := completions_left(obj)) is not None:
        return min(parallelism, left)
    # A work queue: when one has succeeded no more are begun, those that run go on.
    return min(active, parallelism) if count(obj, "succeeded") else parallelism


def completions_left(obj: JsonObject) -> int | None:
    """Completions that are still to come; None for a work queue."""
    completions = obj["spec"].get("completions")
    if completions is None:
        return None
    failed = indexes_in(status_of(obj).get("failedIndexes"))
    return max(int(completions) - count(obj, "succeeded") - failed, 0)


def has_succeeded(obj: JsonObject) -> bool:
    if obj["spec"].get("suspend"):
        return False
    left = completions_left(obj)
    return count(obj, "succeeded") > 0 if left is None else left == 0


def indexes_in(text: str | None) -> int:
    """How many indexes a text such as ``1,3-5`` names."""
    total = 0
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first:
            total += int(last or first) - int(first) + 1
    return total


RULES: Mapping[GroupVersionKind, Rule] = {
    GroupVersionKind("apps", "v1", "Deployment"): unmet_deployment,
    REPLICA_SET: unmet_replica_set,
    GroupVersionKind("", "v1", "ReplicationController"): unmet_replica_set,
    GroupVersionKind("apps", "v1", "StatefulSet"): unmet_stateful_set,
    GroupVersionKind("apps", "v1", "DaemonSet"): unmet_daemon_set,
    GroupVersionKind("batch", "v1", "Job"): unmet_job,
}


class WorkloadsWaiter:
    """Looks at every object that makes pods. What is being deleted is the collector's business."""

    name = "workloads"

    def condition(self, reader: Reader) -> bool:
        return next(self._unmet(reader), None) is None

    def unmet(self, reader: Reader) -> str:
        return listed(self._unmet(reader))

    def _unmet(self, reader: Reader) -> Iterator[str]:
        for kind, rule in RULES.items():
            for obj in reader.list(kind):
                if not obj["metadata"].get("deletionTimestamp") and (why := rule(obj, reader)):
                    yield f"{name_of(obj)}: {why}"
