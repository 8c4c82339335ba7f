"""Writes of volumes and their claims: the volume controller and the provisioners do the rest.

The scheduler names a claim in a volume, or a node in a claim; then it waits. What it named is
remembered, because it is compared, and done when the scheduler has let go of the thread.
"""

from typing import TYPE_CHECKING, Any

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.testing.goldens.acting import ReplayClient

VOLUME = GroupVersionKind("", "v1", "PersistentVolume")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
CLASS = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
NODE = GroupVersionKind("", "v1", "Node")
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
