"""What the metrics APIs would say: the series of a namespace, seen by the last scrape.

Scrapes are at whole multiples of the resolution. A pod has been seen if it was ready by then. CPU
is the mean over the time since the scrape before, everything else is what it was at the scrape.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubescene.types import Nanoseconds
from kubescene.usage.series import MetricSeries

RESOLUTION: Nanoseconds = 15 * 10**9
"""As metrics-server has it by default."""


class MeasuredPod(Struct, frozen=True):
    """A pod that could be measured. ``ready_since`` None: it is not ready, or goes."""

    name: str
    labels: Mapping[str, str]
    containers: tuple[str, ...]
    ready_since: Nanoseconds | None


class Measurements:
    """All that was measured in a namespace by the last scrape."""

    def __init__(
        self,
        series: Iterable[MetricSeries],
        pods: Iterable[MeasuredPod],
        now: Nanoseconds,
        resolution: Nanoseconds = RESOLUTION,
    ) -> None:
        self.time: Nanoseconds = now - now % resolution
        self.window: Nanoseconds = resolution
        self._series = tuple(series)
        self._pods = [
            pod for pod in pods if pod.ready_since is not None and pod.ready_since <= self.time
        ]

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
        return found

    def of_pods(self) -> list[tuple[MetricSeries, dict[str, int]]]:
        """Custom metrics with their values by pod."""
        custom = [each for each in self._series if each.metric and each.selector is not None]
        return [(each, {pod.name: value for pod, value in self._values(each)}) for each in custom]

    def of_objects(self) -> list[tuple[MetricSeries, int]]:
        """Custom metrics of objects."""
        return self._known([each for each in self._series if each.object is not None])

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
        if series.per_pod:
            return [(pod, value) for pod in pods]
        share, rest = divmod(value, len(pods))
        # What does not divide goes to the first ones: the sum is the series.
        return [(pod, share + (place < rest)) for place, pod in enumerate(pods)]
