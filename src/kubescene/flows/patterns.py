"""Patterns of traffic: how many requests are expected in each second.

The first four are Skenario's, with its formulas: all of them give whole numbers of requests for
each second. The others give any rate. Every pattern is a generator of windows in order of time,
which may go on past the end of a run.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubescene.clock import SECOND, Stream
from kubescene.clock.draws import cosine
from kubescene.flows.arrivals import ONE, ArrivalWindow, whole_second

_QUARTER = 1 << 30
_TURN_BITS = 32


def uniform(number_of_requests: int, start: int, width: int) -> Iterator[ArrivalWindow]:
    """So many requests, spread over one span of time."""
    if number_of_requests and width:
        yield ArrivalWindow(start, width, number_of_requests * ONE)


def step(rps: int, after: int, halt: int) -> Iterator[ArrivalWindow]:
    """Nothing, then ``rps`` requests in every second."""
    for start in range(after, halt, SECOND):
        yield whole_second(start, rps * ONE)


def ramp(delta_v: float, max_rps: int) -> Iterator[ArrivalWindow]:
    """A second more by ``delta_v`` up to ``max_rps``, and down again; the peak comes twice."""
    for number, rps in enumerate(ramp_rates(delta_v, max_rps)):
        yield whole_second(number * SECOND, rps * ONE)


def ramp_rates(delta_v: float, max_rps: int) -> Iterator[int]:
    rate = delta_v
    while int(rate) <= max_rps:
        yield int(rate)
        rate += delta_v
    while rate > 0:
        rate -= delta_v
        yield max(int(rate), 0)


def sinusoidal(amplitude: int, period: int, halt: int) -> Iterator[ArrivalWindow]:
    """A sine around ``amplitude``, by whole seconds."""
    for start in range(0, halt, SECOND):
        yield whole_second(start, sinusoidal_rate(amplitude, period, start) * ONE)


def sinusoidal_rate(amplitude: int, period: int, instant: int) -> int:
    """``A sin(2 pi t / P) + A``, t in whole seconds, half away from zero."""
    sine = sine_at(instant // SECOND * SECOND, period)
    return amplitude + ((amplitude * sine + _QUARTER // 2) >> 30)


def sine_at(instant: int, period: int) -> int:
    """The sine of ``instant / period`` turns, Q30."""
    turn = (((instant % period) << _TURN_BITS) + period // 2) // period
    return cosine(turn - _QUARTER)


def constant(rps: float, halt: int) -> Iterator[ArrivalWindow]:
    mass = mass_of(rps)
    for start in range(0, halt, SECOND):
        yield whole_second(start, mass)


class Spikes(NamedTuple):
    """``rps``, and ``spike_rps`` for ``width`` in every ``every``, the first after ``after``."""

    rps: float
    spike_rps: float
    every: int
    width: int
    after: int


def spikes(shape: Spikes, halt: int) -> Iterator[ArrivalWindow]:
    """The borders of spikes are borders of windows: they need not be whole seconds."""
    low, high = mass_of(shape.rps), mass_of(shape.spike_rps)
    start = 0
    for spike in range(shape.after, halt, shape.every):
        yield from span(start, spike, low)
        start = spike + shape.width
        yield from span(spike, start, high)
    if start < halt:
        yield from span(start, halt, low)


class Diurnal(NamedTuple):
    """A day: a cosine around ``rps`` that is highest at ``peak``, and noise on it.

    ``amplitude`` is a share of ``rps``. The rate is multiplied by a normal factor of mean 1 and
    standard deviation ``noise``, which holds for ``noise_every`` and is never below 0.
    """

    rps: float
    amplitude: float
    period: int
    peak: int
    noise: float
    noise_every: int


def diurnal(shape: Diurnal, halt: int, stream: Stream) -> Iterator[ArrivalWindow]:
    mean, swing = mass_of(shape.rps), mass_of(shape.amplitude)
    deviation = mass_of(shape.noise)
    factor, noisy_until = ONE, 0
    for start in range(0, halt, SECOND):
        if deviation and start >= noisy_until:
            factor = max(ONE + stream.normal(0, deviation), 0)
            noisy_until += shape.noise_every
        wave = cosine((((start - shape.peak) % shape.period) << _TURN_BITS) // shape.period)
        share = (ONE + (swing * wave >> 30)) * factor >> 32
        yield whole_second(start, mean * share >> 32)


class RatePoint(NamedTuple):
    """From this instant on (or, between points, on the way to the next) this rate."""

    instant: int
    rps: float


def piecewise(points: Sequence[RatePoint], linear: bool, halt: int) -> Iterator[ArrivalWindow]:
    """Rates between points, as steps or on straight lines; before the first there is nothing."""
    ends = [*points[1:], RatePoint(max(halt, points[-1].instant), points[-1].rps)]
    for here, following in zip(points, ends, strict=True):
        low, high = mass_of(here.rps), mass_of(following.rps)
        if not linear:
            yield from span(here.instant, following.instant, low)
        elif following.instant > here.instant:
            yield from slope(here.instant, following.instant, low, high)


def span(start: int, end: int, per_second: int) -> Iterator[ArrivalWindow]:
    """Windows of a second, the last one shorter."""
    for begin in range(start, end, SECOND):
        width = min(SECOND, end - begin)
        yield ArrivalWindow(begin, width, per_second * width // SECOND)


def slope(start: int, end: int, low: int, high: int) -> Iterator[ArrivalWindow]:
    """The same on a straight line: each window has the rate of its middle."""
    for begin in range(start, end, SECOND):
        width = min(SECOND, end - begin)
        middle = 2 * (begin - start) + width
        rate = low + (high - low) * middle // (2 * (end - start))
        yield ArrivalWindow(begin, width, rate * width // SECOND)


def mass_of(rps: float) -> int:
    """A rate as requests a second, Q32; exact, since it only multiplies by a power of two."""
    return int(rps * ONE)
