"""Rows of volumes, claims, classes and CSI objects."""

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    PrinterColumn,
    TableColumns,
    age,
    amount,
    boolean,
    dig,
    integer,
    name_of,
    text,
    wide,
)
from kubescene.types import JsonObject, Nanoseconds

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def volume_row(volume: JsonObject, now: Nanoseconds) -> Cells:
    claim = dig(volume, "spec.claimRef")
    return [
        name_of(volume),
        amount(dig(volume, "spec.capacity", {}).get("storage")),
        _access_modes(dig(volume, "spec.accessModes", ())),
        dig(volume, "spec.persistentVolumeReclaimPolicy", ""),
        _phase(volume),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _storage_class(volume),
        dig(volume, "spec.volumeAttributesClassName", UNSET),
        dig(volume, "status.reason", ""),
        age(volume, now),
        dig(volume, "spec.volumeMode", UNSET),
    ]


def claim_row(claim: JsonObject, now: Nanoseconds) -> Cells:
    volume = dig(claim, "spec.volumeName", "")
    return [
        name_of(claim),
        _phase(claim),
        volume,
        amount(dig(claim, "status.capacity", {}).get("storage")) if volume else "",
        _access_modes(dig(claim, "status.accessModes", ())) if volume else "",
        _storage_class(claim),
        dig(claim, "spec.volumeAttributesClassName", UNSET),
        age(claim, now),
        dig(claim, "spec.volumeMode", UNSET),
    ]


def _access_modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _phase(obj: JsonObject) -> str:
    if dig(obj, "metadata.deletionTimestamp") is not None:
        return "Terminating"
    return str(dig(obj, "status.phase", ""))


def _storage_class(obj: JsonObject) -> str:
    annotated = dig(obj, "metadata.annotations", {}).get(_CLASS_ANNOTATION)
    return str(dig(obj, "spec.storageClassName", "") if annotated is None else annotated)


def storage_class_row(storage_class: JsonObject, now: Nanoseconds) -> Cells:
    annotations = dig(storage_class, "metadata.annotations", {})
    is_default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS_ANNOTATIONS)
    return [
        name_of(storage_class) + (" (default)" if is_default else ""),
        storage_class.get("provisioner", ""),
        dig(storage_class, "reclaimPolicy", "Delete"),
        dig(storage_class, "volumeBindingMode", "Immediate"),
        bool(storage_class.get("allowVolumeExpansion")),
        age(storage_class, now),
    ]


def attributes_class_row(attributes_class: JsonObject, now: Nanoseconds) -> Cells:
    driver = attributes_class.get("driverName", "")
    return [name_of(attributes_class), driver, age(attributes_class, now)]


def attachment_row(attachment: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(attachment),
        dig(attachment, "spec.attacher", ""),
        dig(attachment, "spec.source.persistentVolumeName", ""),
        dig(attachment, "spec.nodeName", ""),
        bool(dig(attachment, "status.attached")),
        age(attachment, now),
    ]


def csi_node_row(csi_node: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(csi_node), len(dig(csi_node, "spec.drivers", ())), age(csi_node, now)]


def csi_driver_row(driver: JsonObject, now: Nanoseconds) -> Cells:
    tokens = dig(driver, "spec.tokenRequests")
    return [
        name_of(driver),
        dig(driver, "spec.attachRequired", True),
        dig(driver, "spec.podInfoOnMount", False),
        dig(driver, "spec.storageCapacity", False),
        UNSET if tokens is None else ",".join(token.get("audience", "") for token in tokens),
        dig(driver, "spec.requiresRepublish", False),
        ",".join(dig(driver, "spec.volumeLifecycleModes", ())) or NONE,
        age(driver, now),
    ]


VOLUME = TableColumns(
    (
        NAME,
        text("Capacity", "@core.v1.PersistentVolumeSpec.capacity"),
        text("Access Modes", "@core.v1.PersistentVolumeSpec.accessModes"),
        text("Reclaim Policy", "@core.v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy"),
        text("Status", "@core.v1.PersistentVolumeStatus.phase"),
        text("Claim", "@core.v1.PersistentVolumeSpec.claimRef"),
        text("StorageClass", "StorageClass of the pv"),
        text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        text("Reason", "@core.v1.PersistentVolumeStatus.reason"),
        AGE,
        wide("VolumeMode", "@core.v1.PersistentVolumeSpec.volumeMode"),
    ),
    volume_row,
)
CLAIM = TableColumns(
    (
        NAME,
        text("Status", "@core.v1.PersistentVolumeClaimStatus.phase"),
        text("Volume", "@core.v1.PersistentVolumeClaimSpec.volumeName"),
        text("Capacity", "@core.v1.PersistentVolumeClaimStatus.capacity"),
        text("Access Modes", "@core.v1.PersistentVolumeClaimStatus.accessModes"),
        text("StorageClass", "StorageClass of the pvc"),
        text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        AGE,
        wide("VolumeMode", "@core.v1.PersistentVolumeClaimSpec.volumeMode"),
    ),
    claim_row,
)
STORAGE_CLASS = TableColumns(
    (
        NAME,
        text("Provisioner", "@storage.v1.StorageClass.provisioner"),
        text("ReclaimPolicy", "@storage.v1.StorageClass.reclaimPolicy"),
        text("VolumeBindingMode", "@storage.v1.StorageClass.volumeBindingMode"),
        text("AllowVolumeExpansion", "@storage.v1.StorageClass.allowVolumeExpansion"),
        AGE,
    ),
    storage_class_row,
)
ATTRIBUTES_CLASS = TableColumns(
    (NAME, text("DriverName", "@storage.v1.VolumeAttributesClass.driverName"), AGE),
    attributes_class_row,
)
ATTACHMENT = TableColumns(
    (
        NAME,
        PrinterColumn("Attacher", "@storage.v1.VolumeAttachmentSpec.attacher", format="name"),
        text("PV", "@storage.v1.VolumeAttachmentSource.persistentVolumeName"),
        text("Node", "@storage.v1.VolumeAttachmentSpec.nodeName"),
        boolean("Attached", "@storage.v1.VolumeAttachmentStatus.attached"),
        AGE,
    ),
    attachment_row,
)
CSI_NODE = TableColumns(
    (
        NAME,
        integer("Drivers", "Drivers indicates the number of CSI drivers registered on the node"),
        AGE,
    ),
    csi_node_row,
)
CSI_DRIVER = TableColumns(
    (
        NAME,
        boolean("AttachRequired", "@storage.v1.CSIDriverSpec.attachRequired"),
        boolean("PodInfoOnMount", "@storage.v1.CSIDriverSpec.podInfoOnMount"),
        boolean("StorageCapacity", "@storage.v1.CSIDriverSpec.storageCapacity"),
        text("TokenRequests", "@storage.v1.CSIDriverSpec.tokenRequests"),
        boolean("RequiresRepublish", "@storage.v1.CSIDriverSpec.requiresRepublish"),
        text("Modes", "@storage.v1.CSIDriverSpec.volumeLifecycleModes"),
        AGE,
    ),
    csi_driver_row,
)
