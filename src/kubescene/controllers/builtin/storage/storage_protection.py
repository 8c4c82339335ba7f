"""The storage protection controllers: volumes and claims that nobody uses may go.

A claim is in use while a pod that has not ended names it; a volume while it is bound. Both wait for
that with a finalizer, which is taken away here once the object is being deleted and unused.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import VOLUMES
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
VOLUME = GroupVersionKind("", "v1", "PersistentVolume")
CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"

PODS = GroupResource("", "pods")


class StorageProtectionReconciler:
    """Keys with a namespace are claims, keys without are volumes."""

    name = "storage-protection"
    kinds: Sequence[GroupVersionKind] = (CLAIM, VOLUME, POD)
    pod_traits = VOLUMES

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource != PODS:
            return (ObjectKey(record.namespace, record.name),)
        # Only a pod that goes or ends can set a claim free.
        gone = change.type is ChangeType.DELETED or record.phase in ("Succeeded", "Failed")
        if not gone or not record.members_mention(b'"volumes"'):
            return ()
        return [ObjectKey(record.namespace, name) for name in claims_of(change.object)]

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        if not key.namespace:
            return self._volume(key, reader)
        claim = reader.find(ObjectRef(CLAIM, key.name, key.namespace))
        if claim is None or not is_waiting(claim, CLAIM_FINALIZER):
            return NOTHING
        pods = reader.list(POD, namespace=key.namespace)
        in_use = any(key.name in claims_of(pod) for pod in pods if not has_ended(pod))
        return NOTHING if in_use else released(claim, CLAIM_FINALIZER)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """Gone meanwhile: all the better."""
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _volume(self, key: ObjectKey, reader: Reader) -> Plan:
        volume = reader.find(ObjectRef(VOLUME, key.name))
        if volume is None or not is_waiting(volume, VOLUME_FINALIZER):
            return NOTHING
        bound = (volume.get("status") or {}).get("phase") == "Bound"
        return NOTHING if bound else released(volume, VOLUME_FINALIZER)


def claims_of(pod: JsonObject) -> list[str]:
    """Names of the claims that a pod uses, those made for it included."""
    names = []
    for volume in pod["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            names.append(claim["claimName"])
        elif volume.get("ephemeral") is not None:
            names.append(f"{pod['metadata']['name']}-{volume['name']}")
    return names


def has_ended(pod: JsonObject) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_waiting(obj: JsonObject, finalizer: str) -> bool:
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and finalizer in (
        metadata.get("finalizers") or ()
    )


def released(obj: JsonObject, finalizer: str) -> Plan:
    kept = [it for it in obj["metadata"]["finalizers"] if it != finalizer]
    return Plan((Patch(ObjectRef.to(obj), {"metadata": {"finalizers": kept or None}}),))


def storage_protection(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(StorageProtectionReconciler(), context)
