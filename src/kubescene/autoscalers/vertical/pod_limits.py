"""The LimitRange for pods: recommendations of all containers scaled until their sum fits."""

from collections.abc import Iterator, Sequence

from kubescene.api import quantity
from kubescene.api.quantity import ZERO, Quantity
from kubescene.autoscalers.vertical import pods
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY, RESOURCES
from kubescene.autoscalers.vertical.limit_ranges import LimitRange, amount_of
from kubescene.autoscalers.vertical.objects import ContainerRecommendation, ResourceList
from kubescene.autoscalers.vertical.pods import Resources
from kubescene.autoscalers.vertical.proportions import proportional_limit, scale
from kubescene.types import JsonObject

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
        (pods.resources(container["name"], pod), named.get(container["name"]))
        for container in pods.containers(pod)
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
    for container in pods.containers(pod):
        requests = pods.resources(container["name"], pod).requests
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
        self, has: Resources, recommendation: ContainerRecommendation | None, bound: str
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
