"""Which pods are replaced or resized now: the updater's loop, and the rule of the founding text.

`update` is the real updater: priority, age, eviction requirements, budget, update mode. `seed_rule`
replaces every pod whose requests are outside of the recommended bounds, whatever the mode.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from kubescene.api.quantity import Quantity
from kubescene.autoscalers.vertical.admission import admitted
from kubescene.autoscalers.vertical.evictions import (
    ControllerPods,
    EvictionDecision,
    ResizeAttempts,
    decide_resize,
    groups,
    is_managed,
    is_pending,
    is_resizing,
    may_evict,
)
from kubescene.autoscalers.vertical.limits import (
    NO_LIMIT_RANGES,
    Capped,
    LimitRanges,
    amount_of,
    capped,
    containers_of,
    declared_resources,
    observed_containers,
    resources_of,
    statuses_of,
)
from kubescene.autoscalers.vertical.objects import (
    IN_PLACE,
    IN_PLACE_MODES,
    NO_POLICY,
    UPDATING_MODES,
    ContainerRecommendation,
    EvictionRequirement,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.clock import parse_time
from kubescene.types import JsonObject


class UpdatePriority(NamedTuple):
    """How much a pod differs from what is recommended for it.

    ``difference`` is the sum over resources of the distance to the target in parts of the request.
    """

    is_outside: bool
    scales_up: bool
    difference: float


class UpdateVerdict(NamedTuple):
    """Whether a pod may be replaced, and why or why not."""

    accepted: bool
    reason: str


def priority(pod: JsonObject, fitted: Capped | None) -> UpdatePriority:
    """The priority of a pod with the recommendation that was made to fit it."""
    requested: dict[str, int] = {}
    recommended: dict[str, int] = {}
    is_outside = scales_up = False
    for name, recommendation in _observed(pod, fitted):
        requests = resources_of(name, pod).requests or ResourceList()
        for resource, target in (recommendation.target or ResourceList()).items():
            recommended[resource] = recommended.get(resource, 0) + target.milli_value()
            request = requests.get(resource)
            if request is None:
                is_outside = scales_up = True
                continue
            requested[resource] = requested.get(resource, 0) + request.milli_value()
            scales_up = scales_up or target.milli_value() > request.milli_value()
            is_outside = is_outside or _is_outside(resource, request, recommendation)
    return UpdatePriority(is_outside, scales_up, _difference(requested, recommended))


def verdict(
    pod: JsonObject,
    ranked: UpdatePriority,
    vpa: VerticalPodAutoscaler,
    now: int,
    options: UpdaterOptions,
) -> UpdateVerdict:
    """Whether a pod is to be replaced, eviction requirements and budget aside."""
    quick_oom = _has_quick_oom(pod, vpa, options.evict_after_oom_threshold)
    if quick_oom and ranked.difference == 0:
        return UpdateVerdict(
            False, "killed for memory soon after it started, but it has the target"
        )
    if ranked.is_outside:
        return UpdateVerdict(True, "its requests are outside of the recommended range")
    if quick_oom:
        return UpdateVerdict(True, "killed for memory soon after it started")
    started = (pod.get("status") or {}).get("startTime")
    if started is None:
        return UpdateVerdict(False, "within the recommended range and not started")
    if now < parse_time(started) + options.pod_lifetime_threshold:
        return UpdateVerdict(False, "within the recommended range and too young")
    if ranked.difference < options.update_threshold:
        return UpdateVerdict(False, "within the recommended range and near the target")
    return UpdateVerdict(True, "old enough, and far enough from the target")


def meets_requirements(pod: JsonObject, fitted: Capped | None, vpa: VerticalPodAutoscaler) -> bool:
    """Whether some container's change is one that the VPA's eviction requirements want."""
    policy = vpa.spec.update_policy
    if policy is None:
        return True
    requirements = policy.eviction_requirements or ()
    for container in containers_of(pod):
        recommendation = fitted.of(container["name"]) if fitted else None
        if recommendation is not None:
            requests = resources_of(container["name"], pod).requests or ResourceList()
            lacks_one = "cpu" not in requests or "memory" not in requests
            if lacks_one or all(
                _is_met(each, requests, recommendation.target) for each in requirements
            ):
                return True
    return False


def _observed(
    pod: JsonObject, fitted: Capped | None
) -> Iterator[tuple[str, ContainerRecommendation]]:
    observed = observed_containers(pod)
    for container in containers_of(pod):
        name = container["name"]
        recommendation = fitted.of(name) if fitted else None
        if recommendation is not None and (observed is None or name in observed):
            yield name, recommendation


def _is_outside(resource: str, request: Quantity, recommended: ContainerRecommendation) -> bool:
    lower = (recommended.lower_bound or ResourceList()).get(resource)
    upper = (recommended.upper_bound or ResourceList()).get(resource)
    below = lower is not None and request < lower
    return below or (upper is not None and request > upper)


def _difference(requested: dict[str, int], recommended: dict[str, int]) -> float:
    difference = 0.0
    for resource, target in recommended.items():
        request = max(float(requested.get(resource, 0)), 1.0)
        difference += abs(request - float(target)) / request
    return difference


def _has_quick_oom(pod: JsonObject, vpa: VerticalPodAutoscaler, threshold: int) -> bool:
    statuses = statuses_of(pod)
    observed = observed_containers(pod) if statuses else None
    return any(
        _was_killed_early(status, threshold)
        for status in statuses
        if (observed is None or status.get("name") in observed)
        and not (vpa.policy_of(status.get("name", "")) or NO_POLICY).is_off
    )


def _was_killed_early(status: JsonObject, threshold: int) -> bool:
    ended = (status.get("lastState") or {}).get("terminated")
    if not ended or ended.get("reason") != "OOMKilled":
        return False
    started, finished = ended.get("startedAt"), ended.get("finishedAt")
    ran = (parse_time(finished) if finished else 0) - (parse_time(started) if started else 0)
    return ran < threshold


def _is_met(
    requirement: EvictionRequirement, requests: ResourceList, target: ResourceList | None
) -> bool:
    """Whether at least one of the resources changes in the wanted direction."""
    higher = requirement.change_requirement == "TargetHigherThanRequests"
    for resource in requirement.resources:
        request = amount_of(requests, resource).milli_value()
        wanted = amount_of(target, resource).milli_value()
        if wanted > request if higher else wanted < request:
            return True
    return False


DEFAULT_OPTIONS = UpdaterOptions()


class Assessment(NamedTuple):
    """One pod: what fits it, how urgent it is, whether it would be replaced."""

    pod: JsonObject
    fitted: Capped | None
    priority: UpdatePriority
    verdict: UpdateVerdict

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


def assess(
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    now: int,
    options: UpdaterOptions = DEFAULT_OPTIONS,
    ranges: LimitRanges = NO_LIMIT_RANGES,
) -> Assessment:
    """One pod on its own, eviction requirements and budget aside."""
    return Assessor(vpa, now, options, ranges).assess(pod)


def in_order(assessed: Iterable[Assessment]) -> list[Assessment]:
    """Pods that grow come first, then those that differ more; equals stay as they were."""
    return sorted(
        assessed, key=lambda each: (not each.priority.scales_up, -each.priority.difference)
    )


class Assessor:
    """Looks at pods; those that share their spec and have the same to say of it are one."""

    def __init__(
        self, vpa: VerticalPodAutoscaler, now: int, options: UpdaterOptions, ranges: LimitRanges
    ) -> None:
        self._vpa = vpa
        self._now = now
        self._options = options
        self._ranges = ranges
        self._known: dict[object, tuple[Capped | None, UpdatePriority, JsonObject]] = {}

    def assess(self, pod: JsonObject) -> Assessment:
        fitted, ranked = self._ranked(pod)
        found = verdict(pod, ranked, self._vpa, self._now, self._options)
        return Assessment(pod, fitted, ranked, found)

    def _ranked(self, pod: JsonObject) -> tuple[Capped | None, UpdatePriority]:
        if statuses_of(pod):
            return self._computed(pod)
        # The spec is kept beside what is known of it, so that its identity stays its own.
        key = (id(pod["spec"]), observed_containers(pod))
        if key not in self._known:
            self._known[key] = (*self._computed(pod), pod["spec"])
        return self._known[key][:2]

    def _computed(self, pod: JsonObject) -> tuple[Capped | None, UpdatePriority]:
        fitted = capped(self._vpa, pod, self._ranges)
        return fitted, priority(pod, fitted)


BUDGET = "the disruption budget of its controller is used up"
REQUIREMENTS = "the eviction requirements are not met"
RULED_OUT = "a resize was infeasible, and nothing that is recommended now is lower"
REFUSED = "the API refused the resize"
KEPT = "the API refused the eviction"


class PodUpdate(msgspec.Struct, frozen=True):
    """What one loop does: names of pods in order, and a sentence about each pod it looked at."""

    evicted: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    reasons: dict[str, str] = msgspec.field(default_factory=dict)


class Hands(Protocol):
    """Who does what a loop decides, at once; False: it was refused."""

    def evict(self, pod: JsonObject) -> bool: ...

    def resize(self, pod: JsonObject) -> bool: ...


class PaperHands:
    """Nothing is done. ``refused``: names of pods whose resize the API would refuse."""

    def __init__(self, refused: Collection[str] = ()) -> None:
        self._refused = refused

    def evict(self, pod: JsonObject) -> bool:
        del pod
        return True

    def resize(self, pod: JsonObject) -> bool:
        return _name(pod) not in self._refused


class UpdaterWorld(NamedTuple):
    """What a loop works with."""

    vpa: VerticalPodAutoscaler
    groups: Mapping[str, ControllerPods]
    now: int
    options: UpdaterOptions
    ranges: LimitRanges
    attempts: ResizeAttempts
    hands: Hands


class UpdateLoop:
    """Goes over the pods once. The groups count what it takes from their budgets."""

    def __init__(self, world: UpdaterWorld) -> None:
        self._world = world
        self._to_evict: list[JsonObject] = []
        self._evicted: list[str] = []
        self._resized: list[str] = []
        self._events: list[str] = []
        self._reasons: dict[str, str] = {}

    def run(self, live: Collection[JsonObject]) -> PodUpdate:
        for each in self._queue([pod for pod in live if self._is_candidate(pod)]):
            self._take(each.pod)
        for pod in self._to_evict:
            self._evict_if_possible(pod)
        return PodUpdate(
            tuple(self._evicted), tuple(self._resized), tuple(self._events), self._reasons
        )

    def _queue(self, candidates: Collection[JsonObject]) -> list[Assessment]:
        """The pods that are due, the most urgent first."""
        vpa, _, now, options, ranges, *_ = self._world
        assessor = Assessor(vpa, now, options, ranges)
        assessed = [assessor.assess(pod) for pod in candidates]
        self._reasons |= {each.name: each.verdict.reason for each in assessed}
        accepted = [each for each in assessed if each.verdict.accepted and self._may_try(each)]
        return [each for each in in_order(accepted) if self._meets_requirements(each)]

    def _may_try(self, assessment: Assessment) -> bool:
        if self._world.vpa.update_mode != IN_PLACE:
            return True
        fitted = assessment.fitted.recommendations if assessment.fitted else ()
        if self._world.attempts.rules_out(assessment.pod, fitted):
            self._reasons[assessment.name] = RULED_OUT
            return False
        return True

    def _meets_requirements(self, assessment: Assessment) -> bool:
        if meets_requirements(assessment.pod, assessment.fitted, self._world.vpa):
            return True
        self._reasons[assessment.name] = REQUIREMENTS
        return False

    def _is_candidate(self, pod: JsonObject) -> bool:
        mode = self._world.vpa.update_mode
        if mode not in IN_PLACE_MODES:
            return self._can_evict(pod)
        decision = self._decide(pod)
        if decision is EvictionDecision.RULED_OUT:
            self._reasons[_name(pod)] = RULED_OUT
        # Mode InPlace also tries pods whose resize is deferred: there may be a new one.
        return decision is not (
            EvictionDecision.RULED_OUT if mode == IN_PLACE else EvictionDecision.DEFERRED
        )

    def _take(self, pod: JsonObject) -> None:
        """Resize a pod if the mode and the budget allow, or leave it to be evicted."""
        mode = self._world.vpa.update_mode
        decision = self._decide(pod) if mode in IN_PLACE_MODES else EvictionDecision.EVICT
        match decision:
            case EvictionDecision.EVICT:
                self._to_evict.append(pod)
            case EvictionDecision.DEFERRED if mode != IN_PLACE:
                self._reasons[_name(pod)] = BUDGET
            case EvictionDecision.RULED_OUT:
                self._reasons[_name(pod)] = RULED_OUT
            case EvictionDecision.INFEASIBLE:
                self._world.attempts.failed_with(pod, self._world.vpa.recommendations or ())
                self._resize(pod)
            case _:
                self._resize(pod)

    def _decide(self, pod: JsonObject) -> EvictionDecision:
        vpa, groups, now, options, _, attempts, *_ = self._world
        return decide_resize(pod, groups.get(_name(pod)), vpa, now, options, attempts)

    def _resize(self, pod: JsonObject) -> None:
        """A resize that fails ends in an eviction, but for mode InPlace, which never evicts."""
        name, group = _name(pod), self._world.groups.get(_name(pod))
        if group is None or not self._changes(pod) or not self._world.hands.resize(pod):
            self._reasons[name] = REFUSED
            if self._world.vpa.update_mode != IN_PLACE:
                self._to_evict.append(pod)
            return
        self._resized.append(name)
        self._events.append("InPlaceResizedByVPA")
        group.resized += 1

    def _changes(self, pod: JsonObject) -> bool:
        """Whether there is anything to send: an amount, or the first resources of a container."""
        gets = admitted(self._world.vpa, pod, self._world.ranges).resources
        return any(
            given.requests or given.limits or declared_resources(container) == (None, None)
            for container, given in zip(containers_of(pod), gets, strict=True)
        )

    def _can_evict(self, pod: JsonObject) -> bool:
        group = self._world.groups.get(_name(pod))
        if group is None or is_pending(pod):
            return group is not None
        if group.is_below_minimum:
            return False
        if is_resizing(pod):
            return may_evict(pod, group, self._world.now, self._world.attempts)
        return group.can_lose_one

    def _evict_if_possible(self, pod: JsonObject) -> None:
        name = _name(pod)
        if not self._can_evict(pod):
            self._reasons[name] = BUDGET
            return
        if not self._world.hands.evict(pod):
            self._reasons[name] = KEPT
            return
        self._evicted.append(name)
        self._events += ("EvictedByVPA", "EvictedPod")
        if not is_pending(pod):
            self._world.groups[name].evicted += 1


def _name(pod: JsonObject) -> str:
    return str(pod["metadata"]["name"])


def update(
    vpa: VerticalPodAutoscaler,
    live: Sequence[JsonObject],
    replicas: Mapping[str, int],
    now: int,
    options: UpdaterOptions = DEFAULT_OPTIONS,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    attempts: ResizeAttempts | None = None,
    hands: Hands | None = None,
) -> PodUpdate:
    """One loop over the pods of a VPA, with the recommendation of its status.

    ``live`` are the pods that the VPA selects: scheduled, not ended, in listing order; those being
    deleted and those without a controller are left out here. ``replicas`` is how many pods each
    controller should have. ``attempts`` remembers resizes from loop to loop; ``hands`` do at once
    what is decided, since what is refused leaves its place in the budget to others.
    """
    gated = vpa.update_mode == IN_PLACE and not options.in_place
    if vpa.update_mode not in UPDATING_MODES or gated:
        return PodUpdate()
    left = [pod for pod in live if is_managed(pod)]
    known = ResizeAttempts() if attempts is None else attempts
    known.keep_only(pod for pod in live if not pod["metadata"].get("deletionTimestamp"))
    by_pod = groups(left, replicas, vpa, options)
    world = UpdaterWorld(vpa, by_pod, now, options, ranges, known, hands or PaperHands())
    return UpdateLoop(world).run(left)


def seed_rule(vpa: VerticalPodAutoscaler, live: Iterable[JsonObject]) -> PodUpdate:
    """Replace every pod with a request below the lower or above the upper bound."""
    outside = [
        pod["metadata"]["name"]
        for pod in live
        if priority(pod, Capped(tuple(vpa.recommendations or ()), {})).is_outside
    ]
    reason = "its requests are outside of the recommended range"
    return PodUpdate(evicted=tuple(outside), reasons=dict.fromkeys(outside, reason))
