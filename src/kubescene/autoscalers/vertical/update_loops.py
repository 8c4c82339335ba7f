"""One loop of the updater over the pods of a VPA: what is left of the budget, and what is done."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from kubescene.autoscalers.vertical import resizing
from kubescene.autoscalers.vertical.admission import admitted
from kubescene.autoscalers.vertical.assessing import Assessment, Assessor, in_order
from kubescene.autoscalers.vertical.attempts import Attempts
from kubescene.autoscalers.vertical.disruption import Group, is_pending
from kubescene.autoscalers.vertical.limit_ranges import LimitRanges
from kubescene.autoscalers.vertical.objects import (
    IN_PLACE,
    IN_PLACE_MODES,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.autoscalers.vertical.pods import containers, declared
from kubescene.autoscalers.vertical.priorities import meets_requirements
from kubescene.autoscalers.vertical.resizing import Decision
from kubescene.types import JsonObject

BUDGET = "the disruption budget of its controller is used up"
REQUIREMENTS = "the eviction requirements are not met"
RULED_OUT = "a resize was infeasible, and nothing that is recommended now is lower"
REFUSED = "the API refused the resize"


class Update(msgspec.Struct, frozen=True):
    """What one loop does: names of pods in order, and a sentence about each pod it looked at."""

    evicted: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    reasons: dict[str, str] = msgspec.field(default_factory=dict)


class World(NamedTuple):
    """What a loop works with. ``refused``: names of pods whose resize the API refuses."""

    vpa: VerticalPodAutoscaler
    groups: Mapping[str, Group]
    now: int
    options: UpdaterOptions
    ranges: LimitRanges
    attempts: Attempts
    refused: Collection[str]


class UpdateLoop:
    """Goes over the pods once. The groups count what it takes from their budgets."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._to_evict: list[JsonObject] = []
        self._evicted: list[str] = []
        self._resized: list[str] = []
        self._events: list[str] = []
        self._reasons: dict[str, str] = {}

    def run(self, live: Collection[JsonObject]) -> Update:
        for each in self._queue([pod for pod in live if self._is_candidate(pod)]):
            self._take(each.pod)
        for pod in self._to_evict:
            self._evict_if_possible(pod)
        return Update(
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
        if decision is Decision.RULED_OUT:
            self._reasons[_name(pod)] = RULED_OUT
        # Mode InPlace also tries pods whose resize is deferred: there may be a new one.
        return decision is not (Decision.RULED_OUT if mode == IN_PLACE else Decision.DEFERRED)

    def _take(self, pod: JsonObject) -> None:
        """Resize a pod if the mode and the budget allow, or leave it to be evicted."""
        mode = self._world.vpa.update_mode
        decision = self._decide(pod) if mode in IN_PLACE_MODES else Decision.EVICT
        match decision:
            case Decision.EVICT:
                self._to_evict.append(pod)
            case Decision.DEFERRED if mode != IN_PLACE:
                self._reasons[_name(pod)] = BUDGET
            case Decision.RULED_OUT:
                self._reasons[_name(pod)] = RULED_OUT
            case Decision.INFEASIBLE:
                self._world.attempts.failed_with(pod, self._world.vpa.recommendations or ())
                self._resize(pod)
            case _:
                self._resize(pod)

    def _decide(self, pod: JsonObject) -> Decision:
        vpa, groups, now, options, _, attempts, _ = self._world
        return resizing.decide(pod, groups.get(_name(pod)), vpa, now, options, attempts)

    def _resize(self, pod: JsonObject) -> None:
        """A resize that fails ends in an eviction, but for mode InPlace, which never evicts."""
        name, group = _name(pod), self._world.groups.get(_name(pod))
        if group is None or name in self._world.refused or not self._changes(pod):
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
            given.requests or given.limits or declared(container) == (None, None)
            for container, given in zip(containers(pod), gets, strict=True)
        )

    def _can_evict(self, pod: JsonObject) -> bool:
        group = self._world.groups.get(_name(pod))
        if group is None or is_pending(pod):
            return group is not None
        if group.is_below_minimum:
            return False
        if resizing.is_resizing(pod):
            return resizing.may_evict(pod, group, self._world.now, self._world.attempts)
        return group.can_lose_one

    def _evict_if_possible(self, pod: JsonObject) -> None:
        name = _name(pod)
        if not self._can_evict(pod):
            self._reasons[name] = BUDGET
            return
        self._evicted.append(name)
        self._events += ("EvictedByVPA", "EvictedPod")
        if not is_pending(pod):
            self._world.groups[name].evicted += 1


def _name(pod: JsonObject) -> str:
    return str(pod["metadata"]["name"])
