"""Autoscalers, and the interface by which a simulated world speaks with them.

`interfaces` is the author's manual: four callbacks and their messages. An autoscaler knows pods and
samples by name; it knows nothing of stores, registries or of the world that asks it.
"""

from kubescene.autoscalers.interfaces import (
    HPA_TYPES,
    HPA_V1,
    HPA_V2,
    HPA_V2BETA2,
    VPA_TYPES,
    VPA_V1,
    VPA_V1BETA2,
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    PodState,
    RecommendedPodResources,
    Stat,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)

__all__ = [
    "HPA_TYPES",
    "HPA_V1",
    "HPA_V2",
    "HPA_V2BETA2",
    "VPA_TYPES",
    "VPA_V1",
    "VPA_V1BETA2",
    "Autoscaler",
    "AutoscalerPlugin",
    "Capability",
    "EventRequest",
    "EventType",
    "HorizontalRecommendationRequest",
    "HorizontalRecommendationResponse",
    "MetricType",
    "Pod",
    "PodState",
    "RecommendedPodResources",
    "Stat",
    "StatRequest",
    "VerticalRecommendationRequest",
    "VerticalRecommendationResponse",
]
