"""The claims of a pod: which they are, and what is known of them during one attempt."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubescene.api.node_selectors import NodeSelector, node_selector
from kubescene.scheduler.devices.extended import ExtendedResources, NodeClaim
from kubescene.scheduler.devices.requests import ClaimSpec, claim_spec
from kubescene.scheduler.interfaces import Lister
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.status import SUCCESS, Status
from kubescene.types import JsonObject, ReadOnlyObject


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
    return {each["name"]: each.get("resourceClaimName") for each in listed}


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


@dataclass(slots=True)
class PodClaims:
    """The claims of one pod during one attempt. Kept in the cycle's state, shared by its clones.

    ``claims`` are those that the pod names, then the one for its extended resources, if it has
    such. What a later stage learns is put into their place.
    """

    claims: list[ReadOnlyObject] = field(default_factory=list)
    extended: ExtendedResources | None = None
    open: list[int] = field(default_factory=list)
    """Positions of the claims that have to be allocated."""
    specs: tuple[ClaimSpec, ...] = ()
    """What those of them ask for that the pod names."""
    selectors: dict[int, NodeSelector] = field(default_factory=dict)
    """Where claims can be used that are allocated."""
    unavailable: dict[int, None] = field(default_factory=dict)
    """Claims that are allocated and kept a node from being used."""
    allocations: dict[int, JsonObject] = field(default_factory=dict)
    """What Reserve decided."""
    variant: NodeClaim | None = None
    """The claim for extended resources on the chosen node."""
    extended_uid: str = ""
    is_written: bool = False
    waiting_since: int = 0
    statuses: list[Status] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.claims

    @property
    def names_claims(self) -> bool:
        """Whether the pod itself names claims."""
        return len(self.claims) > (self.extended is not None)

    @property
    def extended_at(self) -> int:
        """The position of the claim for extended resources, or -1."""
        return -1 if self.extended is None else len(self.claims) - 1

    def take(self, claims: list[ReadOnlyObject], extended: ExtendedResources | None) -> None:
        """Begin with the claims as they are."""
        self.extended = extended
        self.claims = [*claims] if extended is None else [*claims, extended.claim]
        for position, claim in enumerate(self.claims):
            allocation = allocation_of(claim)
            if allocation is None:
                self.open.append(position)
            elif allocation.get("nodeSelector") is not None:
                self.selectors[position] = node_selector(allocation["nodeSelector"])
        last = self.extended_at
        self.specs = tuple(claim_spec(self.claims[each]) for each in self.open if each != last)

    def number(self, status: Status) -> int:
        """The code of a status in this attempt; success is 0."""
        if status is SUCCESS:
            return 0
        if status not in self.statuses:
            self.statuses.append(status)
        return self.statuses.index(status) + 1

    def status(self, code: int) -> Status:
        return self.statuses[code - 1]
