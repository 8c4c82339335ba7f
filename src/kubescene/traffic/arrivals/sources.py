"""From a spec to its arrivals: the chosen pattern, and the files that it reads."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubescene.clock import SECOND, Streams
from kubescene.clock.batches import Integers
from kubescene.errors import TrafficError
from kubescene.traffic.arrivals import patterns
from kubescene.traffic.arrivals.arrivals import (
    Arrivals,
    ArrivalWindow,
    RecordedArrivals,
    SpacedArrivals,
)
from kubescene.traffic.arrivals.csv_files import Timed, timed_rows, timed_values
from kubescene.traffic.spec.checks import MOST_RPS, MOST_VALUE
from kubescene.traffic.spec.fields import (
    ConstantTraffic,
    DiurnalTraffic,
    ExternalMetricSeries,
    Interpolation,
    Pattern,
    PiecewiseTraffic,
    RampTraffic,
    RateAt,
    ReplayTraffic,
    SinusoidalTraffic,
    SpikesTraffic,
    StepTraffic,
    TrafficRun,
    TrafficSpec,
    UniformTraffic,
    ValueAt,
)
from kubescene.traffic.spec.units import TrafficDuration

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
    if spec.traffic.pattern is Pattern.REPLAY:
        return RecordedArrivals(
            recorded(spec.traffic.replay or ReplayTraffic(), folder, int(spec.duration))
        )
    streams = Streams(spec.seed)
    windows = windows_of(spec, streams, folder)
    stream = streams.stream("traffic/arrivals")
    arrivals = SpacedArrivals(windows, spec.traffic.spacing, stream, int(spec.duration))
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
        points = rate_points(traffic.piecewise, folder, halt)
        rates = tuple(RateAt(at=TrafficDuration(point.instant), rps=point.rps) for point in points)
        piecewise = replace(traffic.piecewise, points=rates, file="", origin=None)
        traffic = replace(traffic, piecewise=piecewise)
    elif traffic.replay is not None and traffic.replay.file:
        arrivals = tuple(map(TrafficDuration, recorded(traffic.replay, folder, halt).tolist()))
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


def windows_of(
    spec: TrafficSpec, streams: Streams, folder: Path | None = None
) -> Iterator[ArrivalWindow]:
    """How many requests are expected when."""
    traffic, halt = spec.traffic, int(spec.duration)
    match traffic.pattern:
        case Pattern.UNIFORM:
            uniform = traffic.uniform or UniformTraffic()
            width = halt if uniform.width is None else uniform.width
            return patterns.uniform(uniform.number_of_requests, uniform.start, width)
        case Pattern.STEP:
            step = traffic.step or StepTraffic()
            return patterns.step(step.rps, step.after, halt)
        case Pattern.RAMP:
            ramp = traffic.ramp or RampTraffic()
            return patterns.ramp(ramp.delta_v, ramp.max_rps)
        case Pattern.SINUSOIDAL:
            sine = traffic.sinusoidal or SinusoidalTraffic()
            return patterns.sinusoidal(sine.amplitude, sine.period, halt)
        case Pattern.CONSTANT:
            return patterns.constant((traffic.constant or ConstantTraffic()).rps, halt)
        case Pattern.SPIKES:
            return patterns.spikes(_spikes(traffic.spikes or SpikesTraffic()), halt)
        case Pattern.DIURNAL:
            day = _diurnal(traffic.diurnal or DiurnalTraffic())
            return patterns.diurnal(day, halt, streams.stream("traffic/noise"))
        case _:
            piecewise = traffic.piecewise or PiecewiseTraffic()
            linear = piecewise.interpolation is Interpolation.LINEAR
            return patterns.piecewise(rate_points(piecewise, folder, halt), linear, halt)


def _spikes(given: SpikesTraffic) -> patterns.Spikes:
    return patterns.Spikes(given.rps, given.spike_rps, given.every, given.width, given.after)


def _diurnal(given: DiurnalTraffic) -> patterns.Diurnal:
    return patterns.Diurnal(
        given.rps, given.amplitude, given.period, given.peak, given.noise, given.noise_every
    )


def rate_points(
    given: PiecewiseTraffic, folder: Path | None, halt: int
) -> list[patterns.RatePoint]:
    """The points of a piecewise pattern, from the spec or from its file, within the run."""
    path = "spec.traffic.piecewise"
    read = ArrivalSeries([(point.at, point.rps) for point in given.points], calendar=False)
    if given.file:
        read = ArrivalSeries.of(timed_values(given.file, folder, f"{path}.file", "rps", MOST_RPS))
    return [patterns.RatePoint(*each) for each in read.placed(given.origin, halt, path)]


def series_points(
    given: ExternalMetricSeries, folder: Path | None, halt: int, index: int = 0
) -> list[tuple[int, float]]:
    """The points of a metric from outside, from the spec or from its file, within the run."""
    path = f"spec.metrics.external[{index}]"
    read = ArrivalSeries([(point.at, point.value) for point in given.points], calendar=False)
    if given.file:
        read = ArrivalSeries.of(
            timed_values(given.file, folder, f"{path}.file", "value", MOST_VALUE)
        )
    return read.placed(given.origin, halt, path)


class ArrivalSeries(NamedTuple):
    """Values by time as they were written; ``calendar``: some times are RFC 3339."""

    points: list[tuple[int, float]]
    calendar: bool

    @classmethod
    def of(cls, rows: Iterable[tuple[Timed, float]]) -> "ArrivalSeries":
        points, calendar = [], False
        for row, value in rows:
            points.append((row.instant, value))
            calendar = calendar or row.calendar
        return cls(points, calendar)

    def placed(self, origin: int | None, halt: int, path: str) -> list[tuple[int, float]]:
        """By times of the run."""
        first = self.points[0][0]
        start = origin_of(origin, first, calendar=self.calendar)
        check_place(first, start, halt, path)
        return [(instant - start, value) for instant, value in self.points]


def origin_of(given: int | None, first: int, *, calendar: bool) -> int:
    """What times count from: as it was said, or where a calendar begins to be of interest."""
    if given is not None:
        return int(given)
    return first if calendar else 0


def check_place(first: int, origin: int, halt: int, path: str) -> None:
    """Nothing lies before the run, and not everything after it: nobody would notice."""
    if first < origin:
        raise TrafficError("there are times before it", path=f"{path}.origin")
    if first - origin >= halt:
        raise TrafficError(
            "all times lie after the end of the run: the first is "
            f"{TrafficDuration(first - origin)} after its start, the run is "
            f"{TrafficDuration(halt)} long; times count from origin, for these perhaps "
            f"{first // SECOND}",
            path=f"{path}.origin",
        )


def recorded(given: ReplayTraffic, folder: Path | None, halt: int) -> Integers:
    """The instants of a recording, in order."""
    path, calendar = "spec.traffic.replay", False
    if given.file:
        instants = []
        for row in timed_rows(given.file, folder, f"{path}.file"):
            instants.append(row.instant)
            calendar = calendar or row.calendar
    else:
        instants = list(given.arrivals)
    array = np.sort(np.array(instants, dtype=np.int64))
    first = int(array[0])
    origin = origin_of(given.origin, first, calendar=calendar)
    check_place(first, origin, halt, path)
    placed: Integers = array - origin
    return placed
