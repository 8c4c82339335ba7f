"""From a spec to its arrivals: the chosen pattern, and the CSV files that it reads.

Files have times, and what was measured then. Times are seconds, also since 1970, durations such as
``90s``, or RFC 3339.
"""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from kubescene.clock import SECOND, Stream
from kubescene.clock.batches import Integers
from kubescene.errors import TrafficError
from kubescene.flows import patterns
from kubescene.flows.arrivals import ArrivalWindow
from kubescene.flows.checks import MOST_RPS
from kubescene.flows.fields import (
    ArrivalPattern,
    ConstantTraffic,
    DiurnalTraffic,
    Interpolation,
    Pattern,
    PiecewiseTraffic,
    RampTraffic,
    ReplayTraffic,
    SinusoidalTraffic,
    SpikesTraffic,
    StepTraffic,
    UniformTraffic,
)
from kubescene.flows.kernels import NEVER
from kubescene.flows.units import TrafficDuration, instant_of

MOST_ROWS = 50_000_000
SUFFIX = ".gz"
MOST_BYTES = 1 << 31
"""Rows are read one by one, so this bounds time, not memory."""
LONGEST_LINE = 1 << 20


class PackedError(ValueError):
    """It is damaged, or holds too much."""


def unpacked_lines(packed: IO[bytes], most: int = MOST_BYTES) -> Iterator[str]:
    """The lines of a packed text in UTF-8, one after the other."""
    encoding, left = "utf-8-sig", most
    try:
        with gzip.GzipFile(fileobj=packed) as opened:
            while line := opened.readline(LONGEST_LINE):
                left -= len(line)
                if left < 0:
                    raise PackedError(f"it holds more than {most} bytes")
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    raise PackedError(f"it has a line of more than {LONGEST_LINE} bytes")
                yield line.decode(encoding)
                encoding = "utf-8"
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise PackedError(f"it cannot be unpacked: {error}: copy it again") from error


class Timed(NamedTuple):
    """One row: its place in the file, its time as it is written there, and the other cells."""

    where: str
    instant: int
    calendar: bool
    cells: list[str]


def timed_rows(file: str, folder: Path | None, path: str) -> Iterator[Timed]:
    """The rows of a file in the folder of the run; ``path`` is the field that names it."""
    found = _inside(file, folder, path)
    try:
        if found.suffix == SUFFIX:
            with found.open("rb") as packed:
                lines = unpacked_lines(packed)
                yield from timed(lines, file, path, where=str(found))
            return
        with found.open(encoding="utf-8-sig", newline="") as stream:
            yield from timed(stream, file, path, where=str(found))
    except FileNotFoundError:
        raise TrafficError(f"there is no file {found}", path=path) from None
    except (OSError, UnicodeError, PackedError) as error:
        raise TrafficError(f"{found} cannot be read: {error}", path=path) from error


def timed(lines: Iterable[str], file: str, path: str, where: str = "") -> Iterator[Timed]:
    """The rows of the lines of a file, which is ``where`` for messages about one of them."""
    found = False
    for place, row in _rows(lines, file, path, where or file):
        found = True
        try:
            instant = instant_of(row[0])
        except ValueError as error:
            raise TrafficError(f"time {error}", source=place) from error
        yield Timed(place, instant, "T" in row[0].upper(), row[1:])
    if not found:
        raise TrafficError(f"{file} has no rows", path=path)


def timed_values(rows: Iterable[Timed], name: str, most: int) -> Iterator[tuple[Timed, float]]:
    """Rows of two columns, in order of time."""
    before = -1
    for row in rows:
        if len(row.cells) != 1:
            raise TrafficError(f"a row needs two columns, time and {name}", source=row.where)
        if row.instant <= before:
            raise TrafficError("its time must come after that of the row before", source=row.where)
        before = row.instant
        yield row, float(_number(row.cells[0], row.where, most))


def _rows(
    lines: Iterable[str], file: str, path: str, where: str
) -> Iterator[tuple[str, list[str]]]:
    """The rows of a CSV file with their places, without the heading, if there is one."""
    try:
        for number, row in enumerate(csv.reader(lines), start=1):
            if number > MOST_ROWS:
                raise TrafficError(f"{file} has more than {MOST_ROWS} rows", path=path)
            place = f"{where}:{number}"
            if row and not (number == 1 and _is_heading(row, place)):
                yield place, row
    except csv.Error as error:
        raise TrafficError(f"{where} cannot be read: {error}", path=path) from error


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


def windows_of(
    traffic: ArrivalPattern, halt: int, noise: Stream, points: Sequence[patterns.RatePoint]
) -> Iterator[ArrivalWindow]:
    """How many requests are expected when, before ``halt`` at least."""
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
            return patterns.diurnal(day, halt, noise)
        case _:
            piecewise = traffic.piecewise or PiecewiseTraffic()
            linear = piecewise.interpolation is Interpolation.LINEAR
            return patterns.piecewise(points, linear, halt)


def _spikes(given: SpikesTraffic) -> patterns.Spikes:
    return patterns.Spikes(given.rps, given.spike_rps, given.every, given.width, given.after)


def _diurnal(given: DiurnalTraffic) -> patterns.Diurnal:
    return patterns.Diurnal(
        given.rps, given.amplitude, given.period, given.peak, given.noise, given.noise_every
    )


def rate_points(
    given: PiecewiseTraffic, folder: Path | None, halt: int, path: str
) -> list[patterns.RatePoint]:
    """The points of a piecewise pattern in the field ``path``, or of its file, within the run."""
    read = ArrivalSeries([(point.at, point.rps) for point in given.points], calendar=False)
    if given.file:
        rows = timed_rows(given.file, folder, f"{path}.file")
        read = ArrivalSeries.of(timed_values(rows, "rps", MOST_RPS))
    return [patterns.RatePoint(*each) for each in read.placed(given.origin, halt, path)]


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


def recorded(given: ReplayTraffic, folder: Path | None, halt: int, path: str) -> Integers:
    """The instants of a recording in the field ``path``, in order."""
    calendar = False
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


class PatternWindows:
    """The windows of a pattern that goes on for ever; a `WindowSource`."""

    def __init__(self, traffic: ArrivalPattern, noise: Stream, path: str, start: int) -> None:
        """Its times count from ``start``."""
        self._traffic = traffic
        self._noise = noise
        self._path = path
        self._start = start

    def before(self, halt: int) -> Iterator[ArrivalWindow]:
        points = list[patterns.RatePoint]()
        if self._traffic.pattern is Pattern.PIECEWISE:
            piecewise = self._traffic.piecewise or PiecewiseTraffic()
            points = rate_points(piecewise, None, NEVER, f"{self._path}.piecewise")
        until = max(halt - self._start, 0)
        for window in windows_of(self._traffic, until, deepcopy(self._noise), points):
            yield window._replace(start=window.start + self._start)
