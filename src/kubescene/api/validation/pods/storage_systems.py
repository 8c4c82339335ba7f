"""Volume sources that name a storage system: what each of them cannot do without.

Only missing fields and obvious limits are looked at; whether the system exists is its own affair.
"""

from collections.abc import Callable
from typing import TypeAlias

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import range_complaint
from kubescene.types import JsonObject

SourceCheck: TypeAlias = Callable[[JsonObject, ErrorList, Path], None]

_REQUIRED = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "azureDisk": ("diskName", "diskURI"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "storageos": ("volumeName",),
}
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_MANAGED_URI = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/"
    "microsoft.compute/disks/{disk-id}"
)
_PARTITIONED = frozenset({"gcePersistentDisk", "awsElasticBlockStore"})


def storage_system_check(kind: str) -> SourceCheck:
    """The check for one kind of source; kinds without needs are accepted as they are."""

    def check(source: JsonObject, errors: ErrorList, path: Path) -> None:
        for field in _REQUIRED.get(kind, ()):
            if not source.get(field):
                errors.required(path.child(field))
        partition = source.get("partition", 0)
        if kind in _PARTITIONED and not 0 <= partition <= 255:
            errors.invalid(path.child("partition"), partition, range_complaint(1, 255))
        if kind == "azureDisk":
            _check_disk_uri(source, errors, path)

    return check


def _check_disk_uri(source: JsonObject, errors: ErrorList, path: Path) -> None:
    if (kind := source.get("kind")) is None:
        return
    uri = source.get("diskURI", "")
    start, form = (
        ("/subscriptions/", _MANAGED_URI) if kind == "Managed" else ("https://", _BLOB_URI)
    )
    if not uri.startswith(start):
        errors.not_supported(path.child("diskURI"), uri, (form,))
