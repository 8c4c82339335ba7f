"""Recommendations made to fit one pod, for updater and admission alike.

In order (`capped`): the LimitRange for pods, which scales all containers until their sum fits, then
for each container the LimitRange for containers, the policy's bounds, and the container's own limit
where only requests are controlled.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kubescene.api import quantity
from kubescene.api.quantity import ZERO, Quantity, parse
from kubescene.api.validation.names import dns_label
from kubescene.autoscalers.vertical.amounts import (
    CPU,
    MEMORY,
    RESOURCES,
    boundary_request,
    proportional_limit,
    scale,
)
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ContainerPolicy,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.types import JsonObject


class LimitRange(NamedTuple):
    """The bounds of one type, container or pod. A list that is None was not given."""

    min: ResourceList | None = None
    max: ResourceList | None = None
    default: ResourceList | None = None


class LimitRanges(NamedTuple):
    """What holds in a namespace; None: nothing does."""

    container: LimitRange | None = None
    pod: LimitRange | None = None


NO_LIMIT_RANGES = LimitRanges()


def limit_ranges(objects: Iterable[JsonObject]) -> LimitRanges:
    """All LimitRange objects of a namespace combined: lowest max, highest min, last default.

    Of equal amounts the last one stays, which matters for how it is written.
    """
    items = [item for obj in objects for item in (obj.get("spec") or {}).get("limits") or ()]
    return LimitRanges(_combined(items, "Container"), _combined(items, "Pod"))


def amount_of(amounts: ResourceList | None, resource: str) -> Quantity:
    """The amount of a resource; 0 where none is said."""
    return ZERO if amounts is None else amounts.get(resource, ZERO)


def resource_list(amounts: JsonObject | None) -> ResourceList | None:
    """A resource list of an API object; None stays None."""
    if amounts is None:
        return None
    return ResourceList((name, parse(amount)) for name, amount in amounts.items())


def _combined(items: Iterable[JsonObject], kind: str) -> LimitRange | None:
    result = LimitRange()
    for item in items:
        if item.get("type") == kind:
            result = LimitRange(
                _picked(result.min, resource_list(item.get("min")), _higher),
                _picked(result.max, resource_list(item.get("max")), _lower),
                result.default if item.get("default") is None else resource_list(item["default"]),
            )
    return None if result == LimitRange() else result


def _picked(
    known: ResourceList | None,
    given: ResourceList | None,
    pick: Callable[[Quantity, Quantity], Quantity],
) -> ResourceList | None:
    if given is None or known is None:
        return known if given is None else given
    for resource in RESOURCES:
        if resource in given:
            amount = given[resource]
            known[resource] = pick(known[resource], amount) if resource in known else amount
    return known


def _lower(known: Quantity, given: Quantity) -> Quantity:
    return known if known < given else given


def _higher(known: Quantity, given: Quantity) -> Quantity:
    return known if known > given else given


OBSERVED_CONTAINERS = "vpaObservedContainers"
_SEPARATOR = ", "


class ContainerResources(NamedTuple):
    """What a container has; None where a list is absent."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


def containers_of(pod: JsonObject) -> Sequence[JsonObject]:
    return (pod.get("spec") or {}).get("containers") or ()


def statuses_of(pod: JsonObject) -> Sequence[JsonObject]:
    return (pod.get("status") or {}).get("containerStatuses") or ()


def resources_of(container: str, pod: JsonObject) -> ContainerResources:
    """What a container really has: by its status, else by its spec."""
    status = next((each for each in statuses_of(pod) if each.get("name") == container), {})
    if status.get("resources") is not None:
        return _resources(status["resources"])
    spec = next((each for each in containers_of(pod) if each["name"] == container), {})
    return declared_resources(spec)


def declared_resources(container: JsonObject) -> ContainerResources:
    """What a container has by its spec."""
    return _resources(container.get("resources") or {})


def observed_containers(pod: JsonObject) -> frozenset[str] | None:
    """The containers that the pod had when it was admitted; None where nobody wrote them down."""
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(OBSERVED_CONTAINERS)
    if text is None:
        return None
    names = text.split(_SEPARATOR) if text else []
    return None if any(map(dns_label, names)) else frozenset(names)


def observed_text(pod: JsonObject) -> str:
    return _SEPARATOR.join(each["name"] for each in containers_of(pod))


def _resources(given: JsonObject) -> ContainerResources:
    return ContainerResources(
        resource_list(given.get("requests")), resource_list(given.get("limits"))
    )


_ALMOST_ONE = quantity.parse("999m")


def fit_pod(
    recommendations: Sequence[ContainerRecommendation], pod: JsonObject, limits: LimitRange
) -> list[ContainerRecommendation]:
    """Recommendations with which the pod keeps the range; those given are changed.

    Containers without a recommendation take part with what they request.
    """
    taking_part = [*recommendations, *_current_requests(recommendations, pod)]
    named = {each.container_name: each for each in reversed(taking_part)}
    members = [
        (resources_of(container["name"], pod), named.get(container["name"]))
        for container in containers_of(pod)
    ]
    for bound in ("upper_bound", "target", "lower_bound"):
        for resource in RESOURCES:
            summed = _PodSum(resource, limits)
            for has, recommendation in members:
                summed.add(has, recommendation, bound)
            summed.fit()
    return taking_part


def _current_requests(
    known: Sequence[ContainerRecommendation], pod: JsonObject
) -> Iterator[ContainerRecommendation]:
    names = {each.container_name for each in known}
    for container in containers_of(pod):
        requests = resources_of(container["name"], pod).requests
        if container["name"] not in names and requests:
            yield ContainerRecommendation(container["name"], target=requests)


class _PodSum:
    """One resource of one list, summed over the containers of a pod."""

    def __init__(self, resource: str, limits: LimitRange) -> None:
        self._resource = resource
        self._min = amount_of(limits.min, resource)
        self._max = amount_of(limits.max, resource)
        self._default = amount_of(limits.default, resource)
        self._lists: list[ResourceList] = []
        self._limits, self._requests = ZERO, ZERO

    def add(
        self, has: ContainerResources, recommendation: ContainerRecommendation | None, bound: str
    ) -> None:
        """Count a container in. Upstream crashes where it has no such list; here it stays."""
        request = recommended = amount_of(has.requests, self._resource)
        if recommendation is not None:
            listed: ResourceList | None = getattr(recommendation, bound)
            recommended = amount_of(listed, self._resource)
            if listed is not None:
                self._lists.append(listed)
        limit = amount_of(has.limits, self._resource)
        follows = proportional_limit(self._resource, limit, request, recommended, self._default)
        self._limits += follows.amount or ZERO
        self._requests += recommended

    def fit(self) -> None:
        """Scale the lists so that the pod's requests reach the least and its limits both bounds.

        Without any limit nothing is done.
        """
        if not self._limits:
            return
        if self._min > self._requests:
            self._scale_all(self._requests, self._min, up=True)
        elif self._max and self._max < self._limits:
            self._scale_all(self._limits, self._max, up=False)
        elif self._min > self._limits:
            self._scale_all(self._limits, self._min, up=False)

    def _scale_all(self, of: Quantity, to: Quantity, *, up: bool) -> None:
        if not of and self._resource != CPU:
            return
        for listed in self._lists:
            amount = amount_of(listed, self._resource)
            scaled, _ = scale(self._resource, amount, of=of, to=to, up=up)
            listed[self._resource] = scaled if up else self._rounded_down(scaled)

    def _rounded_down(self, amount: Quantity) -> Quantity:
        """Memory is rounded as upstream does it, which makes -1 of 0."""
        if self._resource != MEMORY:
            return amount
        return quantity.from_value((amount - _ALMOST_ONE).value(), amount.format)


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
    present = {each["name"] for each in containers_of(pod)}
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
    caps = _Caps(vpa.policy_of(name) or NO_POLICY, resources_of(name, pod), limits)
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

    def __init__(
        self, policy: ContainerPolicy, has: ContainerResources, limits: LimitRange | None
    ) -> None:
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


def _limit_range_bounds(has: ContainerResources, limits: LimitRange | None) -> Iterator[_Bounds]:
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
    has: ContainerResources, boundary: ResourceList | None, default: ResourceList | None
) -> ResourceList:
    if boundary is None:
        return ResourceList()
    return ResourceList(
        (resource, _boundary(resource, has, boundary, default)) for resource in RESOURCES
    )


def _boundary(
    resource: str, has: ContainerResources, boundary: ResourceList, default: ResourceList | None
) -> Quantity:
    return boundary_request(
        resource,
        amount_of(has.limits, resource),
        amount_of(has.requests, resource),
        amount_of(boundary, resource),
        amount_of(default, resource),
    )
