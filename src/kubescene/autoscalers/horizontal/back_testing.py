"""What an autoscaler would have done: recorded usage played to it, pass by pass.

The load is taken to be the same whatever the count: the usage of a sample is spread evenly over
the pods that are ready. Pods follow the decisions: new ones are ready after ``startup``, the newest
go first. Between two samples the older one holds.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from msgspec import Struct

from kubescene.autoscalers.horizontal.autoscaler import HorizontalAutoscaler
from kubescene.autoscalers.horizontal.explaining import Explanation
from kubescene.autoscalers.horizontal.observing import (
    Observation,
    PodMetrics,
    PodValue,
    Scale,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.pod_requests import ContainerRequests, PodRequests
from kubescene.autoscalers.horizontal.reconciling import DEFAULTS, Result
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.autoscalers.horizontal.usage import (
    Amount,
    Usage,
    UsageSample,
    checked_usage,
    milli,
    usage_key,
)
from kubescene.clock.timestamps import SECOND
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject, Nanoseconds

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
    target = _Target(autoscaler.spec.metrics, requests or {}, startup)
    start = max(autoscaler.spec.minimum, 1) if replicas is None else replicas
    if start < 0:
        raise ConfigurationError(f"replicas: {start} is negative")
    target.scale(start, usage[0].time - LONG_AGO)
    return BackTest(tuple(_rows(autoscaler, target, usage, interval)), interval)


def _rows(
    autoscaler: HorizontalAutoscaler, target: "_Target", usage: list[Usage], interval: Nanoseconds
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


class _Target:
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

    def observed(self, usage: Usage, now: Nanoseconds) -> Observation:
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
        usage: Usage,
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
