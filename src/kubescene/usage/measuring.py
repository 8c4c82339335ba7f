"""What the metrics APIs would say: the series of a namespace, seen by the last scrape.

Scrapes are at whole multiples of the resolution. A pod has been seen if it was ready by then. CPU
is the mean over the time since the scrape before, everything else is what it was at the scrape.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from kubescene.clock import parse_time
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.registry import ScrapedPod, ScrapedService
from kubescene.usage.series import MetricSeries

RESOLUTION: Nanoseconds = 15 * 10**9
"""As metrics-server has it by default."""


def last_scrape(now: Nanoseconds, resolution: Nanoseconds = RESOLUTION) -> Nanoseconds:
    """When the last scrape was."""
    return now - now % resolution


class MeasuredPod(Struct, frozen=True):
    """A pod that could be measured. ``ready_since`` None: it is not ready, or goes."""

    name: str
    labels: Mapping[str, str]
    containers: tuple[str, ...]
    ready_since: Nanoseconds | None


def measured_pod(pod: JsonObject) -> MeasuredPod:
    """A pod of the API, as far as it can be measured."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ready: JsonObject = next(
        (each for each in status.get("conditions") or () if each.get("type") == "Ready"), {}
    )
    since = ready.get("lastTransitionTime") if ready.get("status") == "True" else None
    is_measured = since is not None and not metadata.get("deletionTimestamp")
    return MeasuredPod(
        metadata["name"],
        metadata.get("labels") or {},
        tuple(each["name"] for each in pod["spec"].get("containers") or ()),
        parse_time(since) if is_measured else None,
    )


class PodMetric(NamedTuple):
    """A custom metric of pods, by their names, in thousandths."""

    metric: str
    values: dict[str, int]


class ObjectMetric(NamedTuple):
    """A custom metric of an object."""

    metric: str
    kind: str
    name: str
    value: int
    labels: Mapping[str, str] = {}


class Measurements:
    """All that was measured in a namespace by the last scrape."""

    def __init__(
        self,
        series: Iterable[MetricSeries],
        pods: Iterable[MeasuredPod],
        now: Nanoseconds,
        resolution: Nanoseconds = RESOLUTION,
        scraped: Iterable[ScrapedPod] = (),
        services: Iterable[ScrapedService] = (),
        unseen: Collection[str] = (),
    ) -> None:
        """``series`` are what is declared, ``scraped`` and ``services`` what was simulated.

        ``unseen`` are pods that the scrape did not reach.
        """
        self.time: Nanoseconds = last_scrape(now, resolution)
        self.window: Nanoseconds = resolution
        self._series = tuple(series)
        self._scraped = tuple(each for each in scraped if each.pod not in unseen)
        self._services = tuple(services)
        self._pods = [
            pod for pod in pods if pod.ready_since is not None and pod.ready_since <= self.time
        ]
        self._unseen = unseen

    def usage(self) -> dict[str, dict[str, dict[str, int]]]:
        """By pod, container and resource; pods that nobody measures are not there."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for series in self._series:
            if not series.resource:
                continue
            for pod, value in self._values(series):
                container = series.container or pod.containers[0]
                used = found.setdefault(pod.name, {}).setdefault(container, {})
                used[series.resource] = used.get(series.resource, 0) + value
        for each in self._scraped:
            used = found.setdefault(each.pod, {}).setdefault(each.container, {})
            for resource, value in each.resources.items():
                used[resource] = used.get(resource, 0) + value
        return found

    def of_pods(self) -> list[PodMetric]:
        """Custom metrics with their values by pod."""
        custom = [each for each in self._series if each.metric and each.selector is not None]
        found = [
            PodMetric(each.metric, {pod.name: value for pod, value in self._values(each)})
            for each in custom
        ]
        simulated: dict[str, dict[str, int]] = {}
        for pod in self._scraped:
            for metric, value in pod.metrics.items():
                simulated.setdefault(metric, {})[pod.pod] = value
        return found + [PodMetric(*each) for each in simulated.items()]

    def of_objects(self) -> list[ObjectMetric]:
        """Custom metrics of objects."""
        declared = self._known([each for each in self._series if each.object is not None])
        found = [
            ObjectMetric(each.metric, *each.object, value, each.labels)
            for each, value in declared
            if each.object is not None
        ]
        return found + [
            ObjectMetric(metric, "Service", each.service, value)
            for each in self._services
            for metric, value in each.metrics.items()
        ]

    def external(self) -> list[tuple[MetricSeries, int]]:
        return self._known([each for each in self._series if each.external])

    def _known(self, series: Sequence[MetricSeries]) -> list[tuple[MetricSeries, int]]:
        values = [(each, each.at(self.time)) for each in series]
        return [(each, value) for each, value in values if value is not None]

    def _values(self, series: MetricSeries) -> list[tuple[MeasuredPod, int]]:
        assert series.selector is not None
        pods = [pod for pod in self._pods if series.selector.matches(pod.labels)]
        if series.resource == "cpu":
            value = series.mean(self.time - self.window, self.time)
        else:
            value = series.at(self.time)
        if value is None or not pods:
            return []
        share, rest = (value, 0) if series.per_pod else divmod(value, len(pods))
        # What does not divide goes to the first ones: the sum is the series.
        shares = [(pod, share + (place < rest)) for place, pod in enumerate(pods)]
        return [(pod, value) for pod, value in shares if pod.name not in self._unseen]
