"""HorizontalPodAutoscalers, in the v1 and the v2 form."""

from collections.abc import Callable

from kubescene.api.quantity import parse
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, STATUS, Path
from kubescene.api.validation.metadata import (
    NOT_NEGATIVE,
    NOT_POSITIVE,
    check_not_negative,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_label, dns_subdomain, path_segment
from kubescene.api.validation.resources import ZERO, check_container_resource_name
from kubescene.types import JsonObject

_MAX_PERIOD_S = 1800
_MAX_WINDOW_S = 3600
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_RAW_OR_UTILIZATION = "must set either a target raw value or a target utilization"
_NOT_BOTH = "may not set both a target raw value and a target utilization"


def validate_autoscaler(
    autoscaler: JsonObject, errors: ErrorList, *, scale_to_zero: bool = False
) -> None:
    """``scale_to_zero`` is the gate HPAScaleToZero."""
    validate_metadata(
        autoscaler.get("metadata") or {}, errors, namespaced=True, name_rule=dns_subdomain
    )
    lowest = 0 if scale_to_zero else 1
    _check_spec(autoscaler.get("spec") or {}, None, errors, lowest)


def validate_autoscaler_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    before = old.get("spec") or {}
    # Scaling to zero is behind a gate, but who has it keeps it.
    lowest = 0 if before.get("minReplicas") == 0 else 1
    _check_spec(new.get("spec") or {}, before, errors, lowest)


def validate_autoscaler_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    counts = ("currentReplicas", "desiredReplicas")
    check_not_negative(new.get("status") or {}, counts, errors, STATUS)


def _check_spec(
    spec: JsonObject, before: JsonObject | None, errors: ErrorList, lowest: int
) -> None:
    low, high = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if low is not None and low < lowest:
        detail = f"must be greater than or equal to {lowest}"
        errors.invalid(SPEC.child("minReplicas"), low, detail)
    _check_maximum(low, high, errors, SPEC.child("maxReplicas"))
    _check_scale_target(spec, before, errors, SPEC.child("scaleTargetRef"))
    metrics = _metrics(spec)
    for position, metric in enumerate(metrics):
        _check_metric(metric, errors, SPEC.child("metrics").index(position))
    if low == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        errors.forbidden(
            SPEC.child("metrics"),
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas",
        )
    for field in ("scaleUp", "scaleDown"):
        if (rules := (spec.get("behavior") or {}).get(field)) is not None:
            _check_rules(rules, errors, SPEC.child("behavior").child(field))


def _check_scale_target(
    spec: JsonObject, before: JsonObject | None, errors: ErrorList, path: Path
) -> None:
    target = spec.get("scaleTargetRef") or {}
    _check_reference(target, errors, path)
    kept = before is not None and all(
        target.get(field) == (before.get("scaleTargetRef") or {}).get(field)
        for field in ("apiVersion", "kind")
    )
    version = target.get("apiVersion", "")
    if kept:
        return
    if "/" not in version and target.get("kind") != "ReplicationController":
        errors.invalid(path.child("apiVersion"), version, "apiVersion must specify API group")
    _check_api_version(version, errors, path)


def _check_maximum(low: int | None, high: int, errors: ErrorList, at: Path) -> None:
    if high == 0:
        errors.required(at, "must be set and greater than 0")
    elif high < 0:
        errors.invalid(at, high, "must be greater than or equal to 1")
    if low is not None and high < low:
        errors.invalid(at, high, "must be greater than or equal to `minReplicas`")


def _metrics(spec: JsonObject) -> list[JsonObject]:
    """The metrics of a v2 object, or the one that the v1 form can say."""
    utilization = spec.get("targetCPUUtilizationPercentage")
    if utilization is None:
        return spec.get("metrics") or []
    target = {"type": "Utilization", "averageUtilization": utilization}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _check_reference(reference: JsonObject, errors: ErrorList, path: Path) -> None:
    for field in ("kind", "name"):
        if value := reference.get(field):
            errors.invalid_each(path.child(field), value, path_segment(value))
        else:
            errors.required(path.child(field))


def _check_api_version(version: str, errors: ErrorList, path: Path) -> None:
    if version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        errors.invalid(path.child("apiVersion"), version, detail)


def _check_metric(metric: JsonObject, errors: ErrorList, path: Path) -> None:
    kind = metric.get("type", "")
    if not kind:
        errors.required(path.child("type"), "must specify a metric source type")
    if kind not in _METRIC_TYPES:
        errors.not_supported(path.child("type"), kind, _METRIC_TYPES)
    given = [source for source in _SOURCES if metric.get(source) is not None]
    if given:
        _SOURCES[given[0]](metric[given[0]], errors, path.child(given[0]))
    expected = kind[:1].lower() + kind[1:]
    if kind not in _METRIC_TYPES:
        errors.not_supported(path.child("type"), kind, _METRIC_TYPES)
    elif metric.get(expected) is None:
        detail = "must populate information for the given metric source"
        errors.required(path.child(expected), detail)
    if len(given) > 1:
        for source in given:
            if source != expected:
                detail = "must populate the given metric source only"
                errors.forbidden(path.child(source), detail)


def _check_identifier(source: JsonObject, errors: ErrorList, path: Path) -> None:
    name, at = (source.get("metric") or {}).get("name", ""), path.child("metric").child("name")
    if name:
        errors.invalid_each(at, name, path_segment(name))
    else:
        errors.required(at, "must specify a metric name")


def _check_target(source: JsonObject, errors: ErrorList, path: Path) -> JsonObject:
    target: JsonObject = source.get("target") or {}
    at, kind = path.child("target"), target.get("type", "")
    if not kind:
        errors.required(at.child("type"), "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        detail = "must be either Utilization, Value, or AverageValue"
        errors.invalid(at.child("type"), kind, detail)
    for field in ("value", "averageValue"):
        amount = target.get(field)
        if amount is not None and parse(amount) <= ZERO:
            errors.invalid(at.child(field), str(parse(amount)), "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.invalid(at.child("averageUtilization"), utilization, "must be greater than 0")
    return target


def _check_object(source: JsonObject, errors: ErrorList, path: Path) -> None:
    described = source.get("describedObject") or {}
    at = path.child("describedObject")
    _check_reference(described, errors, at)
    _check_api_version(described.get("apiVersion", ""), errors, at)
    _check_identifier(source, errors, path)
    target = _check_target(source, errors, path)
    if target.get("value") is None and target.get("averageValue") is None:
        at = path.child("target").child("averageValue")
        errors.required(at, "must set either a target value or averageValue")


def _check_external(source: JsonObject, errors: ErrorList, path: Path) -> None:
    _check_identifier(source, errors, path)
    target = _check_target(source, errors, path)
    value, average = target.get("value"), target.get("averageValue")
    at = path.child("target")
    if value is None and average is None:
        detail = "must set either a target value for metric or a per-pod target"
        errors.required(at.child("averageValue"), detail)
    if value is not None and average is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.forbidden(at.child("value"), detail)


def _check_pods(source: JsonObject, errors: ErrorList, path: Path) -> None:
    _check_identifier(source, errors, path)
    if _check_target(source, errors, path).get("averageValue") is None:
        at = path.child("target").child("averageValue")
        errors.required(at, "must specify a positive target averageValue")


def _check_resource(source: JsonObject, errors: ErrorList, path: Path) -> None:
    if not source.get("name"):
        errors.required(path.child("name"), "must specify a resource name")
    _check_resource_target(source, errors, path)


def _check_container_resource(source: JsonObject, errors: ErrorList, path: Path) -> None:
    if name := source.get("name"):
        check_container_resource_name(name, errors, path.child("name"))
    else:
        errors.required(path.child("name"), "must specify a resource name")
    if container := source.get("container"):
        errors.invalid_each(path.child("container"), container, dns_label(container))
    else:
        errors.required(path.child("container"), "must specify a container")
    _check_resource_target(source, errors, path)


def _check_resource_target(source: JsonObject, errors: ErrorList, path: Path) -> None:
    target = _check_target(source, errors, path)
    utilization, average = target.get("averageUtilization"), target.get("averageValue")
    at = path.child("target")
    if utilization is None and average is None:
        errors.required(at.child("averageUtilization"), _RAW_OR_UTILIZATION)
    if utilization is not None and average is not None:
        errors.forbidden(at.child("averageValue"), _NOT_BOTH)


_SOURCES: dict[str, Callable[[JsonObject, ErrorList, Path], None]] = {
    "object": _check_object,
    "external": _check_external,
    "pods": _check_pods,
    "resource": _check_resource,
    "containerResource": _check_container_resource,
}


def _check_rules(rules: JsonObject, errors: ErrorList, path: Path) -> None:
    window, at = rules.get("stabilizationWindowSeconds"), path.child("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errors.invalid(at, window, "must be greater than or equal to zero")
    if window is not None and window > _MAX_WINDOW_S:
        errors.invalid(at, window, f"must be less than or equal to {_MAX_WINDOW_S}")
    select = rules.get("selectPolicy")
    if select is not None and select not in _SELECT_POLICIES:
        errors.not_supported(path.child("selectPolicy"), select, _SELECT_POLICIES)
    policies = rules.get("policies") or ()
    if not policies:
        errors.required(path.child("policies"), "must specify at least one Policy")
    for position, policy in enumerate(policies):
        _check_policy(policy, errors, path.child("policies").index(position))
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse(tolerance) < ZERO:
        errors.invalid(path.child("tolerance"), str(parse(tolerance)), NOT_NEGATIVE)


def _check_policy(policy: JsonObject, errors: ErrorList, path: Path) -> None:
    if policy.get("type") not in _POLICY_TYPES:
        errors.not_supported(path.child("type"), policy.get("type", ""), _POLICY_TYPES)
    for field in ("value", "periodSeconds"):
        if policy.get(field, 0) <= 0:
            errors.invalid(path.child(field), policy.get(field, 0), NOT_POSITIVE)
    if (period := policy.get("periodSeconds", 0)) > _MAX_PERIOD_S:
        detail = f"must be less than or equal to {_MAX_PERIOD_S}"
        errors.invalid(path.child("periodSeconds"), period, detail)
