"""Which pods the updater would replace, and which first."""

from collections.abc import Iterator
from typing import NamedTuple

from kubescene.api.quantity import Quantity
from kubescene.autoscalers.vertical import pods
from kubescene.autoscalers.vertical.capping import Capped
from kubescene.autoscalers.vertical.limit_ranges import amount_of
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ContainerRecommendation,
    EvictionRequirement,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.clock import parse_time
from kubescene.types import JsonObject


class Priority(NamedTuple):
    """How much a pod differs from what is recommended for it.

    ``difference`` is the sum over resources of the distance to the target in parts of the request.
    """

    is_outside: bool
    scales_up: bool
    difference: float


class Verdict(NamedTuple):
    """Whether a pod may be replaced, and why or why not."""

    accepted: bool
    reason: str


def priority(pod: JsonObject, fitted: Capped | None) -> Priority:
    """The priority of a pod with the recommendation that was made to fit it."""
    requested: dict[str, int] = {}
    recommended: dict[str, int] = {}
    is_outside = scales_up = False
    for name, recommendation in _observed(pod, fitted):
        requests = pods.resources(name, pod).requests or ResourceList()
        for resource, target in (recommendation.target or ResourceList()).items():
            recommended[resource] = recommended.get(resource, 0) + target.milli_value()
            request = requests.get(resource)
            if request is None:
                is_outside = scales_up = True
                continue
            requested[resource] = requested.get(resource, 0) + request.milli_value()
            scales_up = scales_up or target.milli_value() > request.milli_value()
            is_outside = is_outside or _is_outside(resource, request, recommendation)
    return Priority(is_outside, scales_up, _difference(requested, recommended))


def verdict(
    pod: JsonObject,
    ranked: Priority,
    vpa: VerticalPodAutoscaler,
    now: int,
    options: UpdaterOptions,
) -> Verdict:
    """Whether a pod is to be replaced, eviction requirements and budget aside."""
    quick_oom = _has_quick_oom(pod, vpa, options.evict_after_oom_threshold)
    if quick_oom and ranked.difference == 0:
        return Verdict(False, "killed for memory soon after it started, but it has the target")
    if ranked.is_outside:
        return Verdict(True, "its requests are outside of the recommended range")
    if quick_oom:
        return Verdict(True, "killed for memory soon after it started")
    started = (pod.get("status") or {}).get("startTime")
    if started is None:
        return Verdict(False, "within the recommended range and not started")
    if now < parse_time(started) + options.pod_lifetime_threshold:
        return Verdict(False, "within the recommended range and too young")
    if ranked.difference < options.update_threshold:
        return Verdict(False, "within the recommended range and near the target")
    return Verdict(True, "old enough, and far enough from the target")


def meets_requirements(pod: JsonObject, fitted: Capped | None, vpa: VerticalPodAutoscaler) -> bool:
    """Whether some container's change is one that the VPA's eviction requirements want."""
    policy = vpa.spec.update_policy
    if policy is None:
        return True
    requirements = policy.eviction_requirements or ()
    for container in pods.containers(pod):
        recommendation = fitted.of(container["name"]) if fitted else None
        if recommendation is not None:
            requests = pods.resources(container["name"], pod).requests or ResourceList()
            lacks_one = "cpu" not in requests or "memory" not in requests
            if lacks_one or all(
                _is_met(each, requests, recommendation.target) for each in requirements
            ):
                return True
    return False


def _observed(
    pod: JsonObject, fitted: Capped | None
) -> Iterator[tuple[str, ContainerRecommendation]]:
    observed = pods.observed_containers(pod)
    for container in pods.containers(pod):
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
    statuses = pods.statuses(pod)
    observed = pods.observed_containers(pod) if statuses else None
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
