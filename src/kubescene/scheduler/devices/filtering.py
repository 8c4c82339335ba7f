"""Filter and Score: can a node give the claims of a pod what they ask for, and how well?"""

import numpy as np

from kubescene.api.selectors.node_selectors import NodeSelector
from kubescene.clock import Clock
from kubescene.scheduler.devices.allocator import Failed, Granted, Outcome, Refused
from kubescene.scheduler.devices.cluster import DeviceCluster
from kubescene.scheduler.devices.conditions import BindingFailedError, is_overdue, is_ready
from kubescene.scheduler.devices.extended import NodeClaim
from kubescene.scheduler.devices.named_claims import allocation_of, key_of
from kubescene.scheduler.devices.outcomes import Outcomes
from kubescene.scheduler.devices.pod_claims import PodClaims
from kubescene.scheduler.devices.requests import ClaimSpec, claim_spec
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

MOST_ALTERNATIVES = 8

_LEFT_OVER = Status.unresolvable("cannot schedule extended resource claim")
_CANNOT_FIT = Status.unresolvable("cannot fit resource")
_NOT_AVAILABLE = Status.unresolvable("resourceclaim not available on the node")


class ClaimFilter:
    """Judges nodes for pods with claims."""

    def __init__(
        self, cluster: DeviceCluster, nodes: NodeTable, clock: Clock, binding_timeout: int
    ) -> None:
        self._nodes = nodes
        self._clock = clock
        self._timeout = binding_timeout
        self._outcomes = Outcomes(cluster)

    def judge_all(self, held: PodClaims, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        """A code per row; see `PodClaims.status`."""
        if held.extended is not None or len(held.open) < len(held.claims):
            codes = [held.number(self.judge(held, pod, nodes.infos[row])) for row in rows.tolist()]
            return np.array(codes, dtype=np.int64)
        table = self._outcomes.judged(held.specs, nodes, rows)
        found = table.codes(rows)
        if not found.any():
            return found
        numbers = np.zeros(len(table.refusals) + 1, dtype=np.int64)
        for code in np.unique(found[found > 0]).tolist():
            numbers[code] = held.number(_status(held, table.refusal(code)))
        return numbers.take(found)

    def judge(self, held: PodClaims, pod: PodInfo, node: NodeInfo) -> Status:
        """What holds for one node."""
        if held.is_empty:
            return SUCCESS
        variant: NodeClaim | None = None
        if held.extended is not None:
            if held.extended.is_left_over:
                return _LEFT_OVER
            missing = held.extended.missing_on(node)
            if missing is None:
                return _CANNOT_FIT
            if not missing and not held.names_claims:
                return SUCCESS
            variant = held.extended.variant(missing)
        unavailable = self._unavailable(held, node)
        if held.open:
            outcome = self._outcome(_specs(held, variant), node)
            if not isinstance(outcome, Granted):
                return _status(held, outcome)
        if unavailable:
            held.unavailable.update(dict.fromkeys(unavailable))
            return _NOT_AVAILABLE
        return SUCCESS

    def granted(self, held: PodClaims, node: NodeInfo) -> tuple[Granted | None, NodeClaim | None]:
        """What the claims that are not allocated get on a node that passed, and the node's claim
        for extended resources. Neither, if the node offers all of these by itself.
        """
        variant: NodeClaim | None = None
        if held.extended is not None:
            missing = held.extended.missing_on(node)
            if not missing and not held.names_claims:
                return None, None
            variant = held.extended.variant(missing or ())
        outcome = self._outcome(_specs(held, variant), node)
        return (outcome if isinstance(outcome, Granted) else None), variant

    def can_differ(self, held: PodClaims) -> bool:
        """Whether nodes can have different scores."""
        return any(claim_spec(each).is_prioritized for each in held.claims)

    def score(self, held: PodClaims, node: NodeInfo) -> int:
        """The earlier in its list an alternative is, the more it counts."""
        if not held.open:
            return 0
        granted, variant = self.granted(held, node)
        if granted is None:
            return 0
        total = 0
        specs = dict(zip(held.open, _specs(held, variant), strict=True))
        for position, claim in enumerate(held.claims):
            if position in specs:
                at = held.open.index(position)
                total += _chosen_score(specs[position], granted.chosen[at])
            else:
                total += _allocated_score(claim)
        return total

    def _outcome(self, specs: tuple[ClaimSpec, ...], node: NodeInfo) -> Outcome:
        """What is remembered of the node's row; which pods are supposed on it does not matter."""
        row = self._nodes.row_of(node.name)
        if row is None or self._nodes.infos[row].labels is not node.labels:
            return self._outcomes.anew(specs, node)
        return self._outcomes.on(specs, self._nodes, row)

    def _unavailable(self, held: PodClaims, node: NodeInfo) -> list[int]:
        """Positions of allocated claims that cannot be used on the node."""
        return [
            position
            for position, claim in enumerate(held.claims)
            if self._is_unavailable(claim, held.selectors.get(position), node)
        ]

    def _is_unavailable(
        self, claim: ReadOnlyObject, selector: NodeSelector | None, node: NodeInfo
    ) -> bool:
        if selector is not None and not selector.matches(node.labels, node.name):
            return True
        return allocation_of(claim) is not None and self._is_lost(claim)

    def _is_lost(self, claim: ReadOnlyObject) -> bool:
        """Whether the devices of a claim could not be made ready, or not in time."""
        try:
            ready = is_ready(claim)
        except BindingFailedError:
            return True
        return not ready and is_overdue(claim, self._timeout, self._clock.now())


def _specs(held: PodClaims, variant: NodeClaim | None) -> tuple[ClaimSpec, ...]:
    if variant is None or held.extended_at not in held.open:
        return held.specs
    return (*held.specs, variant.spec)


def _status(held: PodClaims, outcome: Refused | Failed) -> Status:
    if isinstance(outcome, Refused):
        return Status.unresolvable(outcome.reason)
    if outcome.claim < 0:
        return Status.error(outcome.text)
    return Status.error(f"claim {key_of(held.claims[held.open[outcome.claim]])}{outcome.text}")


def _chosen_score(spec: ClaimSpec, chosen: tuple[int, ...]) -> int:
    return sum(
        MOST_ALTERNATIVES - index
        for demand, index in zip(spec.demands, chosen, strict=True)
        if demand.is_prioritized
    )


def _allocated_score(claim: ReadOnlyObject) -> int:
    results = ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ()
    names = {each["request"] for each in results}
    return sum(
        MOST_ALTERNATIVES - index
        for demand in claim_spec(claim).demands
        if demand.is_prioritized
        for index, request in enumerate(demand.alternatives)
        if request.full_name in names
    )
