"""Which nodes are given up: empty, drifted, or such that others hold their pods for less money."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from kubescene.clock.timestamps import parse_time
from kubescene.karpenter.budgets import EvictionBudgets
from kubescene.karpenter.flags import KarpenterFlags
from kubescene.karpenter.instance_types import (
    INFINITE,
    ON_DEMAND,
    SPOT,
    InstanceCatalogue,
    InstanceType,
    missing_values,
    needed_types,
)
from kubescene.karpenter.nodepools import (
    BALANCED,
    DRIFTED,
    EMPTY,
    UNDERUTILIZED,
    WHEN_EMPTY,
    NodePool,
    in_order,
)
from kubescene.karpenter.nodes import KarpenterNode, condition, find_condition
from kubescene.karpenter.packing import ClaimPacking, OpenClaim, Packed, PackingOptions
from kubescene.karpenter.pods import DO_NOT_DISRUPT, PodSeen
from kubescene.karpenter.requirements import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL,
    ZONE,
    LabelRequirement,
    from_labels,
)
from kubescene.karpenter.topology import ClusterPods

METHODS = ("empty", "drift", "multi", "single")
"""In the order in which they are tried; the first that finds something acts."""
REASONS = {"empty": EMPTY, "drift": DRIFTED, "multi": UNDERUTILIZED, "single": UNDERUTILIZED}
MOST_TOGETHER = 100
"""So many nodes at most are given up together."""
SPOT_CHOICE = 15
"""A spot node is replaced by a spot node only if there are so many cheaper types."""
_BALANCE = 2
"""``Balanced``: what is saved must be worth half of what it disturbs."""


class ClusterView:
    """All that a decision is about, at one moment."""

    def __init__(
        self,
        nodes: Iterable[KarpenterNode],
        pods: Sequence[PodSeen],
        pools: Iterable[NodePool],
        catalogue: InstanceCatalogue,
        budgets: EvictionBudgets,
        daemons: Sequence[PodSeen],
        namespaces: Mapping[str, Mapping[str, str]],
        now: int,
        flags: KarpenterFlags,
        nominated: frozenset[str] = frozenset(),
    ) -> None:
        """``pools`` are those that make sense; pods on ``nominated`` nodes are on their way."""
        self.nodes = sorted(nodes, key=lambda each: each.name)
        self.pods, self.catalogue, self.budgets = pods, catalogue, budgets
        self.pools = in_order(pools)
        self.by_name = {each.name: each for each in self.pools}
        self.daemons, self.namespaces, self.now, self.flags = daemons, namespaces, now, flags
        self.nominated = nominated

    @cached_property
    def pending(self) -> list[PodSeen]:
        return [each for each in self.pods if each.is_provisionable and not each.placement_fault()]

    @cached_property
    def displaced(self) -> list[PodSeen]:
        """Pods of nodes that are leaving."""
        return [
            pod
            for node in self.nodes
            if node.is_leaving
            for pod in node.pods
            if self.budgets.is_currently_reschedulable(pod, self.now)
        ]

    def provision(self) -> Packed | None:
        """Places for all that want one; None if nobody does."""
        wanting = [*self.pending, *self.displaced]
        return self._packed(wanting, frozenset(), consolidates=False) if wanting else None

    def without(self, candidates: Sequence["DisruptionCandidate"], *, consolidates: bool) -> Packed:
        """As if these nodes were gone."""
        moved = [
            pod
            for each in candidates
            for pod in each.reschedulable
            if self.budgets.is_currently_reschedulable(pod, self.now)
        ]
        gone = frozenset(each.name for each in candidates)
        packed = self._packed(
            [*self.pending, *moved, *self.displaced], gone, consolidates=consolidates
        )
        displaced = {each.key for each in self.displaced}
        for node in packed.existing:
            if not node.node.is_initialized:
                for pod in node.pods:
                    if pod.key not in displaced:
                        name = node.node.name
                        packed.faults[pod.key] = f"would schedule against uninitialized {name}"
        return packed

    def _packed(
        self, pods: Sequence[PodSeen], gone: frozenset[str], *, consolidates: bool
    ) -> Packed:
        staying = [each for each in self.nodes if not each.is_leaving and each.name not in gone]
        known = {
            each.node["metadata"]["name"]: each.node for each in self.nodes if each.node is not None
        }
        cluster = ClusterPods(
            known,
            [each.node for each in staying if each.node is not None],
            self.pods,
            self.namespaces,
        )
        options = PackingOptions(
            ignores_preferences=self.flags.preference_policy == "Ignore",
            relaxes_choice=self.flags.min_values_policy == "BestEffort",
            is_consolidating=consolidates,
        )
        leaving = frozenset(each.name for each in self.nodes if each.is_leaving)
        return ClaimPacking(
            pods,
            self.pools,
            self.catalogue,
            staying,
            cluster,
            self.daemons,
            self.now,
            options,
            leaving,
        ).solve()

    def all_placed(self, packed: Packed) -> bool:
        """Whether those that had a place still have one."""
        pending = {each.key for each in self.pending}
        return all(key in pending for key in packed.faults)

    # -- budgets ---------------------------------------------------------------------------

    def allowed(self, reason: str) -> dict[str, int]:
        """How many nodes of each pool may still be given up for a reason."""
        counts: dict[str, int] = {}
        busy: dict[str, int] = {}
        for node in self.nodes:
            if node.claim is None or not node.is_initialized:
                continue
            if condition(node.claim, "InstanceTerminating") == "True":
                continue
            counts[node.pool] = counts.get(node.pool, 0) + 1
            if node.is_leaving or not node.is_ready:
                busy[node.pool] = busy.get(node.pool, 0) + 1
        return {
            each.name: max(
                each.allowed(counts.get(each.name, 0), reason, self.now) - busy.get(each.name, 0), 0
            )
            for each in self.pools
        }


class DisruptionCandidate(Struct, frozen=True, eq=False):
    """A node that may be given up."""

    node: KarpenterNode
    pool: NodePool
    kind: InstanceType | None
    reschedulable: Sequence[PodSeen]
    price: float
    cost: float
    """How much it disturbs: 1, and what each of its pods costs to move."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_empty(self) -> bool:
        return self.cost <= 1.0

    @property
    def claim(self) -> Mapping[str, object]:
        assert self.node.claim is not None
        return self.node.claim

    @property
    def is_consolidatable(self) -> bool:
        return condition(self.claim, "Consolidatable") == "True"


class DisruptionCommand(Struct, frozen=True):
    """Give up these nodes; first have the others ready."""

    method: str
    candidates: Sequence[DisruptionCandidate]
    replacements: Sequence[OpenClaim] = ()
    packed: Packed | None = None

    @property
    def reason(self) -> str:
        return REASONS[self.method]

    @property
    def decision(self) -> str:
        return "replace" if self.replacements else "delete"

    def savings(self, catalogue: InstanceCatalogue) -> float:
        """What is no longer paid in an hour."""
        before = 0.0
        for each in self.candidates:
            before += each.price
        after = 0.0
        for claim in self.replacements:
            if claim.types:
                found = catalogue.price(claim.types[0], claim.requirements)
                after += 0.0 if found == INFINITE else found
        return before - after


class DisruptionDecision(Struct):
    """What a method came to: commands, and why other nodes stay."""

    candidates: list[DisruptionCandidate]
    allowed: dict[str, int]
    commands: list[DisruptionCommand] = field(default_factory=list)
    stays: dict[str, str] = field(default_factory=dict)
    is_final: bool = True
    """Whether only a change could make it decide otherwise: no budget stood in the way."""


class Disruption:
    """The methods, over one view of the cluster."""

    def __init__(self, view: ClusterView, pool_costs: Mapping[str, float] | None = None) -> None:
        """``pool_costs``: what all nodes of a pool cost; without, its candidates alone count."""
        self.view = view
        self._stays: dict[str, str] = {}
        self._pool_costs = pool_costs or {}

    def candidates(self, method: str) -> list[DisruptionCandidate]:
        """The nodes that a method may give up."""
        every = self._candidates(is_eventual=method == "drift")
        self._totals = self._sums(every)
        return [each for each in every if self._concerns(method, each)]

    def decide(self, method: str) -> DisruptionDecision:
        self._stays = {}
        candidates = self.candidates(method)
        allowed = self.view.allowed(REASONS[method])
        decided = DisruptionDecision(candidates, dict(allowed), stays=self._stays)
        match method:
            case "empty":
                self._empty(decided, allowed)
            case "drift":
                self._drifted(decided, allowed)
            case "multi":
                self._together(decided, allowed)
            case _:
                self._one(decided, allowed)
        return decided

    # -- candidates ------------------------------------------------------------------------

    def _candidates(self, *, is_eventual: bool) -> list[DisruptionCandidate]:
        found = list[DisruptionCandidate]()
        for node in self.view.nodes:
            why = self._blocked(node, is_eventual=is_eventual)
            if why:
                if node.is_managed:
                    self._stays[node.name] = why
                continue
            found.append(self._candidate(node))
        return found

    def _candidate(self, node: KarpenterNode) -> DisruptionCandidate:
        kind = self.view.catalogue.by_name.get(node.labels.get(INSTANCE_TYPE, ""))
        moved = [each for each in node.pods if each.is_reschedulable]
        cost = 1.0
        for each in moved:
            cost += max(0.0, each.eviction_cost)
        price = None
        if kind is not None:
            zone, how = node.labels.get(ZONE, ""), node.labels.get(CAPACITY_TYPE, "")
            price = kind.price_of(zone, how)
        return DisruptionCandidate(
            node, self.view.by_name[node.pool], kind, moved, price or 0.0, cost
        )

    def _blocked(self, node: KarpenterNode, *, is_eventual: bool) -> str:
        """Why a node cannot be a candidate at all, in the words of its Event."""
        if node.claim is None:
            return "node isn't managed by karpenter"
        if why := _unfinished(node):
            return why
        if node.name in self.view.nominated:
            return "node is nominated for a pending pod"
        if node.annotations.get(DO_NOT_DISRUPT) == "true":
            return f'disruption is blocked through the "{DO_NOT_DISRUPT}" annotation'
        if NODE_POOL not in node.labels:
            return f"node doesn't have required label (label={NODE_POOL})"
        if node.pool not in self.view.by_name:
            return f"NodePool not found (NodePool={node.pool})"
        if is_eventual and node.claim["spec"].get("terminationGracePeriod"):
            return ""
        return self._protected(node)

    def _protected(self, node: KarpenterNode) -> str:
        """Why its pods must stay where they are."""
        for each in node.pods:
            if each.is_active and each.is_protected(self.view.now):
                return f'pod has "{DO_NOT_DISRUPT}" annotation (Pod={each.key})'
        blocking = self.view.budgets.blocking(node.pods, self.view.now)
        if len(blocking) > 1:
            names = " ".join(blocking)
            return f"eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{names}])"
        if blocking:
            return f"pdb prevents pod evictions (PodDisruptionBudget=[{blocking[0]}])"
        return ""

    def _concerns(self, method: str, it: DisruptionCandidate) -> bool:
        if method == "drift":
            return condition(it.claim, "Drifted") == "True"
        if method == "empty":
            if it.pool.consolidate_after is None:
                self._stays[it.name] = f'NodePool "{it.pool.name}" has consolidation disabled'
                return False
            return it.is_empty and it.is_consolidatable
        if why := self._unconsolidatable(it):
            self._stays[it.name] = why
            return False
        return True

    def _unconsolidatable(self, it: DisruptionCandidate) -> str:
        labels, pool = it.node.labels, it.pool
        if it.kind is None:
            return f'Instance Type "{labels.get(INSTANCE_TYPE, "")}" not found'
        for key in (CAPACITY_TYPE, ZONE):
            if key not in labels:
                return f'Node does not have label "{key}"'
        if pool.consolidate_after is None:
            return f'NodePool "{pool.name}" has consolidation disabled'
        if it.is_empty:
            return "Node is empty"
        if pool.policy == WHEN_EMPTY:
            policy = "consolidation policy WhenEmpty, but node is not empty"
            return f'NodePool "{pool.name}" has {policy}'
        return "" if it.is_consolidatable else "consolidateAfter has not passed"

    def _by_savings(self, candidates: Iterable[DisruptionCandidate]) -> list[DisruptionCandidate]:
        return sorted(candidates, key=lambda each: -(each.price / each.cost))

    # -- methods ---------------------------------------------------------------------------

    def _empty(self, decided: DisruptionDecision, allowed: dict[str, int]) -> None:
        chosen = self._affordable(decided, allowed)
        if chosen:
            decided.commands.append(DisruptionCommand("empty", chosen))

    def _affordable(
        self, decided: DisruptionDecision, allowed: dict[str, int]
    ) -> list[DisruptionCandidate]:
        chosen = list[DisruptionCandidate]()
        for each in self._by_savings(decided.candidates):
            if not allowed[each.pool.name]:
                decided.is_final = False
                decided.stays[each.name] = f"budgets of NodePool {each.pool.name} allow no more"
                continue
            allowed[each.pool.name] -= 1
            chosen.append(each)
        return chosen

    def _drifted(self, decided: DisruptionDecision, allowed: dict[str, int]) -> None:
        since = sorted(decided.candidates, key=_drifted_since)
        for each in sorted(since, key=lambda each: bool(each.reschedulable)):
            if not allowed[each.pool.name]:
                decided.stays[each.name] = f"budgets of NodePool {each.pool.name} allow no more"
                continue
            packed = self.view.without([each], consolidates=False)
            if not self.view.all_placed(packed):
                decided.stays[each.name] = self._unplaced(packed)
                continue
            decided.commands.append(DisruptionCommand("drift", [each], packed.claims, packed))
            return

    def _together(self, decided: DisruptionDecision, allowed: dict[str, int]) -> None:
        """The most nodes from the front of the list that can go at once, by halving."""
        candidates = self._affordable(decided, allowed)
        low, high = 1, min(len(candidates) - 1, MOST_TOGETHER)
        if len(candidates) > MOST_TOGETHER:
            high = MOST_TOGETHER
        found: DisruptionCommand | None = None
        while low <= high:
            middle = (low + high) // 2
            command = self._consolidation("multi", candidates[: middle + 1])
            if command is not None and command.replacements:
                command = self._of_other_types(command)
            if command is not None and self._is_worth_it(command):
                found, low = command, middle + 1
            else:
                high = middle - 1
        if found is not None:
            decided.commands.append(found)

    def _one(self, decided: DisruptionDecision, allowed: dict[str, int]) -> None:
        for each in _interleaved(self._by_savings(decided.candidates)):
            if not allowed[each.pool.name]:
                decided.is_final = False
                decided.stays[each.name] = f"budgets of NodePool {each.pool.name} allow no more"
                continue
            if not self._can_be_worth_it(each):
                decided.stays[each.name] = "it disturbs more than it saves"
                continue
            command = self._consolidation("single", [each])
            if command is not None and self._is_worth_it(command):
                decided.commands.append(command)
                return

    # -- consolidation ---------------------------------------------------------------------

    def _consolidation(
        self, method: str, candidates: Sequence[DisruptionCandidate]
    ) -> DisruptionCommand | None:
        """These nodes away, if the others and at most one cheaper new one hold their pods."""
        packed = self.view.without(candidates, consolidates=True)
        if not self.view.all_placed(packed):
            return self._stay(candidates, self._unplaced(packed))
        if not packed.claims:
            return DisruptionCommand(method, candidates, packed=packed)
        if len(packed.claims) != 1:
            count = len(packed.claims)
            return self._stay(candidates, f"Can't remove without creating {count} candidates")
        [claim] = packed.claims
        catalogue = self.view.catalogue
        price = 0.0
        for each in candidates:
            price += each.price
        claim.types = catalogue.by_price(claim.types, claim.requirements)
        allowed = claim.requirements.of(CAPACITY_TYPE)
        are_spot = all(each.node.labels.get(CAPACITY_TYPE) == SPOT for each in candidates)
        if are_spot and allowed.has(SPOT):
            return self._spot_for_spot(method, candidates, packed, price)
        if why := self._cheaper(claim, price):
            return self._stay(candidates, why)
        if allowed.has(SPOT) and allowed.has(ON_DEMAND):
            claim.requirements = claim.requirements.adding(_ONLY_SPOT)
        return DisruptionCommand(method, candidates, [claim], packed)

    def _spot_for_spot(
        self, method: str, candidates: Sequence[DisruptionCandidate], packed: Packed, price: float
    ) -> DisruptionCommand | None:
        if not self.view.flags.gate("SpotToSpotConsolidation"):
            return self._stay(
                candidates,
                "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
            )
        [claim] = packed.claims
        claim.requirements = claim.requirements.adding(_ONLY_SPOT)
        known = self.view.catalogue.well_known
        claim.types = [each for each in claim.types if each.offers(claim.requirements, known)]
        if why := self._cheaper(claim, price):
            return self._stay(candidates, why)
        if len(candidates) > 1:
            return DisruptionCommand(method, candidates, [claim], packed)
        if len(claim.types) < SPOT_CHOICE:
            return self._stay(
                candidates,
                f"SpotToSpotConsolidation requires {SPOT_CHOICE} cheaper instance type options "
                f"than the current candidate to consolidate, got {len(claim.types)}",
            )
        needed = needed_types(claim.types, claim.requirements)
        claim.types = claim.types[: max(SPOT_CHOICE, needed)]
        return DisruptionCommand(method, candidates, [claim], packed)

    def _cheaper(self, claim: OpenClaim, price: float) -> str:
        """Leave the types that cost less for sure; why there are none."""
        catalogue = self.view.catalogue
        claim.types = [
            each for each in claim.types if catalogue.worst_price(each, claim.requirements) < price
        ]
        if missing := missing_values(claim.types, claim.requirements):
            return f"Filtering by price: minValues requirement is not met for {sorted(missing)}"
        return "" if claim.types else "Can't replace with a cheaper node"

    def _of_other_types(self, command: DisruptionCommand) -> DisruptionCommand | None:
        """Not for one of the same type: then that one could stay, and fewer pods would move."""
        [claim] = command.replacements
        catalogue, prices = self.view.catalogue, dict[str, float]()
        names = {each.kind.name for each in command.candidates if each.kind is not None}
        for each in command.candidates:
            assert each.kind is not None
            labels = from_labels(each.node.labels)
            there = [
                it.price
                for it in each.kind.offerings
                if labels.conflict(it.requirements, catalogue.well_known) is None
            ]
            if there:
                known = prices.get(each.kind.name, INFINITE)
                prices[each.kind.name] = min(known, *there)
        most = min(
            (prices.get(each.name, 0.0) for each in claim.types if each.name in names),
            default=float("inf"),
        )
        return None if self._cheaper(claim, most) else command

    def _stay(
        self, candidates: Sequence[DisruptionCandidate], why: str
    ) -> DisruptionCommand | None:
        """Nothing comes of it; a single node is told why it stays."""
        if len(candidates) == 1:
            self._stays[candidates[0].name] = why
        return None

    def _unplaced(self, packed: Packed) -> str:
        pending = {each.key for each in self.view.pending}
        faults = [f"{k} => {v}" for k, v in sorted(packed.faults.items()) if k not in pending]
        more = f" and {len(faults) - 5} other(s)" if len(faults) > 5 else ""
        return "Not all pods would schedule, " + " ".join(faults[:5]) + more

    # -- Balanced --------------------------------------------------------------------------

    def _sums(self, every: Sequence[DisruptionCandidate]) -> dict[str, tuple[float, float]]:
        """By pool, what it costs and how much it would disturb to give up all of it."""
        costs: dict[str, float] = {}
        for each in every:
            costs[each.pool.name] = costs.get(each.pool.name, 0.0) + each.price
        own = {each.name: each.cost for each in every}
        disturbed: dict[str, float] = {}
        for node in self.view.nodes:
            if NODE_POOL not in node.labels:
                continue
            cost = own.get(node.name)
            if cost is None:
                cost = 1.0 + sum(
                    max(0.0, each.eviction_cost)
                    for each in node.pods
                    if not each.is_owned_by("DaemonSet")
                )
            disturbed[node.pool] = disturbed.get(node.pool, 0.0) + cost
        return {
            name: (self._pool_costs.get(name) or cost, disturbed.get(name, 0.0))
            for name, cost in costs.items()
        }

    def _can_be_worth_it(self, it: DisruptionCandidate) -> bool:
        if it.pool.policy != BALANCED or self._totals[it.pool.name][0] <= 0:
            return True
        return self._scores(it.pool.name, it.price, it.cost)

    def _is_worth_it(self, command: DisruptionCommand) -> bool:
        pools: dict[str, list[DisruptionCandidate]] = {}
        for each in command.candidates:
            pools.setdefault(each.pool.name, []).append(each)
        if not any(each.pool.policy == BALANCED for each in command.candidates):
            return True
        savings = command.savings(self.view.catalogue)
        before = 0.0
        for each in command.candidates:
            before += each.price
        verdicts = []
        for name, own in pools.items():
            if own[0].pool.policy != BALANCED:
                continue
            mine = savings
            if before > 0 and len(pools) > 1:
                price = 0.0
                for each in own:
                    price += each.price
                mine = savings * (price / before)
            cost = 0.0
            for each in own:
                cost += each.cost
            verdicts.append(self._scores(name, mine, cost))
        return all(verdicts)

    def _scores(self, pool: str, savings: float, cost: float) -> bool:
        total_cost, total_disturbed = self._totals.get(pool, (0.0, 0.0))
        if total_cost <= 0 or total_disturbed <= 0:
            return False
        saved, disturbed = savings / total_cost, cost / total_disturbed
        if saved <= 0:
            return False
        return disturbed == 0 or saved / disturbed >= 1.0 / _BALANCE


_ONLY_SPOT = LabelRequirement(CAPACITY_TYPE, frozenset((SPOT,)))


def _unfinished(node: KarpenterNode) -> str:
    """Why a machine is not one that could be given up: not yet, or not any more."""
    if node.node is None:
        return "nodeclaim does not have an associated node"
    if node.is_leaving:
        return "node is deleting or marked for deletion"
    if not node.is_initialized:
        both = "" if node.is_registered else " nor registered"
        return f"node isn't initialized{both}"
    return ""


def _drifted_since(it: DisruptionCandidate) -> int:
    found = find_condition(it.claim, "Drifted") or {}
    return parse_time(found["lastTransitionTime"]) if found.get("lastTransitionTime") else 0


def _interleaved(candidates: Sequence[DisruptionCandidate]) -> list[DisruptionCandidate]:
    """One of each pool in turn, so that no pool waits for another's."""
    pools: dict[str, list[DisruptionCandidate]] = {}
    for each in candidates:
        pools.setdefault(each.pool.name, []).append(each)
    longest = max((len(each) for each in pools.values()), default=0)
    return [
        pools[name][at] for at in range(longest) for name in sorted(pools) if at < len(pools[name])
    ]
