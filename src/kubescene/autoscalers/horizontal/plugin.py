"""The HPA behind the autoscaler interface: events and stats in, recommendations out.

Of a world that knows pods, cpu, memory and requests, it makes what a controller sees: a target
whose scale is what was recommended last, pods, and the answers of the metrics APIs. Served are
Resource and ContainerResource metrics of cpu and memory; as Pods metrics of each pod, and as Object
and External metrics of the whole service, those of `CUSTOM_METRICS`; and External ones that the run
has series of. An autoscaler that asks for others is refused when it is created, by the field that
does.

``faithful`` repeats what Skenario's plugin did where that differs: the scale is the number of
pods, a pod without stats uses nothing, memory is 1 MiB, and pods count from their first moment on.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from kubescene.autoscalers.horizontal.controller import (
    HorizontalAutoscaler,
    Prepared,
    Result,
    prepared,
)
from kubescene.autoscalers.horizontal.observations import (
    MetricsUnavailableError,
    Observation,
    ObservedScale,
    PodMetrics,
    PodRequests,
    PodValue,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.specs import KIND, HorizontalOptions, MetricSpec, parsed
from kubescene.autoscalers.interfaces import (
    CUSTOM_METRICS,
    HPA_TYPES,
    HPA_V1,
    HPA_V2,
    HPA_V2BETA2,
    SERVICE,
    Autoscaler,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    Pod,
    PodState,
    Stat,
)
from kubescene.autoscalers.partitioned import PartitionedPlugin
from kubescene.durations import MINUTE, SECOND
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject, Nanoseconds

CONTAINER = "container"
CONCURRENCY = "concurrent_requests"
RESOURCES = ("cpu", "memory")
MOST_KEPT = 16_384
"""Objects whose text is longer are read again each time."""

_VERSIONS = {
    HPA_V1: "autoscaling/v1",
    HPA_V2: "autoscaling/v2",
    HPA_V2BETA2: "autoscaling/v2beta2",
}


class ServedMetrics(Struct, frozen=True):
    """What a world measures: of pods, of the whole service, and series from outside."""

    resources: Sequence[str] = RESOURCES
    pods: Sequence[str] = tuple(CUSTOM_METRICS)
    service: Sequence[str] = tuple(CUSTOM_METRICS)
    external: Sequence[str] = ()

    def names(self, type: str) -> list[str]:
        """Of the metrics of a type that is none of resources."""
        return {
            "Pods": [*self.pods],
            "Object": [*self.service],
            "External": [*self.service, *self.external],
        }[type]


def created(
    autoscaler: Autoscaler, options: HorizontalOptions, served: ServedMetrics
) -> HorizontalAutoscaler:
    """The autoscaler that an object asks for; ``served`` is what the world measures."""
    if autoscaler.type not in _VERSIONS:
        known = ", ".join(_VERSIONS)
        raise ConfigurationError(f"type {autoscaler.type!r} is none of {known}")
    short = len(autoscaler.yaml) <= MOST_KEPT
    ready = (_prepared if short else _prepared.__wrapped__)(autoscaler, options)
    for number, metric in enumerate(ready.spec.metrics):
        _check_served(metric, served, f"spec.metrics[{number}]")
    return HorizontalAutoscaler(ready, options)


@lru_cache(maxsize=64)
def _prepared(autoscaler: Autoscaler, options: HorizontalOptions) -> Prepared:
    """Kept, because a server or a sweep runs the same object many times."""
    return prepared(_completed(autoscaler), options)


def _completed(autoscaler: Autoscaler) -> JsonObject:
    """The object, with version, kind and name where they were left out: only the type matters."""
    obj = parsed(autoscaler.yaml)
    metadata = {"name": "hpa", **(obj.get("metadata") or {})}
    version = _VERSIONS[autoscaler.type]
    return {"apiVersion": version, "kind": KIND, **obj, "metadata": metadata}


def _check_served(metric: MetricSpec, served: ServedMetrics, path: str) -> None:
    source = metric.type[0].lower() + metric.type[1:]
    if metric.type in ("Resource", "ContainerResource"):
        if metric.name not in served.resources:
            raise ConfigurationError(
                f"{path}.{source}.name: {metric.name!r} is not measured here, only "
                f"{' and '.join(served.resources)}"
            )
        if metric.container not in ("", CONTAINER):
            raise ConfigurationError(
                f"{path}.{source}.container: pods have one container, {CONTAINER!r}, "
                f"not {metric.container!r}"
            )
        return
    known = served.names(metric.type)
    if not known:
        raise ConfigurationError(f"{path}.type: {metric.type} metrics are not measured here")
    if metric.name not in known:
        told = f"{metric.name!r} is not measured here: there are {', '.join(known)}"
        if metric.type == "External":
            told += "; spec.metrics.external of the run has series of others"
        raise ConfigurationError(f"{path}.{source}.metric.name: {told}")
    if metric.selector is not None:
        raise ConfigurationError(
            f"{path}.{source}.metric.selector: metrics here have no labels: leave it out"
        )


_LABELS = {"key": "value"}
_SELECTOR = "key=value"
_KNOWN = frozenset(MetricType)
_OF_RESOURCES = frozenset({MetricType.CPU_MILLIS, MetricType.MEMORY_BYTES})
_METERED = frozenset({MetricType.CONCURRENT_REQUESTS_MILLIS, MetricType.REQUESTS_PER_SECOND_MILLIS})
"""Each pod has a meter of its own for these, with its own times."""
_ONE_MEBIBYTE = 1024 * 1024 * 1000
"""In thousandths of a byte."""


class HorizontalPartition:
    """What one run told, as the controller would see it."""

    def __init__(
        self, autoscaler: HorizontalAutoscaler, *, faithful: bool, stat_window: Nanoseconds
    ) -> None:
        self.autoscaler = autoscaler
        self._faithful = faithful
        self._stat_window = stat_window
        self._pods: dict[str, ScaledPod] = {}
        self._stats: dict[str, dict[MetricType, Stat]] = {}
        self._metrics: dict[str, PodMetrics] = {}
        self._unread: dict[str, None] = {}
        """Pods with stats that nobody asked for yet, in order."""
        self._requests: dict[tuple[int, int], PodRequests] = {}
        self._replicas: int | None = None
        self._service: dict[MetricType, Stat] = {}
        self._service_read = 0
        """When the whole service was read last."""
        self._external: dict[str, int] = {}

    def pod_event(self, request: EventRequest, pod: Pod) -> None:
        known = self._pods.get(pod.name)
        if request.type is EventType.CREATE:
            if known is not None:
                raise ConfigurationError(f"pod {pod.name!r} exists already")
            self._pods[pod.name] = self._observed(pod, request.time)
            self._unread[pod.name] = None
        elif known is None:
            raise ConfigurationError(f"there is no pod {pod.name!r}")
        elif request.type is EventType.UPDATE:
            self._pods[pod.name] = self._observed(pod, known.started or 0)
        else:
            del self._pods[pod.name]
            self._stats.pop(pod.name, None)
            self._metrics.pop(pod.name, None)
            self._unread.pop(pod.name, None)

    def _observed(self, pod: Pod, created: Nanoseconds) -> ScaledPod:
        launching = pod.state == PodState.LAUNCHING
        long_ago = -(10**18)
        return ScaledPod(
            name=pod.name,
            requests=self._shared_requests(pod),
            labels=_LABELS,
            phase="Pending" if launching else "Running",
            ready="False" if launching or pod.state == PodState.OOM_KILLED else "True",
            ready_since=long_ago if self._faithful else pod.last_transition,
            started=long_ago if self._faithful else created,
        )

    def _shared_requests(self, pod: Pod) -> PodRequests:
        """One value for all pods of a size; a request of 0 is none."""
        size = (pod.cpu_request, pod.memory_request)
        if size not in self._requests:
            amounts = {"cpu": pod.cpu_request, "memory": pod.memory_request * 1000}
            asked = {name: amount for name, amount in amounts.items() if amount}
            self._requests[size] = PodRequests.single(CONTAINER, asked)
        return self._requests[size]

    def stat(self, stat: Stat) -> None:
        """Only the latest of each kind, and none of pods that are gone."""
        if stat.type == MetricType.EXTERNAL_MILLIS:
            self._external[stat.pod_name] = stat.value
            return
        if stat.pod_name == SERVICE:
            if stat.time != self._service_read:
                self._service.clear()
            self._service_read = stat.time
            self._service[stat.type] = stat
            return
        if stat.pod_name not in self._pods or stat.type not in _KNOWN:
            return
        if stat.value < 0:
            raise ConfigurationError(
                f"stat {MetricType(stat.type).name} of pod {stat.pod_name!r} is negative: "
                f"{stat.value}"
            )
        self._stats.setdefault(stat.pod_name, {})[stat.type] = stat
        if stat.type in _OF_RESOURCES:
            self._unread[stat.pod_name] = None

    def recommend(self, now: Nanoseconds) -> Result:
        """One pass. The world does as recommended, so that is what the scale says next."""
        pods = tuple(self._pods.values())
        if self._replicas is None or self._faithful:
            self._replicas = len(pods)
        scale = ObservedScale(self._replicas, _SELECTOR, len(pods))
        metrics = _WorldMetrics(self)
        result = self.autoscaler.run(Observation(scale, pods, metrics), now)
        self._replicas = result.desired
        return result

    # -- metrics -----------------------------------------------------------------------------

    def _measure(self, pod: str) -> None:
        """What metrics.k8s.io says of a pod from now on."""
        stats = self._stats.get(pod) or {}
        cpu, memory = stats.get(MetricType.CPU_MILLIS), stats.get(MetricType.MEMORY_BYTES)
        usage = {} if cpu is None else {"cpu": cpu.value}
        if self._faithful:
            usage = {"cpu": 0, **usage, "memory": _ONE_MEBIBYTE}
        elif memory is not None:
            usage["memory"] = memory.value * 1000
        if usage:
            measured = 0 if cpu is None else cpu.time
            if memory is not None:
                measured = memory.time if cpu is None else min(measured, memory.time)
            item = PodMetrics(pod, {CONTAINER: usage}, measured, self._stat_window)
            self._metrics[pod] = item

    def resource_metrics(self) -> Iterable[PodMetrics]:
        """Made when somebody asks: stats come more often than that."""
        for pod in self._unread:
            self._measure(pod)
        self._unread.clear()
        return self._metrics.values()

    def pod_values(self, name: str) -> Iterable[PodValue]:
        """What pods have of a metric; one that is read with the service is of its last reading."""
        kind = CUSTOM_METRICS[name]
        own = kind in _METERED
        for pod in self._pods:
            stat = (self._stats.get(pod) or {}).get(kind)
            if stat is not None and (own or stat.time == self._service_read):
                yield PodValue(pod, stat.value, stat.time, self._stat_window)

    def service_value(self, name: str) -> int | None:
        """What the whole service, or a series from outside, has of a metric."""
        if name in self._external:
            return self._external[name]
        kind = CUSTOM_METRICS.get(name)
        stat = None if kind is None else self._service.get(kind)
        return None if stat is None else stat.value


class _WorldMetrics:
    """A `MetricsSource` over what one run told."""

    def __init__(self, partition: HorizontalPartition) -> None:
        self._partition = partition

    def resource(self) -> Iterable[PodMetrics]:
        return self._partition.resource_metrics()

    def pods(self, metric: MetricSpec) -> Iterable[PodValue]:
        return self._partition.pod_values(metric.name)

    def object(self, metric: MetricSpec, name: str) -> int:
        found = self._partition.service_value(metric.name)
        if found is None:
            raise MetricsUnavailableError(f"no metric {metric.name} of {name}")
        return found

    def external(self, metric: MetricSpec) -> Iterable[int]:
        found = self._partition.service_value(metric.name)
        return () if found is None else (found,)


PLUGIN_OPTIONS = HorizontalOptions(
    cpu_initialization_period=2 * MINUTE, initial_readiness_delay=10 * SECOND
)
"""The controller as Skenario's plugin configures it."""

STAT_WINDOW = 10 * SECOND
"""The span that one stat speaks of."""


class HorizontalPlugin(PartitionedPlugin[HorizontalPartition]):
    """Any number of runs, each in its partition.

    ``resources`` are what the world measures of pods, ``external`` names of series from outside.
    """

    types = HPA_TYPES
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION}
    )

    def __init__(
        self,
        options: HorizontalOptions = PLUGIN_OPTIONS,
        *,
        faithful: bool = False,
        stat_window: Nanoseconds = STAT_WINDOW,
        resources: Sequence[str] = RESOURCES,
        external: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._options = options
        self._served = ServedMetrics(resources, external=tuple(external))
        if faithful:
            self._served = ServedMetrics(resources, pods=(CONCURRENCY,), service=())
        self._faithful = faithful
        self._stat_window = stat_window

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        result = self._partition(request.partition).recommend(request.time_nanos)
        reason = result.explanation.why
        if result.error:
            reason = f"{reason} ({result.error})"
        details = result.explanation.to_dict()
        details["conditions"] = {each.type: each.reason for each in result.status.conditions}
        if result.error:
            details["error"] = result.error
        return HorizontalRecommendationResponse(result.desired, reason, details)

    def autoscaler(self, partition: str) -> HorizontalAutoscaler:
        """The autoscaler of a run, to look at its status and history."""
        return self._partition(partition).autoscaler

    def _created(self, autoscaler: Autoscaler) -> HorizontalPartition:
        new = created(autoscaler, self._options, self._served)
        return HorizontalPartition(new, faithful=self._faithful, stat_window=self._stat_window)
