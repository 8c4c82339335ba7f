"""What a TrafficRun says, field by field. Defaults are those of Skenario's form.

Durations, CPU and memory are integers here (nanoseconds, millicores, bytes) and have their notation
in files (`units`). Names in files are the same in camelCase.
"""

from enum import StrEnum
from typing import Any

import msgspec

from kubescene.clock import MILLISECOND, MINUTE, SECOND
from kubescene.struct_types import build
from kubescene.traffic.arrivals.arrivals import Spacing
from kubescene.traffic.flow.routing import Routing
from kubescene.traffic.flow.waiting import WhenNone
from kubescene.traffic.spec.units import Cpu, Memory, Origin, Timeout, TrafficDuration
from kubescene.traffic.world.replicas import ReplicaVictims

API_VERSION, KIND = "kubescene.dev/v1alpha1", "TrafficRun"
DAY = 24 * 60 * MINUTE


class Mode(StrEnum):
    """``fixed``: what Skenario got wrong is mended. ``faithful``: its rules, to the nanosecond."""

    FIXED = "fixed"
    FAITHFUL = "faithful"


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


class Replacement(StrEnum):
    """How a replica of a wrong size is replaced.

    ``surge``: the new one is active before the old one leaves, as in Skenario. ``recreate``: the
    old one is evicted first, as an updater does. ``auto``: as whoever asked for it does.
    """

    AUTO = "auto"
    SURGE = "surge"
    RECREATE = "recreate"


class UpdateRule(StrEnum):
    """Who decides which replicas a VPA replaces.

    ``updater``: the rules of the real updater. ``seed``: every replica outside the bounds.
    """

    UPDATER = "updater"
    SEED = "seed"


class _SpecPart(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """A part of a spec: unknown fields are refused."""


class UniformTraffic(_SpecPart, frozen=True, kw_only=True):
    """So many requests spread over ``width`` (the whole run if absent) from ``start`` on."""

    number_of_requests: int = 100
    start: TrafficDuration = TrafficDuration(0)
    width: TrafficDuration | None = None


class StepTraffic(_SpecPart, frozen=True, kw_only=True):
    """Nothing until ``after``, then ``rps`` requests in every second."""

    rps: int = 10
    after: TrafficDuration = TrafficDuration(10 * SECOND)


class RampTraffic(_SpecPart, frozen=True, kw_only=True):
    """Every second ``deltaV`` requests more, up to ``maxRps``, and down again."""

    delta_v: float = 1.0
    max_rps: int = 50


class SinusoidalTraffic(_SpecPart, frozen=True, kw_only=True):
    """A sine between nothing and twice ``amplitude`` requests a second."""

    amplitude: int = 1
    period: TrafficDuration = TrafficDuration(50 * SECOND)


class ConstantTraffic(_SpecPart, frozen=True, kw_only=True):
    """``rps`` requests a second from the first instant on."""

    rps: float = 10.0


class SpikesTraffic(_SpecPart, frozen=True, kw_only=True):
    """``rps`` a second, and ``spikeRps`` for ``width``, first ``after``, then ``every`` so long."""

    rps: float = 10.0
    spike_rps: float = 100.0
    every: TrafficDuration = TrafficDuration(10 * MINUTE)
    width: TrafficDuration = TrafficDuration(MINUTE)
    after: TrafficDuration = TrafficDuration(MINUTE)


class DiurnalTraffic(_SpecPart, frozen=True, kw_only=True):
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


class RateAt(_SpecPart, frozen=True, kw_only=True):
    at: TrafficDuration
    rps: float


class PiecewiseTraffic(_SpecPart, frozen=True, kw_only=True):
    """Rates at points in time, given here or in a CSV ``file`` with columns time and rps.

    Times are seconds, also since 1970, durations, or RFC 3339. ``origin`` is what they count from;
    if absent, the first time of a file where these are of the calendar, and 0 otherwise.
    """

    points: tuple[RateAt, ...] = ()
    file: str = ""
    origin: Origin | None = None
    interpolation: Interpolation = Interpolation.STEP


class ReplayTraffic(_SpecPart, frozen=True, kw_only=True):
    """Recorded arrivals, given here or in the first column of a CSV ``file``.

    Times and ``origin`` as in ``piecewise``; a recording is sorted by time.
    """

    arrivals: tuple[TrafficDuration, ...] = ()
    file: str = ""
    origin: Origin | None = None


class Traffic(_SpecPart, frozen=True, kw_only=True):
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


class RequestNeeds(_SpecPart, frozen=True, kw_only=True):
    """What a request needs: CPU time on one core, then a wait, both within ``timeout``."""

    cpu_time: TrafficDuration = TrafficDuration(200 * MILLISECOND)
    io_time: TrafficDuration = TrafficDuration(200 * MILLISECOND)
    timeout: Timeout = Timeout(10 * SECOND)
    demand: CpuDemand = CpuDemand.CONSTANT


class MemoryModel(_SpecPart, frozen=True, kw_only=True):
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


class Replicas(_SpecPart, frozen=True, kw_only=True):
    """The service. ``limit``: at most so many requests share a replica, the others wait in order.

    ``requestCpu`` is the most CPU that one request can use; 0 is no bound in both.
    """

    initial: int = 1
    cpu: Cpu = Cpu(1000)
    memory: MemoryModel | None = None
    limit: int = 0
    request_cpu: Cpu = Cpu(0)
    launch_delay: TrafficDuration = TrafficDuration(5 * SECOND)
    terminate_delay: TrafficDuration = TrafficDuration(SECOND)
    grace_period: TrafficDuration = TrafficDuration(30 * SECOND)
    victims: ReplicaVictims = ReplicaVictims.OLDEST
    replacement: Replacement = Replacement.AUTO


class ValueAt(_SpecPart, frozen=True, kw_only=True):
    at: TrafficDuration
    value: float


class ExternalMetricSeries(_SpecPart, frozen=True, kw_only=True):
    """A metric from outside, for HPAs of type External: what its API answers from each point on.

    Points are given here or in a CSV ``file`` with columns time and value, with times and
    ``origin`` as in ``piecewise``. Before the first point there is no such metric.
    """

    name: str
    points: tuple[ValueAt, ...] = ()
    file: str = ""
    origin: Origin | None = None


class Metrics(_SpecPart, frozen=True, kw_only=True):
    """A replica is first measured so long after it became active; samples arrive ``lag`` later.

    What is measured of the whole service (`queue_length`, `latency_p95` and so on) is so every
    ``statInterval`` from the start on, over that time, and arrives ``lag`` later, too.
    """

    first_after: TrafficDuration = TrafficDuration(5 * SECOND)
    lag: TrafficDuration = TrafficDuration(4 * SECOND)
    external: tuple[ExternalMetricSeries, ...] = ()


class FaithfulRules(_SpecPart, frozen=True, kw_only=True):
    """What only faithful mode knows: constants that Skenario has in its code."""

    drain_per_request: TrafficDuration = TrafficDuration(SECOND)
    queue_servers: int = 100
    saturation: float = 0.96
    epsilon: float = 0.001


class AutoscalerObject(_SpecPart, frozen=True, kw_only=True):
    """An autoscaler of the run, by its object, or by the YAML of it.

    ``type`` follows from apiVersion and kind where these are of Kubernetes.
    """

    type: str = ""
    object: dict[str, Any] | None = None
    yaml: str = ""


class AutoscalerGates(_SpecPart, frozen=True, kw_only=True):
    """Gates of the autoscalers, by their names. ``InPlace`` opens the VPA's update mode InPlace.

    ``HPAConfigurableTolerance``: the ``tolerance`` of an HPA's ``behavior`` counts.
    ``HPAScaleToZero``: an HPA on Object or External metrics may have ``minReplicas: 0``.
    """

    in_place: bool = msgspec.field(default=False, name="InPlace")
    configurable_tolerance: bool = msgspec.field(default=True, name="HPAConfigurableTolerance")
    scale_to_zero: bool = msgspec.field(default=False, name="HPAScaleToZero")


class HpaController(_SpecPart, frozen=True, kw_only=True):
    """Flags of kube-controller-manager, ``--horizontal-pod-autoscaler-...``.

    Its sync period is ``horizontalInterval``. Two defaults are those of Skenario's plugin;
    kube-controller-manager has 5m for ``cpuInitializationPeriod`` and 30s for
    ``initialReadinessDelay``.
    """

    tolerance: float = 0.1
    downscale_stabilization: TrafficDuration = TrafficDuration(5 * MINUTE)
    cpu_initialization_period: TrafficDuration = TrafficDuration(2 * MINUTE)
    initial_readiness_delay: TrafficDuration = TrafficDuration(10 * SECOND)


class Objective(_SpecPart, frozen=True, kw_only=True):
    """What a minute has to keep to be a good one: this share of requests within this time."""

    response_time: TrafficDuration = TrafficDuration(SECOND)
    percentile: float = 95.0


class TrafficSpec(_SpecPart, frozen=True, kw_only=True):
    """A run, complete: with the same version it gives the same bytes.

    ``whenNone`` says what becomes of requests while no replica is active. ``refuse``: they fail at
    once, as behind a Service without endpoints. ``wait``: they wait for one, up to their time-outs,
    as in Knative's activator. ``auto``: they wait where a ConcurrencyAutoscaler scales.
    """

    duration: TrafficDuration = TrafficDuration(180 * SECOND)
    seed: int = 0
    mode: Mode = Mode.FIXED
    traffic: Traffic = Traffic()
    request: RequestNeeds = RequestNeeds()
    replicas: Replicas = Replicas()
    routing: Routing = Routing.ROUND_ROBIN
    when_none: WhenNone = WhenNone.AUTO
    metrics: Metrics = Metrics()
    stat_interval: TrafficDuration = TrafficDuration(10 * SECOND)
    horizontal_interval: TrafficDuration = TrafficDuration(15 * SECOND)
    vertical_interval: TrafficDuration = TrafficDuration(15 * SECOND)
    update_rule: UpdateRule = UpdateRule.UPDATER
    feature_gates: AutoscalerGates = AutoscalerGates()
    hpa_controller: HpaController = HpaController()
    autoscalers: tuple[AutoscalerObject, ...] = ()
    objective: Objective = Objective()
    faithful: FaithfulRules = FaithfulRules()


class Metadata(_SpecPart, frozen=True, kw_only=True):
    name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class TrafficRun(_SpecPart, frozen=True, kw_only=True):
    """The file: a spec with a name."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: Metadata = Metadata(name="traffic")
    spec: TrafficSpec = TrafficSpec()


build(TrafficRun)
