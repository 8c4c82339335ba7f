"""Filter and Score: can a node give the claims of a pod what they ask for, and how well?

What the search said about a node is remembered until something changes there. Pods of one template
ask for the same. Between two of them one node has changed, so of hundreds of nodes that have to be
judged only one is searched. `OutcomeTable` keeps, for one list of claims, a
code and an outcome per row of the node table; the stamps of the `DeviceCluster` say which are out
of date.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from kubescene.api.selectors.node_selectors import NodeSelector
from kubescene.clock import Clock
from kubescene.scheduler.devices.allocator import Failed, Granted, Outcome, Refused, allocate
from kubescene.scheduler.devices.cluster import DeviceCluster
from kubescene.scheduler.devices.conditions import BindingFailedError, is_overdue, is_ready
from kubescene.scheduler.devices.extended import NodeClaim
from kubescene.scheduler.devices.named_claims import allocation_of, key_of
from kubescene.scheduler.devices.pod_claims import PodClaims
from kubescene.scheduler.devices.pools import Pool
from kubescene.scheduler.devices.requests import ClaimSpec, claim_spec
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Column
from kubescene.types import ReadOnlyObject

Claims: TypeAlias = tuple[ClaimSpec, ...]


class OutcomeTable:
    """The outcomes for one list of claims. Code 0 is granted."""

    __slots__ = ("_codes", "_layout", "_outcomes", "_stamps", "refusals")

    def __init__(self) -> None:
        self.refusals: dict[Refused | Failed, int] = {}
        """Refusals and their codes, in order of the codes."""
        self._layout = -1
        self._stamps: Column = np.zeros(0, dtype=np.int64)
        self._codes: Codes = np.zeros(0, dtype=np.int64)
        self._outcomes: list[Outcome | None] = []

    def stale(self, rows: Rows, stamps: Column, layout: int) -> list[int]:
        """The rows whose outcome is not known any more."""
        if self._layout != layout:
            self._layout = layout
            self._stamps = np.zeros(stamps.size, dtype=np.int64)
            self._codes = np.zeros(stamps.size, dtype=np.int64)
            self._outcomes = [None] * stamps.size
            self.refusals.clear()
        known: list[int] = rows[self._stamps.take(rows) != stamps.take(rows)].tolist()
        return known

    def put(self, row: int, stamp: int, outcome: Outcome) -> None:
        self._stamps[row] = stamp
        self._outcomes[row] = outcome
        if isinstance(outcome, Granted):
            self._codes[row] = 0
        else:
            self._codes[row] = self.refusals.setdefault(outcome, len(self.refusals) + 1)

    def codes(self, rows: Rows) -> Codes:
        return self._codes.take(rows)

    def outcome(self, row: int) -> Outcome:
        found = self._outcomes[row]
        assert found is not None
        return found

    def refusal(self, code: int) -> Refused | Failed:
        return [*self.refusals][code - 1]


class Outcomes:
    """Tables for the lists of claims that pods have had lately."""

    def __init__(self, cluster: DeviceCluster, kept: int = POLICY.device_tables_kept) -> None:
        self._cluster = cluster
        self._kept = kept
        self._tables: OrderedDict[Claims, OutcomeTable] = OrderedDict()

    def judged(self, claims: Claims, nodes: NodeTable, rows: Rows) -> OutcomeTable:
        """The table for these claims, up to date for these rows."""
        table = self._table(claims)
        stamps = self._cluster.stamps(nodes)
        stale = table.stale(rows, stamps, nodes.layout)
        known: dict[int, Outcome] = {}
        for row in stale:
            table.put(row, int(stamps[row]), self._search(claims, nodes.infos[row], known))
        return table

    def on(self, claims: Claims, nodes: NodeTable, row: int) -> Outcome:
        """The outcome for one row."""
        return self.judged(claims, nodes, np.array([row], dtype=np.intp)).outcome(row)

    def anew(self, claims: Claims, node: NodeInfo) -> Outcome:
        """The outcome for a node that need not have a row, found without remembering it."""
        return self._search(claims, node, {})

    def _table(self, claims: Claims) -> OutcomeTable:
        found = self._tables.get(claims)
        if found is None:
            found = self._tables[claims] = OutcomeTable()
            if len(self._tables) > self._kept:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(claims)
        return found

    def _search(self, claims: Claims, node: NodeInfo, known: dict[int, Outcome]) -> Outcome:
        """Search, unless another node that reaches the same pools was searched just now."""
        pools = self._cluster.inventory.pools(node.name, node.labels)
        alike = not any(each.is_per_device for each in pools)
        if alike and (found := known.get(id(pools))) is not None:
            return found
        outcome = self._allocate(claims, pools, node)
        if alike and not isinstance(outcome, Failed):
            known[id(pools)] = outcome
        return outcome

    def _allocate(self, claims: Claims, pools: Sequence[Pool], node: NodeInfo) -> Outcome:
        cluster = self._cluster
        return allocate(
            claims,
            pools,
            node.name,
            node.labels,
            classes=cluster.classes.by_name,
            allocated=cluster.taken,
        )


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
