"""The volume controller and, in one, the provisioners of all storage classes.

A claim is bound when volume and claim name each other and both say so: ``claimRef`` and phase of
the volume, ``volumeName``, the annotation ``bind-completed`` and phase of the claim. Claims of a
class with ``WaitForFirstConsumer`` wait until the scheduler names a volume for them, or a node.
Provisioning takes no time and never fails, except for a node that is not there: then the scheduler
is told by taking the node's name back, as provisioners do.

Volumes whose claim is gone are released, and deleted if that is their reclaim policy. Recycling is
not done: such a volume stays released.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import NODE
from kubescene.api.options import LASTING
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.volumes.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    annotations_of,
    class_of,
    volume_of,
)
from kubescene.api.volumes.csi_migration import BY_PLUGIN, ZONE
from kubescene.api.volumes.matching import Volume, name_of, read_shape, read_volume
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.storage.known_volumes import KnownClaims, KnownVolumes
from kubescene.controllers.builtin.storage.storage_protection import CLAIM, VOLUME
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
)
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject, ReadOnlyObject

STORAGE_CLASS = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
REPORTER = "persistentvolume-controller"
_LIVE_NO_MORE = ("Released", "Failed")


class PersistentVolumeBinder:
    """Keys with a namespace are claims, keys without are volumes."""

    name = "persistentvolume-binder"
    kinds: Sequence[GroupVersionKind] = (CLAIM, VOLUME, STORAGE_CLASS)

    def __init__(self) -> None:
        self._volumes = KnownVolumes()
        self._claims = KnownClaims()

    # -- what happened ---------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        resource = change.record.resource.resource
        if resource == "persistentvolumes":
            return self._volume_changed(change)
        if resource == "persistentvolumeclaims":
            return self._claim_changed(change)
        return self._claims.of_class(change.record.name)

    def _volume_changed(self, change: Change) -> Iterable[ObjectKey]:
        name, gone = change.record.name, change.type is ChangeType.DELETED
        volume = self._volumes.put(name, None if gone else change.object)
        if volume is None:
            claim = read_volume(change.object).claim
            return () if claim is None else (ObjectKey(*claim[:2]),)
        own = ObjectKey("", name)
        if volume.claim is None:
            return (own, *self._claims.wanting(volume)) if volume.is_free else (own,)
        done = (change.object.get("status") or {}).get("phase") == "Bound"
        if done and self._claims.has(volume.claim, name):
            return ()
        return (own, ObjectKey(*volume.claim[:2]))

    def _claim_changed(self, change: Change) -> Iterable[ObjectKey]:
        record, claim = change.record, change.object
        gone = change.type is ChangeType.DELETED
        self._claims.put(record.key, None if gone else claim)
        volume = ObjectKey("", volume_of(claim))
        if gone:
            return (volume,) if volume.name else ()
        own = ObjectKey(record.namespace, record.name)
        return (own, volume) if volume.name else (own,)

    # -- what follows ----------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        if not key.namespace:
            volume = reader.find(ObjectRef(VOLUME, key.name))
            return NOTHING if volume is None else self._volume(volume, reader)
        claim = reader.find(ObjectRef(CLAIM, key.name, key.namespace))
        if claim is None:
            return NOTHING
        if BIND_COMPLETED in annotations_of(claim):
            return _bound_claim(claim, reader)
        return self._unbound_claim(claim, reader)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """Somebody was faster: the watch tells what became of it. A claim may have got too large
        for a LimitRange that came later."""
        del write, now
        if isinstance(error, (AlreadyExistsError, ConflictError, NotFoundError)):
            return NOTHING
        claim = reader.find(ObjectRef(CLAIM, key.name, key.namespace)) if key.namespace else None
        if claim is None or not isinstance(error, ForbiddenError):
            raise error
        return _told(claim, "FailedBinding", error.message, WARNING)

    def _unbound_claim(self, claim: JsonObject, reader: Reader) -> Plan:
        if volume_of(claim):
            return _promised_claim(claim, reader)
        storage_class = reader.find(ObjectRef(STORAGE_CLASS, class_of(claim)))
        mode = (storage_class or {}).get("volumeBindingMode")
        delayed = mode == WAIT_FOR_FIRST_CONSUMER
        match = self._volumes.match(claim, delayed=delayed)
        volume = reader.find(ObjectRef(VOLUME, match)) if match else None
        if volume is not None:
            return Plan(_bind(volume, read_volume(volume), claim))
        if claim["metadata"].get("deletionTimestamp") is not None:
            return NOTHING
        if delayed and SELECTED_NODE not in annotations_of(claim):
            text = "waiting for first consumer to be created before binding"
            return _told(claim, "WaitForFirstConsumer", text)
        if not class_of(claim):
            text = "no persistent volumes available for this claim and no storage class is set"
            return _told(claim, "FailedBinding", text)
        return _provision(claim, storage_class, reader)

    def _volume(self, volume: JsonObject, reader: Reader) -> Plan:
        held = volume["spec"].get("claimRef") or {}
        if not held.get("uid"):
            return Plan(_phase(volume, "Available"))
        claim = reader.find(ObjectRef(CLAIM, held.get("name") or "", held.get("namespace") or ""))
        if claim is None or claim["metadata"]["uid"] != held["uid"]:
            return Plan((*_released(volume), *_reclaimed(volume)))
        if volume_of(claim) == volume["metadata"]["name"]:
            return Plan(_phase(volume, "Bound"))
        if not volume_of(claim):
            return NOTHING
        made_for_it = PROVISIONED_BY in annotations_of(volume)
        if made_for_it and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            return Plan((*_released(volume), *_reclaimed(volume)))
        return Plan((_unbind(volume), *_phase(volume, "Available")))


def _bound_claim(claim: JsonObject, reader: Reader) -> Plan:
    """A claim that was bound once must still have its volume, or it is lost."""
    volume = reader.find(ObjectRef(VOLUME, volume_of(claim))) if volume_of(claim) else None
    if volume is None:
        return Plan(_claim_status(claim, {"phase": "Lost"}))
    known = read_volume(volume)
    if known.claim is None or known.names(name_of(claim)):
        return Plan(_bind(volume, known, claim))
    return Plan(_claim_status(claim, {"phase": "Lost"}))


def _promised_claim(claim: JsonObject, reader: Reader) -> Plan:
    """A claim that names a volume waits for just that one."""
    volume = reader.find(ObjectRef(VOLUME, volume_of(claim)))
    if volume is None:
        return NOTHING
    known = read_volume(volume)
    if known.names(name_of(claim)):
        return Plan(_bind(volume, known, claim))
    if known.claim is not None:
        text = f'volume "{known.name}" already bound to a different claim.'
        return _told(claim, "FailedBinding", text, WARNING)
    shape = read_shape(claim)
    fault = _mismatch(known.size < shape.size, known.storage_class != shape.storage_class)
    if fault:
        text = f'Cannot bind to requested volume "{known.name}": {fault}'
        return _told(claim, "VolumeMismatch", text, WARNING)
    return Plan(_bind(volume, known, claim))


def _mismatch(too_small: bool, other_class: bool) -> str:
    if too_small:
        return "requested PV is too small"
    return "storageClassName does not match" if other_class else ""


def _provision(claim: JsonObject, storage_class: JsonObject | None, reader: Reader) -> Plan:
    if storage_class is None:
        text = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
        return _told(claim, "ProvisioningFailed", text, WARNING)
    if storage_class["provisioner"] == NO_PROVISIONER:
        return NOTHING
    selected, node = annotations_of(claim).get(SELECTED_NODE), None
    if selected is not None and (node := reader.find(ObjectRef(NODE, selected))) is None:
        taken_back = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        return Plan((Patch(ObjectRef.to(claim), taken_back),))
    volume = provisioned(claim, storage_class, node)
    name = volume["metadata"]["name"]
    news = _notice(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
    return Plan((Create(volume, news, LASTING), *_bind(volume, read_volume(volume), claim)))


def _bind(volume: JsonObject, known: Volume, claim: JsonObject) -> list[Write]:
    """What is missing to make volume and claim each other's, the volume's part first.

    ``known`` is the volume as it was read.
    """
    writes: list[Write] = []
    metadata: JsonObject = {}
    name = name_of(claim)
    if not known.names(name) and BOUND_BY_CONTROLLER not in annotations_of(volume):
        metadata = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    if metadata or known.claim != name:
        patch = {"metadata": metadata, "spec": {"claimRef": claim_reference(claim)}}
        writes.append(Patch(ObjectRef.to(volume), patch, options=LASTING))
    writes += _phase(volume, "Bound")
    writes += _complete(claim, known.name)
    status = {
        "phase": "Bound",
        "accessModes": volume["spec"].get("accessModes") or [],
        "capacity": volume["spec"].get("capacity") or {},
    }
    return [*writes, *_claim_status(claim, status)]


def _complete(claim: JsonObject, volume: str) -> list[Write]:
    held, annotations = annotations_of(claim), {}
    if volume_of(claim) != volume and BOUND_BY_CONTROLLER not in held:
        annotations[BOUND_BY_CONTROLLER] = "yes"
    if BIND_COMPLETED not in held:
        annotations[BIND_COMPLETED] = "yes"
    if not annotations and volume_of(claim) == volume:
        return []
    patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}
    return [Patch(ObjectRef.to(claim), patch, options=LASTING)]


def _claim_status(claim: JsonObject, status: JsonObject) -> list[Write]:
    held = claim.get("status") or {}
    if all(held.get(field) == value for field, value in status.items()):
        return []
    ref = ObjectRef.to(claim)
    return [Patch(ref, {"status": status}, subresource="status", options=LASTING)]


def _phase(volume: JsonObject, phase: str) -> list[Write]:
    if (volume.get("status") or {}).get("phase") == phase:
        return []
    ref, status = ObjectRef.to(volume), {"phase": phase}
    return [Patch(ref, {"status": status}, subresource="status", options=LASTING)]


def _released(volume: JsonObject) -> list[Write]:
    phase = (volume.get("status") or {}).get("phase")
    return [] if phase in _LIVE_NO_MORE else _phase(volume, "Released")


def _reclaimed(volume: JsonObject) -> list[Write]:
    is_deleting = volume["metadata"].get("deletionTimestamp") is not None
    if is_deleting or volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete":
        return []
    return [Delete(ObjectRef.to(volume))]


def _unbind(volume: JsonObject) -> Write:
    """Take back what we put into a volume; what somebody else promised stays promised."""
    if BOUND_BY_CONTROLLER in annotations_of(volume):
        annotations = {BOUND_BY_CONTROLLER: None}
        patch = {"metadata": {"annotations": annotations}, "spec": {"claimRef": None}}
    else:
        patch = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}
    return Patch(ObjectRef.to(volume), patch)


def _told(claim: JsonObject, reason: str, text: str, kind: str = NORMAL) -> Plan:
    return Plan(notices=(_notice(claim, reason, text, kind),))


def _notice(claim: JsonObject, reason: str, text: str, kind: str = NORMAL) -> Notice:
    return Notice(regarding(claim), kind, reason, text, REPORTER)


def persistent_volume_binder(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(PersistentVolumeBinder(), context)


def provisioned(
    claim: ReadOnlyObject, storage_class: ReadOnlyObject, node: ReadOnlyObject | None
) -> JsonObject:
    """A volume for one claim, reachable from the node's zone.

    It is of the class's CSI driver; a provisioner whose name no driver can have makes directories.
    """
    name, spec = f"pvc-{claim['metadata']['uid']}", claim["spec"]
    provisioner = storage_class["provisioner"]
    kind = BY_PLUGIN.get(provisioner)
    driver = provisioner if kind is None else kind.driver
    volume: JsonObject = {
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "accessModes": spec.get("accessModes") or [],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": class_of(claim),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "claimRef": claim_reference(claim),
    }
    if "/" in driver:
        volume["hostPath"] = {"path": f"/var/lib/volumes/{name}"}
    else:
        volume["csi"] = {"driver": driver, "volumeHandle": name}
    if attributes := spec.get("volumeAttributesClassName"):
        volume["volumeAttributesClassName"] = attributes
    if options := storage_class.get("mountOptions"):
        volume["mountOptions"] = options
    if zone := _zone(node):
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_in_zone(zone)]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: provisioner}},
        "spec": volume,
    }


def claim_reference(claim: ReadOnlyObject) -> JsonObject:
    """Who a volume is for, without a revision: that is another one in a used server."""
    metadata = claim["metadata"]
    parts = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    for key in ("namespace", "name", "uid"):
        if metadata.get(key):
            parts[key] = metadata[key]
    return parts


def _zone(node: ReadOnlyObject | None) -> str:
    return "" if node is None else (node["metadata"].get("labels") or {}).get(ZONE) or ""


def _in_zone(zone: str) -> JsonObject:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
