"""The horizontal pod autoscaler of Kubernetes v1.36, as functions of what it sees.

`reconcile` is one pass: the object's spec, its status, an `Observation` (scale, pods, metrics), the
`History` and the time go in; the count, status, events, history and an `Explanation` come out.
`HorizontalAutoscaler` keeps status and history from pass to pass. `back_test` plays recorded usage
to an autoscaler. Nothing here reads a clock or changes what it is given.

::

    hpa = Path("hpa.yaml").read_text()
    usage = [UsageSample(minute * 60 * 10**9, {"cpu": cores}) for minute, cores in measured]
    test = back_test(hpa, usage, requests={"cpu": "500m"})
    for row in test.rows:
        print(row.replicas, row.desired, row.explanation)
"""

from kubescene.autoscalers.horizontal.back_tests import (
    BackTest,
    BackTestRow,
    ExternalSeries,
    ObjectSeries,
    PodSeries,
    RecordedMetrics,
    UsageSample,
    back_test,
)
from kubescene.autoscalers.horizontal.behavior import History, Recommendation, ScaleEvent
from kubescene.autoscalers.horizontal.controller import (
    Decision,
    HorizontalAutoscaler,
    Result,
    complete,
    decide,
    reconcile,
)
from kubescene.autoscalers.horizontal.explanations import Explanation
from kubescene.autoscalers.horizontal.observations import (
    MetricsSource,
    MetricsUnavailableError,
    Observation,
    OtherAutoscaler,
    PodMetrics,
    PodRequests,
    PodValue,
    Scale,
    ScaledPod,
    ScaleFailure,
    observed_pod,
)
from kubescene.autoscalers.horizontal.plugin import HorizontalPlugin
from kubescene.autoscalers.horizontal.specs import (
    HorizontalOptions,
    HorizontalSpec,
    accepted,
    compiled,
)
from kubescene.autoscalers.horizontal.statuses import Condition, HorizontalStatus, Notice

__all__ = [
    "BackTest",
    "BackTestRow",
    "Condition",
    "Decision",
    "Explanation",
    "ExternalSeries",
    "History",
    "HorizontalAutoscaler",
    "HorizontalOptions",
    "HorizontalPlugin",
    "HorizontalSpec",
    "HorizontalStatus",
    "MetricsSource",
    "MetricsUnavailableError",
    "Notice",
    "ObjectSeries",
    "Observation",
    "OtherAutoscaler",
    "PodMetrics",
    "PodRequests",
    "PodSeries",
    "PodValue",
    "Recommendation",
    "RecordedMetrics",
    "Result",
    "Scale",
    "ScaleEvent",
    "ScaleFailure",
    "ScaledPod",
    "UsageSample",
    "accepted",
    "back_test",
    "compiled",
    "complete",
    "decide",
    "observed_pod",
    "reconcile",
]
