"""A concurrency autoscaler in the manner of Knative's, and a sample for authors of autoscalers.

It keeps the number of requests in flight per pod near a target. Two averages of the total
concurrency are taken, over a long *stable* and a short *panic* window:

- As a rule ``ceil(stable average / target)`` pods are recommended.
- When the panic average alone would need ``panicThreshold`` times the ready pods or more, it
  panics: ``ceil(panic average / target)`` is recommended, and never less than before in the same
  panic. It calms down once that has not happened for a whole stable window.
- Neither answer is more than ``maxScaleUpRate`` times the ready pods, nor less than their
  ``maxScaleDownRate``-th part.
- Before the first stat of a pod, the pods that there are stay.
- With ``minReplicas: 0`` the last pod goes after a stable window and a grace period without any
  request; requests that wait at the router bring the first one back.

**Tolerances.** There is no band around the target: every change of the average that passes a
whole pod counts, and the windows alone damp it. A stat holds until the next of its pod, so averages
are those of a step function, exact in integers (thousandths of a request times nanoseconds). A stat
that is older than one seen before counts from that one's time on. Windows that are older than the
run are as long as the run.

::

    apiVersion: autoscaling.kubescene.dev/v1alpha1
    kind: ConcurrencyAutoscaler
    metadata: {name: web}
    spec: {targetConcurrency: 10, stableWindow: 60s, minReplicas: 1, maxReplicas: 20}
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Any

import msgspec

from kubescene.api.text.yaml_text import read_yaml
from kubescene.autoscalers.decoding import complaint
from kubescene.autoscalers.interfaces import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    MetricType,
    PodState,
    Stat,
    StatRequest,
)
from kubescene.clock import SECOND, parse_duration
from kubescene.errors import ConfigurationError
from kubescene.struct_types import build

TYPE = "concurrency.v1alpha1.autoscaling.kubescene.dev"
API_VERSION = "autoscaling.kubescene.dev/v1alpha1"
KIND = "ConcurrencyAutoscaler"
ROUTER = "RoutingStock"
"""The name under which the world tells how many requests wait for a pod."""

_DURATIONS = ("stableWindow", "panicWindow", "scaleToZeroGracePeriod")


class ConcurrencySpec(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """What the object says. Durations are nanoseconds here, texts such as ``60s`` there."""

    target_concurrency: float
    stable_window: int = 60 * SECOND
    panic_window: int = 6 * SECOND
    panic_threshold: float = 2.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    min_replicas: int = 1
    max_replicas: int | None = None
    scale_to_zero_grace_period: int = 30 * SECOND

    def faults(self) -> list[str]:
        """Everything that cannot be meant, by field."""
        positive = {
            "targetConcurrency": self.target_concurrency,
            "stableWindow": self.stable_window,
            "panicWindow": self.panic_window,
        }
        faults = [
            f"spec.{name}: has to be more than 0, and finite"
            for name, number in positive.items()
            if not 0 < number < inf
        ]
        factors = {
            "panicThreshold": self.panic_threshold,
            "maxScaleUpRate": self.max_scale_up_rate,
            "maxScaleDownRate": self.max_scale_down_rate,
        }
        faults += [
            f"spec.{name}: has to be more than 1, and finite"
            for name, number in factors.items()
            if not 1 < number < inf
        ]
        if self.panic_window > self.stable_window:
            faults.append("spec.panicWindow: cannot be longer than spec.stableWindow")
        if self.min_replicas < 0:
            faults.append("spec.minReplicas: cannot be negative")
        if self.max_replicas is not None and self.max_replicas < max(self.min_replicas, 1):
            faults.append("spec.maxReplicas: cannot be less than spec.minReplicas, or 0")
        return faults


def read_spec(yaml: str) -> ConcurrencySpec:
    """The spec of a ConcurrencyAutoscaler; raises `ConfigurationError`, which names the field."""
    try:
        [document] = read_yaml(yaml)
        obj: Any = document.value
        if obj.get("apiVersion") != API_VERSION or obj.get("kind") != KIND:
            raise ConfigurationError(f"apiVersion, kind: expected {KIND} of {API_VERSION}")
        spec = msgspec.convert(_in_nanoseconds(obj.get("spec") or {}), ConcurrencySpec)
    except msgspec.ValidationError as error:
        raise ConfigurationError(complaint(error, "spec")) from error
    except (ValueError, AttributeError) as error:
        raise ConfigurationError(f"not a {KIND}: {error}") from error
    if faults := spec.faults():
        raise ConfigurationError("; ".join(faults))
    return spec


def _in_nanoseconds(spec: dict[str, Any]) -> dict[str, Any]:
    durations = {}
    for name in _DURATIONS:
        if name in spec:
            try:
                durations[name] = parse_duration(spec[name])
            except (TypeError, ValueError) as error:
                raise ConfigurationError(f"spec.{name}: {error}") from error
    return spec | durations


@dataclass(slots=True)
class Load:
    """Total concurrency over time: a step function, kept as far back as the stable window.

    ``steps`` are times and the total from then on, in thousandths of a request.
    """

    kept: int
    by_pod: dict[str, int] = field(default_factory=dict)
    steps: deque[tuple[int, int]] = field(default_factory=deque)
    total: int = 0
    last_busy: int = 0

    def set(self, pod: str, value: int, time: int) -> None:
        """From ``time`` on, this pod (or the router) has ``value`` thousandths in flight."""
        at = max(time, self.steps[-1][0]) if self.steps else time
        if self.total:
            self.last_busy = at
        self.total += value - self.by_pod.get(pod, 0)
        self.by_pod[pod] = value
        if self.steps and self.steps[-1][0] == at:
            self.steps.pop()
        self.steps.append((at, self.total))
        while len(self.steps) > 1 and self.steps[1][0] <= at - self.kept:
            self.steps.popleft()

    def remove(self, pod: str, time: int) -> None:
        if pod in self.by_pod:
            self.set(pod, 0, time)
            del self.by_pod[pod]

    def average(self, window: int, now: int) -> tuple[int, int]:
        """Thousandths times nanoseconds within the window, and how many nanoseconds it has."""
        if not self.steps:
            return 0, 1
        begin = max(now - window, self.steps[0][0])
        end, area = now, 0
        for time, total in reversed(self.steps):
            area += total * max(end - max(time, begin), 0)
            end = min(end, time)
            if time <= begin:
                break
        return (area, now - begin) if now > begin else (self.total, 1)

    def idle_for(self, now: int) -> int:
        return 0 if self.total else now - self.last_busy


class Decision(msgspec.Struct, frozen=True):
    """How many pods, and why."""

    pods: int
    reason: str
    details: dict[str, Any]


@dataclass(slots=True)
class ConcurrencyAutoscaler:
    """One run: load and ready pods in, a number of pods out. Reads no clock."""

    spec: ConcurrencySpec
    load: Load
    pods: dict[str, bool] = field(default_factory=dict)
    panicking_since: int | None = None
    panic_pods: int = 0

    def recommend(self, now: int) -> Decision:
        ready = sum(self.pods.values())
        stable = self._wanted(self.spec.stable_window, now)
        panic = self._wanted(self.spec.panic_window, now)
        self._panic_or_calm(panic, ready, now)
        if self._knows_nothing():
            wanted, by = len(self.pods), "no measurement yet"
        elif self.panicking_since is None:
            wanted, by = stable, "stable window"
        else:
            self.panic_pods = max(self.panic_pods, self._within_rates(panic, ready))
            wanted, by = max(self.panic_pods, stable), "panic window"
        pods, limit = self._limited(wanted, ready, now)
        reason = f"{by}: {wanted} pods" + (f", {limit} makes it {pods}" if limit else "")
        details = {"stable": stable, "panic": panic, "ready": ready, "window": by, "limit": limit}
        return Decision(pods, reason, details)

    def _knows_nothing(self) -> bool:
        """Whether pods are there of which nothing was heard, and nobody waits for one."""
        unheard = self.load.by_pod.keys().isdisjoint(self.pods)
        return bool(self.pods) and unheard and not self.load.total

    def _wanted(self, window: int, now: int) -> int:
        area, span = self.load.average(window, now)
        # Exact: the target is a float, which is a ratio of integers.
        above, below = self.spec.target_concurrency.as_integer_ratio()
        return -(-area * below // (span * 1000 * above))

    def _panic_or_calm(self, panic: int, ready: int, now: int) -> None:
        if panic >= self.spec.panic_threshold * max(ready, 1):
            if self.panicking_since is None:
                self.panic_pods = ready
            self.panicking_since = now
        elif (
            self.panicking_since is not None
            and now - self.panicking_since >= self.spec.stable_window
        ):
            self.panicking_since = None

    def _within_rates(self, wanted: int, ready: int) -> int:
        most = int(self.spec.max_scale_up_rate * max(ready, 1))
        least = int(ready / self.spec.max_scale_down_rate)
        return max(least, min(wanted, most))

    def _limited(self, wanted: int, ready: int, now: int) -> tuple[int, str]:
        """Within the rates, then within the bounds; and which of them changed it last."""
        pods, limit = self._within_rates(wanted, ready), ""
        if pods != wanted:
            limit = "the rate of change"
        least = self.spec.min_replicas
        if least == 0:
            idle = self.load.idle_for(now)
            waited = self.spec.stable_window + self.spec.scale_to_zero_grace_period
            least = 0 if idle >= waited or not self.pods else 1
        if pods < least:
            limit = "minReplicas" if self.spec.min_replicas else "the grace period"
            pods = least
        if self.spec.max_replicas is not None and pods > self.spec.max_replicas:
            pods, limit = self.spec.max_replicas, "maxReplicas"
        return pods, limit


class ConcurrencyPlugin(AutoscalerPlugin):
    """The autoscaler behind the interface: one `ConcurrencyAutoscaler` for each partition."""

    types = (TYPE,)
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION}
    )

    def __init__(self) -> None:
        self._runs: dict[str, ConcurrencyAutoscaler] = {}

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Autoscaler):
            self._autoscaler_event(request, request.object)
            return
        run, pod = self._run(request.partition), request.object
        if request.type is EventType.DELETE:
            run.pods.pop(pod.name, None)
            run.load.remove(pod.name, request.time)
        else:
            run.pods[pod.name] = pod.state == PodState.ACTIVE

    def stat(self, request: StatRequest) -> None:
        run = self._run(request.partition)
        for stat in request.stat:
            known = stat.pod_name in run.pods or stat.pod_name == ROUTER
            if known and stat.type is MetricType.CONCURRENT_REQUESTS_MILLIS:
                run.load.set(stat.pod_name, _not_negative(stat), stat.time)

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        decision = self._run(request.partition).recommend(request.time_nanos)
        return HorizontalRecommendationResponse(decision.pods, decision.reason, decision.details)

    def _run(self, partition: str) -> ConcurrencyAutoscaler:
        try:
            return self._runs[partition]
        except KeyError:
            raise ConfigurationError(
                f"no autoscaler was created in partition {partition!r}"
            ) from None

    def _autoscaler_event(self, request: EventRequest, autoscaler: Autoscaler) -> None:
        if request.type is EventType.DELETE:
            self._run(request.partition)
            del self._runs[request.partition]
            return
        spec = read_spec(autoscaler.yaml)
        if request.type is EventType.UPDATE:
            run = self._run(request.partition)
            run.spec, run.load.kept = spec, spec.stable_window
            return
        if request.partition in self._runs:
            raise ConfigurationError(f"partition {request.partition!r} has an autoscaler already")
        self._runs[request.partition] = ConcurrencyAutoscaler(
            spec, Load(spec.stable_window, last_busy=request.time)
        )


def _not_negative(stat: Stat) -> int:
    if stat.value < 0:
        raise ConfigurationError(f"stat of pod {stat.pod_name!r} is negative: {stat.value}")
    return stat.value


build(ConcurrencySpec)
