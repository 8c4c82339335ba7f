"""Recommendations made to fit one pod, for updater and admission alike.

In order: the LimitRange for pods, then for each container the LimitRange for containers, the
policy's bounds, and the container's own limit where only requests are controlled.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kubescene.api import quantity
from kubescene.api.quantity import ZERO, Quantity
from kubescene.autoscalers.vertical import pods
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY, RESOURCES
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
from kubescene.autoscalers.vertical.pods import Resources
from kubescene.autoscalers.vertical.proportions import boundary_request, proportional_limit, scale
from kubescene.types import JsonObject

_ALMOST_ONE = quantity.parse("999m")


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
        recommendations += _current_requests(recommendations, pod)
        _fit_pod(recommendations, pod, ranges.pod)
    present = {each["name"] for each in pods.containers(pod)}
    kept = [each for each in recommendations if each.container_name in present]
    notes: dict[str, list[str]] = {}
    for each in kept:
        said = list(_cap_container(each, vpa, pod, ranges.container))
        if said:
            notes[each.container_name] = said
    return Capped(tuple(kept), notes)


def _current_requests(
    known: Sequence[ContainerRecommendation], pod: JsonObject
) -> Iterator[ContainerRecommendation]:
    """Containers without a recommendation take part with what they request."""
    names = {each.container_name for each in known}
    for container in pods.containers(pod):
        requests = pods.resources(container["name"], pod).requests
        if container["name"] not in names and requests:
            yield ContainerRecommendation(container["name"], target=requests)


def _fit_pod(
    recommendations: Sequence[ContainerRecommendation], pod: JsonObject, limits: LimitRange
) -> None:
    for bound in ("upper_bound", "target", "lower_bound"):
        for resource in RESOURCES:
            _PodSum(recommendations, pod, limits, resource, bound).fit()


class _PodSum:
    """One resource of one list, summed over the containers of a pod."""

    def __init__(
        self,
        recommendations: Sequence[ContainerRecommendation],
        pod: JsonObject,
        limits: LimitRange,
        resource: str,
        bound: str,
    ) -> None:
        self._resource = resource
        self._min = amount_of(limits.min, resource)
        self._max = amount_of(limits.max, resource)
        self._lists: list[ResourceList | None] = []
        self._limits, self._requests = ZERO, ZERO
        default = amount_of(limits.default, resource)
        named = {each.container_name: each for each in reversed(recommendations)}
        for container in pods.containers(pod):
            has = pods.resources(container["name"], pod)
            self._add(named.get(container["name"]), bound, has, default)

    def _add(
        self,
        recommendation: ContainerRecommendation | None,
        bound: str,
        has: Resources,
        default: Quantity,
    ) -> None:
        listed: ResourceList | None = getattr(recommendation, bound) if recommendation else None
        self._lists.append(listed)
        request = amount_of(has.requests, self._resource)
        recommended = amount_of(listed, self._resource) if recommendation else request
        limit = amount_of(has.limits, self._resource)
        follows = proportional_limit(self._resource, limit, request, recommended, default).amount
        self._limits += follows or ZERO
        self._requests += recommended

    def fit(self) -> None:
        """Scale the list so that limits and requests of the pod are within the range.

        Upstream crashes where a container has no such list; here it stays as it is.
        """
        too_low = self._min > self._limits
        too_high = bool(self._max) and self._max < self._limits
        if self._min > self._requests and self._limits:
            self._scale_all(self._requests, self._min, up=True)
        elif self._limits and (too_low or too_high):
            self._scale_all(self._limits, self._max if too_high else self._min, up=False)

    def _scale_all(self, of: Quantity, to: Quantity, *, up: bool) -> None:
        for listed in self._lists:
            if listed is not None and (of or self._resource == CPU):
                amount = amount_of(listed, self._resource)
                scaled, _ = scale(self._resource, amount, of=of, to=to, up=up)
                listed[self._resource] = scaled if up else self._rounded_down(scaled)

    def _rounded_down(self, amount: Quantity) -> Quantity:
        """Memory is rounded as upstream does it, which makes -1 of 0."""
        if self._resource != MEMORY:
            return amount
        return quantity.from_value((amount - _ALMOST_ONE).value(), amount.format)


def _cap_container(
    recommendation: ContainerRecommendation,
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    limits: LimitRange | None,
) -> Iterator[str]:
    """Cap all lists; the notes are about the target."""
    name = recommendation.container_name
    policy, has = vpa.policy_of(name) or NO_POLICY, pods.resources(name, pod)
    notes = list(_cap_list(recommendation.target, policy, has, limits))
    for listed in (recommendation.lower_bound, recommendation.upper_bound):
        list(_cap_list(listed, policy, has, limits))
    yield from notes


def _cap_list(
    listed: ResourceList | None,
    policy: ContainerPolicy,
    has: Resources,
    limits: LimitRange | None,
) -> Iterator[str]:
    if not listed:
        return
    if limits is not None:
        lowest, highest = _allowed_requests(has, limits)
        yield from _bound(
            listed,
            lowest,
            highest,
            "fit Min in container LimitRange",
            "fit Max in container LimitRange",
        )
    lowest, highest = policy.min_allowed or ResourceList(), policy.max_allowed or ResourceList()
    yield from _bound(listed, lowest, highest, "minAllowed", "maxAllowed")
    if not policy.sets_limits:
        for resource, limit in (has.limits or ResourceList()).items():
            if resource in listed and listed[resource].milli_value() > limit.milli_value():
                listed[resource] = limit
                yield f"{resource} capped to container limit"


def _bound(
    listed: ResourceList,
    lowest: Mapping[str, Quantity],
    highest: Mapping[str, Quantity],
    low: str,
    high: str,
) -> Iterator[str]:
    """Between the lowest and the highest, which wins; a bound of 0 is none."""
    for resource in list(listed):
        least, most = lowest.get(resource), highest.get(resource)
        if least and listed[resource] < least:
            listed[resource] = least
            yield f"{resource} capped to {low}"
        if most and listed[resource] > most:
            listed[resource] = most
            yield f"{resource} capped to {high}"


def _allowed_requests(has: Resources, limits: LimitRange) -> tuple[ResourceList, ResourceList]:
    """The lowest and highest requests with which request and limit keep the LimitRange."""
    lowest = _boundaries(has, limits.min, limits.default)
    for resource in RESOURCES:
        least = amount_of(limits.min, resource)
        if least > lowest.get(resource, ZERO):
            lowest[resource] = least
    return lowest, _boundaries(has, limits.max, limits.default)


def _boundaries(
    has: Resources, boundary: ResourceList | None, default: ResourceList | None
) -> ResourceList:
    if boundary is None:
        return ResourceList()
    return ResourceList(
        (
            resource,
            boundary_request(
                resource,
                amount_of(has.limits, resource),
                amount_of(has.requests, resource),
                amount_of(boundary, resource),
                amount_of(default, resource),
            ),
        )
        for resource in RESOURCES
    )
