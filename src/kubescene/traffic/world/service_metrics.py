"""What is measured of the whole service, and how autoscalers are told of it.

As a monitoring system would: all replicas at one instant, again and again, over the time since the
last one. Requests that wait for a replica count in the service. Failures count at their time-outs,
where they have any; where no request ended there is no latency. Metrics from outside are told, too.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kubescene.autoscalers import MetricType, Stat
from kubescene.autoscalers.dispatcher import Partition
from kubescene.autoscalers.interfaces import SERVICE
from kubescene.clock import MILLISECOND, SECOND
from kubescene.clock.batches import Integers
from kubescene.flows.flow import Flow
from kubescene.flows.percentiles import percentile_of_all
from kubescene.flows.records import FAILED, RequestOutcome
from kubescene.traffic.spec.fields import ExternalMetricSeries, TrafficSpec
from kubescene.traffic.world.entities import EntityKind, entity_name

LATENCIES = (
    MetricType.LATENCY_P50_MILLIS,
    MetricType.LATENCY_P95_MILLIS,
    MetricType.LATENCY_P99_MILLIS,
)
PERCENTILES = (50, 95, 99)
NOTHING = (None, None, None)
WHOLE_SERVICE = 0
"""In the place of a replica's number."""


class ServiceReading(NamedTuple):
    """Of a replica, or of the service; in thousandths of requests, requests a second, seconds."""

    replica: int
    concurrent: int
    rate: int
    queued: int
    latencies: tuple[int | None, ...]


class WindowRows(NamedTuple):
    """Requests that were there in a window; ``ends`` are within it for those that did not end."""

    arrived: Integers
    ends: Integers
    ended: npt.NDArray[np.bool_]
    failed: npt.NDArray[np.bool_]
    replica: Integers

    def of(self, chosen: Integers) -> "WindowRows":
        return WindowRows(
            self.arrived[chosen],
            self.ends[chosen],
            self.ended[chosen],
            self.failed[chosen],
            self.replica[chosen],
        )


class ServiceMetrics:
    """Reads a flow at the ends of windows of one width, in order of time."""

    def __init__(self, flow: Flow, width: int, timeout: int) -> None:
        self._flow = flow
        self._width = width
        self._timeout = timeout
        self._first = 0
        """Rows before this one ended before the window."""

    def read(self, now: int) -> Iterator[ServiceReading]:
        """The service first, then its replicas; all that happens before ``now`` has happened."""
        rows, start = self._rows(now - self._width, now), now - self._width
        waiting = len(self._flow.waiting) if self._flow.waiting is not None else 0
        queues = {
            each.number: each.processor.held - each.processor.sharing
            for each in self._flow.stations
        }
        queued = waiting + sum(queues.values())
        yield self._reading(WHOLE_SERVICE, rows, queued, start)
        order = np.argsort(rows.replica, kind="stable")
        numbers = rows.replica[order]
        for number, queue in queues.items():
            first, last = np.searchsorted(numbers, [number, number + 1]).tolist()
            yield self._reading(number, rows.of(order[first:last]), queue, start)

    def _rows(self, start: int, end: int) -> WindowRows:
        columns, first = self._flow.columns, self._first
        outcome, completed = columns.outcome[first:], columns.completed[first:]
        known = outcome != RequestOutcome.OPEN
        over = known & (completed < start)
        still = np.flatnonzero(~over)
        self._first += int(still[0]) if len(still) else len(over)
        ends = np.where(known, np.minimum(completed, end), end)[still]
        return WindowRows(
            columns.arrived[first:][still],
            ends,
            (known & (completed < end))[still],
            (outcome >= FAILED[0])[still],
            columns.replica[first:][still].astype(np.int64),
        )

    def _reading(self, replica: int, rows: WindowRows, queued: int, start: int) -> ServiceReading:
        if not len(rows.arrived):
            return ServiceReading(replica, 0, 0, queued * 1000, NOTHING)
        width = self._width
        held = int(np.maximum(rows.ends - np.maximum(rows.arrived, start), 0).sum())
        came = int(np.count_nonzero(rows.arrived >= start))
        served = np.sort((rows.ends - rows.arrived)[rows.ended & ~rows.failed])
        failed = int(np.count_nonzero(rows.ended & rows.failed))
        took = [percentile_of_all(served, failed, self._timeout, each) for each in PERCENTILES]
        return ServiceReading(
            replica,
            held * 1000 // width,
            came * 1000 * SECOND // width,
            queued * 1000,
            tuple(None if each is None else each // MILLISECOND for each in took),
        )


class ServiceSampling:
    """The service is read every ``statInterval``; readings arrive ``lag`` later, at a tick.

    Metrics from outside are what their API answers at the tick.
    """

    def __init__(self, flow: Flow, partition: Partition, spec: TrafficSpec) -> None:
        self._partition = partition
        self._width = int(spec.stat_interval)
        self._lag = int(spec.metrics.lag)
        self._metrics = ServiceMetrics(flow, self._width, int(spec.request.timeout))
        self._series = [_Answers(each) for each in spec.metrics.external]
        self._readings: deque[tuple[int, list[ServiceReading]]] = deque()
        self.next_mark = self._width

    def read(self, check: Callable[[], None]) -> None:
        """All that happens before the mark has happened; ``check`` is asked at every replica."""
        readings = []
        for each in self._metrics.read(self.next_mark):
            check()
            readings.append(each)
        self._readings.append((self.next_mark, readings))
        self.next_mark += self._width

    def tell(self, now: int) -> None:
        """The latest that has come through by now: those before it say nothing any more."""
        latest = None
        while self._readings and self._readings[0][0] + self._lag <= now:
            latest = self._readings.popleft()
        if latest is not None:
            mark, readings = latest
            stats = tuple(stat for each in readings for stat in _stats(mark, each))
            self._partition.stat(now, stats)
        external = tuple(stat for each in self._series if (stat := each.changed(now)) is not None)
        if external:
            self._partition.stat(now, external)


class _Answers:
    """One series: what it answers from when on."""

    def __init__(self, series: ExternalMetricSeries) -> None:
        self._name = series.name
        self._left = deque((int(each.at), round(each.value * 1000)) for each in series.points)

    def changed(self, now: int) -> Stat | None:
        """The value if there is another one than the last time."""
        found = None
        while self._left and self._left[0][0] <= now:
            found = self._left.popleft()
        if found is None:
            return None
        return Stat(now, self._name, MetricType.EXTERNAL_MILLIS, found[1])


def _stats(mark: int, told: ServiceReading) -> list[Stat]:
    """Of pods, concurrency and rates are measured by their own meters."""
    if told.replica == WHOLE_SERVICE:
        name = SERVICE
        stats = [
            Stat(mark, name, MetricType.CONCURRENT_REQUESTS_MILLIS, told.concurrent),
            Stat(mark, name, MetricType.REQUESTS_PER_SECOND_MILLIS, told.rate),
        ]
    else:
        name, stats = entity_name(EntityKind.REPLICA, told.replica), []
    stats.append(Stat(mark, name, MetricType.QUEUE_LENGTH_MILLIS, told.queued))
    for kind, value in zip(LATENCIES, told.latencies, strict=True):
        if value is not None:
            stats.append(Stat(mark, name, kind, value))
    return stats
