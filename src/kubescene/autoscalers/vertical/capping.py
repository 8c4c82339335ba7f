"""Recommendations made to fit one pod, for updater and admission alike.

In order: the LimitRange for pods, then for each container the LimitRange for containers, the
policy's bounds, and the container's own limit where only requests are controlled.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kubescene.api.quantity import ZERO, Quantity
from kubescene.autoscalers.vertical import pods
from kubescene.autoscalers.vertical.amounts import RESOURCES
from kubescene.autoscalers.vertical.limit_ranges import (
    NO_LIMIT_RANGES,
    LimitRange,
    LimitRanges,
    amount_of,
)
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ContainerPolicy,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.pod_limits import fit_pod
from kubescene.autoscalers.vertical.pods import Resources
from kubescene.autoscalers.vertical.proportions import boundary_request
from kubescene.types import JsonObject


class Capped(NamedTuple):
    """Recommendations for one pod, and by container what changed its target."""

    recommendations: tuple[ContainerRecommendation, ...]
    notes: dict[str, list[str]]

    def of(self, container: str) -> ContainerRecommendation | None:
        named = (each for each in self.recommendations if each.container_name == container)
        return next(named, None)


def capped(
    vpa: VerticalPodAutoscaler, pod: JsonObject, ranges: LimitRanges = NO_LIMIT_RANGES
) -> Capped | None:
    """The recommendation of the VPA's status for this pod; None: no recommendation, no policy."""
    if vpa.recommendations is None and vpa.spec.resource_policy is None:
        return None
    recommendations = [each.copy() for each in vpa.recommendations or ()]
    if ranges.pod is not None:
        recommendations = fit_pod(recommendations, pod, ranges.pod)
    present = {each["name"] for each in pods.containers(pod)}
    kept = [each for each in recommendations if each.container_name in present]
    notes = {each.container_name: _cap(each, vpa, pod, ranges.container) for each in kept}
    return Capped(tuple(kept), {name: said for name, said in notes.items() if said})


def _cap(
    recommendation: ContainerRecommendation,
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    limits: LimitRange | None,
) -> list[str]:
    """Cap all lists of a container; what is said is about the target."""
    name = recommendation.container_name
    caps = _Caps(vpa.policy_of(name) or NO_POLICY, pods.resources(name, pod), limits)
    lists = (recommendation.target, recommendation.lower_bound, recommendation.upper_bound)
    of_target, *_ = [caps.apply(listed) if listed else [] for listed in lists]
    return of_target


class _Bounds(NamedTuple):
    """Between the lowest and the highest, which wins; a bound of 0 is none."""

    lowest: ResourceList
    highest: ResourceList
    low: str
    high: str

    def apply(self, listed: ResourceList) -> Iterator[str]:
        for resource, amount in list(listed.items()):
            least, most = self.lowest.get(resource), self.highest.get(resource)
            bounded = least if least and amount < least else amount
            if bounded is not amount:
                yield f"{resource} capped to {self.low}"
            if most and bounded > most:
                bounded = most
                yield f"{resource} capped to {self.high}"
            listed[resource] = bounded


class _Caps:
    """All that bounds the requests of one container."""

    def __init__(self, policy: ContainerPolicy, has: Resources, limits: LimitRange | None) -> None:
        self._bounds = [*_limit_range_bounds(has, limits), _policy_bounds(policy)]
        own = None if policy.sets_limits else has.limits
        self._limits = own or ResourceList()

    def apply(self, listed: ResourceList) -> list[str]:
        """Cap a list; what was changed by what."""
        said = [note for bounds in self._bounds for note in bounds.apply(listed)]
        for resource, limit in self._limits.items():
            if resource in listed and listed[resource].milli_value() > limit.milli_value():
                listed[resource] = limit
                said.append(f"{resource} capped to container limit")
        return said


def _policy_bounds(policy: ContainerPolicy) -> _Bounds:
    lowest, highest = policy.min_allowed or ResourceList(), policy.max_allowed or ResourceList()
    return _Bounds(lowest, highest, "minAllowed", "maxAllowed")


def _limit_range_bounds(has: Resources, limits: LimitRange | None) -> Iterator[_Bounds]:
    """The requests with which request and proportional limit keep the LimitRange."""
    if limits is None:
        return
    lowest = _boundaries(has, limits.min, limits.default)
    for resource in RESOURCES:
        least = amount_of(limits.min, resource)
        if least > lowest.get(resource, ZERO):
            lowest[resource] = least
    highest = _boundaries(has, limits.max, limits.default)
    where = "in container LimitRange"
    yield _Bounds(lowest, highest, f"fit Min {where}", f"fit Max {where}")


def _boundaries(
    has: Resources, boundary: ResourceList | None, default: ResourceList | None
) -> ResourceList:
    if boundary is None:
        return ResourceList()
    return ResourceList(
        (resource, _boundary(resource, has, boundary, default)) for resource in RESOURCES
    )


def _boundary(
    resource: str, has: Resources, boundary: ResourceList, default: ResourceList | None
) -> Quantity:
    return boundary_request(
        resource,
        amount_of(has.limits, resource),
        amount_of(has.requests, resource),
        amount_of(boundary, resource),
        amount_of(default, resource),
    )
