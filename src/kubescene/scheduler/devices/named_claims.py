"""The claims that a pod names, and what claims say about themselves."""

from collections.abc import Sequence

from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.framework.interfaces import Lister
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

RESOURCE_CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")


class ClaimError(Exception):
    """A claim that the pod cannot use (D-1); the text is for the pod's owner."""


def find_claims(pod: PodInfo, claims: Lister) -> list[ReadOnlyObject]:
    """The claims of a pod in order of ``spec.resourceClaims``; raises `ClaimError`.

    An entry for which no claim had to be made is left out.
    """
    statuses: dict[str, str | None] | None = None
    found: list[ReadOnlyObject] = []
    for entry in pod.spec.claims:
        name: str | None = entry.get("resourceClaimName")
        if is_own := name is None:
            statuses = _generated(pod) if statuses is None else statuses
            name = _generated_name(pod, entry, statuses)
        if name is None:
            continue
        claim = claims.get(name, pod.namespace)
        if claim is None:
            raise ClaimError("object not found")
        _check(pod, claim, is_own)
        found.append(claim)
    return found


def _generated(pod: PodInfo) -> dict[str, str | None]:
    """The claims that were made for the pod from templates, by the names of their entries."""
    status = pod.object.get("status") or {}
    listed = status.get("resourceClaimStatuses") or ()
    return {each.get("name", ""): each.get("resourceClaimName") for each in listed}


def _generated_name(
    pod: PodInfo, entry: ReadOnlyObject, statuses: dict[str, str | None]
) -> str | None:
    if entry.get("resourceClaimTemplateName") is None:
        text = f'pod "{pod.key}", spec.resourceClaim "{entry["name"]}"'
        raise ClaimError(f"{text}: none of the supported fields are set")
    if entry["name"] not in statuses:
        raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')
    return statuses[entry["name"]]


def _check(pod: PodInfo, claim: ReadOnlyObject, is_own: bool) -> None:
    metadata = claim["metadata"]
    if metadata.get("deletionTimestamp") is not None:
        raise ClaimError(f'resourceclaim "{metadata["name"]}" is being deleted')
    if is_own and not is_controlled_by(claim, pod.uid):
        text = f"ResourceClaim {key_of(claim)} was not created for Pod {pod.key}"
        raise ClaimError(f"{text} (Pod is not owner)")


def is_controlled_by(claim: ReadOnlyObject, uid: str) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") and each.get("uid") == uid for each in owners)


def pod_owner(claim: ReadOnlyObject) -> str | None:
    """The uid of the pod that a claim was made for."""
    owners = claim["metadata"].get("ownerReferences") or ()
    found = (each for each in owners if each.get("controller") and each.get("kind") == "Pod")
    return next((each["uid"] for each in found), None)


def key_of(claim: ReadOnlyObject) -> str:
    metadata = claim["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def allocation_of(claim: ReadOnlyObject) -> ReadOnlyObject | None:
    found: ReadOnlyObject | None = (claim.get("status") or {}).get("allocation")
    return found


def reserved_for(claim: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    found: Sequence[ReadOnlyObject] = (claim.get("status") or {}).get("reservedFor") or ()
    return found


def is_reserved_for(claim: ReadOnlyObject, pod: PodInfo) -> bool:
    return any(each.get("uid") == pod.uid for each in reserved_for(claim))
