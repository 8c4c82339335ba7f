"""From a history to a recommendation, step by step, each step kept for the explanation.

percentile of the histogram -> margin -> confidence factor (bounds only) -> minimum. Amounts are
cut to whole units after every step. Before it is stored, a recommendation is rounded to whole
cores, then bounded by the policies; the uncapped target stays as it was, but for whole cores.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from math import inf, isinf

import msgspec

from kubescene.api import quantity
from kubescene.api.quantity import Quantity
from kubescene.autoscalers.exact_math import power
from kubescene.autoscalers.vertical import amounts
from kubescene.autoscalers.vertical.amounts import (
    CPU,
    MEMORY,
    NOT_A_NUMBER,
    Amounts,
    Quantities,
    amount,
    cpu_amount,
    scaled,
)
from kubescene.autoscalers.vertical.histories import Aggregate
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.clock import MINUTE, format_time
from kubescene.types import JsonObject


class Bound(StrEnum):
    """What an estimate is for."""

    LOWER = "lowerBound"
    TARGET = "target"
    UPPER = "upperBound"


class Confidence(msgspec.Struct, frozen=True):
    """A factor ``(1 + multiplier / confidence) ^ exponent``."""

    multiplier: float
    exponent: int

    def factor(self, confidence: float) -> float:
        share = self.multiplier / confidence if confidence else inf
        return power(1.0 + share, self.exponent)


CONFIDENCE = {
    Bound.LOWER: Confidence(0.001, -2),
    Bound.TARGET: None,
    Bound.UPPER: Confidence(1.0, 1),
}
"""Little history: the upper bound is far above the target, the lower one far below."""


class UsageEstimate(msgspec.Struct, frozen=True):
    """How one amount came about: millicores of cpu, bytes of memory.

    ``base`` is the percentile of the history, ``with_margin`` adds the safety margin,
    ``with_confidence`` multiplies by ``factor``, ``amount`` is at least ``minimum``.
    """

    resource: str
    bound: Bound
    percentile: float
    base: int
    with_margin: int
    confidence: float
    factor: float
    with_confidence: int
    minimum: int
    amount: int

    @property
    def is_minimum(self) -> bool:
        """Whether it is the minimum that decided."""
        return self.with_confidence < self.minimum

    def to_dict(self) -> JsonObject:
        """All of it as JSON, where infinity and what is no number are null."""
        return {
            "resource": self.resource,
            "bound": str(self.bound),
            "percentile": self.percentile,
            "base": self.base,
            "withMargin": self.with_margin,
            "confidence": self.confidence,
            "factor": None if isinf(self.factor) else self.factor,
            "withConfidence": (
                None if self.with_confidence == NOT_A_NUMBER else self.with_confidence
            ),
            "minimum": self.minimum,
            "amount": self.amount,
        }


def confidence(history: Aggregate, interval: int) -> float:
    """How much history there is: 1.0 is a whole interval with a sample for every minute."""
    first, last = history.first, history.last
    lifespan = 0.0 if first is None or last is None else float(last - first) / float(interval)
    return min(lifespan, float(history.count) / _minutes(interval))


def minimums(options: RecommenderOptions, containers: int) -> dict[str, int]:
    """The minimum of a pod, split evenly over its recommended containers."""
    share = 1.0 / float(containers)
    return {
        CPU: scaled(cpu_amount(options.pod_min_cpu_millicores * 0.001), share),
        MEMORY: scaled(amount(options.pod_min_memory_mb * 1024 * 1024), share),
    }


def estimate(
    history: Aggregate, resource: str, bound: Bound, options: RecommenderOptions, minimum: int
) -> UsageEstimate:
    """One amount of a container with this history."""
    share, interval = _settings(resource, bound, options)
    if resource == CPU:
        base = cpu_amount(history.cpu.percentile(share))
    else:
        base = amount(history.memory.percentile(share))
    with_margin = base + scaled(base, options.safety_margin)
    trust, rule = confidence(history, interval), CONFIDENCE[bound]
    factor = rule.factor(trust) if rule else 1.0
    with_confidence = scaled(with_margin, factor) if rule else with_margin
    return UsageEstimate(
        resource=resource,
        bound=bound,
        percentile=share,
        base=base,
        with_margin=with_margin,
        confidence=trust,
        factor=factor,
        with_confidence=with_confidence,
        minimum=minimum,
        amount=max(with_confidence, minimum),
    )


def _settings(resource: str, bound: Bound, options: RecommenderOptions) -> tuple[float, int]:
    """The percentile of a bound, and the interval of its confidence."""
    if resource == CPU:
        shares = {
            Bound.LOWER: options.lower_bound_cpu_percentile,
            Bound.TARGET: options.target_cpu_percentile,
            Bound.UPPER: options.upper_bound_cpu_percentile,
        }
        return shares[bound], options.confidence_interval_cpu
    shares = {
        Bound.LOWER: options.lower_bound_memory_percentile,
        Bound.TARGET: options.target_memory_percentile,
        Bound.UPPER: options.upper_bound_memory_percentile,
    }
    return shares[bound], options.confidence_interval_memory


def _minutes(interval: int) -> float:
    whole, rest = divmod(interval, MINUTE)
    return float(whole) + float(rest) / float(MINUTE)


class VerticalCondition(msgspec.Struct, frozen=True):
    """A condition of the VerticalPodAutoscaler; ``since`` is its last transition."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""
    since: int = 0

    def to_dict(self) -> JsonObject:
        condition = {
            "type": self.type,
            "status": "True" if self.status else "False",
            "lastTransitionTime": format_time(self.since),
        }
        optional = {"reason": self.reason, "message": self.message}
        return condition | {name: text for name, text in optional.items() if text}


class Capping(msgspec.Struct, frozen=True):
    """A post-processor that changed an amount: ``integerCPU``, ``minAllowed``, ..."""

    resource: str
    bound: str
    by: str
    before: str
    after: str


class ContainerEstimates(msgspec.Struct, frozen=True):
    """One container: its estimates, and what became of them afterwards."""

    name: str
    estimates: tuple[UsageEstimate, ...]
    first_sample: int | None
    last_sample: int | None
    samples: int
    capped: tuple[Capping, ...] = ()

    def amounts(self, bound: Bound) -> dict[str, int]:
        """Amounts of the controlled resources, before rounding and capping."""
        return {each.resource: each.amount for each in self.estimates if each.bound is bound}

    def to_dict(self) -> JsonObject:
        return {
            "name": self.name,
            "samples": self.samples,
            "estimates": [each.to_dict() for each in self.estimates],
            "capped": [msgspec.to_builtins(each) for each in self.capped],
        }

    def explain(self) -> Iterator[str]:
        """Sentences for people, one for each estimate and each change after it."""
        for each in self.estimates:
            yield f"{self.name} {each.resource} {each.bound}: {_sentence(each)}"
        for change in self.capped:
            yield (
                f"{self.name} {change.resource} {change.bound}: {change.by} made "
                f"{change.after} of {change.before}"
            )


class Recommendation(msgspec.Struct, frozen=True):
    """What was recommended at ``time``: the list of the status, and how it came about.

    ``generation`` is that of the object by which it was made.
    """

    time: int
    containers: tuple[ContainerEstimates, ...]
    recommended: tuple[ContainerRecommendation, ...]
    conditions: tuple[VerticalCondition, ...]
    generation: int = 0

    def container(self, name: str) -> ContainerRecommendation | None:
        return next((each for each in self.recommended if each.container_name == name), None)

    def explain(self) -> list[str]:
        return [line for each in self.containers for line in each.explain()]

    def to_status(self) -> JsonObject:
        """The status of the VerticalPodAutoscaler."""
        status: JsonObject = {
            "conditions": [each.to_dict() for each in self.conditions],
            "observedGeneration": self.generation,
        }
        if self.recommended:
            status["recommendation"] = {
                "containerRecommendations": [each.to_dict() for each in self.recommended]
            }
        return status


def _sentence(each: UsageEstimate) -> str:
    unit = "m" if each.resource == CPU else " bytes"
    steps = [f"percentile {each.percentile:g} is {each.base}{unit}"]
    steps.append(f"with margin {each.with_margin}{unit}")
    if each.bound is not Bound.TARGET:
        scaled = "nothing" if each.with_confidence == NOT_A_NUMBER else each.with_confidence
        steps.append(
            f"times {each.factor:.6g} for confidence {each.confidence:.6g} is {scaled}"
            + ("" if scaled == "nothing" else unit)
        )
    if each.is_minimum:
        steps.append(f"raised to the minimum {each.minimum}{unit}")
    return ", ".join(steps)


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
