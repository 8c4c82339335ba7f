"""What requests come and what they need, as TrafficRuns and Traffic objects say it alike.

Durations, CPU and memory are integers here (nanoseconds, millicores, bytes) and have their notation
in files (`units`). Names in files are the same in camelCase.
"""

from enum import StrEnum

import msgspec

from kubescene.clock import MILLISECOND, MINUTE, SECOND
from kubescene.flows.arrivals import Spacing
from kubescene.flows.units import Memory, Origin, Timeout, TrafficDuration
from kubescene.struct_types import build

DAY = 24 * 60 * MINUTE


class Pattern(StrEnum):
    UNIFORM = "uniform"
    STEP = "step"
    RAMP = "ramp"
    SINUSOIDAL = "sinusoidal"
    CONSTANT = "constant"
    SPIKES = "spikes"
    DIURNAL = "diurnal"
    PIECEWISE = "piecewise"
    REPLAY = "replay"


class CpuDemand(StrEnum):
    """Whether every request needs the same CPU time, or one drawn with that mean."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"


class Interpolation(StrEnum):
    STEP = "step"
    LINEAR = "linear"


class SpecPart(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A part of a spec: unknown fields are refused."""


class UniformTraffic(SpecPart, frozen=True, kw_only=True):
    """So many requests spread over ``width`` (the whole run if absent) from ``start`` on."""

    number_of_requests: int = 100
    start: TrafficDuration = TrafficDuration(0)
    width: TrafficDuration | None = None


class StepTraffic(SpecPart, frozen=True, kw_only=True):
    """Nothing until ``after``, then ``rps`` requests in every second."""

    rps: int = 10
    after: TrafficDuration = TrafficDuration(10 * SECOND)


class RampTraffic(SpecPart, frozen=True, kw_only=True):
    """Every second ``deltaV`` requests more, up to ``maxRps``, and down again."""

    delta_v: float = 1.0
    max_rps: int = 50


class SinusoidalTraffic(SpecPart, frozen=True, kw_only=True):
    """A sine between nothing and twice ``amplitude`` requests a second."""

    amplitude: int = 1
    period: TrafficDuration = TrafficDuration(50 * SECOND)


class ConstantTraffic(SpecPart, frozen=True, kw_only=True):
    """``rps`` requests a second from the first instant on."""

    rps: float = 10.0


class SpikesTraffic(SpecPart, frozen=True, kw_only=True):
    """``rps`` a second, and ``spikeRps`` for ``width``, first ``after``, then ``every`` so long."""

    rps: float = 10.0
    spike_rps: float = 100.0
    every: TrafficDuration = TrafficDuration(10 * MINUTE)
    width: TrafficDuration = TrafficDuration(MINUTE)
    after: TrafficDuration = TrafficDuration(MINUTE)


class DiurnalTraffic(SpecPart, frozen=True, kw_only=True):
    """A day: ``rps`` in the mean, a wave of ``amplitude`` (a share of it), highest at ``peak``.

    The rate is multiplied by a normal factor of mean 1 and standard deviation ``noise``, never
    below 0 and drawn anew every ``noiseEvery``: the less traffic, the less noise.
    """

    rps: float = 10.0
    amplitude: float = 0.5
    period: TrafficDuration = TrafficDuration(DAY)
    peak: TrafficDuration = TrafficDuration(DAY // 2)
    noise: float = 0.0
    noise_every: TrafficDuration = TrafficDuration(MINUTE)


class RateAt(SpecPart, frozen=True, kw_only=True):
    at: TrafficDuration
    rps: float


class PiecewiseTraffic(SpecPart, frozen=True, kw_only=True):
    """Rates at points in time, given here or in a CSV ``file`` with columns time and rps.

    Times are seconds, also since 1970, durations, or RFC 3339. ``origin`` is what they count from;
    if absent, the first time of a file where these are of the calendar, and 0 otherwise.
    """

    points: tuple[RateAt, ...] = ()
    file: str = ""
    origin: Origin | None = None
    interpolation: Interpolation = Interpolation.STEP


class ReplayTraffic(SpecPart, frozen=True, kw_only=True):
    """Recorded arrivals, given here or in the first column of a CSV ``file``.

    Times and ``origin`` as in ``piecewise``; a recording is sorted by time.
    """

    arrivals: tuple[TrafficDuration, ...] = ()
    file: str = ""
    origin: Origin | None = None


class ArrivalPattern(SpecPart, frozen=True, kw_only=True):
    """Which requests come. Only the part of the chosen pattern may be given."""

    pattern: Pattern = Pattern.STEP
    spacing: Spacing = Spacing.UNIFORM
    uniform: UniformTraffic | None = None
    step: StepTraffic | None = None
    ramp: RampTraffic | None = None
    sinusoidal: SinusoidalTraffic | None = None
    constant: ConstantTraffic | None = None
    spikes: SpikesTraffic | None = None
    diurnal: DiurnalTraffic | None = None
    piecewise: PiecewiseTraffic | None = None
    replay: ReplayTraffic | None = None


class RequestNeeds(SpecPart, frozen=True, kw_only=True):
    """What a request needs: CPU time on one core, then a wait, both within ``timeout``."""

    cpu_time: TrafficDuration = TrafficDuration(200 * MILLISECOND)
    io_time: TrafficDuration = TrafficDuration(200 * MILLISECOND)
    timeout: Timeout = Timeout(10 * SECOND)
    demand: CpuDemand = CpuDemand.CONSTANT


class MemoryModel(SpecPart, frozen=True, kw_only=True):
    """A replica uses ``base`` and ``perRequest`` for every request inside it.

    One that would use more than ``limit`` is killed with all that is inside (0 is no limit) and
    starts again: the first time at once, then after ``restartBackoff``, and twice as long each time
    up to 5 minutes, as a kubelet does; 10 minutes without a kill are a new beginning. Where a VPA
    changes the request, the limit changes in proportion. Without this part memory is not modelled:
    nobody measures it, and nobody changes it.
    """

    request: Memory = Memory(0)
    limit: Memory = Memory(0)
    base: Memory = Memory(1 << 20)
    per_request: Memory = Memory(0)
    restart_backoff: TrafficDuration = TrafficDuration(10 * SECOND)


class Objective(SpecPart, frozen=True, kw_only=True):
    """What a minute has to keep to be a good one: this share of requests within this time."""

    response_time: TrafficDuration = TrafficDuration(SECOND)
    percentile: float = 95.0


build(ArrivalPattern, RequestNeeds, MemoryModel, Objective)
