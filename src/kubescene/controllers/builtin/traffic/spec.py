"""What a Traffic asks for, and what is wrong with that: fields as in a TrafficRun."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from kubescene.api.selectors import SelectorError, read_label_selector
from kubescene.clock import SECOND
from kubescene.errors import TrafficError
from kubescene.flows.checks import Fault, arrival_faults, request_faults
from kubescene.flows.fields import (
    DAY,
    ArrivalPattern,
    CpuDemand,
    Objective,
    Pattern,
    RequestNeeds,
    SpecPart,
)
from kubescene.flows.kernels import NEVER, Service
from kubescene.flows.reading import converted
from kubescene.flows.routing import Routing
from kubescene.flows.units import Cpu, Memory, TrafficDuration
from kubescene.flows.waiting import WhenNone
from kubescene.struct_types import build
from kubescene.types import JsonObject

LONGEST = TrafficDuration(10_000 * DAY)
TARGETS = ("service", "deployment", "scale", "selector")


class Begin(StrEnum):
    """When the first request may come: once a pod is ready, or at once, to be refused."""

    WHEN_READY = "WhenReady"
    AT_ONCE = "AtOnce"


class ScaleTarget(SpecPart, frozen=True, kw_only=True):
    """An object that has a scale."""

    api_version: str
    kind: str
    name: str


class TrafficTarget(SpecPart, frozen=True, kw_only=True):
    """Who serves: exactly one of them."""

    service: str = ""
    deployment: str = ""
    scale: ScaleTarget | None = None
    selector: dict[str, Any] | None = None

    @property
    def given(self) -> list[str]:
        return [name for name in TARGETS if getattr(self, name) not in ("", None)]

    def __str__(self) -> str:
        if self.scale is not None:
            return f"{self.scale.kind}/{self.scale.name}"
        return f"Service/{self.service}" if self.service else f"Deployment/{self.deployment}"


class ServedRequest(RequestNeeds, frozen=True, kw_only=True):
    """Of a TrafficRun, and ``cpu``: the most that one request uses at once."""

    cpu: Cpu = Cpu(1000)


class ServedMemory(SpecPart, frozen=True, kw_only=True):
    """A container uses ``base``, and ``perRequest`` for every request inside."""

    base: Memory = Memory(0)
    per_request: Memory = Memory(0)


class ServedSpec(SpecPart, frozen=True, kw_only=True):
    """The spec of a Traffic."""

    to: TrafficTarget
    arrivals: ArrivalPattern = ArrivalPattern()
    request: ServedRequest = ServedRequest()
    routing: Routing = Routing.ROUND_ROBIN
    limit: int = 0
    container: str = ""
    memory: ServedMemory | None = None
    begin: Begin = Begin.WHEN_READY
    when_none: WhenNone = WhenNone.REFUSE
    objective: Objective = Objective(response_time=TrafficDuration(SECOND), percentile=99.0)

    def service(self, capacity: int = NEVER) -> Service:
        """What all requests have in common, in a pod of such a capacity."""
        request = self.request
        return Service(
            demand=request.cpu_time * 1000,
            timeout=NEVER if request.timeout < 0 else int(request.timeout),
            drawn=request.demand is CpuDemand.EXPONENTIAL,
            limit=self.limit,
            ceiling=int(request.cpu) if capacity > request.cpu else 0,
        )


build(ServedSpec)


def read_spec(spec: JsonObject) -> ServedSpec:
    """What an object asks for; raises `TrafficError` with the field at fault."""
    read = converted(spec, ServedSpec, "spec")
    for path, message in faults(read):
        raise TrafficError(message, path=f"spec.{path}")
    return read


def faults(spec: ServedSpec) -> Iterator[Fault]:
    """What is wrong with a spec whose types are right."""
    given = spec.to.given
    if len(given) != 1:
        found = " and ".join(given) or "nothing"
        yield "to", f"one of {', '.join(TARGETS)} has to be said, found {found}"
    if spec.to.selector is not None:
        try:
            read_label_selector(spec.to.selector)
        except SelectorError as error:
            yield "to.selector", str(error)
    yield from arrival_faults(spec.arrivals, LONGEST, "arrivals")
    yield from _endless_faults(spec.arrivals)
    yield from request_faults(spec.request)
    if spec.request.cpu < 1:
        yield "request.cpu", "must be at least 1m"
    if spec.when_none is WhenNone.AUTO:
        yield "whenNone", "must be refuse or wait"
    if not 0 < spec.objective.percentile <= 100:
        yield "objective.percentile", "must be more than 0 and at most 100"


def fixed_fields(before: ServedSpec, after: ServedSpec) -> list[str]:
    """What was changed and must not be: it holds for requests that are on their way."""
    names = ("request", "routing", "limit", "container", "memory", "begin", "when_none")
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    return ["whenNone" if name == "when_none" else name for name in changed]


def _endless_faults(arrivals: ArrivalPattern) -> Iterator[Fault]:
    """What cannot be said where there is no end, and no folder."""
    for name in (Pattern.PIECEWISE, Pattern.REPLAY):
        part = getattr(arrivals, name)
        if part is not None and part.file:
            yield f"arrivals.{name}.file", "an object has no files: write the numbers here"
    if arrivals.pattern is Pattern.UNIFORM and (
        arrivals.uniform is None or arrivals.uniform.width is None
    ):
        yield "arrivals.uniform.width", "is needed: there is no end of the run to spread over"
