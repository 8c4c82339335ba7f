"""Everybody who acted on the cluster that was recorded, but the scheduler.

What stood around kube-scheduler while it was recorded: API server, volumes, device drivers.

`ReplayClient` is the scheduler's client. It writes straight into the store, without admission or
defaults, because recorded objects have been through both, and plays what the API server of the
recording did: a bound pod gets its node's topology labels and a start time, a victim goes at once
or, with ``gracefulVictims``, stays and terminates. Volumes that the scheduler chose are bound and
provisioned by `settle`, once the scheduler has let go of the thread; devices with binding
conditions are given them with the write that allocates them.

Every write is noted in ``calls``: they are part of what is compared.

Writes of ResourceClaims: what the API server and the drivers of the recording made of them.

Share IDs are numbered in the order of writing, a claim can be reserved for so many pods only, and
devices that have to be made ready are so at once, or are said to have failed, as the case has it.

Writes of volumes and their claims: the volume controller and the provisioners do the rest.

The scheduler names a claim in a volume, or a node in a claim; then it waits. What it named is
remembered, because it is compared, and done when the scheduler has let go of the thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kubescene.actors import Actor, Component
from kubescene.api.builtin import builtin_scheme
from kubescene.api.copies import own_copy
from kubescene.api.options import (
    NO_OPTIONS,
    PLAIN_DELETE,
    DeleteOptions,
    OperationOrigin,
    WriteOptions,
)
from kubescene.api.patching.patches import PatchType, json_patch, merge_patch, strategic_merge
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.schemas.builtin_types import api_type
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.selectors import LabelSelector
from kubescene.client.interfaces import ClientSubscription, EventHandler, ObjectRef, Objects
from kubescene.errors import ConflictError, InvalidError, NotFoundError
from kubescene.store import Store
from kubescene.types import JsonObject

NODE = GroupVersionKind("", "v1", "Node")
POD = GroupVersionKind("", "v1", "Pod")
COPIED_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
SCHEDULED = "PodScheduled"
DELETED_AT = "2024-03-01T12:00:00Z"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One write of the scheduler; ``verb`` as in ``updateStatus``."""

    verb: str
    ref: ObjectRef
    body: Any = None

    @property
    def key(self) -> str:
        return f"{self.ref.namespace}/{self.ref.name}"


Calls: TypeAlias = list[RecordedCall]


class ReplayClient:
    """The client of the scheduler that is compared, and all who answer it."""

    def __init__(self, store: Store, case: JsonObject) -> None:
        self.store = store
        self.calls: Calls = []
        self._graceful = bool(case.get("gracefulVictims"))
        self._starts = not case.get("noStartTime")
        self._scheme = builtin_scheme()
        self._claims = ClaimWrites(case.get("deviceConditions") or {})
        self.volumes = VolumeWrites(self)
        self._names = 0
        self._deleted: dict[ObjectRef, JsonObject] = {}

    @property
    def actor(self) -> Actor:
        return Actor("kube-scheduler", Component.SCHEDULER, inside=True)

    def settle(self) -> bool:
        """Let the others do their part; whether there was any."""
        return self.volumes.settle()

    # -- Reader ----------------------------------------------------------------------------

    def get(self, ref: ObjectRef) -> JsonObject:
        return self._record(ref).decode()

    def find(self, ref: ObjectRef) -> JsonObject | None:
        record = self.store.get(self.resource(ref.gvk), ref.namespace, ref.name)
        return None if record is None else record.decode()

    def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> Objects:
        records = self.store.list(self.resource(gvk), namespace)
        return [each.decode() for each in records if labels is None or labels.matches(each.labels)]

    def owned(self, gvk: GroupVersionKind, owner_uid: str) -> Objects:
        records = self.store.in_order_of_creation(self.resource(gvk))
        return [each.decode() for each in records if each.owner == owner_uid]

    def on_node(self, node: str, *, labels: LabelSelector | None = None) -> Objects:
        pods = self.list(POD, labels=labels)
        return [each for each in pods if each["spec"].get("nodeName") == node]

    def get_scale(self, ref: ObjectRef) -> JsonObject:
        raise NotFoundError(f"{ref} has no scale in a golden")

    # -- Writer ----------------------------------------------------------------------------

    def create(self, obj: JsonObject, *, options: WriteOptions = NO_OPTIONS) -> Record:
        del options
        obj = own_copy(obj)
        metadata = obj["metadata"]
        if "name" not in metadata:
            self._names += 1
            metadata["name"] = f"{metadata.pop('generateName')}{self._names:05d}"
        metadata.setdefault("uid", f"{metadata['name']}-uid")
        ref = ObjectRef.to(obj)
        self._note("create", ref, obj)
        return self.store.put(self.resource(ref.gvk), obj, expected=0)

    def update(
        self, obj: JsonObject, *, subresource: str = "", options: WriteOptions = NO_OPTIONS
    ) -> Record:
        del options
        ref = ObjectRef.to(obj)
        version = obj["metadata"].get("resourceVersion")
        if version is not None and version != str(self._record(ref).revision):
            raise ConflictError(f"{ref} has been modified")
        record = self._put(ref, obj, subresource)
        self._note("update" + subresource.title(), ref, obj)
        return record

    def patch(
        self,
        ref: ObjectRef,
        patch: Any,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> Record:
        del options
        record = self._put(ref, _patched(self.get(ref), ref, patch, patch_type), subresource)
        self._note("patch" + subresource.title(), ref, patch)
        return record

    def delete(
        self,
        ref: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        del options, origin
        record = self._record(ref)
        self._note("delete", ref)
        if (ref.gvk == POD and self._graceful) or record.decode()["metadata"].get("finalizers"):
            return self._terminate(record)
        return self._remove(record, ref)

    def evict(
        self,
        pod: ObjectRef,
        *,
        options: DeleteOptions = PLAIN_DELETE,
        origin: OperationOrigin | None = None,
    ) -> Record:
        return self.delete(pod, options=options, origin=origin)

    def bind(
        self,
        pod: ObjectRef,
        node: str,
        *,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Record:
        """Place a pod, with its node's topology labels and a start time."""
        del uid, annotations
        obj = self.get(pod)
        labels = self._record(ObjectRef(NODE, node)).labels
        copied = {label: labels[label] for label in COPIED_LABELS if label in labels}
        if copied:
            obj["metadata"]["labels"] = obj["metadata"].get("labels", {}) | copied
        obj["spec"]["nodeName"] = node
        status = obj.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        others = [each for each in status.get("conditions") or () if each["type"] != SCHEDULED]
        status["conditions"] = [*others, {"type": SCHEDULED, "status": "True"}]
        return self._start(self.store.put(self.resource(POD), obj))

    def _start(self, record: Record) -> Record:
        """A write of its own, since binding sets neither phase nor start time."""
        obj = record.decode()
        obj["status"]["phase"] = "Running"
        if self._starts:
            obj["status"]["startTime"] = obj["metadata"]["creationTimestamp"]
        return self.store.put(record.resource, obj)

    def scale(self, ref: ObjectRef, replicas: int, *, options: WriteOptions = NO_OPTIONS) -> Record:
        raise NotFoundError(f"{ref} has no scale in a golden")

    def wait_seen(self, revision: int) -> None:
        """A watch over a store has seen every write."""

    # -- Watcher ---------------------------------------------------------------------------

    def watch(
        self,
        gvk: GroupVersionKind,
        handler: EventHandler,
        *,
        quiet: bool = False,
        traits: int = EVERYTHING,
    ) -> ClientSubscription:
        del quiet
        resource = self.resource(gvk)
        for record in self.store.in_order_of_creation(resource):
            handler(Change(ChangeType.ADDED, record, None, self.store))
        return self.store.subscribe(handler, (resource,), traits=traits)

    def watch_all(
        self,
        handler: EventHandler,
        *,
        quiet: bool = False,
        patient: bool = False,
        traits: int = EVERYTHING,
    ) -> ClientSubscription:
        del quiet, patient
        return self.store.subscribe(handler, traits=traits)

    def changed_since(self, revision: int) -> bool:
        return self.store.revision > revision

    def close(self) -> None:
        """A world of a golden is thrown away as a whole."""

    # -- inside ----------------------------------------------------------------------------

    def resource(self, gvk: GroupVersionKind) -> GroupResource:
        return self._scheme.of(gvk).group_resource

    def last_state(self, ref: ObjectRef) -> JsonObject:
        """An object as it was when it was deleted."""
        return self._deleted.get(ref, {})

    def take_calls(self) -> "Calls":
        """The writes since the last look."""
        calls, self.calls = self.calls, []
        return calls

    def _record(self, ref: ObjectRef) -> Record:
        record = self.store.get(self.resource(ref.gvk), ref.namespace, ref.name)
        if record is None:
            plural = self._scheme.of(ref.gvk).plural
            raise NotFoundError(f'{plural} "{ref.name}" not found', name=ref.name, kind=plural)
        return record

    def _put(self, ref: ObjectRef, obj: JsonObject, subresource: str) -> Record:
        """Write an object; the main resource and its status do not touch each other."""
        held = self.get(ref)
        kept, given = (held, obj) if subresource == "status" else (obj, held)
        new = {**kept, "status": given.get("status", {})}
        if "status" not in given:
            del new["status"]
        new = self._claims.written(ref, new, subresource)
        if _is_released(new):
            return self._remove(self._record(ref), ref)
        record = self.store.put(self.resource(ref.gvk), new)
        self.volumes.written(ref, new)
        return record

    def _remove(self, record: Record, ref: ObjectRef) -> Record:
        self._deleted[ref] = record.decode()
        return self.store.remove(record.resource, ref.namespace, ref.name)

    def _terminate(self, record: Record) -> Record:
        obj = record.decode()
        if "deletionTimestamp" in obj["metadata"]:
            return record
        obj["metadata"]["deletionTimestamp"] = DELETED_AT
        return self.store.put(record.resource, obj)

    def _note(self, verb: str, ref: ObjectRef, body: Any = None) -> None:
        self.calls.append(RecordedCall(verb, ref, body))


def _is_released(obj: JsonObject) -> bool:
    """Whether an object that is being deleted has lost its last finalizer."""
    metadata = obj["metadata"]
    return (
        obj["kind"] == "ResourceClaim"
        and bool(metadata.get("deletionTimestamp"))
        and not metadata.get("finalizers")
    )


def _patched(obj: JsonObject, ref: ObjectRef, patch: Any, patch_type: PatchType) -> Any:
    if patch_type is PatchType.STRATEGIC:
        return strategic_merge(obj, patch, api_type(ref.gvk))
    return json_patch(obj, patch) if patch_type is PatchType.JSON else merge_patch(obj, patch)


MOST_CONSUMERS = 256
SHARE = "5a4e0000-0000-4000-8000-{:012d}"
DRIVER_TIME = "2026-01-01T12:00:00Z"


class ClaimWrites:
    """``conditions``: by driver/pool/device, the status of each binding condition."""

    def __init__(self, conditions: Mapping[str, Mapping[str, str]]) -> None:
        self._conditions = conditions
        self._shares: dict[str, str] = {}

    def written(self, ref: ObjectRef, obj: JsonObject, subresource: str) -> JsonObject:
        """The object that is stored; objects of other kinds are none of our business."""
        if ref.gvk.kind != "ResourceClaim" or subresource != "status":
            return obj
        status = obj.get("status") or {}
        _check(ref, status)
        for result in _results(status):
            if share := result.get("shareID"):
                result["shareID"] = self._numbered(share)
        self._make_ready(status)
        return obj

    def _numbered(self, share: str) -> str:
        """Whoever writes a claim again, for another pod, finds numbers in it: they stay."""
        if share in self._shares.values():
            return share
        return self._shares.setdefault(share, SHARE.format(len(self._shares) + 1))

    def _make_ready(self, status: JsonObject) -> None:
        known = {_device(each) for each in status.get("devices") or ()}
        for result in _results(status):
            wanted = self._conditions.get(_device(result))
            if wanted and _device(result) not in known:
                status.setdefault("devices", []).append(_ready(result, wanted))


def _check(ref: ObjectRef, status: Mapping[str, Any]) -> None:
    count = len(status.get("reservedFor") or ())
    if count > MOST_CONSUMERS:
        raise InvalidError(
            f'ResourceClaim.resource.k8s.io "{ref.name}" is invalid: status.reservedFor: '
            f"Too many: {count}: must have at most {MOST_CONSUMERS} items"
        )


def _results(status: Mapping[str, Any]) -> list[JsonObject]:
    devices = (status.get("allocation") or {}).get("devices") or {}
    return devices.get("results") or []


def _device(entry: Mapping[str, Any]) -> str:
    return f"{entry['driver']}/{entry['pool']}/{entry['device']}"


def _ready(result: Mapping[str, Any], wanted: Mapping[str, str]) -> JsonObject:
    conditions = [
        {
            "type": name,
            "status": status,
            "lastTransitionTime": DRIVER_TIME,
            "reason": "Driver",
            "message": "set by driver",
        }
        for name, status in wanted.items()
    ]
    device = {key: result[key] for key in ("driver", "pool", "device")}
    return {**device, "conditions": conditions}


VOLUME = GroupVersionKind("", "v1", "PersistentVolume")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
CLASS = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
ZONE = "topology.kubernetes.io/zone"


class VolumeWrites:
    """The volume controller of one world."""

    def __init__(self, client: "ReplayClient") -> None:
        self._client = client
        self._to_bind: list[tuple[ObjectRef, str]] = []
        self._to_provision: list[tuple[ObjectRef, str]] = []

    def written(self, ref: ObjectRef, new: JsonObject) -> None:
        """The scheduler wrote an object; what follows from it is done later."""
        if ref.gvk == VOLUME and (claim := claim_of(new)):
            namespace, name = claim.split("/")
            self._to_bind.append((ObjectRef(CLAIM, name, namespace), ref.name))
        elif ref.gvk == CLAIM and (node := selected_node(new)):
            self._to_provision.append((ref, node))

    def settle(self) -> bool:
        to_bind, self._to_bind = self._to_bind, []
        to_provision, self._to_provision = self._to_provision, []
        for claim, volume in to_bind:
            self.bind(claim, volume)
        for claim, node in to_provision:
            self.provision(claim, node)
        return bool(to_bind or to_provision)

    def bind(self, ref: ObjectRef, volume: str) -> None:
        """A claim and an existing volume become each other's."""
        claim = self._client.find(ref)
        obj = self._client.find(ObjectRef(VOLUME, volume))
        if claim is None or obj is None:
            return
        metadata = claim["metadata"]
        obj["spec"]["claimRef"] = _reference(claim)
        obj["status"] = {**obj.get("status", {}), "phase": "Bound"}
        self._update(obj)
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            BIND_COMPLETED: "yes",
            BOUND_BY_CONTROLLER: "yes",
        }
        claim["spec"]["volumeName"] = volume
        claim["status"] = {**claim.get("status", {}), "phase": "Bound"}
        self._update(claim)

    def provision(self, ref: ObjectRef, node: str) -> None:
        """A claim gets a new volume where the scheduler wants it."""
        claim = self._client.find(ref)
        if claim is None or claim["spec"].get("volumeName"):
            return
        volume = self._volume(claim, node)
        self._client.store.put(self._client.resource(VOLUME), volume, expected=0)
        self.bind(ref, volume["metadata"]["name"])

    def _volume(self, claim: JsonObject, node: str) -> JsonObject:
        uid, spec = claim["metadata"]["uid"], claim["spec"]
        storage_class = self._client.find(ObjectRef(CLASS, spec.get("storageClassName") or ""))
        driver = "" if storage_class is None else storage_class["provisioner"]
        volume: JsonObject = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pvc-{uid}", "uid": f"pv-{uid}"},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec.get("accessModes") or [],
                "storageClassName": spec.get("storageClassName") or "",
                "csi": {"driver": driver, "volumeHandle": f"pvc-{uid}"},
            },
        }
        if zone := self._zone(node):
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_in_zone(zone)]}}
        return volume

    def _zone(self, node: str) -> str:
        obj = self._client.find(ObjectRef(NODE, node))
        return "" if obj is None else (obj["metadata"].get("labels") or {}).get(ZONE, "")

    def _update(self, obj: JsonObject) -> None:
        ref = ObjectRef.to(obj)
        self._client.store.put(self._client.resource(ref.gvk), obj)


def claim_of(volume: JsonObject) -> str:
    """The claim that a volume names, as namespace/name."""
    claim: Any = volume["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim['name']}" if claim else ""


def selected_node(claim: JsonObject) -> str:
    return str((claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, ""))


def _reference(claim: JsonObject) -> JsonObject:
    metadata = claim["metadata"]
    named = {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def _in_zone(zone: str) -> JsonObject:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
