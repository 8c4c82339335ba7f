"""What an autoscaler is set up with: the controller's flags, and the object's spec.

`accepted` reads objects as users write them, v1, v2beta2 or v2. What kube-apiserver would refuse is
refused, with its words and the path of the field. Unknown fields are refused, too: a misspelled
``stabilizationWindowSeconds`` would silently be another autoscaler. ``autoscaling/v2beta2`` is
served no more, but has the shape of v2.

`compiled` reads an accepted object into the units of the calculation: defaults are there, and
nothing is checked again.
"""

from typing import Any

from msgspec import Struct

from kubescene.api.builtin import builtin_scheme
from kubescene.api.conversion import autoscalers
from kubescene.api.defaulting import defaults
from kubescene.api.quantity import milli_value, parse
from kubescene.api.schemas import strict_decoding
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.text.reading import ReadingError
from kubescene.api.validation import raise_if_invalid
from kubescene.api.validation.autoscaling import validate_autoscaler
from kubescene.api.validation.field_errors import ErrorList
from kubescene.autoscalers.horizontal.arithmetic import approximate
from kubescene.durations import MINUTE, SECOND
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject, Nanoseconds


class HorizontalOptions(Struct, frozen=True):
    """Flags and feature gates with their defaults of v1.36; durations in nanoseconds."""

    tolerance: float = 0.1
    downscale_stabilization: Nanoseconds = 5 * MINUTE
    cpu_initialization_period: Nanoseconds = 5 * MINUTE
    initial_readiness_delay: Nanoseconds = 30 * SECOND
    scale_to_zero: bool = False
    """Gate HPAScaleToZero."""
    configurable_tolerance: bool = True
    """Gate HPAConfigurableTolerance."""
    pod_level_resources: bool = True
    """Gate PodLevelResources."""


class Tolerances(Struct, frozen=True):
    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        """Whether a ratio of usage and target is too close to 1 to act upon."""
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


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


KIND = "HorizontalPodAutoscaler"
V1 = "autoscaling/v1"
V2 = "autoscaling/v2"
VERSIONS = (V2, V1, "autoscaling/v2beta2")


def accepted(source: JsonObject | str, *, scale_to_zero: bool = False) -> JsonObject:
    """The autoscaling/v2 object that an API server would store.

    ``source`` is an object or the YAML or JSON text of one. Raises `ConfigurationError` for what
    is no autoscaler, `BadRequestError` for wrong types and unknown fields, `InvalidError` for wrong
    values.
    """
    obj = parsed(source) if isinstance(source, str) else source
    version, kind = _text(obj, "apiVersion"), _text(obj, "kind")
    if version not in VERSIONS or kind != KIND:
        given = f"{version or 'no apiVersion'}, {kind or 'no kind'}"
        raise ConfigurationError(f"not a {KIND} of {', '.join(VERSIONS)}: {given}")
    new = _decoded(obj, GroupVersionKind.of(V1 if version == V1 else V2, KIND))
    _validate(new, scale_to_zero=scale_to_zero)
    return new


def parsed(text: str) -> JsonObject:
    """The one object of a YAML or JSON text."""
    from kubescene.api.text.yaml_text import read_yaml

    try:
        documents = [each.value for each in read_yaml(text) if each.value is not None]
    except ReadingError as error:
        raise ConfigurationError(f"the autoscaler cannot be read: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigurationError(f"expected one {KIND} object, found {len(documents)} documents")
    return documents[0]


def _text(obj: Any, field: str) -> str:
    value = obj.get(field) if isinstance(obj, dict) else None
    return value if isinstance(value, str) else ""


def _decoded(obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
    new = defaults.drop_nulls({**obj, "apiVersion": gvk.api_version})
    strict_decoding.check_types(new, gvk)
    if unknown := strict_decoding.unknown_fields(new, gvk):
        raise strict_decoding.strict_error(gvk, [f'unknown field "{path}"' for path in unknown])
    new = defaults.apply_defaults(_in_namespace(new), gvk)
    if gvk.api_version == V1:
        v2 = GroupVersionKind.of(V2, KIND)
        new = defaults.apply_defaults(autoscalers.to_v2(new), v2)
    return new


def _in_namespace(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {"namespace": "default", **metadata}}


def _validate(obj: JsonObject, *, scale_to_zero: bool) -> None:
    errors = ErrorList()
    validate_autoscaler(obj, errors, scale_to_zero=scale_to_zero)
    name = obj["metadata"].get("name", "")
    raise_if_invalid(errors, builtin_scheme().of_kind(V2, KIND), name)
