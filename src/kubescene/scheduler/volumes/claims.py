"""The claims that pods mention among their volumes."""

from typing import NamedTuple

from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject


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
