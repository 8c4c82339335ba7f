"""The autoscaler interface: the manual for whoever writes an autoscaler.

An autoscaler is asked through four callbacks, two of which tell it something (`event`, `stat`)
and two of which want an answer (`horizontal_recommendation`, `vertical_recommendation`). Messages
have the names, fields and units of the protobuf service ``proto.Plugin``, so that an autoscaler in
this process and one behind a socket are told the same. Times are nanoseconds of simulated time, CPU
is in millicores, memory in bytes, concurrency in thousandths of a request.

**Partitions.** One instance serves many runs. Every message names the partition of its run; what
was told in one never shows in another.

**The course of a run**, always in this order for one partition:

1. ``CREATE`` `Autoscaler` with the object's YAML. It may be refused by raising an error: the run
   then ends before it began.
2. ``CREATE`` / ``UPDATE`` / ``DELETE`` `Pod`, `stat`, and requests for recommendations, in order
   of time.
3. ``DELETE`` `Autoscaler` with the same type and YAML, also when the run failed. Forget the
   partition.

**Pods.** ``CREATE`` comes when the pod begins to start (state ``launching``; where the world does
not model that, ``active`` at once), ``UPDATE`` when it is ready (``active``), was resized in
place, or its container was killed for want of memory (``oomKilled``, until it is ``active`` again),
``DELETE`` when it stops taking requests. So the pods that exist are what
a Deployment's scale would say, and a pod is ready if it is ``active``. ``last_transition`` is when
it entered its state; the time of ``CREATE`` is its start. A world in faithful mode tells of pods
only while they are active and never sends ``UPDATE``, as Skenario did.

**Stats** come per pod, some seconds old: means over the time since the last one (in faithful mode
of one instant). They may come after the ``DELETE`` of their pod. A metric type that you do not know
is to be ignored, and so are the pod names ``RoutingStock`` and ``Service`` if you have no use for
them: the first tells of requests that no pod has (those that found none since the last
recommendation, or how many wait, in the mean since then), the second of the whole service. Stats of
type ``EXTERNAL_MILLIS`` have the name of a series from outside in place of a pod's.

**No closures over the world, no wall clock, no randomness of your own**: the same messages must get
the same answers. An error that you raise ends the run and is told with your type and the call.

::

    class Fixed(AutoscalerPlugin):
        types = ("fixed.example.com",)
        capabilities = frozenset({Capability.EVENT, Capability.HORIZONTAL_RECOMMENDATION})

        def horizontal_recommendation(
            self, request: HorizontalRecommendationRequest
        ) -> HorizontalRecommendationResponse:
            return HorizontalRecommendationResponse(rec=3, reason="always three")
"""

from enum import IntEnum, StrEnum
from typing import Any

import msgspec

from kubescene.struct_types import build

HPA_V1 = "hpa.v1.autoscaling.k8s.io"
HPA_V2 = "hpa.v2.autoscaling.k8s.io"
HPA_V2BETA2 = "hpa.v2beta2.autoscaling.k8s.io"
VPA_V1 = "vpa.v1.autoscaling.k8s.io"
VPA_V1BETA2 = "vpa.v1beta2.autoscaling.k8s.io"
HPA_TYPES = (HPA_V2BETA2, HPA_V2, HPA_V1)
VPA_TYPES = (VPA_V1, VPA_V1BETA2)
"""The types of the two autoscalers of Kubernetes; the first is the one that Skenario sends."""


class EventType(IntEnum):
    CREATE = 0
    UPDATE = 1
    DELETE = 2


class MetricType(IntEnum):
    """What a stat measures. Those after the second are ours; Skenario's plugins ignore them."""

    CPU_MILLIS = 0
    CONCURRENT_REQUESTS_MILLIS = 1
    MEMORY_BYTES = 2
    REQUESTS_PER_SECOND_MILLIS = 3
    QUEUE_LENGTH_MILLIS = 4
    LATENCY_P50_MILLIS = 5
    LATENCY_P95_MILLIS = 6
    LATENCY_P99_MILLIS = 7
    EXTERNAL_MILLIS = 8


CUSTOM_METRICS = {
    "concurrent_requests": MetricType.CONCURRENT_REQUESTS_MILLIS,
    "requests_per_second": MetricType.REQUESTS_PER_SECOND_MILLIS,
    "queue_length": MetricType.QUEUE_LENGTH_MILLIS,
    "latency_p50": MetricType.LATENCY_P50_MILLIS,
    "latency_p95": MetricType.LATENCY_P95_MILLIS,
    "latency_p99": MetricType.LATENCY_P99_MILLIS,
}
"""What a world measures of pods and of the whole service, by the names that HPAs use.

Values are in thousandths: of a request, of a request a second, of a second.
"""
SERVICE = "Service"
"""The pod name of stats that are about the whole service."""


class Capability(IntEnum):
    """Which callbacks an autoscaler wants to get."""

    EVENT = 0
    STAT = 1
    VERTICAL_RECOMMENDATION = 2
    HORIZONTAL_RECOMMENDATION = 3


class PodState(StrEnum):
    LAUNCHING = "launching"
    ACTIVE = "active"
    OOM_KILLED = "oomKilled"
    """Its container was killed for want of memory and starts again."""


class Autoscaler(msgspec.Struct, frozen=True):
    """The object that configures the autoscaler: opaque to the world."""

    type: str = ""
    yaml: str = ""


class Pod(msgspec.Struct, frozen=True):
    """A pod as far as the world tells of it. A ``DELETE`` may have the name only.

    ``cpu_request`` in millicores; ``memory_request`` in bytes, 0 where memory is not modelled.
    """

    name: str
    state: str = ""
    last_transition: int = 0
    cpu_request: int = 0
    memory_request: int = 0


class EventRequest(msgspec.Struct, frozen=True):
    """Something was created, changed or deleted: the autoscaler itself, or a pod."""

    partition: str
    time: int
    type: EventType
    object: Autoscaler | Pod


class Stat(msgspec.Struct, frozen=True):
    """One measurement. ``time`` is when it was taken, which is before it is told."""

    time: int
    pod_name: str
    type: MetricType
    value: int


class StatRequest(msgspec.Struct, frozen=True):
    partition: str
    stat: tuple[Stat, ...]


class HorizontalRecommendationRequest(msgspec.Struct, frozen=True):
    partition: str
    time_nanos: int


class HorizontalRecommendationResponse(msgspec.Struct, frozen=True):
    """How many pods there should be.

    ``reason`` is one sentence for people: which metric decided, what limited it. ``details`` is the
    same for programs, JSON only. Both may be empty.
    """

    rec: int
    reason: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class VerticalRecommendationRequest(msgspec.Struct, frozen=True):
    partition: str
    time_nanos: int


class RecommendedPodResources(msgspec.Struct, frozen=True):
    """Bounds and target of one resource: ``cpu`` in millicores, ``memory`` in bytes."""

    lower_bound: int
    upper_bound: int
    target: int
    resource_name: str


class VerticalRecommendationResponse(msgspec.Struct, frozen=True):
    """How large a pod should be, one entry for each resource; none: no opinion yet.

    ``evict`` names pods that the autoscaler itself wants to be evicted and created anew at the
    target, in this order. ``None`` leaves that to the world, which replaces every pod
    outside its bounds; an autoscaler with an updater of its own always answers with a list.
    ``resize`` names pods to be resized in place to the target. ``admit`` says whether pods that
    are made from now on get the target (update modes other than ``Off``).
    """

    rec: tuple[RecommendedPodResources, ...] = ()
    evict: tuple[str, ...] | None = None
    resize: tuple[str, ...] = ()
    admit: bool = True
    reason: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class AutoscalerPlugin:
    """What an autoscaler is. Subclass it, say what you are, and override what you can do.

    ``types`` are the types of `Autoscaler` objects that it takes; the first is its name on the
    wire. ``capabilities`` says which callbacks it gets; the others are never called.
    """

    types: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = frozenset()

    def event(self, request: EventRequest) -> None:
        """Something was created, changed or deleted."""

    def stat(self, request: StatRequest) -> None:
        """Measurements arrived."""

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        """How many pods there should be now."""
        raise NotImplementedError(f"{type(self).__name__} recommends no number of pods")

    def vertical_recommendation(
        self, request: VerticalRecommendationRequest
    ) -> VerticalRecommendationResponse:
        """How large a pod should be now."""
        raise NotImplementedError(f"{type(self).__name__} recommends no size of pods")

    def close(self) -> None:
        """Nobody will call any more; give back what you hold."""


build(RecommendedPodResources)
