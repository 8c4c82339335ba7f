"""From a history to an amount, step by step, each step kept for the explanation.

percentile of the histogram -> margin -> confidence factor (bounds only) -> minimum. Amounts are
cut to whole units after every step.
"""

from enum import StrEnum
from math import inf, isinf

import msgspec

from kubescene.autoscalers.exact_math import power
from kubescene.autoscalers.vertical.aggregates import Aggregate
from kubescene.autoscalers.vertical.amounts import (
    CPU,
    MEMORY,
    NOT_A_NUMBER,
    amount,
    cpu_amount,
    scaled,
)
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.clock import MINUTE
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


class Estimate(msgspec.Struct, frozen=True):
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
) -> Estimate:
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
    return Estimate(
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
