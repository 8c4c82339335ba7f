"""What ``POST /run`` takes: Skenario's fields and units, with its form's values as defaults.

Times are whole nanoseconds unless a name ends in ``millis``. ``seed`` and ``mode`` are ours.
Unknown fields are refused: nobody should wonder why one had no effect.
"""

from math import isfinite
from typing import Any

import msgspec

from kubescene.clock import MILLISECOND, SECOND
from kubescene.clock.timestamps import parse_time
from kubescene.errors import TrafficError
from kubescene.flows.fields import (
    ArrivalPattern,
    Pattern,
    RampTraffic,
    RequestNeeds,
    SinusoidalTraffic,
    StepTraffic,
    UniformTraffic,
)
from kubescene.flows.units import Timeout, TrafficDuration
from kubescene.flows.waiting import WhenNone
from kubescene.struct_types import build
from kubescene.traffic.spec.fields import (
    AutoscalerObject,
    Metadata,
    Mode,
    Replicas,
    TrafficRun,
    TrafficSpec,
)
from kubescene.traffic.spec.loading import checked

UNIFORM = "golang_rand_uniform"
PATTERNS = {
    UNIFORM: Pattern.UNIFORM,
    "step": Pattern.STEP,
    "ramp": Pattern.RAMP,
    "sinusoidal": Pattern.SINUSOIDAL,
}
FORM_HPA = """\
apiVersion: autoscaling/v2beta2
kind: HorizontalPodAutoscaler
metadata: {name: hpa, namespace: default}
spec:
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
  scaleTargetRef: {apiVersion: extensions/v1beta1, kind: Deployment, name: deployment}
"""
FORM_VPA = """\
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: my-app-vpa}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: my-app-deployment}
  updatePolicy: {updateMode: Auto}
"""
FORM_PLUGINS = {
    "hpa.v2beta2.autoscaling.k8s.io": FORM_HPA,
    "vpa.v1.autoscaling.k8s.io": FORM_VPA,
}


class _RequestFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields as they stand in a request."""


class UniformConfig(_RequestFields, frozen=True, kw_only=True):
    number_of_requests: int = 100
    start_at: str | None = None
    run_for: int | None = None


class StepConfig(_RequestFields, frozen=True, kw_only=True):
    rps: int = 10
    step_after: int = 10 * SECOND


class RampConfig(_RequestFields, frozen=True, kw_only=True):
    delta_v: float = 1.0
    max_rps: int = 50


class SinusoidalConfig(_RequestFields, frozen=True, kw_only=True):
    amplitude: int = 1
    period: int = 50 * SECOND


class SkenarioRequest(_RequestFields, frozen=True, kw_only=True):
    """The body. ``in_memory_database`` is read and changes nothing: the server's store is one."""

    run_for: int = 180 * SECOND
    traffic_pattern: str = "step"
    in_memory_database: bool = True
    initial_number_of_replicas: int = 1
    launch_delay: int = 5 * SECOND
    terminate_delay: int = SECOND
    tick_interval: int = 15 * SECOND
    plugins: dict[str, str] = msgspec.field(default_factory=FORM_PLUGINS.copy)
    request_timeout_nanos: int = 10 * SECOND
    request_cpu_time_millis: int = 200
    request_io_time_millis: int = 200
    uniform_config: UniformConfig = UniformConfig()
    ramp_config: RampConfig = RampConfig()
    step_config: StepConfig = StepConfig()
    sinusoidal_config: SinusoidalConfig = SinusoidalConfig()
    seed: int = 0
    mode: Mode = Mode.FIXED


FIELDS = {
    "spec.duration": "run_for",
    "spec.seed": "seed",
    "spec.horizontalInterval": "tick_interval",
    "spec.verticalInterval": "tick_interval",
    "spec.statInterval": "run_for",
    "spec.replicas.initial": "initial_number_of_replicas",
    "spec.request.cpuTime": "request_cpu_time_millis",
    "spec.request.timeout": "request_timeout_nanos",
    "spec.traffic.uniform.numberOfRequests": "uniform_config.number_of_requests",
    "spec.traffic.uniform.width": "uniform_config.run_for",
    "spec.traffic.step.rps": "step_config.rps",
    "spec.traffic.ramp.deltaV": "ramp_config.delta_v",
    "spec.traffic.ramp.maxRps": "ramp_config.max_rps",
    "spec.traffic.sinusoidal.amplitude": "sinusoidal_config.amplitude",
    "spec.traffic.sinusoidal.period": "sinusoidal_config.period",
    "spec.traffic": "traffic_pattern",
}
"""Where a fault of the run lies in the request."""


def run_requested(request: SkenarioRequest, name: str = "run") -> TrafficRun:
    """The TrafficRun of a request; faults are `TrafficError` with the request's field."""
    check_request(request)
    try:
        return checked(TrafficRun(metadata=Metadata(name=name), spec=_spec(request)))
    except TrafficError as error:
        raise in_the_request(error, request) from error


def in_the_request(error: TrafficError, request: SkenarioRequest) -> TrafficError:
    """The same fault, with the name that the field has in the request."""
    path = FIELDS.get(error.path, error.path)
    if path.startswith("spec.autoscalers"):
        index = path.removeprefix("spec.autoscalers").partition("]")[0].lstrip("[")
        types = list(request.plugins)
        path = f"plugins[{types[int(index)]!r}]" if index.isdecimal() else "plugins"
    return TrafficError(error.message, path=path)


def read_request(document: Any) -> SkenarioRequest:
    """The request of a decoded body."""
    if not isinstance(document, dict):
        raise TrafficError("the body must be a JSON object")
    try:
        return msgspec.convert(document, SkenarioRequest)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        raise TrafficError(what, path=where.strip(".`")) from error


def check_request(request: SkenarioRequest) -> None:
    """What types cannot say and the run would not see."""
    if request.traffic_pattern not in PATTERNS:
        given = request.traffic_pattern
        raise TrafficError(
            f"there is no pattern {given!r}: use {', '.join(PATTERNS)}", path="traffic_pattern"
        )
    for name in ("launch_delay", "terminate_delay"):
        _not_negative(getattr(request, name), name)
    for name in ("request_timeout_nanos", "request_cpu_time_millis", "request_io_time_millis"):
        _not_negative(getattr(request, name), name)
    _not_negative(request.step_config.step_after, "step_config.step_after")
    for name in ("run_for", "tick_interval"):
        if getattr(request, name) <= 0:
            raise TrafficError("must be more than 0 nanoseconds", path=name)
    if not isfinite(request.ramp_config.delta_v):
        raise TrafficError("must be a finite number", path="ramp_config.delta_v")


LARGEST = 1 << 62


def _not_negative(value: int, path: str) -> None:
    if not 0 <= value < LARGEST // MILLISECOND * (1 if path.endswith("millis") else MILLISECOND):
        raise TrafficError(f"must be neither negative nor beyond 64 bits, not {value}", path=path)


def _spec(request: SkenarioRequest) -> TrafficSpec:
    tick = TrafficDuration(request.tick_interval)
    return TrafficSpec(
        duration=TrafficDuration(request.run_for),
        seed=request.seed,
        mode=request.mode,
        when_none=WhenNone.REFUSE,
        traffic=_traffic(request),
        request=RequestNeeds(
            cpu_time=TrafficDuration(request.request_cpu_time_millis * MILLISECOND),
            io_time=TrafficDuration(request.request_io_time_millis * MILLISECOND),
            timeout=Timeout(request.request_timeout_nanos),
        ),
        replicas=Replicas(
            initial=request.initial_number_of_replicas,
            launch_delay=TrafficDuration(request.launch_delay),
            terminate_delay=TrafficDuration(request.terminate_delay),
        ),
        horizontal_interval=tick,
        vertical_interval=tick,
        autoscalers=tuple(
            AutoscalerObject(type=kind, yaml=text) for kind, text in request.plugins.items()
        ),
    )


def _traffic(request: SkenarioRequest) -> ArrivalPattern:
    pattern = PATTERNS[request.traffic_pattern]
    match pattern:
        case Pattern.UNIFORM:
            return ArrivalPattern(pattern=pattern, uniform=_uniform(request.uniform_config))
        case Pattern.STEP:
            step = request.step_config
            part = StepTraffic(rps=step.rps, after=TrafficDuration(step.step_after))
            return ArrivalPattern(pattern=pattern, step=part)
        case Pattern.RAMP:
            ramp = request.ramp_config
            rising = RampTraffic(delta_v=ramp.delta_v, max_rps=ramp.max_rps)
            return ArrivalPattern(pattern=pattern, ramp=rising)
        case _:
            sine = request.sinusoidal_config
            wave = SinusoidalTraffic(amplitude=sine.amplitude, period=TrafficDuration(sine.period))
            return ArrivalPattern(pattern=pattern, sinusoidal=wave)


def _uniform(given: UniformConfig) -> UniformTraffic:
    """``start_at`` is an instant; a run begins at 1970-01-01T00:00:00Z."""
    start = 0
    if given.start_at is not None:
        try:
            start = parse_time(given.start_at)
        except ValueError as error:
            raise TrafficError(str(error), path="uniform_config.start_at") from None
        _not_negative(start, "uniform_config.start_at")
    width = None if given.run_for is None else TrafficDuration(given.run_for)
    return UniformTraffic(
        number_of_requests=given.number_of_requests, start=TrafficDuration(start), width=width
    )


build(SkenarioRequest)
