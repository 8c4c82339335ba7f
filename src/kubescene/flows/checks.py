"""What a type cannot say about arrivals and requests: ranges, and fields that go together."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

from kubescene.flows.fields import (
    ArrivalPattern,
    DiurnalTraffic,
    Pattern,
    PiecewiseTraffic,
    RampTraffic,
    ReplayTraffic,
    RequestNeeds,
    SinusoidalTraffic,
    SpikesTraffic,
    UniformTraffic,
)
from kubescene.flows.units import TrafficDuration

MOST_RPS = 10_000_000

MOST_TICKS = 10_000_000

MOST_CPU_TIME = 1 << 45
"""Longer demands do not fit the numbers that random ones are drawn in: 9.7 hours."""

Fault = tuple[str, str]


def positive(spec: Any, name: str, path: str = "") -> Iterator[Fault]:
    value = getattr(spec, snake(name))
    if value <= 0:
        yield f"{path}{name}", f"must be longer than 0s, not {value}"


def repeating(duration: TrafficDuration, interval: TrafficDuration, path: str) -> Iterator[Fault]:
    """What happens again and again must not happen too often."""
    if interval <= 0:
        yield path, f"must be longer than 0s, not {interval}"
    elif duration // interval > MOST_TICKS:
        yield path, f"{interval} would pass more than {MOST_TICKS} times in {duration}"


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _rate(value: float, path: str) -> Iterator[Fault]:
    if not isfinite(value) or not 0 <= value <= MOST_RPS:
        yield path, f"must be a number of requests a second from 0 to {MOST_RPS}, not {value}"


def arrival_faults(
    traffic: ArrivalPattern, duration: TrafficDuration, name: str
) -> Iterator[Fault]:
    """Of a pattern in the field ``name``, in a run that is so long."""
    for pattern in Pattern:
        if pattern is not traffic.pattern and getattr(traffic, pattern.value) is not None:
            yield f"{name}.{pattern.value}", f"does not go with the pattern {traffic.pattern}"
    chosen = getattr(traffic, traffic.pattern.value)
    path = f"{name}.{traffic.pattern.value}."
    if chosen is not None:
        for rate in ("rps", "spike_rps", "max_rps", "amplitude"):
            if hasattr(chosen, rate) and not (
                rate == "amplitude" and isinstance(chosen, DiurnalTraffic)
            ):
                yield from _rate(getattr(chosen, rate), f"{path}{_camel(rate)}")
        yield from _pattern_faults(chosen, path)
        if isinstance(chosen, SpikesTraffic):
            yield from repeating(duration, chosen.every, f"{path}every")
    elif traffic.pattern in (Pattern.PIECEWISE, Pattern.REPLAY):
        yield f"{name}.{traffic.pattern.value}", "is missing: it says what to play"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


def _pattern_faults(chosen: Any, path: str) -> Iterator[Fault]:
    match chosen:
        case UniformTraffic():
            yield from _uniform_faults(chosen, path)
        case RampTraffic():
            if not isfinite(chosen.delta_v) or not 1e-6 <= chosen.delta_v <= MOST_RPS:
                yield f"{path}deltaV", f"must be at least 0.000001, not {chosen.delta_v}"
        case SinusoidalTraffic():
            yield from positive(chosen, "period", path)
        case SpikesTraffic():
            if chosen.width > chosen.every:
                yield f"{path}width", "must not be longer than every: spikes would overlap"
        case DiurnalTraffic():
            yield from _diurnal_faults(chosen, path)
        case PiecewiseTraffic() | ReplayTraffic():
            yield from _series_faults(chosen, path)


def _uniform_faults(chosen: UniformTraffic, path: str) -> Iterator[Fault]:
    if not 0 <= chosen.number_of_requests < 1 << 31:
        yield f"{path}numberOfRequests", "must be from 0 to 2147483647"
    if chosen.width is not None:
        yield from positive(chosen, "width", path)


def _diurnal_faults(chosen: DiurnalTraffic, path: str) -> Iterator[Fault]:
    yield from positive(chosen, "period", path)
    yield from positive(chosen, "noiseEvery", path)
    for name in ("amplitude", "noise"):
        value = getattr(chosen, name)
        if not isfinite(value) or not 0 <= value <= 1:
            yield f"{path}{name}", f"must be a share from 0 to 1, not {value}"


def _series_faults(chosen: PiecewiseTraffic | ReplayTraffic, path: str) -> Iterator[Fault]:
    here = "points" if isinstance(chosen, PiecewiseTraffic) else "arrivals"
    given = getattr(chosen, here)
    if bool(given) == bool(chosen.file):
        yield f"{path}{here}", f"give either {here} or file"
    if isinstance(chosen, PiecewiseTraffic):
        before = -1
        for index, point in enumerate(chosen.points):
            yield from _rate(point.rps, f"{path}points[{index}].rps")
            if point.at <= before:
                yield f"{path}points[{index}].at", "must come after the point before it"
            before = point.at


def request_faults(request: RequestNeeds) -> Iterator[Fault]:
    if request.cpu_time >= MOST_CPU_TIME:
        yield "request.cpuTime", "must be shorter than 9.7 hours"
