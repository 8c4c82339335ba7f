"""HorizontalPodAutoscalers between autoscaling/v1 and v2.

Version 1 knows one metric: average CPU utilization. Everything else that version 2 can say travels
in annotations, so that a client of version 1 can write back what it read without loss. Version 2
never shows those annotations.
"""

from collections.abc import Callable
from typing import Any

import orjson

from kubescene.types import JsonObject, JsonValue

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_CARRIERS = frozenset(
    {
        METRICS,
        CURRENT_METRICS,
        CONDITIONS,
        BEHAVIOR,
        "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
        "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    }
)
DEFAULT_UTILIZATION = 80

_SOURCES = ("object", "pods", "resource", "containerResource", "external")
_SHARED_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SHARED_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")
_RULE_FIELDS = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY_FIELDS = ("type", "value", "periodSeconds")


def to_v1(autoscaler: JsonObject) -> JsonObject:
    """Version 2 as version 1 shows it."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    metrics = spec.get("metrics") or []
    carried: dict[str, JsonValue] = {
        METRICS: [_spec_to_v1(metric) for metric in metrics if not _is_cpu_target(metric)],
        CURRENT_METRICS: [_status_to_v1(metric) for metric in status.get("currentMetrics") or ()],
        BEHAVIOR: _behavior_to_v1(spec.get("behavior")),
        CONDITIONS: [_picked(it, _CONDITION_FIELDS) for it in status.get("conditions") or ()],
    }
    annotations = _own_annotations(autoscaler)
    annotations |= {name: _encode(value) for name, value in carried.items() if value}
    new_spec = _picked(spec, _SHARED_SPEC)
    targets = [metric for metric in metrics if _is_cpu_target(metric)]
    if targets:
        target = targets[0]["resource"]["target"]
        new_spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
    new_status: JsonObject = {"currentReplicas": 0, "desiredReplicas": 0}
    new_status |= _picked(status, _SHARED_STATUS)
    for metric in status.get("currentMetrics") or ():
        if (usage := _cpu_usage(metric)) is not None:
            new_status["currentCPUUtilizationPercentage"] = usage
    return _assembled(autoscaler, "autoscaling/v1", annotations, new_spec, new_status)


def to_v2(autoscaler: JsonObject) -> JsonObject:
    """Version 1, with what its annotations carry, as version 2."""
    carried = (autoscaler.get("metadata") or {}).get("annotations") or {}
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    metrics = [_spec_to_v2(metric) for metric in _decode(carried.get(METRICS), list)]
    if (utilization := spec.get("targetCPUUtilizationPercentage")) is not None:
        metrics.append(_cpu_target(utilization))
    new_spec = _picked(spec, _SHARED_SPEC)
    new_spec["metrics"] = metrics or [_cpu_target(DEFAULT_UTILIZATION)]
    if behavior := _behavior_to_v2(_decode(carried.get(BEHAVIOR), dict)):
        new_spec["behavior"] = behavior
    new_status: JsonObject = {"desiredReplicas": 0}
    new_status |= _picked(status, _SHARED_STATUS)
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)  # version 2 leaves a zero out, version 1 does not
    if current := _current_metrics(carried.get(CURRENT_METRICS), status):
        new_status["currentMetrics"] = current
    if conditions := _decode(carried.get(CONDITIONS), list):
        new_status["conditions"] = [_picked(it, _CONDITION_FIELDS) for it in conditions]
    return _assembled(
        autoscaler, "autoscaling/v2", _own_annotations(autoscaler), new_spec, new_status
    )


def _assembled(
    old: JsonObject,
    api_version: str,
    annotations: dict[str, str],
    spec: JsonObject,
    status: JsonObject,
) -> JsonObject:
    metadata = {k: v for k, v in (old.get("metadata") or {}).items() if k != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**old, "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status}


def _own_annotations(obj: JsonObject) -> dict[str, str]:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return {name: text for name, text in annotations.items() if name not in _CARRIERS}


def _picked(obj: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: obj[name] for name in names if obj.get(name) is not None}


def _encode(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


def _decode(text: str | None, kind: type) -> Any:
    """What an annotation holds; nothing if it holds no such thing."""
    try:
        value = orjson.loads(text or "null")
    except orjson.JSONDecodeError:
        return kind()
    return value if isinstance(value, kind) else kind()


# -- CPU utilization -----------------------------------------------------------------------


def _is_cpu_target(metric: JsonObject) -> bool:
    resource = metric.get("resource") or {}
    target = resource.get("target") or {}
    is_cpu = metric.get("type") == "Resource" and resource.get("name") == "cpu"
    return is_cpu and target.get("averageUtilization") is not None


def _cpu_target(utilization: int) -> JsonObject:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _cpu_usage(metric: JsonObject) -> JsonValue:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return (resource.get("current") or {}).get("averageUtilization")


def _current_metrics(carried: str | None, status: JsonObject) -> list[JsonObject]:
    if known := _decode(carried, list):
        return [_status_to_v2(metric) for metric in known]
    usage = status.get("currentCPUUtilizationPercentage")
    if usage is None:
        return []
    current = {"averageUtilization": usage}
    return [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]


# -- metrics -------------------------------------------------------------------------------

_Part = Callable[[JsonObject], JsonObject]


def _converted(metric: JsonObject, parts: dict[str, _Part]) -> JsonObject:
    result: JsonObject = {"type": metric.get("type", "")}
    for source in _SOURCES:
        if isinstance(metric.get(source), dict):
            result[source] = parts[source](metric[source])
    return result


def _spec_to_v1(metric: JsonObject) -> JsonObject:
    return _converted(metric, _SPEC_TO_V1)


def _spec_to_v2(metric: JsonObject) -> JsonObject:
    return _converted(metric, _SPEC_TO_V2)


def _status_to_v1(metric: JsonObject) -> JsonObject:
    return _converted(metric, _STATUS_TO_V1)


def _status_to_v2(metric: JsonObject) -> JsonObject:
    return _converted(metric, _STATUS_TO_V2)


def _present(**members: JsonValue) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


def _object_ref(ref: JsonObject) -> JsonObject:
    return _picked(ref, ("kind", "name", "apiVersion"))


def _identifier(name: JsonValue, selector: JsonValue) -> JsonObject:
    return _present(name=name, selector=selector)


def _object_to_v1(source: JsonObject) -> JsonObject:
    metric, target = source.get("metric") or {}, source.get("target") or {}
    return _present(
        target=_object_ref(source.get("describedObject") or {}),
        metricName=metric.get("name", ""),
        targetValue=target.get("value", "0"),
        selector=metric.get("selector"),
        averageValue=target.get("averageValue"),
    )


def _object_to_v2(source: JsonObject) -> JsonObject:
    value, average = source.get("targetValue"), source.get("averageValue")
    if average is not None and value in ("0", 0):
        value = None
    kind = "Value" if average is None else "AverageValue"
    return {
        "describedObject": _object_ref(source.get("target") or {}),
        "target": _present(type=kind, value=value, averageValue=average),
        "metric": _identifier(source.get("metricName"), source.get("selector")),
    }


def _pods_to_v1(source: JsonObject) -> JsonObject:
    metric, target = source.get("metric") or {}, source.get("target") or {}
    return _present(
        metricName=metric.get("name", ""),
        targetAverageValue=target.get("averageValue", "0"),
        selector=metric.get("selector"),
    )


def _pods_to_v2(source: JsonObject) -> JsonObject:
    average = source.get("targetAverageValue", "0")
    return {
        "metric": _identifier(source.get("metricName"), source.get("selector")),
        "target": {"type": "AverageValue", "averageValue": average},
    }


def _resource_to_v1(source: JsonObject) -> JsonObject:
    target = source.get("target") or {}
    return _present(
        name=source.get("name", ""),
        targetAverageUtilization=target.get("averageUtilization"),
        targetAverageValue=target.get("averageValue"),
        container=source.get("container"),
    )


def _resource_to_v2(source: JsonObject) -> JsonObject:
    utilization = source.get("targetAverageUtilization")
    kind = "AverageValue" if utilization is None else "Utilization"
    target = _present(
        type=kind,
        averageValue=source.get("targetAverageValue"),
        averageUtilization=utilization,
    )
    return _present(name=source.get("name", ""), target=target, container=source.get("container"))


def _external_to_v1(source: JsonObject) -> JsonObject:
    metric, target = source.get("metric") or {}, source.get("target") or {}
    return _present(
        metricName=metric.get("name", ""),
        metricSelector=metric.get("selector"),
        targetValue=target.get("value"),
        targetAverageValue=target.get("averageValue"),
    )


def _external_to_v2(source: JsonObject) -> JsonObject:
    value = source.get("targetValue")
    target = _present(
        type="AverageValue" if value is None else "Value",
        value=value,
        averageValue=source.get("targetAverageValue"),
    )
    return {
        "metric": _identifier(source.get("metricName"), source.get("metricSelector")),
        "target": target,
    }


def _object_status_to_v1(source: JsonObject) -> JsonObject:
    metric, current = source.get("metric") or {}, source.get("current") or {}
    return _present(
        target=_object_ref(source.get("describedObject") or {}),
        metricName=metric.get("name", ""),
        currentValue=current.get("value", "0"),
        selector=metric.get("selector"),
        averageValue=current.get("averageValue"),
    )


def _object_status_to_v2(source: JsonObject) -> JsonObject:
    current = _present(
        value=source.get("currentValue", "0"), averageValue=source.get("averageValue")
    )
    return {
        "metric": _identifier(source.get("metricName"), source.get("selector")),
        "current": current,
        "describedObject": _object_ref(source.get("target") or {}),
    }


def _pods_status_to_v1(source: JsonObject) -> JsonObject:
    metric, current = source.get("metric") or {}, source.get("current") or {}
    return _present(
        metricName=metric.get("name", ""),
        currentAverageValue=current.get("averageValue", "0"),
        selector=metric.get("selector"),
    )


def _pods_status_to_v2(source: JsonObject) -> JsonObject:
    return {
        "metric": _identifier(source.get("metricName"), source.get("selector")),
        "current": {"averageValue": source.get("currentAverageValue", "0")},
    }


def _resource_status_to_v1(source: JsonObject) -> JsonObject:
    current = source.get("current") or {}
    return _present(
        name=source.get("name", ""),
        currentAverageUtilization=current.get("averageUtilization"),
        currentAverageValue=current.get("averageValue", "0"),
        container=source.get("container"),
    )


def _resource_status_to_v2(source: JsonObject) -> JsonObject:
    current = _present(
        averageValue=source.get("currentAverageValue", "0"),
        averageUtilization=source.get("currentAverageUtilization"),
    )
    return _present(name=source.get("name", ""), current=current, container=source.get("container"))


def _external_status_to_v1(source: JsonObject) -> JsonObject:
    metric, current = source.get("metric") or {}, source.get("current") or {}
    return _present(
        metricName=metric.get("name", ""),
        metricSelector=metric.get("selector"),
        currentValue=current.get("value", "0"),
        currentAverageValue=current.get("averageValue"),
    )


def _external_status_to_v2(source: JsonObject) -> JsonObject:
    current = _present(
        value=source.get("currentValue", "0"), averageValue=source.get("currentAverageValue")
    )
    return {
        "metric": _identifier(source.get("metricName"), source.get("metricSelector")),
        "current": current,
    }


def _by_source(
    *, of_object: _Part, of_pods: _Part, of_resource: _Part, of_external: _Part
) -> dict[str, _Part]:
    return dict(
        zip(_SOURCES, (of_object, of_pods, of_resource, of_resource, of_external), strict=True)
    )


_SPEC_TO_V1 = _by_source(
    of_object=_object_to_v1,
    of_pods=_pods_to_v1,
    of_resource=_resource_to_v1,
    of_external=_external_to_v1,
)
_SPEC_TO_V2 = _by_source(
    of_object=_object_to_v2,
    of_pods=_pods_to_v2,
    of_resource=_resource_to_v2,
    of_external=_external_to_v2,
)
_STATUS_TO_V1 = _by_source(
    of_object=_object_status_to_v1,
    of_pods=_pods_status_to_v1,
    of_resource=_resource_status_to_v1,
    of_external=_external_status_to_v1,
)
_STATUS_TO_V2 = _by_source(
    of_object=_object_status_to_v2,
    of_pods=_pods_status_to_v2,
    of_resource=_resource_status_to_v2,
    of_external=_external_status_to_v2,
)


# -- behavior ------------------------------------------------------------------------------
# The annotation holds the server's inner form, whose members are spelled with capitals.


def _behavior_to_v1(behavior: JsonObject | None) -> JsonObject | None:
    if behavior is None:
        return None
    return {
        "ScaleUp": _rules_to_v1(behavior.get("scaleUp")),
        "ScaleDown": _rules_to_v1(behavior.get("scaleDown")),
    }


def _rules_to_v1(rules: JsonObject | None) -> JsonObject | None:
    if rules is None:
        return None
    shown = {_capital(name): rules.get(name) for name in _RULE_FIELDS}
    if rules.get("policies") is not None:
        shown["Policies"] = [
            {_capital(name): policy.get(name) for name in _POLICY_FIELDS}
            for policy in rules["policies"]
        ]
    return shown


def _behavior_to_v2(behavior: JsonObject) -> JsonObject:
    given = _small(behavior)
    return {
        name: _rules_to_v2(given[name])
        for name in ("scaleUp", "scaleDown")
        if isinstance(given.get(name), dict)
    }


def _rules_to_v2(rules: JsonObject) -> JsonObject:
    kept = _picked(_small(rules), _RULE_FIELDS)
    if "policies" in kept:
        kept["policies"] = [_picked(_small(it), _POLICY_FIELDS) for it in kept["policies"]]
    return kept


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _small(obj: JsonObject) -> JsonObject:
    return {name[:1].lower() + name[1:]: value for name, value in obj.items()}
