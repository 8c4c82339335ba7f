"""What happens to a recommendation before it is stored: whole cores, then policies.

The uncapped target stays as it was, but for whole cores.
"""

from collections.abc import Callable, Iterable, Mapping

from kubescene.api import quantity
from kubescene.api.quantity import Quantity
from kubescene.autoscalers.vertical import amounts
from kubescene.autoscalers.vertical.amounts import CPU, Amounts, Quantities
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.autoscalers.vertical.recommendations import Capping

PREFIX = "vpa-post-processor.kubernetes.io/"
INTEGER_CPU = "_integerCPU"

# Gives the amount of a resource and, if it changed, by what.
_Change = Callable[[str, Quantity], tuple[Quantity, str]]


def as_quantities(units: Amounts, options: RecommenderOptions) -> ResourceList:
    """Amounts as they are stored: rounded up to multiples, memory humanized if wanted."""
    stored = ((resource, _stored(resource, units[resource], options)) for resource in units)
    return ResourceList(stored)


def post_process(
    recommendation: ContainerRecommendation,
    vpa: VerticalPodAutoscaler,
    options: RecommenderOptions,
) -> tuple[Capping, ...]:
    """Change a recommendation as the post-processors do; what they changed and why."""
    changes: list[Capping] = []
    if options.integer_cpu_post_processor and wants_whole_cores(
        vpa.annotations, recommendation.container_name
    ):
        changes += _apply(_lists(recommendation, uncapped=True), _whole_cores)
    lowest, highest = _bounds(vpa, recommendation.container_name, options)
    for cap in (_Minimum(lowest), _Maximum(*highest)):
        changes += _apply(_lists(recommendation), cap)
    return tuple(changes)


def wants_whole_cores(annotations: Mapping[str, str], container: str) -> bool:
    """Whether an annotation asks for whole cores for this container."""
    return bool(container) and annotations.get(f"{PREFIX}{container}{INTEGER_CPU}") == "true"


def _stored(resource: str, units: int, options: RecommenderOptions) -> Quantity:
    step = options.round_cpu_millicores if resource == CPU else options.round_memory_bytes
    if step != 1 and units:
        units = amounts.rounded_up(units, step)
    if resource != CPU and options.humanize_memory and units:
        return quantity.parse(amounts.humanized(units))
    return amounts.as_quantity(resource, units)


def _lists(
    recommendation: ContainerRecommendation, *, uncapped: bool = False
) -> list[tuple[str, Quantities]]:
    lists = [
        ("target", recommendation.target),
        ("lowerBound", recommendation.lower_bound),
        ("upperBound", recommendation.upper_bound),
        ("uncappedTarget", recommendation.uncapped_target if uncapped else None),
    ]
    return [(name, each) for name, each in lists if each is not None]


def _apply(lists: Iterable[tuple[str, Quantities]], change: _Change) -> Iterable[Capping]:
    for bound, quantities in lists:
        for resource, before in quantities.items():
            after, by = change(resource, before)
            quantities[resource] = after
            if by:
                yield Capping(resource, bound, by, str(before), str(after))


def _whole_cores(resource: str, given: Quantity) -> tuple[Quantity, str]:
    if resource != CPU:
        return given, ""
    whole = quantity.from_value(given.value(), given.format)
    return whole, "" if whole == given else "integerCPU"


def _bounds(
    vpa: VerticalPodAutoscaler, container: str, options: RecommenderOptions
) -> tuple[Mapping[str, Quantity], tuple[Mapping[str, Quantity], Mapping[str, Quantity]]]:
    policy = vpa.policy_of(container) or NO_POLICY
    return policy.min_allowed or {}, (policy.max_allowed or {}, options.global_max_allowed)


class _Minimum:
    """At least what the policy allows; a bound of zero is none."""

    def __init__(self, lowest: Mapping[str, Quantity]) -> None:
        self._lowest = lowest

    def __call__(self, resource: str, given: Quantity) -> tuple[Quantity, str]:
        lowest = self._lowest.get(resource)
        return (lowest, "minAllowed") if lowest and given < lowest else (given, "")


class _Maximum:
    """At most what the policy allows, or if it says nothing what the flag does."""

    def __init__(self, highest: Mapping[str, Quantity], general: Mapping[str, Quantity]) -> None:
        self._highest = highest
        self._general = general

    def __call__(self, resource: str, given: Quantity) -> tuple[Quantity, str]:
        own = self._highest.get(resource)
        highest = self._general.get(resource) if own is None else own
        by = "globalMaxAllowed" if own is None else "maxAllowed"
        return (highest, by) if highest and given > highest else (given, "")
