"""Cluster state: which nodes of a group are ready, which are still to come, which never will.

The registry compares what was ordered with what has registered. It knows requests that are under
way, groups that may not grow for a while, and instances that have been seen without a node.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from kubescene.durations import MINUTE, go_duration
from kubescene.node_autoscaling.flags import Flags, GroupFlags
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.provider import (
    Instance,
    InstanceError,
    InstanceState,
    NodeGroup,
    Provider,
    ProviderError,
)
from kubescene.node_autoscaling.telling import Teller

INSTANCES_KEPT = 2 * MINUTE
"""So often the instances of all groups are looked up; of growing groups in every loop."""
FIRST_STARTUP_TIME = 15 * MINUTE


class StatusCondition(StrEnum):
    """What the status says of the cluster and of groups."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    IN_PROGRESS = "InProgress"
    BACKOFF = "Backoff"
    NO_ACTIVITY = "NoActivity"
    CANDIDATES = "CandidatesPresent"
    NO_CANDIDATES = "NoCandidates"


class ScaleUpRequest(Struct):
    """Machines that were ordered, and until when they should be here."""

    increase: int
    time: int
    expected: int


class GroupBackoff(Struct, frozen=True):
    """Until when a group may not grow, and because of what."""

    duration: int
    until: int
    failed: int
    error: InstanceError


class Readiness(Struct):
    """Names of nodes by what is the matter with them. ``time`` None: there are none."""

    registered: list[str] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)
    time: int | None = None


class WrongSize(Struct, frozen=True):
    """A group with more or fewer nodes than were ordered."""

    expected: int
    current: int
    since: int


class Unregistered(Struct, frozen=True):
    """A machine without a node."""

    id: str
    since: int


class Backoffs:
    """Groups that failed to grow; each further failure keeps them back for longer."""

    def __init__(self, flags: Flags) -> None:
        self._first = flags.initial_node_group_backoff_duration
        self._longest = flags.max_node_group_backoff_duration
        self._forgotten_after = flags.node_group_backoff_reset_timeout
        self._known: dict[str, GroupBackoff] = {}

    def add(self, group: str, error: InstanceError, now: int) -> None:
        duration, known = self._first, self._known.get(group)
        if known is not None:
            duration = known.duration
            if known.until < now:
                duration = min(2 * known.duration, self._longest)
        self._known[group] = GroupBackoff(duration, now + duration, now, error)

    def of(self, group: str, now: int) -> GroupBackoff | None:
        """The back-off that is in force; to the end of its last instant."""
        known = self._known.get(group)
        return None if known is None or known.until < now else known

    def forget(self, now: int) -> None:
        for group, each in [*self._known.items()]:
            if each.failed + self._forgotten_after < now:
                del self._known[group]


class ClusterState:
    """What the autoscaler remembers of groups and nodes between loops."""

    def __init__(
        self,
        provider: Provider,
        teller: Teller,
        flags: Flags,
        flags_of: Callable[[NodeGroup], GroupFlags],
    ) -> None:
        self._provider = provider
        self._teller = teller
        self._flags = flags
        self._flags_of = flags_of
        self._backoffs = Backoffs(flags)
        self._known: dict[str, Sequence[Instance]] = {}
        self._before: Mapping[str, Sequence[Instance]] = {}
        self._least: dict[str, int] = {}
        self._node_count = 0
        self.instances: Mapping[str, Sequence[Instance]] = {}
        self.requests: dict[str, ScaleUpRequest] = {}
        self.targets: dict[str, int] = {}
        self.readiness: dict[str, Readiness] = {}
        self.total = Readiness()
        self.unregistered: dict[str, Unregistered] = {}
        self.wrong_sizes: dict[str, WrongSize] = {}
        self.templates: frozenset[str] = frozenset()
        """The groups that have a template; the others are never kept back."""
        self.scaled_up: dict[str, int] = {}
        self.scaled_down: dict[str, int] = {}
        self.scale_down_failed: dict[str, int] = {}
        """When that last happened to a group."""

    # -- what the provider says ------------------------------------------------------------

    def look_up_instances(self) -> None:
        """Ask for the instances of all groups anew; due every `INSTANCES_KEPT`."""
        self._known = {group.id: group.instances() for group in self._provider.groups()}

    @property
    def known_instances(self) -> Mapping[str, Sequence[Instance]]:
        """The instances as they were looked up last."""
        return self._known

    def forget_instances(self, group: str) -> None:
        self._known.pop(group, None)

    def _instances(self) -> dict[str, Sequence[Instance]]:
        groups = self._provider.groups()
        for group in groups:
            if self.is_growing(group.id):
                self.forget_instances(group.id)
            if group.id not in self._known:
                self._known[group.id] = group.instances()
        return {group.id: self._known[group.id] for group in groups}

    # -- once in a loop --------------------------------------------------------------------

    def update(self, nodes: Sequence[SeenNode], now: int) -> None:
        """Compare nodes with instances and requests."""
        sizes = {group.id: group.target_size() for group in self._provider.groups()}
        self._before, self.instances = self.instances, self._instances()
        self._node_count = len(nodes)
        self._find_unregistered(nodes, now)
        self._judge(nodes, now)
        self._set_targets(sizes)
        self._end_requests(now)
        self._note_failures(now)
        self._set_targets(sizes)
        self._find_wrong_sizes(now)

    def recalculate(self) -> None:
        """Groups were resized."""
        self._set_targets({group.id: group.target_size() for group in self._provider.groups()})

    def _find_unregistered(self, nodes: Sequence[SeenNode], now: int) -> None:
        registered = {node.provider_id for node in nodes}
        known, self.unregistered = self.unregistered, {}
        for instances in self.instances.values():
            for each in instances:
                is_expected = each.state is not InstanceState.DELETING and each.error is None
                if is_expected and each.id not in registered:
                    found = known.get(each.id) or Unregistered(each.id, now)
                    self.unregistered[each.id] = found

    def _judge(self, nodes: Sequence[SeenNode], now: int) -> None:
        self.readiness, self.total = {}, Readiness(time=now)
        startup_time = FIRST_STARTUP_TIME
        for node in nodes:
            group = self._provider.group_of(node.provider_id, node.name)
            there = self._provider.has_instance(node.provider_id, node.name)
            sums = [self.total]
            if group is not None:
                startup_time = self._flags_of(group).max_node_startup_time
                sums.append(self.readiness.setdefault(group.id, Readiness(time=now)))
            for each in sums:
                _count(each, node, there, node.created + startup_time > now)
        for unregistered in sorted(self.unregistered.values(), key=lambda it: it.id):
            group = self._provider.group_of(unregistered.id, unregistered.id)
            if group is not None:
                of_group = self.readiness.setdefault(group.id, Readiness(time=now))
                for each in (self.total, of_group):
                    is_long = self.is_overdue(unregistered, group, now)
                    names = each.long_unregistered if is_long else each.unregistered
                    names.append(unregistered.id)

    def is_overdue(self, unregistered: Unregistered, group: NodeGroup, now: int) -> bool:
        """Whether a machine should have had a node long ago."""
        return unregistered.since + self._flags_of(group).max_node_provision_time < now

    def _set_targets(self, sizes: Mapping[str, int]) -> None:
        self.targets = {group.id: sizes.get(group.id, 0) for group in self._provider.groups()}
        self._least = {
            group: size - len(self._of(group).long_unregistered)
            for group, size in self.targets.items()
        }
        for group, request in self.requests.items():
            self._least[group] = self._least.get(group, 0) - request.increase
            self.targets.setdefault(group, 0)

    def _of(self, group: str) -> Readiness:
        return self.readiness.get(group) or Readiness()

    def _find_wrong_sizes(self, now: int) -> None:
        known, self.wrong_sizes = self.wrong_sizes, {}
        for group in self._provider.groups():
            found = self.readiness.get(group.id)
            if found is None:
                continue
            target, registered = self.targets[group.id], len(found.registered)
            coming = len(found.unregistered) + len(found.long_unregistered)
            if target - coming <= registered <= target:
                continue
            before = known.get(group.id)
            same = before is not None and (before.expected, before.current) == (target, registered)
            since = before.since if before is not None and same else now
            self.wrong_sizes[group.id] = WrongSize(target, registered, since)

    # -- requests --------------------------------------------------------------------------

    def grew(self, group: NodeGroup, by: int, now: int) -> None:
        """Machines were ordered."""
        self.scaled_up[group.id] = now
        self._change_request(group, by, now)

    def _change_request(self, group: NodeGroup, by: int, now: int) -> None:
        expected = now + self._flags_of(group).max_node_provision_time
        request = self.requests.get(group.id)
        if request is None:
            if by > 0:
                self.requests[group.id] = ScaleUpRequest(by, now, expected)
            return
        request.increase += by
        if request.increase <= 0:
            del self.requests[group.id]
        elif by > 0:
            request.time, request.expected = now, expected

    def _end_requests(self, now: int) -> None:
        self._backoffs.forget(now)
        groups = {group.id: group for group in self._provider.groups()}
        for name in sorted(self.requests):
            request = self.requests[name]
            if self._missing(name) <= 0:
                del self.requests[name]
            elif request.expected < now:
                self._time_out(groups[name], request, now)
                del self.requests[name]

    def _time_out(self, group: NodeGroup, request: ScaleUpRequest, now: int) -> None:
        waited = go_duration(now - request.time)
        message = f"Nodes added to group {group.id} failed to register within {waited}"
        self._teller.about_status("Warning", "ScaleUpTimedOut", message)
        text = f"Scale-up timed out for node group {group.id} after {waited}"
        self.back_off(group.id, InstanceError("Other", "timeout", text), now)
        try:
            group.decrease_target(request.increase)
        except ProviderError as error:
            failure = f"Failed to decrease target size for group {group.id} after scale-up timeout"
            message = f"{failure}: {error}"
            self._teller.about_status("Warning", "FailedToRevertScaleUp", message)

    def _note_failures(self, now: int) -> None:
        """Machines that cannot be made are no longer waited for."""
        for group in self._provider.groups():
            seen = {each.id for each in self._before.get(group.id, ()) if each.failed_to_start}
            for code, failed in _by_error(self.instances[group.id]):
                new = [each for each in failed if each.id not in seen]
                if not new or not self.is_growing(group.id):
                    continue
                kind, name = code
                messages = dict.fromkeys(each.error.message for each in failed if each.error)
                text = ", ".join(messages) + (", ..." if len(messages) > 3 else "")
                self._teller.about_status(
                    "Warning",
                    "ScaleUpFailed",
                    f"Failed adding {len(new)} nodes to group {group.id} due to {kind}.{name}; "
                    f"source errors: {text}",
                )
                self._change_request(group, -len(new), now)
                self.back_off(group.id, InstanceError(kind, name, text), now)

    def failed_instances(self) -> dict[str, list[str]]:
        """The machines of each group that cannot be made, by kind of error."""
        return {
            group: [each.id for _, failed in _by_error(instances) for each in failed]
            for group, instances in self.instances.items()
            if any(each.failed_to_start for each in instances)
        }

    # -- questions -------------------------------------------------------------------------

    def back_off(self, group: str, error: InstanceError, now: int) -> None:
        if group in self.templates:
            self._backoffs.add(group, error, now)

    def backoff_of(self, group: str, now: int) -> GroupBackoff | None:
        return self._backoffs.of(group, now) if group in self.templates else None

    def _missing(self, group: str) -> int:
        """How many nodes of a group are neither here nor given up."""
        if group not in self.targets:
            return 0
        here = self._of(group)
        there = (here.ready, here.unready, here.suspended, here.long_unregistered)
        return self.targets[group] - sum(map(len, there))

    def is_growing(self, group: str) -> bool:
        return group in self.requests and self._missing(group) > 0

    def upcoming(self, now: int) -> dict[str, int]:
        """How many nodes of each group are expected."""
        groups = [group.id for group in self._provider.groups()]
        return {
            group: self._missing(group)
            for group in groups
            if self.is_growing(group) and self.backoff_of(group, now) is None
        }

    def not_started(self, group: str) -> list[str]:
        return self._of(group).not_started

    @property
    def is_healthy(self) -> bool:
        """Whether not too many nodes of the cluster are unready."""
        return not self._are_too_many(len(self.total.unready), self._node_count)

    def is_group_healthy(self, group: str) -> bool:
        if group not in self.targets:
            return False
        found, least = self.readiness.get(group), self._least[group]
        if found is None:
            return self.targets[group] == 0 or (least == 0 and self.targets[group] > 0)
        there = len(found.ready) + len(found.suspended)
        all_nodes = there + len(found.unready) + len(found.not_started)
        return not self._are_too_many(max(least - there, 0), all_nodes)

    def _are_too_many(self, unready: int, nodes: int) -> bool:
        share = self._flags.max_total_unready_percentage / 100.0 * nodes
        return unready > self._flags.ok_total_unready_count and unready > share


def _count(readiness: Readiness, node: SeenNode, there: bool, is_young: bool) -> None:
    readiness.registered.append(node.name)
    if not there:
        names = readiness.deleted
    elif node.is_suspended:
        names = readiness.suspended
    elif node.is_ready:
        names = readiness.ready
    elif is_young:
        names = readiness.not_started
    else:
        names = readiness.unready
    names.append(node.name)


def _by_error(
    instances: Sequence[Instance],
) -> list[tuple[tuple[str, str], list[Instance]]]:
    """The machines that cannot be made, by kind and code of the error, codes in order."""
    found: dict[tuple[str, str], list[Instance]] = {}
    for each in instances:
        if each.failed_to_start and each.error is not None:
            found.setdefault((each.error.kind, each.error.code), []).append(each)
    return sorted(found.items(), key=lambda it: (it[0][1], it[0][0]))
