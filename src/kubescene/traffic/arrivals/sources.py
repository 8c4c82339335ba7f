"""From a spec to its arrivals: the chosen pattern, and the CSV files that it reads.

Files have times, and what was measured then. Times are seconds, also since 1970, durations such as
``90s``, or RFC 3339.
"""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
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
from kubescene.traffic.spec.units import TrafficDuration, instant_of

MOST_ROWS = 50_000_000


class Timed(NamedTuple):
    """One row: its place in the file, its time as it is written there, and the other cells."""

    where: str
    instant: int
    calendar: bool
    cells: list[str]


def timed_rows(file: str, folder: Path | None, path: str) -> Iterator[Timed]:
    """The rows of a file in the folder of the run; ``path`` is the field that names it."""
    found = False
    for where, row in _rows(file, folder, path):
        found = True
        try:
            instant = instant_of(row[0])
        except ValueError as error:
            raise TrafficError(f"time {error}", source=where) from error
        yield Timed(where, instant, "T" in row[0].upper(), row[1:])
    if not found:
        raise TrafficError(f"{file} has no rows", path=path)


def timed_values(
    file: str, folder: Path | None, path: str, name: str, most: int
) -> Iterator[tuple[Timed, float]]:
    """Rows of two columns, in order of time."""
    before = -1
    for row in timed_rows(file, folder, path):
        if len(row.cells) != 1:
            raise TrafficError(f"a row needs two columns, time and {name}", source=row.where)
        if row.instant <= before:
            raise TrafficError("its time must come after that of the row before", source=row.where)
        before = row.instant
        yield row, float(_number(row.cells[0], row.where, most))


def _rows(file: str, folder: Path | None, path: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of a CSV file with their places, without the heading, if there is one."""
    found = _inside(file, folder, path)
    try:
        with found.open(encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.reader(stream), start=1):
                if number > MOST_ROWS:
                    raise TrafficError(f"{file} has more than {MOST_ROWS} rows", path=path)
                where = f"{found}:{number}"
                if row and not (number == 1 and _is_heading(row, where)):
                    yield where, row
    except FileNotFoundError:
        raise TrafficError(f"there is no file {found}", path=path) from None
    except (OSError, UnicodeError, csv.Error) as error:
        raise TrafficError(f"{found} cannot be read: {error}", path=path) from error


def _inside(file: str, folder: Path | None, path: str) -> Path:
    """A file in the folder of the TrafficRun; nowhere else."""
    if folder is None:
        raise TrafficError("a file can be named only in a TrafficRun that is one itself", path=path)
    found = (folder / file).resolve()
    if not found.is_relative_to(folder.resolve()):
        raise TrafficError(f"{file} is outside the folder of the TrafficRun", path=path)
    return found


def _is_heading(row: list[str], where: str) -> bool:
    """Whether these are names: no number among them, and no time in another notation."""
    names = [cell.strip().lower() for cell in row]
    if names[0][:1].isdecimal() or any(map(_is_number, names)):
        return False
    if "time" in names[1:]:
        raise TrafficError("the column time has to be the first", source=where)
    return True


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True


def _number(text: str, where: str, most: int) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise TrafficError(f"{text!r} is not a number", source=where) from None
    if not number.is_finite() or not 0 <= number <= most:
        raise TrafficError(f"{text!r} is not a number from 0 to {most}", source=where)
    return number


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
