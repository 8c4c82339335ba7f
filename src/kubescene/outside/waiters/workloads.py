"""The waiter ``workloads``: what a controller manager makes of workloads is made.

KEP-140's rule for ReplicaSets, and its kin: the status is about the newest spec, and the pods that
it counts are there, as many as can be. "As can be" matters, since these controllers react before
the scheduler has its turn: a rollout that waits for pods to be available has come to rest.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from kubescene.api.kinds import REPLICA_SET
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import Reader
from kubescene.outside.waiters import pod_makers
from kubescene.outside.waiters.rollouts import unmet_deployment
from kubescene.outside.waiters.waiting import listed, name_of
from kubescene.types import JsonObject

Rule: TypeAlias = Callable[[JsonObject, Reader], str]
"""What is not yet so with an object; empty if its controller has nothing left to do."""

RULES: Mapping[GroupVersionKind, Rule] = {
    GroupVersionKind("apps", "v1", "Deployment"): unmet_deployment,
    REPLICA_SET: pod_makers.unmet_replica_set,
    GroupVersionKind("", "v1", "ReplicationController"): pod_makers.unmet_replica_set,
    GroupVersionKind("apps", "v1", "StatefulSet"): pod_makers.unmet_stateful_set,
    GroupVersionKind("apps", "v1", "DaemonSet"): pod_makers.unmet_daemon_set,
    GroupVersionKind("batch", "v1", "Job"): pod_makers.unmet_job,
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
