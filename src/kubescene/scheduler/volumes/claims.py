"""Reading claims, volumes and the pods that use them."""

from typing import NamedTuple

from kubescene.scheduler.pods import PodInfo, PodSignature
from kubescene.types import ReadOnlyObject

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class Mentioned(NamedTuple):
    """A claim in the volumes of a pod. ``volume`` is set if the claim is made for the pod."""

    claim: str
    volume: str

    def name(self, pod: str) -> str:
        return f"{pod}-{self.volume}" if self.volume else self.claim


def mentioned(signature: PodSignature) -> tuple[Mentioned, ...]:
    """The claims of a pod in order of its volumes. Compile with `PodSignature.compiled`."""
    found = []
    for volume in signature.volumes:
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            found.append(Mentioned(claim.get("claimName") or "", ""))
        elif volume.get("ephemeral") is not None:
            found.append(Mentioned("", volume["name"]))
    return tuple(found)


def mounted(signature: PodSignature) -> tuple[str, ...]:
    """The names of those claims that exist on their own."""
    return tuple(each.claim for each in signature.compiled(mentioned) if not each.volume)


def refers_to(pod: PodInfo, claim: ReadOnlyObject, *, ephemeral: bool) -> bool:
    """Whether a pod uses a claim; those that are made for pods count if ``ephemeral``."""
    metadata = claim["metadata"]
    if metadata.get("namespace") != pod.namespace:
        return False
    return any(
        each.name(pod.name) == metadata["name"]
        for each in pod.signature.compiled(mentioned)
        if ephemeral or not each.volume
    )


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


def is_made_for(claim: ReadOnlyObject, pod: PodInfo) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") and each.get("uid") == pod.uid for each in owners)


def not_made_for(pod: PodInfo, claim: str) -> str:
    return (
        f"PVC {pod.namespace}/{claim} was not created for pod {pod.namespace}/{pod.name} "
        "(pod is not owner)"
    )


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def annotations_of(obj: ReadOnlyObject) -> ReadOnlyObject:
    return obj["metadata"].get("annotations") or {}
