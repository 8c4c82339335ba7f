"""An autoscaler by requests in flight with the rule of Knative's, and a sample for authors.

It keeps the requests in flight (with ``metric: rps``, those of a second) per pod near a target. The
rule is that of Knative's pod autoscaler (`kubescene.autoscalers.kpa`, which is equal to recorded
answers of the real one): two averages of the total, over a *stable* and a short *panic* window,
rates of change, a delay. Fields are named as in Knative. Around the rule:

- A pod should have ``targetUtilizationPercentage`` of ``target``.
- Before the first stat of a pod, the pods that there are stay.
- There are ``initialScale`` pods until so many were ready once; then ``minScale`` to ``maxScale``
  (0: any number).
- With ``minScale: 0`` the last pod goes after a stable window and a grace period without any
  request; requests that wait at the router bring the first one back.

**Averages** are those of Knative's buckets, one for each second. A stat holds until the next of its
pod; the total with which a second ends is the bucket's. A stat that is older than one seen before
counts from that one's time on. Windows that are older than the run are as long as the run.

::

    apiVersion: autoscaling.kubescene.dev/v1alpha1
    kind: ConcurrencyAutoscaler
    metadata: {name: web}
    spec: {target: 10, stableWindow: 60s, minScale: 1, maxScale: 20}
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any

import msgspec

from kubescene.api.text.yaml_text import read_yaml
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
from kubescene.autoscalers.kpa import Buckets, KpaScale, Scaler, ScalerSpec, WeightedBuckets
from kubescene.clock import SECOND, parse_duration
from kubescene.errors import ConfigurationError
from kubescene.flows.reading import explained
from kubescene.struct_types import build

TYPE = "concurrency.v1alpha1.autoscaling.kubescene.dev"
API_VERSION = "autoscaling.kubescene.dev/v1alpha1"
KIND = "ConcurrencyAutoscaler"
ROUTER = "RoutingStock"
"""The name under which the world tells how many requests wait for a pod."""

_DURATIONS = ("stableWindow", "panicWindow", "scaleDownDelay", "scaleToZeroGracePeriod")
_LEAST_TARGET = 0.01


class Metric(StrEnum):
    """What is kept near the target."""

    CONCURRENCY = "concurrency"
    RPS = "rps"


_MEASURED_AS = {
    Metric.CONCURRENCY: MetricType.CONCURRENT_REQUESTS_MILLIS,
    Metric.RPS: MetricType.REQUESTS_PER_SECOND_MILLIS,
}


class Aggregation(StrEnum):
    """How the seconds of a window are weighted."""

    LINEAR = "linear"
    WEIGHTED_EXPONENTIAL = "weighted-exponential"


class ConcurrencySpec(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """What the object says. Durations are nanoseconds here, texts such as ``60s`` there."""

    target: float
    metric: Metric = Metric.CONCURRENCY
    metric_aggregation_algorithm: Aggregation = Aggregation.LINEAR
    target_utilization_percentage: float = 70.0
    stable_window: int = 60 * SECOND
    panic_window_percentage: float = 10.0
    panic_threshold_percentage: float = 200.0
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    scale_down_delay: int = 0
    activation_scale: int = 1
    initial_scale: int = 1
    min_scale: int = 1
    max_scale: int = 0
    scale_to_zero_grace_period: int = 30 * SECOND

    @property
    def panic_window(self) -> int:
        """A whole number of seconds, one at least."""
        seconds = self.stable_window * self.panic_window_percentage / 100 / SECOND
        return max(int(seconds + 0.5), 1) * SECOND

    def rule(self) -> ScalerSpec:
        return ScalerSpec(
            target=max(self.target * (self.target_utilization_percentage / 100), _LEAST_TARGET),
            total=self.target,
            panic_threshold=self.panic_threshold_percentage / 100,
            max_scale_up_rate=self.max_scale_up_rate,
            max_scale_down_rate=self.max_scale_down_rate,
            stable_window=self.stable_window,
            scale_down_delay=self.scale_down_delay,
            activation_scale=self.activation_scale,
        )

    def faults(self) -> list[str]:
        """Everything that cannot be meant, by field."""
        positive = {"target": self.target, "stableWindow": self.stable_window}
        faults = [
            f"spec.{name}: has to be more than 0, and finite"
            for name, number in positive.items()
            if not 0 < number < inf
        ]
        shares = {
            "targetUtilizationPercentage": self.target_utilization_percentage,
            "panicWindowPercentage": self.panic_window_percentage,
        }
        faults += [
            f"spec.{name}: has to be more than 0, and at most 100"
            for name, number in shares.items()
            if not 0 < number <= 100
        ]
        factors = {
            "maxScaleUpRate": (self.max_scale_up_rate, 1),
            "maxScaleDownRate": (self.max_scale_down_rate, 1),
            "panicThresholdPercentage": (self.panic_threshold_percentage, 100),
        }
        faults += [
            f"spec.{name}: has to be more than {least}, and finite"
            for name, (number, least) in factors.items()
            if not least < number < inf
        ]
        whole = {
            "scaleDownDelay": (self.scale_down_delay, 0),
            "scaleToZeroGracePeriod": (self.scale_to_zero_grace_period, 0),
            "activationScale": (self.activation_scale, 1),
            "initialScale": (self.initial_scale, 0),
            "minScale": (self.min_scale, 0),
            "maxScale": (self.max_scale, 0),
        }
        faults += [
            f"spec.{name}: cannot be less than {least}"
            for name, (number, least) in whole.items()
            if number < least
        ]
        if 0 < self.max_scale < self.min_scale:
            faults.append("spec.maxScale: cannot be less than spec.minScale (0: any number)")
        return faults


def read_spec(yaml: str) -> ConcurrencySpec:
    """The spec of a ConcurrencyAutoscaler; raises `ConfigurationError`, which names the field."""
    try:
        [document] = read_yaml(yaml)
        obj: Any = document.value
        if obj.get("apiVersion") != API_VERSION or obj.get("kind") != KIND:
            raise ConfigurationError(f"apiVersion, kind: expected {KIND} of {API_VERSION}")
        given = obj.get("spec") or {}
        if not isinstance(given, dict):
            raise ConfigurationError("spec: must be an object")
        named = _by_new_names(_in_nanoseconds(given))
        spec = msgspec.convert(named, ConcurrencySpec)
    except msgspec.ValidationError as error:
        path, what = explained(error, ConcurrencySpec, "", named)
        written = {new: old for old, new in _OLD_NAMES.items() if old in given}
        raise ConfigurationError(
            f"{'.'.join(filter(None, ('spec', written.get(path, path))))}: {what}"
        ) from error
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


_OLD_NAMES = {
    "targetConcurrency": "target",
    "panicWindow": "panicWindowPercentage",
    "panicThreshold": "panicThresholdPercentage",
    "minReplicas": "minScale",
    "maxReplicas": "maxScale",
}


def _by_new_names(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The same with Knative's names; of an older name the meaning stays, too."""
    named = {name: value for name, value in spec.items() if name not in _OLD_NAMES}
    for old, new in _OLD_NAMES.items():
        if old in spec:
            if new in spec:
                raise ConfigurationError(f"spec.{old}: is spec.{new} by its older name: give one")
            value = _by_new_meaning(old, spec)
            if value is not None:
                named[new] = value
    if "targetConcurrency" in spec:
        named.setdefault("targetUtilizationPercentage", 100)
    return named


def _by_new_meaning(old: str, spec: Mapping[str, Any]) -> Any:
    value = spec[old]
    if old == "panicWindow":
        stable = spec.get("stableWindow", 60 * SECOND)
        if not 0 < value <= stable:
            raise ConfigurationError(
                "spec.panicWindow: has to be more than 0, and no longer than spec.stableWindow"
            )
        return value * 100 / stable
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if old == "panicThreshold" and number:
        return value * 100
    if old == "maxReplicas" and number and value < 1:
        raise ConfigurationError("spec.maxReplicas: has to be 1 or more")
    return value


@dataclass(slots=True)
class Load:
    """The total of the metric over time: a step function, as far back as the stable window.

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

    def average(self, buckets: Buckets, now: int) -> float:
        """The average of these empty buckets, once they have what every second ended with."""
        if not self.steps:
            return 0.0
        steps = deque(self.steps)
        total = steps[0][1]
        begin = max(now - buckets.window, steps[0][0])
        for second in range(begin // SECOND, now // SECOND + 1):
            while steps and steps[0][0] < (second + 1) * SECOND:
                total = steps.popleft()[1]
            buckets.record(second * SECOND, total / 1000)
        return buckets.average(now)

    def idle_for(self, now: int) -> int:
        return 0 if self.total else now - self.last_busy


class ConcurrencyDecision(msgspec.Struct, frozen=True):
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
    scaler: Scaler | None = None
    initialized: bool = False

    def change(self, spec: ConcurrencySpec) -> None:
        self.spec, self.load.kept = spec, spec.stable_window
        if self.scaler is not None:
            self.scaler.spec = spec.rule()

    def recommend(self, now: int) -> ConcurrencyDecision:
        ready = sum(self.pods.values())
        if self.scaler is None:
            self.scaler = Scaler.beginning(self.spec.rule(), ready, now)
        self.initialized = self.initialized or ready >= self.spec.initial_scale
        if self._knows_nothing():
            wanted, by, pods, limit = len(self.pods), "no measurement yet", len(self.pods), ""
            details: dict[str, Any] = {"stable": 0, "panic": 0}
        else:
            answer = self._answer(self.scaler, ready, now)
            pods, details = answer.desired, {"stable": answer.stable, "panic": answer.panic}
            by = "panic window" if answer.panicking else "stable window"
            wanted = max(answer.stable, answer.panic) if answer.panicking else answer.stable
            limit = self._limit(answer, wanted)
        pods, bound = self._bounded(pods, now)
        limit = bound or limit
        reason = f"{by}: {wanted} pods" + (f", {limit} makes it {pods}" if limit else "")
        return ConcurrencyDecision(
            pods, reason, details | {"ready": ready, "window": by, "limit": limit}
        )

    def _answer(self, scaler: Scaler, ready: int, now: int) -> KpaScale:
        weighted = self.spec.metric_aggregation_algorithm is Aggregation.WEIGHTED_EXPONENTIAL
        kind = WeightedBuckets if weighted else Buckets
        stable = self.load.average(kind(self.spec.stable_window), now)
        panic = self.load.average(kind(self.spec.panic_window), now)
        return scaler.scale(stable, panic, ready, now)

    def _limit(self, answer: KpaScale, wanted: int) -> str:
        """What of the rule made the answer another than the windows want."""
        if answer.desired != answer.undelayed:
            return "scaleDownDelay"
        if answer.undelayed != answer.within:
            return "the panic so far"
        if answer.within == wanted:
            return ""
        activation = wanted < answer.within == self.spec.activation_scale > 1
        return "activationScale" if activation else "the rate of change"

    def _knows_nothing(self) -> bool:
        """Whether pods are there of which nothing was heard, and nobody waits for one."""
        unheard = self.load.by_pod.keys().isdisjoint(self.pods)
        return bool(self.pods) and unheard and not self.load.total

    def _bounded(self, pods: int, now: int) -> tuple[int, str]:
        """Within the bounds; and which of them changed it last."""
        least, limit = self.spec.min_scale, "minScale"
        if not self.initialized and self.spec.initial_scale > max(least, 1):
            least, limit = self.spec.initial_scale, "initialScale"
        if least == 0:
            idle = self.load.idle_for(now)
            waited = self.spec.stable_window + self.spec.scale_to_zero_grace_period
            least, limit = 0 if idle >= waited or not self.pods else 1, "the grace period"
        if pods < least:
            return least, limit
        if 0 < self.spec.max_scale < pods:
            return self.spec.max_scale, "maxScale"
        return pods, ""


class ConcurrencyPlugin(AutoscalerPlugin):
    """The autoscaler behind the interface: one `ConcurrencyAutoscaler` for each partition."""

    types = (TYPE,)
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION}
    )

    def __init__(self, *, rates: bool = True) -> None:
        """``rates``: whether requests per second are measured."""
        self._rates = rates
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
            if known and stat.type is _MEASURED_AS[run.spec.metric]:
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
        if spec.metric is Metric.RPS and not self._rates:
            raise ConfigurationError("spec.metric: rps is not measured here: say concurrency")
        if request.type is EventType.UPDATE:
            self._run(request.partition).change(spec)
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
