"""Rows of horizontal autoscalers and of scale subresources."""

from collections.abc import Callable

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    PrinterColumn,
    TableColumns,
    age,
    amount,
    dig,
    integer,
    name_of,
    shortened,
    text,
)
from kubescene.types import JsonObject, Nanoseconds

_SHOWN_METRICS = 2


def autoscaler_row(hpa: JsonObject, now: Nanoseconds) -> Cells:
    target = dig(hpa, "spec.scaleTargetRef", {})
    minimum = dig(hpa, "spec.minReplicas")
    return [
        name_of(hpa),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metric_targets(hpa),
        UNSET if minimum is None else str(minimum),
        dig(hpa, "spec.maxReplicas", 0),
        dig(hpa, "status.currentReplicas", 0),
        age(hpa, now),
    ]


def metric_targets(hpa: JsonObject) -> str:
    """``cpu: 80%/50%, 12/10 + 1 more...``: current value and target of each metric."""
    specs, statuses = _metrics(hpa)
    pairs = [
        _describe(spec, statuses[position] if position < len(statuses) else {})
        for position, spec in enumerate(specs)
    ]
    return shortened(pairs, _SHOWN_METRICS, ", ") or NONE


def _metrics(hpa: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    """Metrics of both versions: autoscaling/v1 knows the utilization of cpu only, 80% if unset."""
    if hpa.get("apiVersion") != "autoscaling/v1":
        return list(dig(hpa, "spec.metrics", ())), list(dig(hpa, "status.currentMetrics", ()))
    target = dig(hpa, "spec.targetCPUUtilizationPercentage", 80)
    current = dig(hpa, "status.currentCPUUtilizationPercentage")
    spec = {"name": "cpu", "target": {"averageUtilization": target}}
    status = {"name": "cpu", "current": {"averageUtilization": current}}
    return [{"type": "Resource", "resource": spec}], [{"type": "Resource", "resource": status}]


def _describe(spec: JsonObject, status: JsonObject) -> str:
    describe = _DESCRIBED.get(spec.get("type", ""))
    if describe is None:
        return "<unknown type>"
    source = spec["type"][0].lower() + spec["type"][1:]
    return describe(spec.get(source) or {}, dig(status, f"{source}.current", {}))


def _of_pods(metric: JsonObject, current: JsonObject) -> str:
    return f"{_value(current, 'averageValue')}/{amount(dig(metric, 'target.averageValue'))}"


def _of_object(metric: JsonObject, current: JsonObject) -> str:
    average = dig(metric, "target.averageValue")
    if average is not None:
        return f"{_value(current, 'averageValue')}/{amount(average)} (avg)"
    return f"{_value(current, 'value')}/{amount(dig(metric, 'target.value'))}"


def _of_resource(metric: JsonObject, current: JsonObject) -> str:
    average = dig(metric, "target.averageValue")
    if average is not None:
        return f"{metric.get('name')}: {_value(current, 'averageValue')}/{amount(average)}"
    used, wanted = current.get("averageUtilization"), dig(metric, "target.averageUtilization")
    shown = UNKNOWN if used is None else f"{used}%"
    return f"{metric.get('name')}: {shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _value(current: JsonObject, field: str) -> str:
    value = current.get(field)
    return UNKNOWN if value is None else amount(value)


_DESCRIBED: dict[str, Callable[[JsonObject, JsonObject], str]] = {
    "ContainerResource": _of_resource,
    "External": _of_object,
    "Object": _of_object,
    "Pods": _of_pods,
    "Resource": _of_resource,
}


def scale_row(scale: JsonObject, now: Nanoseconds) -> Cells:
    desired, available = dig(scale, "spec.replicas", 0), dig(scale, "status.replicas", 0)
    return [name_of(scale), desired, available, age(scale, now)]


_SPEC = "@autoscaling.v2.HorizontalPodAutoscalerSpec"

AUTOSCALER = TableColumns(
    (
        NAME,
        text("Reference", f"{_SPEC}.scaleTargetRef"),
        text("Targets", f"{_SPEC}.metrics"),
        text("MinPods", f"{_SPEC}.minReplicas"),
        text("MaxPods", f"{_SPEC}.maxReplicas"),
        text("Replicas", "@autoscaling.v2.HorizontalPodAutoscalerStatus.currentReplicas"),
        AGE,
    ),
    autoscaler_row,
)
SCALE = TableColumns(
    (
        PrinterColumn("Name", "@meta.v1.ObjectMeta.name"),
        integer("Desired", "@autoscaling.v1.ScaleSpec.replicas"),
        integer("Available", "@autoscaling.v1.ScaleStatus.replicas"),
        AGE,
    ),
    scale_row,
)
