"""Which pods are replaced or resized now: the updater's loop, and the rule of the founding text.

`update` is the real updater: priority, age, eviction requirements, budget, update mode. `seed_rule`
replaces every pod whose requests are outside of the recommended bounds, whatever the mode.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kubescene.autoscalers.vertical import pods, resizing
from kubescene.autoscalers.vertical.capping import Capped, capped
from kubescene.autoscalers.vertical.disruption import Group, groups, is_managed, is_pending
from kubescene.autoscalers.vertical.limit_ranges import NO_LIMIT_RANGES, LimitRanges
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.autoscalers.vertical.priorities import (
    Priority,
    Verdict,
    meets_requirements,
    priority,
    verdict,
)
from kubescene.autoscalers.vertical.resizing import Decision, FirstSeen
from kubescene.types import JsonObject

RECREATING = ("Recreate", "Auto")
IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"
DEFAULT_OPTIONS = UpdaterOptions()


class Assessment(NamedTuple):
    """One pod: what fits it, how urgent it is, whether it would be replaced."""

    pod: JsonObject
    fitted: Capped | None
    priority: Priority
    verdict: Verdict

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


class Update(msgspec.Struct, frozen=True):
    """What one loop does: names of pods in order, and a sentence about each pod it looked at."""

    evicted: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    reasons: dict[str, str] = msgspec.field(default_factory=dict)


def assess(
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    now: int,
    options: UpdaterOptions = DEFAULT_OPTIONS,
    ranges: LimitRanges = NO_LIMIT_RANGES,
) -> Assessment:
    """One pod on its own, eviction requirements and budget aside."""
    return _Assessor(vpa, now, options, ranges).assess(pod)


def update(
    vpa: VerticalPodAutoscaler,
    live: Sequence[JsonObject],
    replicas: Mapping[str, int],
    now: int,
    options: UpdaterOptions = DEFAULT_OPTIONS,
    ranges: LimitRanges = NO_LIMIT_RANGES,
    first_seen: FirstSeen | None = None,
) -> Update:
    """One loop over the pods of a VPA, with the recommendation of its status.

    ``live`` are the pods that the VPA selects: scheduled, not ended, in listing order; those being
    deleted and those without a controller are left out here. ``replicas`` is how many pods each
    controller should have.
    ``first_seen`` remembers from loop to loop since when resizes are waiting.
    """
    if vpa.update_mode not in (*RECREATING, IN_PLACE_OR_RECREATE):
        return Update()
    in_place = vpa.update_mode == IN_PLACE_OR_RECREATE
    if in_place and vpa.recommendations is None:
        return Update()
    left = [pod for pod in live if is_managed(pod)]
    seen = first_seen if first_seen is not None else {}
    loop = _Loop(groups(left, replicas, vpa, options), now, options, seen)
    candidates = [pod for pod in left if loop.is_candidate(pod, in_place=in_place)]
    assessor = _Assessor(vpa, now, options, ranges)
    assessed = [assessor.assess(pod) for pod in candidates]
    loop.reasons = {each.name: each.verdict.reason for each in assessed}
    for each in in_order(each for each in assessed if each.verdict.accepted):
        if meets_requirements(each.pod, each.fitted, vpa):
            loop.take(each.pod, in_place=in_place)
        else:
            loop.reasons[each.name] = "the eviction requirements are not met"
    loop.evict_rest()
    return loop.done()


def in_order(assessed: Iterable[Assessment]) -> list[Assessment]:
    """Pods that grow come first, then those that differ more; equals stay as they were."""
    return sorted(
        assessed, key=lambda each: (not each.priority.scales_up, -each.priority.difference)
    )


def seed_rule(vpa: VerticalPodAutoscaler, live: Iterable[JsonObject]) -> Update:
    """Replace every pod with a request below the lower or above the upper bound."""
    outside = [
        pod["metadata"]["name"]
        for pod in live
        if priority(pod, Capped(tuple(vpa.recommendations or ()), {})).is_outside
    ]
    reason = "its requests are outside of the recommended range"
    return Update(evicted=tuple(outside), reasons=dict.fromkeys(outside, reason))


class _Assessor:
    """Looks at pods; those that share their spec and have the same to say of it are one."""

    def __init__(
        self, vpa: VerticalPodAutoscaler, now: int, options: UpdaterOptions, ranges: LimitRanges
    ) -> None:
        self._vpa = vpa
        self._now = now
        self._options = options
        self._ranges = ranges
        self._known: dict[object, tuple[Capped | None, Priority, JsonObject]] = {}

    def assess(self, pod: JsonObject) -> Assessment:
        fitted, ranked = self._ranked(pod)
        found = verdict(pod, ranked, self._vpa, self._now, self._options)
        return Assessment(pod, fitted, ranked, found)

    def _ranked(self, pod: JsonObject) -> tuple[Capped | None, Priority]:
        if pods.statuses(pod):
            return self._computed(pod)
        # The spec is kept beside what is known of it, so that its identity stays its own.
        key = (id(pod["spec"]), pods.observed_containers(pod))
        if key not in self._known:
            self._known[key] = (*self._computed(pod), pod["spec"])
        return self._known[key][:2]

    def _computed(self, pod: JsonObject) -> tuple[Capped | None, Priority]:
        fitted = capped(self._vpa, pod, self._ranges)
        return fitted, priority(pod, fitted)


class _Loop:
    """What is left of each group's budget while the loop goes over the pods."""

    def __init__(
        self,
        by_pod: Mapping[str, Group],
        now: int,
        options: UpdaterOptions,
        first_seen: FirstSeen,
    ) -> None:
        self._groups = by_pod
        self._now = now
        self._options = options
        self._first_seen = first_seen
        self._to_evict: list[JsonObject] = []
        self._evicted: list[str] = []
        self._resized: list[str] = []
        self._events: list[str] = []
        self.reasons: dict[str, str] = {}

    def is_candidate(self, pod: JsonObject, *, in_place: bool) -> bool:
        if in_place:
            return self._decide(pod) is not Decision.DEFERRED
        return self._can_evict(pod)

    def take(self, pod: JsonObject, *, in_place: bool) -> None:
        """Resize a pod if the mode and the budget allow, or leave it to be evicted."""
        decision = self._decide(pod) if in_place else Decision.EVICT
        if decision is Decision.APPROVED:
            self._resize(pod)
        elif decision is Decision.EVICT:
            self._to_evict.append(pod)
        else:
            self._spare(pod)

    def evict_rest(self) -> None:
        for pod in self._to_evict:
            if self._can_evict(pod):
                self._evict(pod)
            else:
                self._spare(pod)

    def done(self) -> Update:
        return Update(tuple(self._evicted), tuple(self._resized), tuple(self._events), self.reasons)

    def _decide(self, pod: JsonObject) -> Decision:
        group = self._groups.get(pod["metadata"]["name"])
        return resizing.decide(pod, group, self._now, self._options, self._first_seen)

    def _can_evict(self, pod: JsonObject) -> bool:
        group = self._groups.get(pod["metadata"]["name"])
        if group is None or is_pending(pod):
            return group is not None
        if group.is_below_minimum:
            return False
        if resizing.is_resizing(pod):
            return resizing.may_evict(pod, group, self._now, self._first_seen)
        return group.can_lose_one

    def _evict(self, pod: JsonObject) -> None:
        name = pod["metadata"]["name"]
        self._evicted.append(name)
        self._events += ("EvictedByVPA", "EvictedPod")
        if not is_pending(pod):
            self._groups[name].evicted += 1

    def _resize(self, pod: JsonObject) -> None:
        name = pod["metadata"]["name"]
        self._resized.append(name)
        self._events.append("InPlaceResizedByVPA")
        self._groups[name].resized += 1

    def _spare(self, pod: JsonObject) -> None:
        self.reasons[pod["metadata"]["name"]] = "the disruption budget of its controller is used up"
