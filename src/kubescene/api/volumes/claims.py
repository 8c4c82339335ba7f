"""Claims for storage: what their annotations and fields say about the volumes they have or want."""

from kubescene.types import ReadOnlyObject

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


def class_of(obj: ReadOnlyObject) -> str:
    """The storage class of a claim or volume; the old annotation goes first."""
    annotation = annotations_of(obj).get(CLASS_ANNOTATION)
    if annotation is not None:
        return str(annotation)
    return (obj.get("spec") or {}).get("storageClassName") or ""


def volume_of(claim: ReadOnlyObject) -> str:
    """The name of the volume that a claim is bound to, or to be bound to."""
    return (claim.get("spec") or {}).get("volumeName") or ""


def is_bound(claim: ReadOnlyObject) -> bool:
    """Whether a claim has its volume and the binding is complete (F-18)."""
    return bool(volume_of(claim)) and BIND_COMPLETED in annotations_of(claim)


def annotations_of(obj: ReadOnlyObject) -> ReadOnlyObject:
    return obj["metadata"].get("annotations") or {}
