"""The horizontal pod autoscaler of Kubernetes v1.36, as functions of what it sees.

`reconcile` is one pass: the object's spec, its status, an `Observation` (scale, pods, metrics), the
`ScalingHistory` and the time go in; the count, status, events, history and a `ScalingExplanation`
come out. `HorizontalAutoscaler` keeps status and history from pass to pass. `back_test` plays
recorded usage to an autoscaler. Nothing here reads a clock or changes what it is given.

::

    hpa = Path("hpa.yaml").read_text()
    usage = [PodUsageSample(minute * 60 * 10**9, {"cpu": cores}) for minute, cores in measured]
    test = back_test(hpa, usage, requests={"cpu": "500m"})
    for row in test.rows:
        print(row.replicas, row.desired, row.explanation)
"""

from kubescene.autoscalers.back_tests import BackTestRow, PodUsageSample, ReplicaBackTest
from kubescene.autoscalers.horizontal.back_tests import (
    ExternalSeries,
    ObjectSeries,
    PodSeries,
    RecordedMetrics,
    back_test,
)
from kubescene.autoscalers.horizontal.behavior import (
    ReplicaRecommendation,
    ScaleEvent,
    ScalingHistory,
)
from kubescene.autoscalers.horizontal.controller import (
    HorizontalAutoscaler,
    Result,
    ScalingDecision,
    complete,
    decide,
    reconcile,
)
from kubescene.autoscalers.horizontal.explanations import ScalingExplanation
from kubescene.autoscalers.horizontal.observations import (
    MetricsSource,
    MetricsUnavailableError,
    Observation,
    ObservedScale,
    OtherAutoscaler,
    PodMetrics,
    PodRequests,
    PodValue,
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
from kubescene.autoscalers.horizontal.statuses import Condition, HorizontalStatus, ScalingNotice

__all__ = [
    "BackTestRow",
    "Condition",
    "ExternalSeries",
    "HorizontalAutoscaler",
    "HorizontalOptions",
    "HorizontalPlugin",
    "HorizontalSpec",
    "HorizontalStatus",
    "MetricsSource",
    "MetricsUnavailableError",
    "ObjectSeries",
    "Observation",
    "ObservedScale",
    "OtherAutoscaler",
    "PodMetrics",
    "PodRequests",
    "PodSeries",
    "PodUsageSample",
    "PodValue",
    "RecordedMetrics",
    "ReplicaBackTest",
    "ReplicaRecommendation",
    "Result",
    "ScaleEvent",
    "ScaleFailure",
    "ScaledPod",
    "ScalingDecision",
    "ScalingExplanation",
    "ScalingHistory",
    "ScalingNotice",
    "accepted",
    "back_test",
    "compiled",
    "complete",
    "decide",
    "observed_pod",
    "reconcile",
]
