"""What a TrafficRun says, field by field. Defaults are those of Skenario's form.

Durations, CPU and memory are integers here (nanoseconds, millicores, bytes) and have their notation
in files (`units`). Names in files are the same in camelCase.
"""

from enum import StrEnum
from typing import Any

import msgspec

from kubescene.clock import MINUTE, SECOND
from kubescene.flows.fields import (
    ArrivalPattern,
    MemoryModel,
    Objective,
    RequestNeeds,
    SpecPart,
)
from kubescene.flows.routing import Routing
from kubescene.flows.units import Cpu, Origin, TrafficDuration
from kubescene.flows.waiting import WhenNone
from kubescene.struct_types import build
from kubescene.traffic.world.replicas import ReplicaVictims

API_VERSION, KIND = "kubescene.dev/v1alpha1", "TrafficRun"


class Mode(StrEnum):
    """``fixed``: what Skenario got wrong is mended. ``faithful``: its rules, to the nanosecond."""

    FIXED = "fixed"
    FAITHFUL = "faithful"


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


class Replicas(SpecPart, frozen=True, kw_only=True):
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


class ValueAt(SpecPart, frozen=True, kw_only=True):
    at: TrafficDuration
    value: float


class ExternalMetricSeries(SpecPart, frozen=True, kw_only=True):
    """A metric from outside, for HPAs of type External: what its API answers from each point on.

    Points are given here or in a CSV ``file`` with columns time and value, with times and
    ``origin`` as in ``piecewise``. Before the first point there is no such metric.
    """

    name: str
    points: tuple[ValueAt, ...] = ()
    file: str = ""
    origin: Origin | None = None


class Metrics(SpecPart, frozen=True, kw_only=True):
    """A replica is first measured so long after it became active; samples arrive ``lag`` later.

    What is measured of the whole service (`queue_length`, `latency_p95` and so on) is so every
    ``statInterval`` from the start on, over that time, and arrives ``lag`` later, too.
    """

    first_after: TrafficDuration = TrafficDuration(5 * SECOND)
    lag: TrafficDuration = TrafficDuration(4 * SECOND)
    external: tuple[ExternalMetricSeries, ...] = ()


class FaithfulRules(SpecPart, frozen=True, kw_only=True):
    """What only faithful mode knows: constants that Skenario has in its code."""

    drain_per_request: TrafficDuration = TrafficDuration(SECOND)
    queue_servers: int = 100
    saturation: float = 0.96
    epsilon: float = 0.001


class AutoscalerObject(SpecPart, frozen=True, kw_only=True):
    """An autoscaler of the run, by its object, or by the YAML of it.

    ``type`` follows from apiVersion and kind where these are of Kubernetes.
    """

    type: str = ""
    object: dict[str, Any] | None = None
    yaml: str = ""


class AutoscalerGates(SpecPart, frozen=True, kw_only=True):
    """Gates of the autoscalers, by their names. ``InPlace`` opens the VPA's update mode InPlace.

    ``HPAConfigurableTolerance``: the ``tolerance`` of an HPA's ``behavior`` counts.
    ``HPAScaleToZero``: an HPA on Object or External metrics may have ``minReplicas: 0``.
    """

    in_place: bool = msgspec.field(default=False, name="InPlace")
    configurable_tolerance: bool = msgspec.field(default=True, name="HPAConfigurableTolerance")
    scale_to_zero: bool = msgspec.field(default=False, name="HPAScaleToZero")


class HpaController(SpecPart, frozen=True, kw_only=True):
    """Flags of kube-controller-manager, ``--horizontal-pod-autoscaler-...``.

    Its sync period is ``horizontalInterval``. Two defaults are those of Skenario's plugin;
    kube-controller-manager has 5m for ``cpuInitializationPeriod`` and 30s for
    ``initialReadinessDelay``.
    """

    tolerance: float = 0.1
    downscale_stabilization: TrafficDuration = TrafficDuration(5 * MINUTE)
    cpu_initialization_period: TrafficDuration = TrafficDuration(2 * MINUTE)
    initial_readiness_delay: TrafficDuration = TrafficDuration(10 * SECOND)


class TrafficSpec(SpecPart, frozen=True, kw_only=True):
    """A run, complete: with the same version it gives the same bytes.

    ``whenNone`` says what becomes of requests while no replica is active. ``refuse``: they fail at
    once, as behind a Service without endpoints. ``wait``: they wait for one, up to their time-outs,
    as in Knative's activator. ``auto``: they wait where a ConcurrencyAutoscaler scales.
    """

    duration: TrafficDuration = TrafficDuration(180 * SECOND)
    seed: int = 0
    mode: Mode = Mode.FIXED
    traffic: ArrivalPattern = ArrivalPattern()
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


class Metadata(SpecPart, frozen=True, kw_only=True):
    name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class TrafficRun(SpecPart, frozen=True, kw_only=True):
    """The file: a spec with a name."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: Metadata = Metadata(name="traffic")
    spec: TrafficSpec = TrafficSpec()


build(TrafficRun)
