"""Autoscalers, pods and metrics in a line each, for tests of horizontal autoscaling."""

from collections.abc import Sequence
from typing import Any

from kubescene.autoscalers.horizontal import (
    ExternalSeries,
    HorizontalAutoscaler,
    HorizontalOptions,
    ObjectSeries,
    Observation,
    ObservedScale,
    PodMetrics,
    PodRequests,
    RecordedMetrics,
    ReplicaRecommendation,
    Result,
    ScaledPod,
    ScalingHistory,
)
from kubescene.durations import SECOND
from kubescene.types import JsonObject

NOW = 10**6 * SECOND
SELECTOR = "app=web"


def utilization(target: int, resource: str = "cpu") -> JsonObject:
    source = {
        "name": resource,
        "target": {"type": "Utilization", "averageUtilization": target},
    }
    return {"type": "Resource", "resource": source}


def external(name: str, target: str) -> JsonObject:
    source = {"metric": {"name": name}, "target": {"type": "Value", "value": target}}
    return {"type": "External", "external": source}


def on_ingress(name: str, target: str) -> JsonObject:
    described = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "front"}
    source = {
        "describedObject": described,
        "metric": {"name": name},
        "target": {"type": "Value", "value": target},
    }
    return {"type": "Object", "object": source}


def hpa(*metrics: JsonObject, minimum: int = 1, maximum: int = 100, **spec: Any) -> JsonObject:
    """An autoscaling/v2 object."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": minimum,
            "maxReplicas": maximum,
            "metrics": list(metrics),
            **spec,
        },
    }


def pods(requests: Sequence[int]) -> tuple[ScaledPod, ...]:
    """Pods that have been ready for long, with these requests of cpu."""
    return tuple(
        ScaledPod(f"p{number}", PodRequests.single("app", {"cpu": request}), {"app": "web"})
        for number, request in enumerate(requests)
    )


def cpu(usage: Sequence[int | None]) -> tuple[PodMetrics, ...]:
    return tuple(
        PodMetrics(f"p{number}", {"app": {"cpu": used}}, NOW)
        for number, used in enumerate(usage)
        if used is not None
    )


def observed(
    replicas: int,
    usage: Sequence[int | None] = (),
    request: int | Sequence[int] = 1000,
    **metrics: Any,
) -> Observation:
    """A target whose pods use this much cpu; further series by keyword, such as ``rps=5000``."""
    count = len(usage) or replicas
    requests = [request] * count if isinstance(request, int) else request
    series = tuple(ExternalSeries(name, (value,)) for name, value in metrics.items())
    objects = tuple(
        ObjectSeries(name, "Ingress", "front", value) for name, value in metrics.items()
    )
    answers = RecordedMetrics(cpu(usage), object_series=objects, external_series=series)
    return Observation(ObservedScale(replicas, SELECTOR), pods(requests), answers)


def autoscaler(
    source: JsonObject, *recommendations: tuple[int, int], **options: Any
) -> HorizontalAutoscaler:
    """An autoscaler that remembers counts by their age in seconds."""
    new = HorizontalAutoscaler(source, HorizontalOptions(**options))
    new.history = ScalingHistory(
        tuple(ReplicaRecommendation(count, NOW - age * SECOND) for count, age in recommendations)
    )
    return new


def reasons(result: Result) -> dict[str, tuple[bool, str]]:
    """Conditions by type."""
    return {each.type: (each.status, each.reason) for each in result.status.conditions}
