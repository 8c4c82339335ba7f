"""Defaults of volumes as objects, their classes and drivers."""

from functools import partial

from kubescene.api.defaulting.claims import default_claim
from kubescene.api.defaulting.resources import canonical_quantity, resource_list
from kubescene.api.defaulting.sharing import Defaulter, at, filled, filled_unset, into, within
from kubescene.api.defaulting.volumes import SHARED_SOURCES, default_source
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_STORAGE_CLASS = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
_CSI_DRIVER = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def default_persistent_volume(volume: JsonObject) -> JsonObject:
    """A volume: retained, a file system, pending until the controller makes it available."""
    volume = into(volume, "spec", _volume_spec)
    return into(volume, "status", lambda status: filled(status, {"phase": "Pending"}))


def default_storage_class(storage_class: JsonObject) -> JsonObject:
    """A class whose volumes are deleted with their claims and bound at once."""
    return filled_unset(storage_class, _STORAGE_CLASS)


def default_csi_driver(driver: JsonObject) -> JsonObject:
    """A driver for persistent volumes that attaches them."""
    return into(driver, "spec", _csi_driver_spec)


def default_volume_attachment(attachment: JsonObject) -> JsonObject:
    """An attachment; only an inline volume spec has anything to fill in."""
    return at(attachment, ("spec", "source", "inlineVolumeSpec"), _volume_source)


def default_storage_capacity(capacity: JsonObject) -> JsonObject:
    """A CSIStorageCapacity: quantities in canonical form."""
    capacity = within(capacity, "capacity", canonical_quantity)
    return within(capacity, "maximumVolumeSize", canonical_quantity)


def _volume_spec(spec: JsonObject) -> JsonObject:
    spec = filled(spec, {"persistentVolumeReclaimPolicy": "Retain"})
    return _volume_source(filled_unset(spec, {"volumeMode": "Filesystem"}))


def _volume_source(spec: JsonObject) -> JsonObject:
    for kind in SHARED_SOURCES:
        spec = within(spec, kind, partial(default_source, kind))
    return within(spec, "capacity", resource_list)


def _csi_driver_spec(spec: JsonObject) -> JsonObject:
    return filled(filled_unset(spec, _CSI_DRIVER), {"volumeLifecycleModes": ["Persistent"]})


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "PersistentVolume"): default_persistent_volume,
    GroupVersionKind("", "v1", "PersistentVolumeClaim"): default_claim,
    GroupVersionKind("storage.k8s.io", "v1", "CSIDriver"): default_csi_driver,
    GroupVersionKind("storage.k8s.io", "v1", "CSIStorageCapacity"): default_storage_capacity,
    GroupVersionKind("storage.k8s.io", "v1", "StorageClass"): default_storage_class,
    GroupVersionKind("storage.k8s.io", "v1", "VolumeAttachment"): default_volume_attachment,
}
