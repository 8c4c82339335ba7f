"""How many recommendations a second an autoscaler gives, through the autoscaler interface.

    python bench/autoscalers.py [--quick] [NAME ...]

Each recommendation comes after new stats for every pod, so that nothing can be remembered; telling
them is not measured. Horizontal: cpu utilization and ``behavior`` with windows full of history.
Cost must be linear in pods: the last column is CPU time per pod.
"""

import sys
from collections.abc import Callable
from functools import partial

from kubescene.api.yaml_text import dump_yaml
from kubescene.autoscalers import (
    HPA_V2,
    Autoscaler,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    MetricType,
    Pod,
    PodState,
    Stat,
    StatRequest,
)
from kubescene.autoscalers.horizontal import HorizontalPlugin
from kubescene.clock import SECOND
from measuring import Figures, Span, alone, best_of, row, start

PODS = (10, 100, 1_000)
REPEAT = 5
HISTORY = 40
"""Recommendations that are within a window."""

HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10_000,
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            }
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 15 * HISTORY}},
    },
}


class Horizontal:
    """One run of the horizontal autoscaler, whose pods use what they should."""

    def __init__(self, pods: int) -> None:
        self._plugin = HorizontalPlugin()
        self._now = 3600 * SECOND
        self._names = [f"web-{number}" for number in range(pods)]
        self._event(Autoscaler(HPA_V2, dump_yaml(HPA)))
        for name in self._names:
            self._event(Pod(name, PodState.ACTIVE, 0, 1000))
        self.tell()
        self.ask(2 * HISTORY)

    def _event(self, obj: Autoscaler | Pod) -> None:
        self._plugin.event(EventRequest("1", 0, EventType.CREATE, obj))

    def tell(self) -> None:
        stats = (
            Stat(self._now, name, MetricType.CPU_MILLIS, 450 + number % 100)
            for number, name in enumerate(self._names)
        )
        self._plugin.stat(StatRequest("1", tuple(stats)))

    def ask(self, times: int) -> None:
        for _ in range(times):
            self._now += 15 * SECOND
            request = HorizontalRecommendationRequest("1", self._now)
            self._plugin.horizontal_recommendation(request)


AUTOSCALERS: dict[str, Callable[[int], Horizontal]] = {"horizontal": Horizontal}


def measure(autoscaler: str, pods: int, count: int) -> Figures:
    run = AUTOSCALERS[autoscaler](pods)
    return best_of(REPEAT, partial(run.ask, count))._asdict()


def main(quick: bool) -> None:
    named = [each for each in sys.argv[1:] if not each.startswith("-")]
    for name in named or AUTOSCALERS:
        for pods in PODS:
            count = (5_000 if quick else 50_000) // pods
            span = Span(**alone(__file__, autoscaler=name, pods=pods, count=count))
            each = f"{span.cpu_s / count / pods * 1e6:8.2f} us a pod"
            row(f"{name}, {pods:,} pods", f"{span.per(count)} {each}")


if __name__ == "__main__":
    start(measure, main)
