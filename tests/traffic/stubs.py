"""Autoscalers for tests: one that follows a script, and one that writes down what it is told."""

from collections.abc import Mapping

from kubescene.autoscalers import (
    AutoscalerPlugin,
    Capability,
    EventRequest,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    RecommendedPodResources,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
)
from kubescene.clock import SECOND

ALL = frozenset(Capability)
CPU = "cpu"


def cpu_between(lower: int, upper: int, target: int) -> VerticalRecommendationResponse:
    return VerticalRecommendationResponse((RecommendedPodResources(lower, upper, target, CPU),))


class Scripted(AutoscalerPlugin):
    """Recommends what a script says from each second on, and keeps all that it was told."""

    types = ("scripted.example.com",)
    capabilities = ALL

    def __init__(
        self,
        replicas: Mapping[int, int] | None = None,
        sizes: Mapping[int, VerticalRecommendationResponse] | None = None,
    ) -> None:
        self.replicas = replicas or {}
        self.sizes = sizes or {}
        self.events: list[EventRequest] = []
        self.stats: list[StatRequest] = []
        self.calls: list[tuple[str, int]] = []
        if not self.replicas:
            self.capabilities = self.capabilities - {Capability.HORIZONTAL_RECOMMENDATION}
        if not self.sizes:
            self.capabilities = self.capabilities - {Capability.VERTICAL_RECOMMENDATION}

    def event(self, request: EventRequest) -> None:
        self.events.append(request)
        self.calls.append((f"{request.type.name} {type(request.object).__name__}", request.time))

    def stat(self, request: StatRequest) -> None:
        self.stats.append(request)
        self.calls.append(("Stat", request.stat[0].time))

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        self.calls.append(("Horizontal", request.time_nanos))
        begun = [at for at in self.replicas if at * SECOND <= request.time_nanos]
        wanted = self.replicas[max(begun)] if begun else 0
        return HorizontalRecommendationResponse(wanted, "by the script")

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        self.calls.append(("Vertical", request.time_nanos))
        begun = [at for at in self.sizes if at * SECOND <= request.time_nanos]
        return self.sizes[max(begun)] if begun else VerticalRecommendationResponse()
