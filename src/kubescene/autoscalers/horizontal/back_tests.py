"""What an autoscaler would have done: recorded usage played to it, pass by pass.

A sample says what was used at an instant, under the keys of the autoscaler's metrics
(`usage_key`): ``cpu`` and ``memory`` are the sum over all pods, ``app/cpu`` is that of one
container, a Pods metric has its name and is a sum, too, Object and External metrics have their name
and are the value itself. Amounts are quantities or plain numbers: cores, bytes, units.

The load is taken to be the same whatever the count: the usage of a sample is spread evenly over
the pods that are ready. Pods follow the decisions: new ones are ready after ``startup``, the newest
go first. Between two samples the older one holds.

`RecordedMetrics` are answers of the metrics APIs as data. Of several series of one name the first
answers whose labels satisfy the metric's selector; a metric without a selector takes any. Where
there is none, the API does not know the metric.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from kubescene.api.selectors import from_label_selector
from kubescene.autoscalers.back_tests import (
    Amount,
    BackTestRow,
    FollowingPods,
    PodUsageSample,
    RecordedUsage,
    ReplicaBackTest,
    checked_usage,
    milli,
    passes,
    start_of,
)
from kubescene.autoscalers.horizontal.controller import DEFAULTS, HorizontalAutoscaler
from kubescene.autoscalers.horizontal.explanations import ScalingExplanation
from kubescene.autoscalers.horizontal.observations import (
    ContainerRequests,
    MetricsUnavailableError,
    Observation,
    ObservedScale,
    PodMetrics,
    PodRequests,
    PodValue,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.specs import HorizontalOptions, MetricSpec
from kubescene.durations import SECOND
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject, Nanoseconds


def usage_key(metric: MetricSpec) -> str:
    """Under which key a sample has the amount of a metric."""
    return f"{metric.container}/{metric.name}" if metric.container else metric.name


NO_RESOURCE_METRICS = "the server could not find the requested resource (get pods.metrics.k8s.io)"


class PodSeries(Struct, frozen=True):
    """A custom metric of pods. ``error``: the API fails with this text."""

    name: str
    items: tuple[PodValue, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class ObjectSeries(Struct, frozen=True):
    """A custom metric of one object, in thousandths."""

    name: str
    kind: str
    object: str
    value: int = 0
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class ExternalSeries(Struct, frozen=True):
    """An external metric, in thousandths."""

    name: str
    values: tuple[int, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


Series = TypeVar("Series", PodSeries, ObjectSeries, ExternalSeries)


class RecordedMetrics(Struct, frozen=True):
    """A `MetricsSource`. ``resource_metrics`` None: nobody serves metrics.k8s.io."""

    resource_metrics: tuple[PodMetrics, ...] | None = None
    resource_error: str = ""
    pod_series: tuple[PodSeries, ...] = ()
    object_series: tuple[ObjectSeries, ...] = ()
    external_series: tuple[ExternalSeries, ...] = ()

    def resource(self) -> tuple[PodMetrics, ...]:
        if self.resource_error:
            raise MetricsUnavailableError(self.resource_error)
        if self.resource_metrics is None:
            raise MetricsUnavailableError(NO_RESOURCE_METRICS)
        return self.resource_metrics

    def pods(self, metric: MetricSpec) -> tuple[PodValue, ...]:
        return _answer(self.pod_series, metric, " for pods").items

    def object(self, metric: MetricSpec, name: str) -> int:
        described = metric.source["describedObject"]
        kind, group = described["kind"], described.get("apiVersion", "").rpartition("/")[0]
        known = (each for each in self.object_series if (each.kind, each.object) == (kind, name))
        shown = f"{kind}.{group}" if group else kind
        return _answer(known, metric, f" for {shown} {name}").value

    def external(self, metric: MetricSpec) -> tuple[int, ...]:
        return _answer(self.external_series, metric, "").values


def _answer(series: Iterable[Series], metric: MetricSpec, of: str) -> Series:
    selector = None if metric.selector is None else from_label_selector(metric.selector)
    for each in series:
        if each.name == metric.name and (selector is None or selector.matches(each.labels)):
            if each.error:
                raise MetricsUnavailableError(each.error)
            return each
    raise MetricsUnavailableError(f"the server could not find the metric {metric.name}{of}")


SYNC_PERIOD = 15 * SECOND
"""How often the controller looks at an autoscaler."""

_LABELS = {"app": "back-test"}
_SELECTOR = "app=back-test"
_REST = "the-rest"


def back_test(
    hpa: JsonObject | str,
    samples: Iterable[PodUsageSample],
    *,
    requests: Mapping[str, Amount] | None = None,
    replicas: int | None = None,
    interval: Nanoseconds = SYNC_PERIOD,
    startup: Nanoseconds = 0,
    options: HorizontalOptions = DEFAULTS,
) -> ReplicaBackTest[ScalingExplanation]:
    """Play usage to an autoscaler from the first sample to the last, a pass every ``interval``.

    ``requests`` of a pod (``cpu``, or ``app/cpu`` for one container) are needed by utilization
    targets. ``replicas`` is the count at the start, by default what the first sample
    says there were, or the autoscaler's minimum. Raises
    `KubesceneError` for an autoscaler that an API server would refuse, and `ConfigurationError`
    with the name of the field for anything wrong with the rest.
    """
    autoscaler = HorizontalAutoscaler(hpa, options)
    usage = checked_usage(samples, map(usage_key, autoscaler.spec.metrics))
    start = start_of(usage, replicas, max(autoscaler.spec.minimum, 1))
    pods = FollowingPods(startup, start, usage[0].time)
    target = _ScaledTarget(autoscaler.spec.metrics, requests or {}, pods)
    rows = (_pass(autoscaler, target, now, seen) for now, seen in passes(usage, interval))
    return ReplicaBackTest(tuple(rows), interval)


def _pass(
    autoscaler: HorizontalAutoscaler,
    target: "_ScaledTarget",
    now: Nanoseconds,
    usage: RecordedUsage,
) -> BackTestRow[ScalingExplanation]:
    before, ready = len(target.following), target.following.ready(now)
    result = autoscaler.run(target.observed(usage, now), now)
    target.following.scale(result.desired, now)
    why = result.explanation
    return BackTestRow(
        now, before, ready, result.desired, why, why.proposal, result.error, usage.replicas
    )


class _ScaledTarget:
    """The scaled workload: pods that come and go, and the usage that they share."""

    def __init__(
        self,
        metrics: tuple[MetricSpec, ...],
        requests: Mapping[str, Amount],
        following: FollowingPods,
    ) -> None:
        self._metrics = metrics
        self._requests = _requests(metrics, requests)
        self.following = following

    def observed(self, usage: RecordedUsage, now: Nanoseconds) -> Observation:
        pods = tuple(self._pod(number, now) for number in range(len(self.following)))
        scale = ObservedScale(len(pods), _SELECTOR)
        return Observation(scale, pods, _SharedUsage(self._metrics, usage, pods, now))

    def _pod(self, number: int, now: Nanoseconds) -> ScaledPod:
        created, startup = self.following.created[number], self.following.startup
        ready = self.following.is_ready(number, now)
        return ScaledPod(
            name=f"pod-{number}",
            requests=self._requests,
            labels=_LABELS,
            phase="Running" if ready else "Pending",
            ready="True" if ready else "False",
            ready_since=created + startup if ready else created,
            started=created,
        )


class _SharedUsage:
    """A `MetricsSource`: one sample, spread over the ready pods."""

    def __init__(
        self,
        metrics: tuple[MetricSpec, ...],
        usage: RecordedUsage,
        pods: tuple[ScaledPod, ...],
        now: Nanoseconds,
    ) -> None:
        self._metrics = metrics
        self._amounts = usage.amounts
        self._ready = [pod.name for pod in pods if pod.phase == "Running"]
        self._now = now

    def resource(self) -> Iterable[PodMetrics]:
        containers = self._containers()
        shares = {
            (container, resource): _shares(amount, len(self._ready))
            for container, amounts in containers.items()
            for resource, amount in amounts.items()
        }
        for number, pod in enumerate(self._ready):
            usage = {
                container: {name: shares[container, name][number] for name in amounts}
                for container, amounts in containers.items()
            }
            yield PodMetrics(pod, usage, self._now)

    def _containers(self) -> dict[str, dict[str, int]]:
        """Usage by container; what named containers do not use is that of the rest."""
        resources = [each for each in self._metrics if each.type == "Resource"]
        named = [each for each in self._metrics if each.type == "ContainerResource"]
        names = dict.fromkeys([*(each.container for each in named), _REST])
        every = dict.fromkeys(each.name for each in (*resources, *named))
        containers = {name: dict.fromkeys(every, 0) for name in names}
        for each in named:
            containers[each.container][each.name] = self._amounts[usage_key(each)]
        for each in resources:
            known = sum(usage[each.name] for usage in containers.values())
            containers[_REST][each.name] = max(self._amounts[each.name] - known, 0)
        return containers

    def pods(self, metric: MetricSpec) -> Iterable[PodValue]:
        shares = _shares(self._amounts[metric.name], len(self._ready))
        for pod, share in zip(self._ready, shares, strict=True):
            yield PodValue(pod, share, self._now)

    def object(self, metric: MetricSpec, name: str) -> int:
        del name
        return self._amounts[metric.name]

    def external(self, metric: MetricSpec) -> Iterable[int]:
        return (self._amounts[metric.name],)


def _shares(amount: int, parts: int) -> list[int]:
    """An amount in parts as equal as whole thousandths allow; nothing is lost."""
    if not parts:
        return []
    share, rest = divmod(amount, parts)
    return [share + 1] * rest + [share] * (parts - rest)


def _requests(metrics: tuple[MetricSpec, ...], requests: Mapping[str, Amount]) -> PodRequests:
    for number, metric in enumerate(metrics):
        key = usage_key(metric)
        if metric.target.average_utilization is not None and key not in requests:
            raise ConfigurationError(
                f"requests.{key}: missing; spec.metrics[{number}] asks for a utilization, which "
                "is a share of what a pod requests"
            )
    amounts = {key: milli(amount, f"requests.{key}") for key, amount in requests.items()}
    for key, amount in amounts.items():
        if not amount:
            raise ConfigurationError(f"requests.{key}: must be more than zero")
    containers: dict[str, dict[str, int]] = {}
    for key, amount in amounts.items():
        container, _, resource = key.rpartition("/")
        containers.setdefault(container or _REST, {})[resource] = amount
    whole = {key: amount for key, amount in amounts.items() if "/" not in key}
    named = tuple(ContainerRequests(name, asked) for name, asked in containers.items())
    return PodRequests(named, whole if len(named) > 1 else None)
