"""New volumes, as an external provisioner would make them."""

from kubescene.api.volumes.claims import PROVISIONED_BY, class_of
from kubescene.api.volumes.csi_migration import BY_PLUGIN, ZONE
from kubescene.types import JsonObject, ReadOnlyObject


def provisioned(
    claim: ReadOnlyObject, storage_class: ReadOnlyObject, node: ReadOnlyObject | None
) -> JsonObject:
    """A CSI volume of the class's driver for one claim, reachable from the node's zone."""
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
        "csi": {"driver": driver, "volumeHandle": name},
    }
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
    metadata = claim["metadata"]
    parts = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    for key in ("namespace", "name", "uid", "resourceVersion"):
        if metadata.get(key):
            parts[key] = metadata[key]
    return parts


def _zone(node: ReadOnlyObject | None) -> str:
    return "" if node is None else (node["metadata"].get("labels") or {}).get(ZONE) or ""


def _in_zone(zone: str) -> JsonObject:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
