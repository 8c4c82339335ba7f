"""What is known of the claims of a pod during one attempt."""

from dataclasses import dataclass, field

from kubescene.api.selectors.node_selectors import NodeSelector, node_selector
from kubescene.scheduler.devices.extended import ExtendedResources, NodeClaim
from kubescene.scheduler.devices.named_claims import allocation_of
from kubescene.scheduler.devices.requests import ClaimSpec, claim_spec
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.types import JsonObject, ReadOnlyObject


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
