"""Bin packing: which pods go to which nodes, and what new nodes are needed for the rest.

The largest pods come first. Each tries the nodes that exist, then the claims that were opened
before it (those with the fewest pods first), then a new claim of the first pool that takes it. A
claim keeps all instance types that hold its pods; which one it becomes is decided when it is
launched. What finds no place gives up its wishes one after the other; what still finds none is
tried again as long as that changes anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from kubescene.api.quantity import Quantity, QuantityFormat
from kubescene.api.resource_requests import Nanos
from kubescene.karpenter.instance_types import (
    MOST_TYPES,
    InstanceCatalogue,
    InstanceType,
    missing_values,
)
from kubescene.karpenter.nodepools import NodePool
from kubescene.karpenter.nodes import NODES, KarpenterNode
from kubescene.karpenter.pods import PodSeen, UsedPort, add, fits, total
from kubescene.karpenter.requirements import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    REGISTERED,
    LabelRequirement,
    Requirements,
    from_labels,
)
from kubescene.karpenter.topology import (
    ClusterPods,
    Taints,
    TopologyGroups,
    Unsatisfiable,
    domains_of,
    tolerates_all,
)
from kubescene.types import JsonObject, ReadOnlyObject

SIMULATED = (REGISTERED, INITIALIZED)
"""Labels that nodes get later; daemon sets may ask for them."""


class Untolerated(NamedTuple):
    """Taints that the pod does not tolerate."""

    taints: Taints
    tolerations: Sequence[ReadOnlyObject]

    def __str__(self) -> str:
        left = [each for each in self.taints if not tolerates_all(self.tolerations, (each,))]
        return "; ".join(f"did not tolerate taint (taint={_taint(each)})" for each in left)


class Incompatible(NamedTuple):
    """The pod asks for labels that the node cannot have."""

    why: object

    def __str__(self) -> str:
        return f"incompatible requirements, {self.why}"


class NoType(NamedTuple):
    """No instance type is left; which of three things kept them away."""

    types: Sequence[tuple[bool, bool, bool]]
    """For each type: whether its labels, its size and its offers would do."""
    missing: Mapping[str, int]
    requirements: Requirements
    requests: Nanos
    least: Nanos
    most: Nanos
    """What daemon sets ask for, at least and at most."""

    def __str__(self) -> str:
        rest = f", requirements={self.requirements}, resources={self._resources}"
        if self.missing:
            keys = " ".join(sorted(self.missing))
            what = f"minValues requirement is not met for label(s) (label(s)=[{keys}])"
            return what + rest
        return self._reason + rest

    @property
    def _resources(self) -> str:
        if not self.least and not self.most:
            return _amounts_text(self.requests)
        texts = [_amounts_text(_sum(self.requests, each)) for each in (self.least, self.most)]
        return texts[0] if texts[0] == texts[1] else f"min={texts[0]}, max={texts[1]}"

    @property
    def _reason(self) -> str:
        met, fit, offered = (any(each[n] for each in self.types) for n in range(3))
        words = {
            (False, False, False): "met the scheduling requirements or had enough resources or "
            "had a required offering",
            (False, False, True): "met the scheduling requirements or had enough resources",
            (False, True, False): "met the scheduling requirements or had a required offering",
            (True, False, False): "had enough resources or had a required offering",
            (False, True, True): "met all requirements",
            (True, False, True): "has enough resources",
            (True, True, False): "has the required offering",
        }
        if (met, fit, offered) in words:
            return f"no instance type {words[met, fit, offered]}"
        pairs = {
            (True, True, False): "which met the scheduling requirements and had enough resources, "
            "had a required offering",
            (False, True, True): "which had enough resources and the required offering met the "
            "scheduling requirements",
            (True, False, True): "which met the scheduling requirements and the required offering "
            "had the required resources",
        }
        for pair, text in pairs.items():
            if pair in self.types:
                return f"no instance type {text}"
        return "no instance type met the requirements/resources/offering tuple"


Fault = Untolerated | Incompatible | NoType | Unsatisfiable | str
"""Why a pod cannot go somewhere, in words if it is printed."""


class Overhead(Struct):
    """What the daemon sets of some instance types take."""

    types: list[InstanceType]
    requests: Nanos
    ports: dict[str, Sequence[UsedPort]]


class ClaimPlacement(NamedTuple):
    """What a claim becomes if it takes a pod."""

    requirements: Requirements
    types: list[InstanceType]


class ClaimTemplate:
    """A pool with the instance types that its requirements leave."""

    def __init__(
        self,
        pool: NodePool,
        catalogue: InstanceCatalogue,
        daemons: Sequence[PodSeen],
        *,
        relaxes: bool,
    ) -> None:
        self.pool = pool
        self.requirements = pool.requirements.adding(
            *(LabelRequirement(each, frozenset(("true",))) for each in SIMULATED)
        )
        every = [Overhead([*catalogue.types], {}, {})]
        found = TypeFilter(catalogue).left(
            catalogue.types, self.requirements, {}, {}, (), every, relaxes=relaxes
        )
        self.types = found if isinstance(found, list) else []
        self.fault = None if isinstance(found, list) else found
        self.overheads = self._overheads(daemons, catalogue)

    def _overheads(
        self, daemons: Sequence[PodSeen], catalogue: InstanceCatalogue
    ) -> list[Overhead]:
        """Instance types by the daemon sets that would run there."""
        found: dict[tuple[str, ...], Overhead] = {}
        for kind in self.types:
            here = [each for each in daemons if self._runs(each, kind, catalogue)]
            key = tuple(sorted(each.key for each in here))
            if key not in found:
                asked = total(here) if here else {}
                found[key] = Overhead([], asked, {each.key: each.ports for each in here})
            found[key].types.append(kind)
        return sorted(found.values(), key=lambda each: each.types[0].name)

    def _runs(self, daemon: PodSeen, kind: InstanceType, catalogue: InstanceCatalogue) -> bool:
        tolerant = daemon.tolerating_preferences()
        if not tolerates_all(tolerant.tolerations, self.pool.taints):
            return False
        pod: PodSeen | None = tolerant
        while pod is not None:
            asked = pod.strict_requirements
            if self.requirements.conflict(
                asked, catalogue.well_known
            ) is None and kind.requirements.overlaps(asked):
                return True
            pod = pod.without_required_term()
        return False


class TypeFilter:
    """Which instance types are left; what follows from labels alone is asked once."""

    def __init__(self, catalogue: InstanceCatalogue) -> None:
        self.catalogue = catalogue
        self._keys = sorted({key for each in catalogue.types for key in each.requirements})
        self._known: dict[tuple[LabelRequirement | None, ...], dict[str, tuple[bool, bool]]] = {}

    def _labels(self, requirements: Requirements) -> dict[str, tuple[bool, bool]]:
        """By type, whether its labels are allowed, and whether it can be had so."""
        key = tuple(requirements.get(each) for each in self._keys)
        found = self._known.get(key)
        if found is None:
            well_known = self.catalogue.well_known
            found = self._known[key] = {
                each.name: (
                    each.requirements.overlaps(requirements),
                    bool(each.offers(requirements, well_known)),
                )
                for each in self.catalogue.types
            }
        return found

    def left(
        self,
        types: Iterable[InstanceType],
        requirements: Requirements,
        asked: Nanos,
        together: Nanos,
        ports: Sequence[UsedPort],
        overheads: Sequence[Overhead],
        *,
        relaxes: bool = False,
        pod: str = "",
    ) -> "list[InstanceType] | NoType":
        """Those that hold all pods; with ``relaxes``, be it with fewer values to choose from."""
        eligible = {each.name for each in types}
        labels = self._labels(requirements)
        remaining = list[InstanceType]()
        seen = list[tuple[InstanceType, Nanos]]()
        sums = list[Nanos]()
        for group in overheads:
            if _clash(pod, ports, group.ports):
                continue
            needed = together
            if group.requests:
                needed = _sum(together, group.requests)
                sums.append(group.requests)
            for kind in group.types:
                if kind.name not in eligible:
                    continue
                seen.append((kind, needed))
                if labels[kind.name] == (True, True) and fits(needed, kind.allocatable):
                    remaining.append(kind)
        missing: dict[str, int] = {}
        if requirements.wants_choice:
            missing = missing_values(remaining, requirements)
            if missing and relaxes:
                for key, count in missing.items():
                    requirements[key] = requirements[key].wanting(count)
                missing = {}
            elif missing:
                remaining = []
        if remaining:
            return remaining
        verdicts = [
            (
                labels[kind.name][0],
                labels[kind.name][1] and fits(needed, kind.allocatable),
                labels[kind.name][1],
            )
            for kind, needed in seen
        ]
        shared = [k for k in (sums[0] if sums else ()) if all(k in each for each in sums)]
        least = {k: min(each[k] for each in sums) for k in shared}
        most = {k: max(s.get(k, 0) for s in sums) for k in {n for s in sums for n in s}}
        return NoType(verdicts, missing, requirements, asked, least, most)


class OpenClaim:
    """A node that is to be ordered, and what it may still become."""

    def __init__(self, template: ClaimTemplate, types: Sequence[InstanceType], host: str) -> None:
        self.template = template
        self.host = host
        self.requirements = template.requirements.adding(
            LabelRequirement(HOSTNAME, frozenset((host,)))
        )
        self.types = [*types]
        self.pods: list[PodSeen] = []
        self.requests: Nanos = {}
        self.relaxed_choice = False
        self._overheads = [
            Overhead(each.types, each.requests, dict(each.ports)) for each in template.overheads
        ]

    def __repr__(self) -> str:
        return f"<OpenClaim of {self.pool.name} for {len(self.pods)} pods>"

    @property
    def pool(self) -> NodePool:
        return self.template.pool

    def place(
        self, pod: PodSeen, asked: Requirements, packing: "ClaimPacking", *, relaxes: bool = False
    ) -> "ClaimPlacement | Fault":
        """What it becomes with this pod, or why it cannot take it."""
        taints = self.pool.taints
        if not tolerates_all(pod.tolerations, taints):
            return Untolerated(taints, pod.tolerations)
        conflict = self.requirements.conflict(asked, packing.catalogue.well_known)
        if conflict is not None:
            return Incompatible(conflict)
        narrowed = self.requirements.adding(*asked.values())
        found = packing.topology.narrowed(pod, taints, packing.strict(pod), narrowed)
        if isinstance(found, Unsatisfiable):
            return found
        conflict = narrowed.conflict(found, packing.catalogue.well_known)
        if conflict is not None:
            return str(conflict)
        narrowed = narrowed.adding(*found.values())
        left = packing.filter.left(
            self.types,
            narrowed,
            pod.requests,
            _sum(self.requests, pod.requests),
            pod.ports,
            self._overheads,
            relaxes=relaxes,
            pod=pod.key,
        )
        return ClaimPlacement(narrowed, left) if isinstance(left, list) else left

    def take(self, pod: PodSeen, placed: ClaimPlacement, topology: TopologyGroups) -> None:
        self.pods.append(pod)
        self.types, self.requirements = placed.types, placed.requirements
        add(self.requests, pod.requests)
        topology.register(self.host)
        topology.record(pod, self.pool.taints, self.requirements)
        for each in self._overheads:
            each.ports[pod.key] = pod.ports

    def finish(self) -> None:
        """Nobody comes to it any more: it needs no name, and daemon sets take their least."""
        self.requirements.pop(HOSTNAME, None)
        names = {each.name for each in self.types}
        least: Nanos = {}
        for group in self._overheads:
            if not any(each.name in names for each in group.types):
                continue
            if not least:
                least = dict(group.requests)
            else:
                least = {
                    name: min(amount, group.requests[name])
                    for name, amount in least.items()
                    if name in group.requests
                }
        add(self.requests, least)

    def object(self, catalogue: InstanceCatalogue) -> JsonObject:
        """The NodeClaim, without a name."""
        types = catalogue.by_price(self.types, self.requirements)[:MOST_TYPES]
        final = self.requirements.adding(
            LabelRequirement(
                INSTANCE_TYPE,
                frozenset(each.name for each in types),
                min_values=self.requirements.of(INSTANCE_TYPE).min_values,
            )
        )
        kinds = {
            it.capacity_type for each in types for it in each.offers(final, catalogue.well_known)
        }
        if kinds:
            final.add(LabelRequirement(CAPACITY_TYPE, frozenset(kinds)))
        labels = {**self.pool.labels, **_resolved(final, catalogue.well_known)}
        wanted = Requirements({k: v for k, v in final.items() if k not in SIMULATED})
        relaxed = "true" if self.relaxed_choice else "false"
        return self.pool.claim(labels, wanted.written(), amounts_of(self.requests), relaxed)


class ExistingNode:
    """A node that is there, and what it still takes."""

    def __init__(
        self,
        node: KarpenterNode,
        daemons: Sequence[PodSeen],
        topology: TopologyGroups,
        *,
        is_busy: bool,
    ) -> None:
        self.node = node
        self.is_busy = is_busy
        """Whether only pods that have no node may come."""
        self.taints = node.taints
        self.requirements = from_labels(node.labels)
        self.requirements.add(LabelRequirement(HOSTNAME, frozenset((node.host,))))
        expected = total(self._expected(daemons))
        for name, amount in node.daemon_requests.items():
            expected[name] = expected.get(name, 0) - amount
        self.remaining = {
            name: amount - max(expected.get(name, 0), 0) for name, amount in node.available.items()
        }
        self.pods: list[PodSeen] = []
        self._ports = dict(node.ports)
        topology.register(node.host)

    def _expected(self, daemons: Sequence[PodSeen]) -> list[PodSeen]:
        labels = from_labels(self.node.labels)
        return [
            each
            for each in daemons
            if tolerates_all(each.tolerations, self.taints)
            and labels.conflict(each.strict_requirements) is None
        ]

    def place(
        self, pod: PodSeen, asked: Requirements, packing: "ClaimPacking"
    ) -> Requirements | None:
        """Where it would go, if there is room."""
        if not tolerates_all(pod.tolerations, self.taints):
            return None
        if _clash(pod.key, pod.ports, self._ports):
            return None
        if self.requirements.conflict(asked) is not None:
            return None
        narrowed = self.requirements.adding(*asked.values())
        found = packing.topology.narrowed(pod, self.taints, packing.strict(pod), narrowed)
        if isinstance(found, Unsatisfiable) or narrowed.conflict(found) is not None:
            return None
        return narrowed.adding(*found.values())

    def take(self, pod: PodSeen, requirements: Requirements, topology: TopologyGroups) -> None:
        self.pods.append(pod)
        for name, amount in pod.requests.items():
            self.remaining[name] = self.remaining.get(name, 0) - amount
        self.requirements = requirements
        topology.record(pod, self.taints, requirements)
        self._ports[pod.key] = pod.ports


class Packed(Struct):
    """What came of it."""

    claims: list[OpenClaim]
    existing: list[ExistingNode]
    faults: dict[str, Fault]
    """Pods without a place, by key, and why."""
    without_place: list[PodSeen]


class PackingOptions(Struct, frozen=True):
    """How strictly wishes are taken."""

    ignores_preferences: bool = False
    relaxes_choice: bool = False
    """Whether pools make do with fewer values than ``minValues``."""
    is_consolidating: bool = False
    """Whether nodes on which something has just happened are left alone."""


class ClaimPacking:
    """One round over all pods that want a place."""

    def __init__(
        self,
        pods: Sequence[PodSeen],
        pools: Sequence[NodePool],
        catalogue: InstanceCatalogue,
        nodes: Sequence[KarpenterNode],
        cluster: ClusterPods,
        daemons: Sequence[PodSeen],
        now: int,
        options: PackingOptions,
        leaving: frozenset[str] = frozenset(),
    ) -> None:
        """``pools`` in the order in which they are asked; ``nodes`` are those that stay, pods of
        nodes in ``leaving`` may go to any of them."""
        self.catalogue, self.options, self._leaving = catalogue, options, leaving
        self.filter = TypeFilter(catalogue)
        self._pods = pods
        self.topology = TopologyGroups(
            pods,
            domains_of(
                (each.own_requirements, [it.requirements for it in catalogue.types], each.taints)
                for each in pools
            ),
            cluster,
            ignores_preferences=options.ignores_preferences,
        )
        templates = [
            ClaimTemplate(each, catalogue, daemons, relaxes=options.relaxes_choice)
            for each in pools
        ]
        self._templates = [each for each in templates if each.types]
        self._softens = any(
            taint.get("effect") == "PreferNoSchedule" for each in pools for taint in each.taints
        )
        self._left = {each.name: dict(each.limits) for each in pools}
        waits = {each.name: each.consolidate_after for each in pools}
        self._existing = [
            ExistingNode(
                each,
                daemons,
                self.topology,
                is_busy=options.is_consolidating
                and each.is_under_consolidate_after(waits.get(each.pool), now),
            )
            for each in sorted(nodes, key=lambda each: (not each.is_initialized, each.name))
        ]
        for each in nodes:
            if (left := self._left.get(each.pool)) is not None:
                for name in left:
                    left[name] -= each.capacity.get(name, 0)
        self._roomy: dict[tuple[tuple[str, int], ...], list[ExistingNode]] = {}
        self._claims: list[OpenClaim] = []
        self._opened = 0
        self._current: dict[str, PodSeen] = {}

    def strict(self, pod: PodSeen) -> Requirements:
        return pod.strict_requirements

    def solve(self) -> Packed:
        queue = sorted(self._pods, key=_size)
        waited: dict[str, int] = {}
        faults: dict[str, Fault] = {}
        while queue and waited.get(queue[0].uid) != len(queue):
            pod = queue.pop(0)
            fault = self._try(pod)
            if fault is None:
                faults.pop(pod.key, None)
                continue
            faults[pod.key] = fault
            self.topology.update(pod)
            queue.append(pod)
            waited[pod.uid] = len(queue)
        for each in self._claims:
            each.finish()
        packed = Packed(self._claims, self._existing, faults, queue)
        return self._truncated(packed)

    def _truncated(self, packed: Packed) -> Packed:
        """The cheapest types of each claim, if that leaves enough to choose from."""
        kept = list[OpenClaim]()
        for claim in packed.claims:
            types = self.catalogue.by_price(claim.types, claim.requirements)[:MOST_TYPES]
            missing = missing_values(types, claim.requirements)
            if missing and not self.options.relaxes_choice:
                for pod in claim.pods:
                    packed.faults[pod.key] = f"too few types are left for {sorted(missing)}"
                packed.without_place.extend(claim.pods)
                continue
            claim.types = types
            kept.append(claim)
        packed.claims = kept
        return packed

    def _try(self, pod: PodSeen) -> "Fault | None":
        current: PodSeen | None = pod
        fault: Fault | None = None
        while current is not None:
            if current is not pod:
                self.topology.update(current)
            fault = self._add(current)
            if fault is None:
                return None
            current = current.relaxed(tolerates_preferences=self._softens)
        return fault

    def _add(self, pod: PodSeen) -> "Fault | None":
        ignores = self.options.ignores_preferences
        asked = pod.strict_requirements if ignores else pod.requirements
        may_join = not pod.node or pod.node in self._leaving
        for node in self._with_room(pod):
            if node.is_busy and not may_join:
                continue
            found = node.place(pod, asked, self)
            if found is not None:
                node.take(pod, found, self.topology)
                return None
        self._claims.sort(key=lambda each: len(each.pods))
        for claim in self._claims:
            placed = claim.place(pod, asked, self)
            if isinstance(placed, ClaimPlacement):
                claim.take(pod, placed, self.topology)
                return None
        return self._open(pod, asked)

    def _with_room(self, pod: PodSeen) -> Iterator[ExistingNode]:
        """Nodes that have what it asks for: one that once had not, never will in this round."""
        size = tuple(sorted(pod.requests.items()))
        nodes = self._roomy.get(size, self._existing)
        full: set[str] = set()
        try:
            for node in nodes:
                if fits(pod.requests, node.remaining):
                    yield node
                else:
                    full.add(node.node.name)
        finally:
            if full or nodes is self._existing:
                self._roomy[size] = [each for each in nodes if each.node.name not in full]

    def _open(self, pod: PodSeen, asked: Requirements) -> "Fault | None":
        if not self._templates:
            return "nodepool requirements filtered out all available instance types"
        faults = list[str]()
        for template in self._templates:
            types = self._allowed(template)
            if isinstance(types, str):
                faults.append(types)
                continue
            self._opened += 1
            claim = OpenClaim(template, types, f"hostname-placeholder-{self._opened:04}")
            before = {key: each.min_values for key, each in claim.requirements.items()}
            placed = claim.place(pod, asked, self, relaxes=self.options.relaxes_choice)
            if not isinstance(placed, ClaimPlacement):
                faults.append(str(placed))
                continue
            claim.relaxed_choice = any(
                wanted is not None and (placed.requirements.of(key).min_values or 0) < wanted
                for key, wanted in before.items()
            )
            claim.take(pod, placed, self.topology)
            self._claims.append(claim)
            self._spend(claim)
            return None
        return "; ".join(faults)

    def _allowed(self, template: ClaimTemplate) -> list[InstanceType] | str:
        """Types that break no limit of the pool."""
        left, name = self._left[template.pool.name], template.pool.name
        if left.get(NODES) == 0:
            return f"node limits have been exhausted for nodepool (NodePool={name})"
        types = [
            each
            for each in template.types
            if all(each.capacity.get(what, 0) <= amount for what, amount in left.items())
        ]
        if not types:
            return f"all available instance types exceed limits for nodepool (NodePool={name})"
        return types

    def _spend(self, claim: OpenClaim) -> None:
        """It may become the largest of its types."""
        left = self._left[claim.pool.name]
        for name in left:
            left[name] -= max(each.capacity.get(name, 0) for each in claim.types)


def amounts_of(amounts: Mapping[str, int]) -> JsonObject:
    """Amounts as they stand in an object."""
    binary, decimal = QuantityFormat.BINARY_SI, QuantityFormat.DECIMAL_SI
    return {
        name: str(Quantity(amount, binary if name == "memory" else decimal))
        for name, amount in sorted(amounts.items())
    }


def _size(pod: PodSeen) -> tuple[int, int, int, str]:
    """The largest first; the oldest of equals."""
    asked = pod.requests
    return -asked.get("cpu", 0), -asked.get("memory", 0), pod.created, pod.uid


def _resolved(requirements: Requirements, well_known: Iterable[str]) -> dict[str, str]:
    """Labels of users: a value that is allowed; the others come with the machine."""
    known = {*well_known, *SIMULATED, HOSTNAME}
    return {key: each.any for key, each in requirements.items() if key not in known and each.any}


def _clash(pod: str, ports: Sequence[UsedPort], used: Mapping[str, Sequence[UsedPort]]) -> bool:
    return any(
        port.clashes(there)
        for port in ports
        for other, taken in used.items()
        if other != pod
        for there in taken
    )


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> Nanos:
    found = dict(a)
    add(found, b)
    return found


def _taint(taint: ReadOnlyObject) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect', '')}"


def _amounts_text(amounts: Mapping[str, int]) -> str:
    inside = ",".join(f'"{name}":"{text}"' for name, text in amounts_of(amounts).items())
    return f"{{{inside}}}"
