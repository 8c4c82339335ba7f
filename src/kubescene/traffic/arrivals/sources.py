"""From a spec to its arrivals: the chosen pattern, and the files that it reads."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from kubescene.clock import SECOND, Streams
from kubescene.clock.batches import Integers
from kubescene.errors import TrafficError
from kubescene.traffic.arrivals import patterns
from kubescene.traffic.arrivals.arrivals import Arrivals, RecordedArrivals, SpacedArrivals, Window
from kubescene.traffic.spec.checks import MOST_RPS
from kubescene.traffic.spec.fields import (
    ConstantTraffic,
    DiurnalTraffic,
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
)
from kubescene.traffic.spec.units import Duration

MOST_ROWS = 50_000_000
MOST_SECONDS = (1 << 63) // SECOND
"""Later instants do not fit into 64 bits."""
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
        return RecordedArrivals(recorded(spec.traffic.replay or ReplayTraffic(), folder))
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
    traffic = run.spec.traffic
    if traffic.piecewise is not None and traffic.piecewise.file:
        points = rate_points(traffic.piecewise, folder)
        rates = tuple(RateAt(at=Duration(point.instant), rps=point.rps) for point in points)
        piecewise = replace(traffic.piecewise, points=rates, file="")
        traffic = replace(traffic, piecewise=piecewise)
    elif traffic.replay is not None and traffic.replay.file:
        arrivals = tuple(map(Duration, recorded(traffic.replay, folder).tolist()))
        replay = ReplayTraffic(arrivals=arrivals)
        traffic = replace(traffic, replay=replay)
    else:
        return run
    return replace(run, spec=replace(run.spec, traffic=traffic))


def windows_of(spec: TrafficSpec, streams: Streams, folder: Path | None = None) -> Iterator[Window]:
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
            return patterns.piecewise(rate_points(piecewise, folder), linear, halt)


def _spikes(given: SpikesTraffic) -> patterns.Spikes:
    return patterns.Spikes(given.rps, given.spike_rps, given.every, given.width, given.after)


def _diurnal(given: DiurnalTraffic) -> patterns.Diurnal:
    return patterns.Diurnal(
        given.rps, given.amplitude, given.period, given.peak, given.noise, given.noise_every
    )


def rate_points(given: PiecewiseTraffic, folder: Path | None) -> list[patterns.RatePoint]:
    """The points of a piecewise pattern, from the spec or from its file."""
    if not given.file:
        return [patterns.RatePoint(point.at, point.rps) for point in given.points]
    path = "spec.traffic.piecewise.file"
    points: list[patterns.RatePoint] = []
    for where, row in _rows(given.file, folder, path):
        if len(row) != 2:
            raise TrafficError("a row needs two columns, time and rps", source=where)
        instant, rate = _instant(row[0], where), _number(row[1], where, MOST_RPS)
        if points and instant <= points[-1].instant:
            raise TrafficError("its time must come after that of the row before", source=where)
        points.append(patterns.RatePoint(instant, float(rate)))
    if not points:
        raise TrafficError(f"{given.file} has no rows", path=path)
    return points


def recorded(given: ReplayTraffic, folder: Path | None) -> Integers:
    """The instants of a recording, in order."""
    if given.file:
        rows = _rows(given.file, folder, "spec.traffic.replay.file")
        instants = [_instant(row[0], where) for where, row in rows]
        if not instants:
            raise TrafficError(f"{given.file} has no rows", path="spec.traffic.replay.file")
    else:
        instants = list(given.arrivals)
    array = np.sort(np.array(instants, dtype=np.int64) - given.origin)
    if len(array) and array[0] < 0:
        raise TrafficError("there are arrivals before it", path="spec.traffic.replay.origin")
    return array


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


def _instant(text: str, where: str) -> int:
    """Seconds, to the nanosecond."""
    return int(_number(text, where, MOST_SECONDS) * SECOND)
