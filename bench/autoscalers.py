"""How many recommendations a second an autoscaler gives, and how many stats it takes.

    python bench/autoscalers.py [--quick] [NAME ...]

Through the autoscaler interface. Horizontal: cpu utilization and ``behavior`` with windows full of
history. Vertical: cpu and memory, the updater's rule, every pod looked at and explained.
Concurrency: windows full of stats. Cost must be linear in pods: the last column is CPU per pod.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.autoscalers import (
    HPA_V2,
    VPA_V1,
    Autoscaler,
    AutoscalerPlugin,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    MetricType,
    Pod,
    PodState,
    Stat,
    StatRequest,
    VerticalRecommendationRequest,
)
from kubescene.autoscalers.concurrency import TYPE as CONCURRENCY
from kubescene.autoscalers.concurrency import ConcurrencyPlugin
from kubescene.autoscalers.horizontal import HorizontalPlugin
from kubescene.autoscalers.vertical import VerticalPlugin
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


VPA = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}
CONCURRENCY_AUTOSCALER = {
    "apiVersion": "autoscaling.kubescene.dev/v1alpha1",
    "kind": "ConcurrencyAutoscaler",
    "metadata": {"name": "web"},
    "spec": {"targetConcurrency": 10},
}
BASE = {
    MetricType.CPU_MILLIS: 450,
    MetricType.MEMORY_BYTES: 600 << 20,
    MetricType.CONCURRENT_REQUESTS_MILLIS: 9_000,
}


class Run:
    """One run of an autoscaler whose pods use what they should."""

    metrics: tuple[MetricType, ...] = (MetricType.CPU_MILLIS,)

    def __init__(
        self, plugin: AutoscalerPlugin, kind: str, obj: Mapping[str, object], pods: int
    ) -> None:
        self.plugin = plugin
        self.now = 3600 * SECOND
        self._names = [f"web-{number}" for number in range(pods)]
        self._event(Autoscaler(kind, dump_yaml(obj)))
        for name in self._names:
            self._event(Pod(name, PodState.ACTIVE, 0, 1000, 1 << 30))
        self._requests = [self._stats() for _ in range(ROUNDS)]
        self.tell(ROUNDS)
        self.ask(2 * HISTORY)

    def _event(self, obj: Autoscaler | Pod) -> None:
        self.plugin.event(EventRequest("1", 0, EventType.CREATE, obj))

    def _stats(self) -> StatRequest:
        """New stats of all pods, made beforehand: making them is not measured."""
        self.now += 10 * SECOND
        stats = (
            Stat(self.now, name, metric, BASE[metric] + number % 100)
            for number, name in enumerate(self._names)
            for metric in self.metrics
        )
        return StatRequest("1", tuple(stats))

    def prepare(self, times: int) -> None:
        self._requests = [self._stats() for _ in range(times)]

    def tell(self, times: int) -> None:
        for request in self._requests[:times]:
            self.plugin.stat(request)

    def ask(self, times: int) -> None:
        for _ in range(times):
            self.now += 15 * SECOND
            self.recommend()

    def recommend(self) -> None:
        self.plugin.horizontal_recommendation(HorizontalRecommendationRequest("1", self.now))


class Vertical(Run):
    metrics = (MetricType.CPU_MILLIS, MetricType.MEMORY_BYTES)

    def recommend(self) -> None:
        self.plugin.vertical_recommendation(VerticalRecommendationRequest("1", self.now))


class Concurrency(Run):
    metrics = (MetricType.CONCURRENT_REQUESTS_MILLIS,)


ROUNDS = 6
AUTOSCALERS: dict[str, Callable[[int], Run]] = {
    "horizontal": lambda pods: Run(HorizontalPlugin(), HPA_V2, HPA, pods),
    "vertical": lambda pods: Vertical(VerticalPlugin(), VPA_V1, VPA, pods),
    "concurrency": lambda pods: Concurrency(
        ConcurrencyPlugin(), CONCURRENCY, CONCURRENCY_AUTOSCALER, pods
    ),
}


def measure(autoscaler: str, pods: int, count: int, verb: str) -> Figures:
    run = AUTOSCALERS[autoscaler](pods)
    if verb == "ask":
        return best_of(REPEAT, partial(run.ask, count))._asdict()
    spans = []
    for _ in range(REPEAT):
        run.prepare(count)
        spans.append(best_of(1, partial(run.tell, count)))
    return min(spans, key=lambda span: span.cpu_s)._asdict()


def main(quick: bool) -> None:
    named = [each for each in sys.argv[1:] if not each.startswith("-")]
    for name in named or AUTOSCALERS:
        for pods in PODS:
            count = (5_000 if quick else 50_000) // pods
            span = Span(**alone(__file__, autoscaler=name, pods=pods, count=count, verb="ask"))
            each = f"{span.cpu_s / count / pods * 1e6:8.2f} us a pod"
            row(f"{name}, {pods:,} pods", f"{span.per(count)} {each}")
        for pods in PODS:
            count = (5_000 if quick else 50_000) // pods
            span = Span(**alone(__file__, autoscaler=name, pods=pods, count=count, verb="tell"))
            stats = count * pods * (2 if name == "vertical" else 1)
            row(f"{name}, stats of {pods:,} pods", span.per(stats))


if __name__ == "__main__":
    start(measure, main)
