"""A HorizontalPodAutoscaler's spec, read once into the units of the calculation.

The object has been accepted (`accepting`), so defaults are there and nothing is checked again.
"""

from typing import Any

from msgspec import Struct

from kubescene.api.quantity import milli_value, parse
from kubescene.autoscalers.horizontal.arithmetic import approximate
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.tolerances import Tolerances
from kubescene.clock.timestamps import SECOND
from kubescene.types import JsonObject, Nanoseconds

ZERO_CAPABLE = ("Object", "External")
"""Metrics that have a value without any pod, so that they can scale from and to zero."""

_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


class MetricTarget(Struct, frozen=True):
    """What a metric should be at; thousandths, and percent for the utilization."""

    type: str
    value: int | None = None
    average_value: int | None = None
    average_utilization: int | None = None


class MetricSpec(Struct, frozen=True):
    """One metric. ``name`` is the resource or the metric, ``source`` the part of the object."""

    type: str
    name: str
    target: MetricTarget
    source: JsonObject
    container: str = ""
    selector: JsonObject | None = None


class Policy(Struct, frozen=True):
    """At most ``value`` pods or percent within a period."""

    type: str
    value: int
    period: Nanoseconds

    def __str__(self) -> str:
        amount = f"{self.value} %" if self.type == "Percent" else f"{self.value} pods"
        return f"{amount} per {self.period // SECOND} s"


class ScalingRules(Struct, frozen=True):
    """How fast one direction may go. ``window`` None: as the controller is configured."""

    policies: tuple[Policy, ...]
    select: str
    window: Nanoseconds | None = None
    tolerance: float | None = None

    @property
    def longest_period(self) -> Nanoseconds:
        return max((policy.period for policy in self.policies), default=0)


class Behavior(Struct, frozen=True):
    scale_up: ScalingRules
    scale_down: ScalingRules


class HorizontalSpec(Struct, frozen=True):
    """The spec of an autoscaler; ``kind``, ``target`` and the object's name are for texts."""

    name: str
    namespace: str
    kind: str
    target: str
    minimum: int
    maximum: int
    metrics: tuple[MetricSpec, ...]
    behavior: Behavior | None = None

    @property
    def reference(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.target}"

    @property
    def can_be_zero(self) -> bool:
        return any(metric.type in ZERO_CAPABLE for metric in self.metrics)

    def tolerances(self, options: HorizontalOptions) -> Tolerances:
        """The object's own where it has them, else the controller's."""
        if self.behavior is None or not options.configurable_tolerance:
            return Tolerances(options.tolerance, options.tolerance)
        down, up = self.behavior.scale_down.tolerance, self.behavior.scale_up.tolerance
        return Tolerances(
            options.tolerance if down is None else down,
            options.tolerance if up is None else up,
        )


def compiled(autoscaler: JsonObject) -> HorizontalSpec:
    """The spec of an accepted autoscaling/v2 object."""
    metadata, spec = autoscaler["metadata"], autoscaler["spec"]
    target = spec["scaleTargetRef"]
    return HorizontalSpec(
        name=metadata["name"],
        namespace=metadata.get("namespace") or "default",
        kind=target["kind"],
        target=target["name"],
        minimum=spec["minReplicas"],
        maximum=spec["maxReplicas"],
        metrics=tuple(map(_metric, spec["metrics"])),
        behavior=_behavior(spec.get("behavior")),
    )


def _metric(metric: JsonObject) -> MetricSpec:
    source = metric[_SOURCES[metric["type"]]]
    identifier = source.get("metric") or {}
    return MetricSpec(
        type=metric["type"],
        name=source.get("name") or identifier.get("name", ""),
        target=_target(source["target"]),
        source=source,
        container=source.get("container", ""),
        selector=identifier.get("selector"),
    )


def _target(target: JsonObject) -> MetricTarget:
    return MetricTarget(
        target["type"],
        value=_milli(target.get("value")),
        average_value=_milli(target.get("averageValue")),
        average_utilization=target.get("averageUtilization"),
    )


def _milli(quantity: Any) -> int | None:
    return None if quantity is None else milli_value(quantity)


def _behavior(behavior: JsonObject | None) -> Behavior | None:
    if behavior is None:
        return None
    return Behavior(_rules(behavior["scaleUp"]), _rules(behavior["scaleDown"]))


def _rules(rules: JsonObject) -> ScalingRules:
    window, tolerance = rules.get("stabilizationWindowSeconds"), rules.get("tolerance")
    policies = (
        Policy(each["type"], each["value"], each["periodSeconds"] * SECOND)
        for each in rules.get("policies") or ()
    )
    return ScalingRules(
        tuple(policies),
        rules["selectPolicy"],
        window=None if window is None else window * SECOND,
        tolerance=None if tolerance is None else approximate(parse(tolerance)),
    )
