"""An autoscaler in a process of its own: so many pods that each has a few requests in flight.

A template: replace `PerRequest` by yours. `serve` speaks with the host, `PerRequest` decides.
"""

from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    StatRequest,
    serve,
)

REQUESTS_PER_POD = 4


class PerRequest(AutoscalerPlugin):
    """Keeps, for each run, the requests in flight that every pod told of last."""

    types = ("per-request.example.com",)
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION}
    )

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, int]] = {}

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Autoscaler):
            self._begin_or_end(request)
        elif request.type is EventType.DELETE:
            self._runs[request.partition].pop(request.object.name, None)
        else:
            self._runs[request.partition].setdefault(request.object.name, 0)

    def _begin_or_end(self, request: EventRequest) -> None:
        if request.type is EventType.DELETE:
            del self._runs[request.partition]
        else:
            self._runs[request.partition] = {}

    def stat(self, request: StatRequest) -> None:
        pods = self._runs[request.partition]
        for each in request.stat:
            if each.type is MetricType.CONCURRENT_REQUESTS_MILLIS and each.pod_name in pods:
                pods[each.pod_name] = each.value

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        in_flight = sum(self._runs[request.partition].values())
        wanted = max(1, -(-in_flight // (1000 * REQUESTS_PER_POD)))
        return HorizontalRecommendationResponse(
            wanted, f"{in_flight / 1000:g} requests in flight, {REQUESTS_PER_POD} for each pod"
        )


def main() -> None:
    serve(PerRequest())


if __name__ == "__main__":
    main()
