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

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from kubescene.api.quantity import QuantityError, parse
from kubescene.api.selectors import from_label_selector
from kubescene.autoscalers.horizontal.controller import DEFAULTS, HorizontalAutoscaler, Result
from kubescene.autoscalers.horizontal.explanations import Explanation
from kubescene.autoscalers.horizontal.observations import (
    ContainerRequests,
    MetricsUnavailableError,
    Observation,
    PodMetrics,
    PodRequests,
    PodValue,
    Scale,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.specs import HorizontalOptions, HorizontalSpec, MetricSpec
from kubescene.durations import SECOND
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject, Nanoseconds

Amount: TypeAlias = str | int | float


class UsageSample(Struct, frozen=True):
    """What was used at ``time``. ``where`` it stands is for messages, such as ``FILE:LINE``."""

    time: Nanoseconds
    amounts: Mapping[str, Amount]
    where: str = ""


class RecordedUsage(Struct, frozen=True):
    """A checked sample: thousandths."""

    time: Nanoseconds
    amounts: Mapping[str, int]


def usage_key(metric: MetricSpec) -> str:
    """Under which key a sample has the amount of a metric."""
    return f"{metric.container}/{metric.name}" if metric.container else metric.name


def checked_usage(samples: Iterable[UsageSample], spec: HorizontalSpec) -> list[RecordedUsage]:
    """The samples in thousandths. `ConfigurationError` names the sample and the key at fault."""
    usage = list(_usage(samples, {usage_key(metric) for metric in spec.metrics}))
    if not usage:
        raise ConfigurationError("usage: there are no samples")
    return usage


def _usage(samples: Iterable[UsageSample], wanted: Iterable[str]) -> Iterator[RecordedUsage]:
    keys, last = sorted(wanted), None
    for number, sample in enumerate(samples):
        where = f"{sample.where}: " if sample.where else f"usage[{number}]."
        if last is not None and sample.time <= last:
            raise ConfigurationError(f"{where}time: {sample.time} does not follow {last}")
        last = sample.time
        if missing := next((key for key in keys if key not in sample.amounts), None):
            known = ", ".join(sorted(sample.amounts)) or "nothing"
            raise ConfigurationError(f"{where}{missing}: missing; the sample has {known}")
        yield RecordedUsage(
            sample.time, {key: milli(sample.amounts[key], f"{where}{key}") for key in keys}
        )


def milli(amount: Amount, where: str) -> int:
    """An amount in thousandths; ``where`` is its name for the error."""
    if isinstance(amount, float) and not math.isfinite(amount):
        raise ConfigurationError(f"{where}: {amount} is not a finite number")
    try:
        quantity = parse(amount)
    except QuantityError as error:
        raise ConfigurationError(f"{where}: {amount!r} is not an amount: {error}") from error
    if quantity.nanos < 0:
        raise ConfigurationError(f"{where}: {amount} is negative")
    return quantity.milli_value()


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

LONG_AGO = 10**18
"""Pods that are there at the start have been ready for longer than any window."""

MOST_PASSES = 1_000_000
"""Half a year at the usual interval; more than that is a mistake in the times."""

_LABELS = {"app": "back-test"}
_SELECTOR = "app=back-test"
_REST = "the-rest"


class BackTestRow(Struct, frozen=True):
    """One pass: counts before it, what it wanted, and why."""

    time: Nanoseconds
    replicas: int
    ready: int
    proposal: int | None
    desired: int
    explanation: Explanation
    error: str = ""


class BackTest(Struct, frozen=True):
    """All passes, and what they add up to."""

    rows: tuple[BackTestRow, ...]
    interval: Nanoseconds

    @property
    def highest(self) -> int:
        return max(row.desired for row in self.rows)

    @property
    def lowest(self) -> int:
        return min(row.desired for row in self.rows)

    @property
    def rescales(self) -> int:
        """How often the count was changed."""
        return sum(row.desired != row.replicas for row in self.rows)

    @property
    def reversals(self) -> int:
        """How often a change went against the one before it: flapping."""
        changes = [row.desired > row.replicas for row in self.rows if row.desired != row.replicas]
        return sum(before != after for before, after in pairwise(changes))

    @property
    def replica_seconds(self) -> float:
        """Replicas times how long they were there, until one interval after the last pass."""
        times = [row.time for row in self.rows]
        ends = [*times[1:], times[-1] + self.interval]
        spans = (end - time for time, end in zip(times, ends, strict=True))
        total = sum(row.desired * span for row, span in zip(self.rows, spans, strict=True))
        return total / SECOND


def back_test(
    hpa: JsonObject | str,
    samples: Iterable[UsageSample],
    *,
    requests: Mapping[str, Amount] | None = None,
    replicas: int | None = None,
    interval: Nanoseconds = SYNC_PERIOD,
    startup: Nanoseconds = 0,
    options: HorizontalOptions = DEFAULTS,
) -> BackTest:
    """Play usage to an autoscaler from the first sample to the last, a pass every ``interval``.

    ``requests`` of a pod (``cpu``, or ``app/cpu`` for one container) are needed by utilization
    targets. ``replicas`` is the count at the start, by default the autoscaler's minimum. Raises
    `KubesceneError` for an autoscaler that an API server would refuse, and `ConfigurationError`
    with the name of the field for anything wrong with the rest.
    """
    autoscaler = HorizontalAutoscaler(hpa, options)
    for name, value in (("interval", interval), ("startup", startup)):
        if value < (name == "interval"):
            raise ConfigurationError(f"{name}: {value} ns is too short")
    usage = checked_usage(samples, autoscaler.spec)
    passes = (usage[-1].time - usage[0].time) // interval + 1
    if passes > MOST_PASSES:
        raise ConfigurationError(
            f"usage: {passes:,} passes from the first sample to the last; are the times in "
            "nanoseconds? Else take a longer interval"
        )
    target = _ScaledTarget(autoscaler.spec.metrics, requests or {}, startup)
    start = max(autoscaler.spec.minimum, 1) if replicas is None else replicas
    if start < 0:
        raise ConfigurationError(f"replicas: {start} is negative")
    target.scale(start, usage[0].time - LONG_AGO)
    return BackTest(tuple(_rows(autoscaler, target, usage, interval)), interval)


def _rows(
    autoscaler: HorizontalAutoscaler,
    target: "_ScaledTarget",
    usage: list[RecordedUsage],
    interval: Nanoseconds,
) -> Iterable[BackTestRow]:
    at, now = 0, usage[0].time
    while now <= usage[-1].time:
        while at + 1 < len(usage) and usage[at + 1].time <= now:
            at += 1
        before, ready = target.replicas, target.ready(now)
        result = autoscaler.run(target.observed(usage[at], now), now)
        target.scale(result.desired, now)
        yield _row(now, before, ready, result)
        now += interval


def _row(now: Nanoseconds, replicas: int, ready: int, result: Result) -> BackTestRow:
    why = result.explanation
    return BackTestRow(now, replicas, ready, why.proposal, result.desired, why, result.error)


class _ScaledTarget:
    """The scaled workload: pods that come and go, and the usage that they share."""

    def __init__(
        self, metrics: tuple[MetricSpec, ...], requests: Mapping[str, Amount], startup: Nanoseconds
    ) -> None:
        self._metrics = metrics
        self._startup = startup
        self._requests = _requests(metrics, requests)
        self._created: list[Nanoseconds] = []

    @property
    def replicas(self) -> int:
        return len(self._created)

    def ready(self, now: Nanoseconds) -> int:
        return sum(self._is_ready(created, now) for created in self._created)

    def _is_ready(self, created: Nanoseconds, now: Nanoseconds) -> bool:
        return created + self._startup <= now

    def scale(self, replicas: int, now: Nanoseconds) -> None:
        del self._created[max(replicas, 0) :]
        self._created += [now] * (replicas - len(self._created))

    def observed(self, usage: RecordedUsage, now: Nanoseconds) -> Observation:
        pods = tuple(self._pod(number, now) for number in range(self.replicas))
        scale = Scale(self.replicas, _SELECTOR)
        return Observation(scale, pods, _SharedUsage(self._metrics, usage, pods, now))

    def _pod(self, number: int, now: Nanoseconds) -> ScaledPod:
        created = self._created[number]
        ready = self._is_ready(created, now)
        return ScaledPod(
            name=f"pod-{number}",
            requests=self._requests,
            labels=_LABELS,
            phase="Running" if ready else "Pending",
            ready="True" if ready else "False",
            ready_since=created + self._startup if ready else created,
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
