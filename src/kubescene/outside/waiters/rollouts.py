"""Whether a Deployment has brought its ReplicaSets as far as it can for now.

The sizes that a rollout strives for are those of our own Deployment controller; only they are
compared, since annotations and conditions are every controller manager's own.
"""

from kubescene.api.kinds import REPLICA_SET
from kubescene.client import Reader
from kubescene.controllers.builtin.deployment import recreating, rolling_writes, scaling_writes
from kubescene.controllers.builtin.rollouts.rollout import Rollout, rollout_of
from kubescene.outside.waiters.pod_makers import count, has, unobserved
from kubescene.types import JsonObject


def unmet_deployment(obj: JsonObject, reader: Reader) -> str:
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
