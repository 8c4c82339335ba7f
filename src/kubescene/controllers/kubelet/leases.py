"""Heartbeats as a kubelet sends them: a Lease for each node, renewed every ten seconds.

Only worlds without a node lifecycle controller of ours have this: ours knows which kubelets were
stopped, one outside takes every node for silent whose Lease is not renewed.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import NODE
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, format_micro_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.kubelet.heartbeats import is_stopped
from kubescene.controllers.reconcile import NOTHING, Create, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
NAMESPACE = "kube-node-lease"
DURATION_S = 40
PERIOD = DURATION_S * SECOND // 4
"""The defaults of nodeLeaseDurationSeconds and of the renewals that follow from it."""


class NodeHeartbeats:
    """Renews the Lease of every node whose kubelet runs."""

    name = "node-heartbeats"
    kinds: Sequence[GroupVersionKind] = (NODE,)

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        """When the Lease of a node is to be renewed."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        name = change.record.name
        if change.type is ChangeType.DELETED:
            self._due.pop(name, None)
            return ()
        return (ObjectKey("", name),)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        node = reader.find(ObjectRef(NODE, key.name))
        if node is None or is_stopped(node):
            self._due.pop(key.name, None)
            return NOTHING
        if (due := self._due.get(key.name, now)) > now:
            return Plan(requeue_after=due - now)
        self._due[key.name] = now + PERIOD
        known = reader.find(ObjectRef(LEASE, key.name, NAMESPACE))
        return Plan((renewed(node, format_micro_time(now), known),), PERIOD)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error


def renewed(node: JsonObject, now: str, known: JsonObject | None) -> Write:
    """The Lease of a node, new or renewed; it goes with its node."""
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    if known is not None:
        ref = ObjectRef(LEASE, name, NAMESPACE)
        return Patch(ref, {"spec": {"holderIdentity": name, "renewTime": now}})
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return Create(
        {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": DURATION_S,
                "renewTime": now,
            },
        }
    )


def node_heartbeats(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(NodeHeartbeats(), context)
