"""Between the version a client speaks and the one that is stored.

Most kinds have one version. Where several versions have the same fields (custom resources without a
webhook, beta and stable forms of a resource), only ``apiVersion`` changes. Two kinds really
differ: autoscaling/v1 is a narrow view of v2 that keeps the rest in annotations, and events of
events.k8s.io name the fields of core events anew.
"""

from collections.abc import Callable
from typing import Any

import orjson

from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.types import JsonObject

Conversion = Callable[[JsonObject], JsonObject]

HPA_V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
NEW_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")

METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS_ANNOTATION = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS_ANNOTATION = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR_ANNOTATION = "autoscaling.alpha.kubernetes.io/behavior"


def to_storage(obj: JsonObject, resource_type: ResourceType) -> JsonObject:
    """The object in the version that is stored; the same object if that is its own."""
    return _converted(obj, resource_type.gvk, resource_type.storage_gvk, _TO_STORAGE)


def from_storage(obj: JsonObject, resource_type: ResourceType) -> JsonObject:
    """A stored object in the version of ``resource_type``."""
    return _converted(obj, resource_type.gvk, resource_type.gvk, _FROM_STORAGE)


def _converted(
    obj: JsonObject,
    served: GroupVersionKind,
    wanted: GroupVersionKind,
    conversions: dict[GroupVersionKind, Conversion],
) -> JsonObject:
    if obj.get("apiVersion") == wanted.api_version:
        return obj
    convert = conversions.get(served)
    renamed = convert(obj) if convert else obj
    return {**renamed, "apiVersion": wanted.api_version}


# -- HorizontalPodAutoscaler ---------------------------------------------------------------------


def _hpa_to_v2(obj: JsonObject) -> JsonObject:
    metadata, annotations = _without_annotations(obj["metadata"])
    spec = dict(obj.get("spec") or {})
    metrics = _json(annotations.get(METRICS_ANNOTATION)) or []
    if (percent := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        metrics = [_cpu_metric(percent), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if behavior := _json(annotations.get(BEHAVIOR_ANNOTATION)):
        spec["behavior"] = behavior
    result = {**obj, "metadata": metadata, "spec": spec}
    if "status" in obj:
        result["status"] = _hpa_status_to_v2(obj["status"] or {}, annotations)
    return result


def _hpa_status_to_v2(status: JsonObject, annotations: JsonObject) -> JsonObject:
    result = dict(status)
    metrics = _json(annotations.get(CURRENT_METRICS_ANNOTATION)) or []
    if (percent := result.pop("currentCPUUtilizationPercentage", None)) is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": percent}}
        metrics = [{"type": "Resource", "resource": resource}, *metrics]
    if metrics:
        result["currentMetrics"] = metrics
    if conditions := _json(annotations.get(CONDITIONS_ANNOTATION)):
        result["conditions"] = conditions
    return result


def _hpa_to_v1(obj: JsonObject) -> JsonObject:
    metadata, _ = _without_annotations(obj["metadata"])
    spec, annotations = dict(obj.get("spec") or {}), {}
    percent, metrics = _split_cpu(spec.pop("metrics", None) or [], "target")
    if percent is not None:
        spec["targetCPUUtilizationPercentage"] = percent
    annotations[METRICS_ANNOTATION] = metrics
    annotations[BEHAVIOR_ANNOTATION] = spec.pop("behavior", None)
    status = dict(obj.get("status") or {})
    percent, metrics = _split_cpu(status.pop("currentMetrics", None) or [], "current")
    if percent is not None:
        status["currentCPUUtilizationPercentage"] = percent
    annotations[CURRENT_METRICS_ANNOTATION] = metrics
    annotations[CONDITIONS_ANNOTATION] = status.pop("conditions", None)
    metadata = _with_annotations(metadata, annotations)
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


def _cpu_metric(percent: int) -> JsonObject:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _split_cpu(metrics: list[JsonObject], side: str) -> tuple[int | None, list[JsonObject]]:
    """The utilization of the first CPU metric, and the metrics that v1 has no field for."""
    for position, metric in enumerate(metrics):
        resource = metric.get("resource") or {}
        percent = (resource.get(side) or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and percent:
            return percent, [*metrics[:position], *metrics[position + 1 :]]
    return None, metrics


_HPA_ANNOTATIONS = (
    METRICS_ANNOTATION,
    CURRENT_METRICS_ANNOTATION,
    CONDITIONS_ANNOTATION,
    BEHAVIOR_ANNOTATION,
)


def _without_annotations(metadata: JsonObject) -> tuple[JsonObject, JsonObject]:
    annotations = metadata.get("annotations") or {}
    kept = {k: v for k, v in annotations.items() if k not in _HPA_ANNOTATIONS}
    if len(kept) == len(annotations):
        return metadata, {}
    rest = {k: v for k, v in metadata.items() if k != "annotations"}
    return ({**rest, "annotations": kept} if kept else rest), annotations


def _with_annotations(metadata: JsonObject, values: JsonObject) -> JsonObject:
    written = {key: orjson.dumps(value).decode() for key, value in values.items() if value}
    if not written:
        return metadata
    return {**metadata, "annotations": {**metadata.get("annotations", {}), **written}}


def _json(text: Any) -> Any:
    try:
        return orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None


# -- Event ---------------------------------------------------------------------------------------

_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_CORE_EVENT_FIELDS = {core: new for new, core in _EVENT_FIELDS.items()}


def _event_to_core(obj: JsonObject) -> JsonObject:
    return {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}


def _event_from_core(obj: JsonObject) -> JsonObject:
    return {_CORE_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}


_TO_STORAGE: dict[GroupVersionKind, Conversion] = {
    HPA_V1: _hpa_to_v2,
    NEW_EVENT: _event_to_core,
}
_FROM_STORAGE: dict[GroupVersionKind, Conversion] = {
    HPA_V1: _hpa_to_v1,
    NEW_EVENT: _event_from_core,
}
