"""The ephemeral volume controller: pods with generic ephemeral volumes get claims of their own."""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import VOLUMES
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.storage.storage_protection import CLAIM, has_ended
from kubescene.controllers.reconcile import NOTHING, Create, ObjectKey, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import AlreadyExistsError, ApiError, ForbiddenError
from kubescene.types import JsonObject

_MEMBER = b'"ephemeral"'


class EphemeralVolumeReconciler:
    """Keys are pods. A claim goes with its pod: the garbage collector sees to that."""

    name = "ephemeral-volume"
    kinds: Sequence[GroupVersionKind] = (POD, CLAIM)
    pod_traits = VOLUMES

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "pods":
            asks = change.type is ChangeType.ADDED and record.members_mention(_MEMBER)
            return (ObjectKey(record.namespace, record.name),) if asks else ()
        if change.type is not ChangeType.DELETED:
            return ()
        owners = change.object["metadata"].get("ownerReferences") or ()
        return [ObjectKey(record.namespace, each["name"]) for each in owners if _is_pod(each)]

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        pod = reader.find(ObjectRef(POD, key.name, key.namespace))
        if pod is None or pod["metadata"].get("deletionTimestamp") or has_ended(pod):
            return NOTHING
        claims = [made_claim(pod, volume) for volume in pod["spec"].get("volumes") or ()]
        return Plan(
            tuple(
                Create(claim)
                for claim in claims
                if claim is not None and reader.find(ObjectRef.to(claim)) is None
            )
        )

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """One that exists may be somebody else's; the scheduler says so to whom it concerns."""
        del key, write, reader, now
        if isinstance(error, (AlreadyExistsError, ForbiddenError)):
            return NOTHING
        raise error


def made_claim(pod: JsonObject, volume: JsonObject) -> JsonObject | None:
    """The claim for a volume of a pod; None if the volume needs none."""
    ephemeral = volume.get("ephemeral")
    if ephemeral is None:
        return None
    template, metadata = ephemeral["volumeClaimTemplate"], pod["metadata"]
    kept = {
        field: template["metadata"][field]
        for field in ("labels", "annotations")
        if (template.get("metadata") or {}).get(field)
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"{metadata['name']}-{volume['name']}",
            "namespace": metadata["namespace"],
            "ownerReferences": [controller_of(pod)],
            **kept,
        },
        "spec": template["spec"],
    }


def _is_pod(owner: JsonObject) -> bool:
    return bool(owner.get("controller") and owner.get("kind") == "Pod")


def ephemeral_volume(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(EphemeralVolumeReconciler(), context)
