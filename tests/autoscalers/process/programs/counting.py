"""What the Go plugin of the tests does, in Python: one pod more, as large as the last cpu stat."""

from dataclasses import dataclass, field

from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    RecommendedPodResources,
    StatRequest,
    VerticalRecommendationRequest,
    VerticalRecommendationResponse,
    serve,
)


@dataclass
class Run:
    pods: set[str] = field(default_factory=set)
    cpu: int = 0


class Counting(AutoscalerPlugin):
    types = ("counting.example.com",)
    capabilities = frozenset(Capability)

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Autoscaler):
            if request.type is EventType.CREATE:
                self._runs[request.partition] = Run()
            else:
                del self._runs[request.partition]
        elif request.type is EventType.DELETE:
            self._runs[request.partition].pods.discard(request.object.name)
        else:
            self._runs[request.partition].pods.add(request.object.name)

    def stat(self, request: StatRequest) -> None:
        for each in request.stat:
            if each.type is MetricType.CPU_MILLIS:
                self._runs[request.partition].cpu = each.value

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        count = len(self._runs[request.partition].pods)
        return HorizontalRecommendationResponse(count + 1, f"{count} and one more")

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        cpu = self._runs[request.partition].cpu
        return VerticalRecommendationResponse(
            (RecommendedPodResources(cpu // 2, cpu * 2, cpu, "cpu"),)
        )


serve(Counting())
