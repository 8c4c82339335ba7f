"""Scale-down: which nodes are not needed, for how long, and which of them go now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from kubescene.api.quantity import milli_value
from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.node_autoscaling.drainability import BlockingPod, Budgets, DrainRules, FindController
from kubescene.node_autoscaling.flags import Flags, GroupFlags
from kubescene.node_autoscaling.limits import ResourceTotals
from kubescene.node_autoscaling.nodes import SeenNode, deletion_taint
from kubescene.node_autoscaling.packing import Packing
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provider import NodeGroup, Provider
from kubescene.node_autoscaling.snapshot import ClusterSnapshot


class UnremovableReason(StrEnum):
    """Why a node stays."""

    DISABLED = "ScaleDownDisabledAnnotation"
    UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_AUTOSCALED = "NotAutoscaled"
    NOT_LONG_UNNEEDED = "NotUnneededLongEnough"
    NOT_LONG_UNREADY = "NotUnreadyLongEnough"
    AT_LEAST_SIZE = "NodeGroupMinSizeReached"
    ATOMIC = "AtomicScaleDownFailed"
    AT_LEAST_TOTALS = "MinimalResourceLimitExceeded"
    BEING_DELETED = "CurrentlyBeingDeleted"
    UTILIZED = "NotUnderutilized"
    RECENT = "RecentlyUnremovable"
    NO_PLACE = "NoPlaceToMovePods"
    BLOCKED = "BlockedByPod"
    UNKNOWN = "UnexpectedError"
    AWAITED = "BlockedByOnCompletionPod"


class Unremovable(Struct, frozen=True):
    """A node that stays, why, and because of which pod."""

    node: SeenNode
    reason: UnremovableReason
    blocking: BlockingPod | None = None


class Unneeded(Struct, frozen=True):
    """A node whose pods would find a place elsewhere."""

    node: SeenNode
    since: int
    wait: int
    """It goes once it has not been needed for longer than this."""
    moved: tuple[SeenPod, ...] = ()
    awaited: tuple[SeenPod, ...] = ()
    risky: bool = False
    """Whether a budget would not allow this beside what is planned already."""


class NodeUtilization(NamedTuple):
    """Shares of what a node offers that its pods ask for."""

    cpu: float
    memory: float

    @property
    def most(self) -> float:
        return max(self)

    @property
    def resource(self) -> str:
        return "cpu" if self.cpu > self.memory else "memory"


class InProgress(NamedTuple):
    """Deletions under way: nodes without pods, nodes being drained, and how many in each group."""

    empty: Sequence[str]
    drained: Sequence[str]
    by_group: Mapping[str, int]


def utilization(
    node: SeenNode, pods: Iterable[SeenPod], own: GroupFlags, flags: Flags, now: int
) -> NodeUtilization | None:
    """How much of a node is used; None if it does not say what it offers."""
    counted = [0, 0]
    apart = [0, 0]
    for pod in pods:
        is_apart = (own.ignore_daemonsets_utilization and pod.is_daemon) or (
            flags.ignore_mirror_pods_utilization and pod.is_mirror
        )
        if not is_apart and pod.has_lingered(now):
            continue
        sums, requests = apart if is_apart else counted, pod.info.requests
        sums[0] += requests.get(CPU, 0)
        sums[1] += requests.get(MEMORY, 0) * 1000
    shares = []
    for at, resource in enumerate(("cpu", "memory")):
        offered = milli_value(node.allocatable.get(resource, 0))
        if not offered:
            return None
        left = offered - apart[at]
        shares.append(counted[at] / left if left else float("inf"))
    return NodeUtilization(*shares)


class ScaleDownPlanner:
    """What is known of nodes that may go, from one loop to the next."""

    def __init__(
        self,
        flags: Flags,
        flags_of: Callable[[NodeGroup], GroupFlags],
        provider: Provider,
        snapshot: ClusterSnapshot,
        controllers: FindController,
    ) -> None:
        self._flags = flags
        self._flags_of = flags_of
        self._provider = provider
        self._snapshot = snapshot
        self._controllers = controllers
        self._packing = Packing()
        self._kept_until: dict[str, int] = {}
        self._previous: frozenset[str] = frozenset()
        self._shortest_gap = flags.scale_down_unneeded_time or 1
        self._latest: int | None = None
        self.unneeded: dict[str, Unneeded] = {}
        self.unremovable: dict[str, Unremovable] = {}
        self.utilization: dict[str, NodeUtilization] = {}

    def _group(self, node: SeenNode) -> NodeGroup | None:
        return self._provider.group_of(node.provider_id, node.name)

    # -- candidates ------------------------------------------------------------------------

    def candidates(
        self, nodes: Sequence[SeenNode], is_held: Callable[[str], bool], now: int
    ) -> list[SeenNode]:
        """The nodes that may go at all: empty ones first, then those that were not needed."""
        sizes = {group.id: group.target_size() for group in self._provider.groups()}
        found = []
        for node in nodes:
            group = self._group(node)
            if group is not None and sizes[group.id] > group.min_size and not is_held(group.id):
                found.append(node)
        rules = DrainRules(self._flags, Budgets(), None, now)
        return sorted(found, key=lambda node: self._order(node, rules))

    def _order(self, node: SeenNode, rules: DrainRules) -> tuple[bool, bool, bool]:
        empty = awaits = False
        if node.name in self._snapshot:
            drain = rules.drain(self._snapshot.pods_on(node.name))
            empty = drain.blocking is None and not drain.moved
            awaits = empty and bool(drain.awaited)
        return not empty, awaits, node.name not in self._previous

    def note_candidates(self) -> None:
        """What is not needed now comes first next time."""
        self._previous = frozenset(self.unneeded)

    @property
    def rechecks(self) -> Iterable[int]:
        """When nodes are looked at again that had to stay."""
        return self._kept_until.values()

    def forget_unneeded(self) -> None:
        self.unneeded = {}

    # -- what is not needed ----------------------------------------------------------------

    def update(
        self,
        candidates: Sequence[SeenNode],
        places: Iterable[str],
        budgets: Budgets,
        going: InProgress,
        now: int,
    ) -> None:
        """Find the nodes that are not needed; ``places`` are where pods may move."""
        if self._latest is not None:
            self._shortest_gap = min(self._shortest_gap, now - self._latest)
        self._latest = now
        gone = {*going.empty, *going.drained}
        self._start_anew(now)
        eligible = self._eligible([it for it in candidates if it.name not in gone], now)
        with self._snapshot.supposing():
            left = {place for place in places if place not in gone}
            found = self._removable(eligible, left, budgets, now)
        self._packing.next_loop()
        self.unneeded = {each.node.name: each for each in found}

    def _start_anew(self, now: int) -> None:
        self.unremovable = {}
        self._kept_until = {
            name: until
            for name, until in self._kept_until.items()
            if name in self._snapshot and until > now
        }

    def _eligible(self, candidates: Iterable[SeenNode], now: int) -> list[SeenNode]:
        self.utilization = {}
        eligible = []
        for node in candidates:
            reason = self._ineligible(node, now)
            if reason is None:
                eligible.append(node)
            else:
                self.unremovable[node.name] = Unremovable(node, reason)
        return eligible

    def _ineligible(self, node: SeenNode, now: int) -> UnremovableReason | None:
        if node.name not in self._snapshot:
            return UnremovableReason.UNKNOWN
        if node.name in self._kept_until:
            return UnremovableReason.RECENT
        if node.is_being_deleted(now):
            return UnremovableReason.BEING_DELETED
        if not node.may_be_scaled_down:
            return UnremovableReason.DISABLED
        group = self._group(node)
        if group is None:
            return UnremovableReason.NOT_AUTOSCALED
        return self._used_too_much(node, self._flags_of(group), now)

    def _used_too_much(self, node: SeenNode, own: GroupFlags, now: int) -> UnremovableReason | None:
        used = utilization(node, self._snapshot.pods_on(node.name), own, self._flags, now)
        if used is None:
            return UnremovableReason.UNKNOWN
        if not self._flags.scale_down_unready_enabled and not node.is_ready:
            return UnremovableReason.UNREADY_DISABLED
        self.utilization[node.name] = used
        return (
            UnremovableReason.UTILIZED if used.most > own.scale_down_utilization_threshold else None
        )

    def _removable(
        self, nodes: Sequence[SeenNode], places: set[str], budgets: Budgets, now: int
    ) -> list[Unneeded]:
        found: list[Unneeded] = []
        most, atomic = self._most_unneeded(), 0
        kept_until = now + self._flags.unremovable_node_recheck_timeout
        for node in nodes:
            if len(found) - atomic >= most:
                break
            removal = self._simulated(node, places, budgets, now)
            if isinstance(removal, Unremovable):
                self._kept_until[node.name] = kept_until
                self.unremovable[node.name] = removal
                continue
            places.discard(node.name)
            budgets.take(removal.moved)
            found.append(removal)
            group = self._group(node)
            atomic += group is not None and self._flags_of(group).zero_or_max
        return found

    def _most_unneeded(self) -> int:
        """More nodes than this could not go in time anyway."""
        parallel = self._flags.max_scale_down_parallelism
        wait = max(self._flags.scale_down_unneeded_time, self._shortest_gap)
        in_time = parallel * (wait // self._shortest_gap) + parallel
        return min(len(self.unneeded) + 2 * parallel, in_time)

    def _simulated(
        self, node: SeenNode, places: set[str], budgets: Budgets, now: int
    ) -> Unneeded | Unremovable:
        """Whether the pods of a node find places; if so, they stay there in the snapshot."""
        rules = DrainRules(self._flags, budgets, self._controllers, now)
        drain = rules.drain(self._snapshot.pods_on(node.name))
        shown = self._snapshot.node(node.name)
        if drain.blocking is not None:
            return Unremovable(shown, UnremovableReason.BLOCKED, drain.blocking)
        with self._snapshot.supposing() as supposition:
            self._snapshot.replace_node(shown.tainted([*shown.taints, deletion_taint(now)]))
            pods = [pod.unbound() for pod in drain.moved]
            placed = self._packing.place_all(
                self._snapshot,
                pods,
                lambda name: name != node.name and name in places,
                all_or_none=True,
            )
            if len(placed) < len(pods):
                return Unremovable(shown, UnremovableReason.NO_PLACE)
            self._snapshot.remove_node(node.name)
            supposition.keep()
        known = self.unneeded.get(node.name)
        return Unneeded(
            shown,
            now if known is None else known.since,
            self._wait_of(shown),
            tuple(drain.moved),
            tuple(drain.awaited),
            not budgets.allow(drain.moved),
        )

    def _wait_of(self, node: SeenNode) -> int:
        group = self._group(node)
        if group is None:
            return 0
        own = self._flags_of(group)
        return own.scale_down_unneeded_time if node.is_ready else own.scale_down_unready_time

    # -- what goes now ---------------------------------------------------------------------

    def nodes_to_delete(self, going: InProgress, now: int) -> tuple[list[SeenNode], list[SeenNode]]:
        """Nodes without pods, and nodes to be drained, that have not been needed long enough."""
        totals = ResourceTotals.at_least(self._flags, self._snapshot.nodes, self._provider)
        sizes = {group.id: group.target_size() for group in self._provider.groups()}
        due = []
        for each in sorted(self.unneeded.values(), key=lambda it: bool(it.moved)):
            reason = self._not_yet(each, sizes, totals, going, now)
            if reason is None:
                due.append(each)
            else:
                self.unremovable[each.node.name] = Unremovable(each.node, reason)
        due.sort(key=lambda it: bool(it.moved) and it.risky)
        return self._split(self._whole_groups(due))

    def _not_yet(
        self,
        unneeded: Unneeded,
        sizes: dict[str, int],
        totals: ResourceTotals,
        going: InProgress,
        now: int,
    ) -> UnremovableReason | None:
        node = unneeded.node
        if not node.may_be_scaled_down:
            return UnremovableReason.DISABLED
        if unneeded.wait > 0 and unneeded.since + unneeded.wait >= now:
            return (
                UnremovableReason.NOT_LONG_UNNEEDED
                if node.is_ready
                else UnremovableReason.NOT_LONG_UNREADY
            )
        group = self._group(node)
        if group is None:
            return UnremovableReason.NOT_AUTOSCALED
        if sizes[group.id] - going.by_group.get(group.id, 0) <= group.min_size:
            return UnremovableReason.AT_LEAST_SIZE
        if totals.take(group, node, 1).exceeded:
            return UnremovableReason.AT_LEAST_TOTALS
        sizes[group.id] -= 1
        return None

    def _whole_groups(self, due: Sequence[Unneeded]) -> list[Unneeded]:
        """Nodes of a group that has all or none go only together."""
        kept: list[Unneeded] = []
        together: dict[str, list[Unneeded]] = {}
        groups: dict[str, NodeGroup] = {}
        for each in due:
            group = self._group(each.node)
            if group is not None and self._flags_of(group).zero_or_max:
                together.setdefault(group.id, []).append(each)
                groups[group.id] = group
            else:
                kept.append(each)
        for name in sorted(together):
            count = len(together[name])
            if count in (groups[name].target_size(), registered(self._snapshot, groups[name])):
                kept += together[name]
            else:
                for each in together[name]:
                    self.unremovable[each.node.name] = Unremovable(
                        each.node, UnremovableReason.ATOMIC
                    )
        return kept

    def _split(self, due: Sequence[Unneeded]) -> tuple[list[SeenNode], list[SeenNode]]:
        empty: list[SeenNode] = []
        drained: list[SeenNode] = []
        for each in due:
            if each.awaited:
                self.unremovable[each.node.name] = Unremovable(each.node, UnremovableReason.AWAITED)
            else:
                (drained if each.moved else empty).append(each.node)
        return empty, drained


def registered(snapshot: ClusterSnapshot, group: NodeGroup) -> int:
    """How many machines of a group have a node."""
    ids = {each.id for each in group.instances()}
    return sum(bool(node.provider_id) and node.provider_id in ids for node in snapshot.nodes)
