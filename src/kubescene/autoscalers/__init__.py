"""Autoscalers, and the interface by which a simulated world speaks with them.

`interfaces` is the author's manual: four callbacks and their messages. An autoscaler knows pods and
samples by name; it knows nothing of stores, registries or of the world that asks it.
`ProcessAutoscaler` and `serve` are the two sides of one in another process (``process``).
"""

from typing import TYPE_CHECKING

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
from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.autoscalers.process.host import ProcessAutoscaler
    from kubescene.autoscalers.process.server import serve

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
    "ProcessAutoscaler",
    "RecommendedPodResources",
    "Stat",
    "StatRequest",
    "VerticalRecommendationRequest",
    "VerticalRecommendationResponse",
    "serve",
]

_HOMES = {
    "ProcessAutoscaler": "process.host",
    "serve": "process.server",
}

# Loaded on first use: they need gRPC, which is large and an extra.
__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
