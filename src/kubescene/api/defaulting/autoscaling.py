"""Defaults of HorizontalPodAutoscaler.

A missing ``behavior`` stays missing: the controller has its own rules for that. Once it is there,
both directions are completed field by field; a list of policies is taken as it is.
"""

from kubescene.api.defaulting.resources import canonical_quantity
from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    within,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_SCALE_UP: JsonObject = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: JsonObject = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_CPU_UTILIZATION: JsonObject = {
    "type": "Resource",
    "resource": {
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80},
    },
}
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_V1_SPEC = {"minReplicas": 1}
_V1_CPU = {"targetCPUUtilizationPercentage": 80}
_SOURCES = ("resource", "containerResource", "pods", "object", "external")


def default_autoscaler(autoscaler: JsonObject) -> JsonObject:
    """An ``autoscaling/v2`` autoscaler: by cpu at 80 % unless it names metrics."""
    return into(autoscaler, "spec", _spec)


def default_autoscaler_v1(autoscaler: JsonObject) -> JsonObject:
    """An ``autoscaling/v1`` autoscaler; metrics it cannot express travel in an annotation."""
    annotations = (autoscaler.get("metadata") or {}).get("annotations") or {}
    defaults = _V1_SPEC if _METRICS in annotations else {**_V1_SPEC, **_V1_CPU}
    return into(autoscaler, "spec", lambda spec: filled_unset(spec, defaults))


def _spec(spec: JsonObject) -> JsonObject:
    spec = filled(filled_unset(spec, {"minReplicas": 1}), {"metrics": [_CPU_UTILIZATION]})
    return within(within_each(spec, "metrics", _metric), "behavior", _behavior)


def _behavior(behavior: JsonObject) -> JsonObject:
    behavior = into(behavior, "scaleUp", lambda rules: _rules(rules, _SCALE_UP))
    return into(behavior, "scaleDown", lambda rules: _rules(rules, _SCALE_DOWN))


def _rules(rules: JsonObject, defaults: JsonObject) -> JsonObject:
    return within(filled_unset(rules, defaults), "tolerance", canonical_quantity)


def _metric(metric: JsonObject) -> JsonObject:
    for source in _SOURCES:
        metric = at(metric, (source, "target"), _target)
    return metric


def _target(target: JsonObject) -> JsonObject:
    return within(within(target, "value", canonical_quantity), "averageValue", canonical_quantity)


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler"): default_autoscaler_v1,
    GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"): default_autoscaler,
}
