"""One run of the HPA plugin: what a world told, as the controller would see it."""

from collections.abc import Iterable

from kubescene.autoscalers.horizontal.autoscaler import HorizontalAutoscaler
from kubescene.autoscalers.horizontal.observing import (
    MetricsUnavailableError,
    Observation,
    PodMetrics,
    PodValue,
    Scale,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.pod_requests import PodRequests
from kubescene.autoscalers.horizontal.reconciling import Result
from kubescene.autoscalers.horizontal.served_metrics import CONTAINER
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.autoscalers.interfaces import (
    EventRequest,
    EventType,
    MetricType,
    Pod,
    PodState,
    Stat,
)
from kubescene.errors import ConfigurationError
from kubescene.types import Nanoseconds

_LABELS = {"key": "value"}
_SELECTOR = "key=value"
_KNOWN = frozenset(MetricType)
_ONE_MEBIBYTE = 1024 * 1024 * 1000
"""In thousandths of a byte."""


class Partition:
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
        if stat.pod_name not in self._pods or stat.type not in _KNOWN:
            return
        if stat.value < 0:
            raise ConfigurationError(
                f"stat {MetricType(stat.type).name} of pod {stat.pod_name!r} is negative: "
                f"{stat.value}"
            )
        self._stats.setdefault(stat.pod_name, {})[stat.type] = stat
        if stat.type != MetricType.CONCURRENT_REQUESTS_MILLIS:
            self._unread[stat.pod_name] = None

    def recommend(self, now: Nanoseconds) -> Result:
        """One pass. The world does as recommended, so that is what the scale says next."""
        pods = tuple(self._pods.values())
        if self._replicas is None or self._faithful:
            self._replicas = len(pods)
        scale = Scale(self._replicas, _SELECTOR, len(pods))
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

    def concurrency(self) -> Iterable[PodValue]:
        for pod in self._pods:
            stats = self._stats.get(pod) or {}
            stat = stats.get(MetricType.CONCURRENT_REQUESTS_MILLIS)
            if stat is not None:
                yield PodValue(pod, stat.value, stat.time, self._stat_window)


class _WorldMetrics:
    """A `MetricsSource` over what one run told."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def resource(self) -> Iterable[PodMetrics]:
        return self._partition.resource_metrics()

    def pods(self, metric: MetricSpec) -> Iterable[PodValue]:
        del metric
        return self._partition.concurrency()

    def object(self, metric: MetricSpec, name: str) -> int:
        raise MetricsUnavailableError(f"no metric {metric.name} of {name}")

    def external(self, metric: MetricSpec) -> Iterable[int]:
        raise MetricsUnavailableError(f"no metric {metric.name}")
