"""What a type cannot say about a spec: ranges, and fields that go together."""

from collections.abc import Iterator
from math import isfinite

from kubescene.autoscalers.interfaces import CUSTOM_METRICS
from kubescene.errors import TrafficError
from kubescene.flows.checks import (
    Fault,
    arrival_faults,
    positive,
    repeating,
    request_faults,
    snake,
)
from kubescene.flows.fields import DAY, MemoryModel
from kubescene.flows.routing import Routing
from kubescene.flows.units import Cpu, Memory, TrafficDuration
from kubescene.flows.waiting import WhenNone
from kubescene.traffic.spec.fields import (
    AutoscalerObject,
    ExternalMetricSeries,
    Mode,
    TrafficSpec,
)

LONGEST = 31 * DAY
MOST_REPLICAS = 100_000
MOST_VALUE = 10**12
SEED_RANGE = (-(2**63), 2**63 - 1)


def check(spec: TrafficSpec) -> None:
    """Raise a `TrafficError` for the first fault."""
    for path, message in faults(spec):
        raise TrafficError(message, path=f"spec.{path}")


def faults(spec: TrafficSpec) -> Iterator[Fault]:
    """Every fault: the way to the field from ``spec``, and what is wrong there."""
    yield from positive(spec, "duration")
    for name in ("statInterval", "horizontalInterval", "verticalInterval"):
        yield from repeating(spec.duration, getattr(spec, snake(name)), name)
    if not SEED_RANGE[0] <= spec.seed <= SEED_RANGE[1]:
        yield "seed", "must fit into 64 bits"
    if spec.duration > LONGEST:
        yield "duration", f"must not be longer than 31 days ({TrafficDuration(LONGEST)})"
    yield from arrival_faults(spec.traffic, spec.duration, "traffic")
    yield from request_faults(spec.request)
    yield from _replica_faults(spec)
    yield from _autoscaler_faults(spec.autoscalers)
    yield from _external_faults(spec.metrics.external)
    if not isfinite(spec.hpa_controller.tolerance) or not 0 <= spec.hpa_controller.tolerance < 1:
        told = f"must be a share from 0 to less than 1, not {spec.hpa_controller.tolerance}"
        yield "hpaController.tolerance", told
    if not 0 < spec.objective.percentile <= 100:
        yield "objective.percentile", "must be more than 0 and at most 100"
    yield from _faithful_faults(spec)


def _replica_faults(spec: TrafficSpec) -> Iterator[Fault]:
    replicas = spec.replicas
    if not 0 <= replicas.initial <= MOST_REPLICAS:
        yield "replicas.initial", f"must be from 0 to {MOST_REPLICAS}, not {replicas.initial}"
    if not 1 <= replicas.cpu < 1 << 31:
        yield "replicas.cpu", f"must be from 1m to {Cpu((1 << 31) - 1)}, not {replicas.cpu}"
    if not 0 <= replicas.limit < 1 << 31:
        yield "replicas.limit", f"must be from 0 to {(1 << 31) - 1}, not {replicas.limit}"
    if replicas.memory is not None and replicas.memory.limit:
        yield from _memory_faults(replicas.memory)


def _memory_faults(memory: MemoryModel) -> Iterator[Fault]:
    if memory.limit < memory.request:
        yield "replicas.memory.limit", f"must not be less than the request, {memory.request}"
    if memory.limit < memory.base + memory.per_request:
        needed = Memory(memory.base + memory.per_request)
        yield "replicas.memory.limit", f"leaves no room for a single request, which needs {needed}"


def _autoscaler_faults(objects: tuple[AutoscalerObject, ...]) -> Iterator[Fault]:
    for index, each in enumerate(objects):
        path = f"autoscalers[{index}]"
        if each.object is not None and each.yaml:
            yield f"{path}.yaml", "give either object or yaml"
        if not each.type and each.object is None:
            yield f"{path}.type", "is needed, unless there is an object that says it"


def _external_faults(series: tuple[ExternalMetricSeries, ...]) -> Iterator[Fault]:
    names: set[str] = set()
    for index, each in enumerate(series):
        path = f"metrics.external[{index}]"
        if not each.name or each.name in names:
            yield f"{path}.name", "must be a name that no other series has"
        elif each.name in CUSTOM_METRICS:
            yield f"{path}.name", f"{each.name} is measured here: choose another name"
        names.add(each.name)
        if bool(each.points) == bool(each.file):
            yield f"{path}.points", "give either points or file"
        before = -1
        for number, point in enumerate(each.points):
            if not isfinite(point.value) or not 0 <= point.value <= MOST_VALUE:
                told = f"must be a number from 0 to {MOST_VALUE}, not {point.value}"
                yield f"{path}.points[{number}].value", told
            if point.at <= before:
                yield f"{path}.points[{number}].at", "must come after the point before it"
            before = point.at


def _faithful_faults(spec: TrafficSpec) -> Iterator[Fault]:
    rules = spec.faithful
    if rules.queue_servers < 1:
        yield "faithful.queueServers", "must be at least 1"
    if not 0 < rules.saturation < 1:
        yield "faithful.saturation", "must be between 0 and 1"
    if not isfinite(rules.epsilon) or rules.epsilon < 0:
        yield "faithful.epsilon", "must not be negative"
    if spec.mode is Mode.FAITHFUL:
        yield from _unfaithful(spec)


def _unfaithful(spec: TrafficSpec) -> Iterator[Fault]:
    """What Skenario does not have."""
    if spec.when_none is WhenNone.WAIT:
        yield "whenNone", "faithful mode refuses: in Skenario nobody waits"
    if spec.metrics.external:
        yield "metrics.external", "faithful mode has none"
    if spec.routing is not Routing.ROUND_ROBIN:
        yield "routing", "faithful mode has roundRobin only"
    if spec.replicas.limit or spec.replicas.request_cpu:
        yield "replicas.limit", "faithful mode has no limits: its CPU model is Skenario's"
    if spec.replicas.memory is not None:
        yield "replicas.memory", "faithful mode has none: Skenario does not model memory"
    if spec.request.timeout < 0:
        yield "request.timeout", "faithful mode needs one"
    for name in ("horizontalInterval", "verticalInterval"):
        if getattr(spec, snake(name)) < 2:
            yield name, "faithful mode needs more than a nanosecond"
