"""A run and the files beside it: its arrivals, and the same run complete in itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from kubescene.clock import Streams
from kubescene.errors import TrafficError
from kubescene.flows.arrivals import Arrivals, RecordedArrivals, SpacedArrivals
from kubescene.flows.fields import Pattern, PiecewiseTraffic, RateAt, ReplayTraffic
from kubescene.flows.sources import (
    ArrivalSeries,
    rate_points,
    recorded,
    timed_rows,
    timed_values,
    windows_of,
)
from kubescene.flows.units import TrafficDuration
from kubescene.traffic.spec.checks import MOST_VALUE
from kubescene.traffic.spec.fields import (
    ExternalMetricSeries,
    TrafficRun,
    TrafficSpec,
    ValueAt,
)

PIECEWISE, REPLAY = "spec.traffic.piecewise", "spec.traffic.replay"

MOST_REQUESTS = 1 << 31
"""The sums of unit exponentials fit into 64 bits up to here."""


@contextmanager
def fitting_memory() -> Iterator[None]:
    """What does not fit into memory is a fault of the run."""
    try:
        yield
    except MemoryError as error:
        told = "the run does not fit into memory, with 21 bytes and more for every request"
        raise TrafficError(told, path="spec.traffic") from error


@fitting_memory()
def arrivals_of(spec: TrafficSpec, folder: Path | None = None) -> Arrivals:
    """The arrivals of a run; files of the spec are looked for in ``folder``."""
    traffic, halt = spec.traffic, int(spec.duration)
    if traffic.pattern is Pattern.REPLAY:
        given = traffic.replay or ReplayTraffic()
        return RecordedArrivals(recorded(given, folder, halt, REPLAY))
    streams = Streams(spec.seed)
    points = []
    if traffic.pattern is Pattern.PIECEWISE:
        piecewise = traffic.piecewise or PiecewiseTraffic()
        points = rate_points(piecewise, folder, halt, PIECEWISE)
    windows = windows_of(traffic, halt, streams.stream("traffic/noise"), points)
    stream = streams.stream("traffic/arrivals")
    arrivals = SpacedArrivals(windows, spec.traffic.spacing, stream, halt)
    if arrivals.expected >= MOST_REQUESTS:
        raise TrafficError(
            f"about {arrivals.expected} requests are more than the {MOST_REQUESTS} of one run",
            path="spec.traffic",
        )
    return arrivals


def embedded(run: TrafficRun, folder: Path | None = None) -> TrafficRun:
    """The same run with what stands in its file written into it: complete in itself."""
    run, halt = with_series(run, folder), int(run.spec.duration)
    traffic = run.spec.traffic
    if traffic.piecewise is not None and traffic.piecewise.file:
        points = rate_points(traffic.piecewise, folder, halt, PIECEWISE)
        rates = tuple(RateAt(at=TrafficDuration(point.instant), rps=point.rps) for point in points)
        piecewise = replace(traffic.piecewise, points=rates, file="", origin=None)
        traffic = replace(traffic, piecewise=piecewise)
    elif traffic.replay is not None and traffic.replay.file:
        arrivals = tuple(
            map(TrafficDuration, recorded(traffic.replay, folder, halt, REPLAY).tolist())
        )
        replay = ReplayTraffic(arrivals=arrivals)
        traffic = replace(traffic, replay=replay)
    else:
        return run
    return replace(run, spec=replace(run.spec, traffic=traffic))


def with_series(run: TrafficRun, folder: Path | None = None) -> TrafficRun:
    """The same run with its metrics from outside placed in it, whatever they were read from."""
    metrics, halt = run.spec.metrics, int(run.spec.duration)
    if not any(each.file or each.origin is not None for each in metrics.external):
        return run
    placed = tuple(
        ExternalMetricSeries(
            name=each.name,
            points=tuple(
                ValueAt(at=TrafficDuration(at), value=value)
                for at, value in series_points(each, folder, halt, index)
            ),
        )
        for index, each in enumerate(metrics.external)
    )
    return replace(run, spec=replace(run.spec, metrics=replace(metrics, external=placed)))


def series_points(
    given: ExternalMetricSeries, folder: Path | None, halt: int, index: int = 0
) -> list[tuple[int, float]]:
    """The points of a metric from outside, from the spec or from its file, within the run."""
    path = f"spec.metrics.external[{index}]"
    read = ArrivalSeries([(point.at, point.value) for point in given.points], calendar=False)
    if given.file:
        rows = timed_rows(given.file, folder, f"{path}.file")
        read = ArrivalSeries.of(timed_values(rows, "value", MOST_VALUE))
    return read.placed(given.origin, halt, path)
