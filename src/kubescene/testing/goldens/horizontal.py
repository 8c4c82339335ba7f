"""The horizontal pod autoscaler.

The world of one recording of the horizontal pod autoscaler: what its API server held and said.

It knows the form of the recordings and no rule of autoscaling.

Recordings of the horizontal pod autoscaler's controller: pass by pass through our function.

The replay plays the API server of the recording (`HorizontalWorld`): objects, pods, metrics and
refused writes. It runs on our own decisions; a case ends with the first pass that differs.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from kubescene.api.quantity import QuantityError, milli_value, parse
from kubescene.api.selectors import parse_labels
from kubescene.autoscalers.horizontal.back_tests import (
    ExternalSeries,
    ObjectSeries,
    PodSeries,
    RecordedMetrics,
)
from kubescene.autoscalers.horizontal.behavior import ScaleEvent, ScalingHistory
from kubescene.autoscalers.horizontal.controller import Result, reconcile
from kubescene.autoscalers.horizontal.observations import (
    Observation,
    ObservedScale,
    OtherAutoscaler,
    PodMetrics,
    PodRequests,
    PodValue,
    ScaledPod,
    ScaleFailure,
)
from kubescene.autoscalers.horizontal.specs import HorizontalOptions, accepted, compiled
from kubescene.autoscalers.horizontal.statuses import HorizontalStatus
from kubescene.clock.timestamps import parse_time
from kubescene.durations import MILLISECOND, SECOND
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError, UnplayableError
from kubescene.types import JsonObject, Nanoseconds

SCALABLE = {
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("", "ReplicationController"): "replicationcontrollers",
}
"""Group and kind of targets that have a scale, and the resource they are."""

TRIES = 5
"""How often the controller writes a scale that somebody else changed meanwhile."""


def instant_of(start: Nanoseconds, seconds: float) -> Nanoseconds:
    """Recorded times have at most three decimals."""
    return start + round(seconds * 1000) * MILLISECOND


class HorizontalWorld:
    """One case, entry by entry."""

    def __init__(self, case: JsonObject) -> None:
        self._case = case
        self.start = parse_time(case["start"])
        self._options = _options(case)
        self._templates = {
            name: _Template(template) for name, template in case["podTemplates"].items()
        }
        self._others = tuple(
            OtherAutoscaler(each["name"], parse_labels(each["selector"]))
            for each in case.get("otherHPAs") or ()
        )
        self._object = self._accepted(case["hpa"]["spec"])
        self._exists = True
        self._pods: dict[str, ScaledPod] = {}
        self.replicas = 0
        self.status = HorizontalStatus()
        self.history = ScalingHistory()

    @property
    def spec(self) -> JsonObject:
        """The spec as the API server completed it."""
        spec: JsonObject = self._object["spec"]
        return spec

    def _accepted(self, spec: JsonObject) -> JsonObject:
        obj = {**self._case["hpa"], "spec": spec}
        return accepted(obj, scale_to_zero=self._options.scale_to_zero)

    def apply(self, entry: JsonObject) -> None:
        """What happens before the pass of an entry."""
        self.replicas = entry.get("currentReplicas", self.replicas)
        self._apply_pods(entry)
        if entry.get("deleteHPA"):
            self._exists = False
            self.status = HorizontalStatus()
        if entry.get("recreateHPA"):
            self._exists = True
            self.status = HorizontalStatus()
        if "spec" in entry:
            self._object = self._accepted(entry["spec"])
        if entry.get("restartController"):
            self.history = ScalingHistory()

    def _apply_pods(self, entry: JsonObject) -> None:
        if "pods" in entry:
            self._pods = {pod["name"]: self._pod(pod) for pod in entry["pods"]}
        for name in entry.get("podRemovals") or ():
            self._pods.pop(name, None)
        for pod in entry.get("podUpserts") or ():
            self._pods[pod["name"]] = self._pod(pod)

    def _pod(self, pod: JsonObject) -> ScaledPod:
        template = self._templates[pod["template"]]
        started = pod.get("startTime")
        return ScaledPod(
            name=pod["name"],
            requests=template.requests,
            labels=template.labels,
            phase=pod.get("phase", ""),
            ready=pod.get("ready"),
            ready_since=instant_of(self.start, pod.get("readySince", 0)),
            started=None if started is None else instant_of(self.start, started),
            deleting=bool(pod.get("deleting")),
        )

    def run(self, entry: JsonObject) -> Result | None:
        """The pass; None if there was no object to look at."""
        if not self._exists:
            self.history = ScalingHistory()
            return None
        result = reconcile(
            compiled(self._object),
            self.status,
            Observation(
                self._scale(entry),
                tuple(self._pods.values()),
                self._metrics(entry.get("metrics") or {}, instant_of(self.start, entry["t"])),
                self._others,
            ),
            self.history,
            now=instant_of(self.start, entry["t"]),
            options=self._options,
            scale_error=self._scale_error(entry),
            status_error=entry.get("statusUpdateError", ""),
        )
        self.status, self.history = result.status, result.history
        self.replicas = self.replicas if result.scaled_to is None else result.scaled_to
        return result

    # -- scale -------------------------------------------------------------------------------

    def _scale(self, entry: JsonObject) -> ObservedScale | ScaleFailure:
        target = self.spec["scaleTargetRef"]
        group, kind = target.get("apiVersion", "").rpartition("/")[0], target["kind"]
        reference = f"{kind}/default/{target['name']}"
        if (group, kind) not in SCALABLE:
            known = any(group == each for each, _ in SCALABLE)
            text = f'no matches for kind "{kind}" in group "{group}"'
            text = f"no matches for {group}/, Resource={kind}" if known else text
            prefix = "unable to determine resource for scale target reference"
            return ScaleFailure(text, f"{prefix}: {text}")
        if text := entry.get("scaleGetError", ""):
            if text == "NotFound":
                text = f'{SCALABLE[group, kind]} "{target["name"]}" not found'
            return ScaleFailure(text, f"failed to query scale subresource for {reference}: {text}")
        selector = entry.get("selector", self._case.get("selector")) or ""
        return ObservedScale(self.replicas, selector, entry.get("statusReplicas"))

    def _scale_error(self, entry: JsonObject) -> str:
        if text := entry.get("scaleUpdateError", ""):
            return str(text)
        if entry.get("scaleUpdateConflicts", 0) < TRIES:
            return ""
        target = self.spec["scaleTargetRef"]
        group, kind = target.get("apiVersion", "").rpartition("/")[0], target["kind"]
        resource = SCALABLE.get((group, kind), kind)
        return (
            f'Operation cannot be fulfilled on {resource} "{target["name"]}": '
            "the object has been modified"
        )

    # -- metrics -----------------------------------------------------------------------------

    def _metrics(self, metrics: JsonObject, now: Nanoseconds) -> RecordedMetrics:
        resource = metrics.get("resource")
        return RecordedMetrics(
            None if resource is None else self._resource_metrics(resource, now),
            (resource or {}).get("error", ""),
            tuple(self._pod_series(each, now) for each in metrics.get("pods") or ()),
            tuple(map(_object_series, metrics.get("object") or ())),
            tuple(map(_external_series, metrics.get("external") or ())),
        )

    def _resource_metrics(self, resource: JsonObject, now: Nanoseconds) -> tuple[PodMetrics, ...]:
        return tuple(
            PodMetrics(
                item["pod"],
                {
                    name: {key: milli_value(amount) for key, amount in usage.items()}
                    for name, usage in (item.get("containers") or {}).items()
                },
                self._time("timestamp", item, resource, now),
                round(_first("window", item, resource) * SECOND),
            )
            for item in resource.get("items") or ()
        )

    def _pod_series(self, series: JsonObject, now: Nanoseconds) -> PodSeries:
        items = tuple(
            PodValue(
                item["pod"],
                milli_value(item["value"]),
                self._time("timestamp", item, series, now),
                item.get("windowSeconds", 60) * SECOND,
            )
            for item in series.get("items") or ()
        )
        labels, error = series.get("selector") or {}, series.get("error", "")
        return PodSeries(series["name"], items, labels, error)

    def _time(
        self, name: str, item: JsonObject, series: JsonObject, now: Nanoseconds
    ) -> Nanoseconds:
        if name in item or name in series:
            return instant_of(self.start, _first(name, item, series))
        return now


class _Template:
    """Labels and requests that pods share."""

    def __init__(self, template: JsonObject) -> None:
        self.labels = template.get("labels") or {}
        spec: JsonObject = {
            part: [_container(each) for each in template.get(part) or ()]
            for part in ("containers", "initContainers")
        }
        if template.get("podRequests"):
            spec["resources"] = {"requests": template["podRequests"]}
        self.requests = PodRequests.of(spec)


def _container(container: JsonObject) -> JsonObject:
    resources = {"requests": container.get("requests") or {}}
    return {**container, "resources": resources}


def _first(name: str, item: JsonObject, series: JsonObject) -> Any:
    return item.get(name, series.get(name, 0))


def _object_series(series: JsonObject) -> ObjectSeries:
    return ObjectSeries(
        series["name"],
        series["kind"],
        series["object"],
        milli_value(series.get("value", "0")),
        series.get("selector") or {},
        series.get("error", ""),
    )


def _external_series(series: JsonObject) -> ExternalSeries:
    values = tuple(milli_value(each) for each in series.get("values") or ())
    labels, error = series.get("selector") or {}, series.get("error", "")
    return ExternalSeries(series["name"], values, labels, error)


def _options(case: JsonObject) -> HorizontalOptions:
    flags, gates = case["controller"], case.get("featureGates") or {}
    return HorizontalOptions(
        tolerance=flags["tolerance"],
        downscale_stabilization=round(flags["downscaleStabilization"] * SECOND),
        cpu_initialization_period=round(flags["cpuInitializationPeriod"] * SECOND),
        initial_readiness_delay=round(flags["initialReadinessDelay"] * SECOND),
        scale_to_zero=gates.get("HPAScaleToZero", False),
        configurable_tolerance=gates.get("HPAConfigurableTolerance", True),
        pod_level_resources=gates.get("PodLevelResources", True),
    )


UNIT = "passes"
QUANTITIES = frozenset({"value", "averageValue"})


class HorizontalAspect(StrEnum):
    """What can differ, from coarse to fine."""

    REPLAYED = "replayed"
    SPEC = "defaulted spec"
    REPLICAS = "current replicas"
    PROPOSAL = "proposal"
    SCALED_TO = "scaled to"
    DESIRED = "desired replicas"
    STATUS_REPLICAS = "current replicas in status"
    LAST_SCALE_TIME = "last scale time"
    CONDITIONS = "conditions"
    EVENTS = "event reasons"
    METRICS = "current metrics"
    STATE = "history"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    timeline, steps = case.get("timeline"), result.get("steps")
    where = f"{where}: case {case['id']}"
    if not isinstance(timeline, list) or not isinstance(steps, list):
        raise GoldenFormatError(f'{where} needs a list "timeline", with "steps" in its result')
    if len(timeline) != len(steps):
        raise GoldenFormatError(
            f"{where} has {len(timeline)} entries in its timeline but {len(steps)} steps"
        )
    for name in ("hpa", "controller", "podTemplates"):
        if not isinstance(case.get(name), dict):
            raise GoldenFormatError(f'{where} has no object "{name}"')
    for number, each in enumerate((*timeline, *steps)):
        if not isinstance(each, dict) or not isinstance(each.get("t"), int | float):
            raise GoldenFormatError(f'{where}: pass {number % len(steps)} has no time "t"')


def replay(golden: Golden, tally: GoldenTally) -> None:
    replay_in(HorizontalWorld, golden, tally)


def replay_in(
    world_of: Callable[[JsonObject], HorizontalWorld], golden: Golden, tally: GoldenTally
) -> None:
    """Replay a case in a world of this kind."""
    comparison = GoldenComparison(golden.id, tally)
    try:
        world = world_of(golden.case)
        if "spec" in golden.result:
            ours, theirs = _comparable(world.spec), _comparable(golden.result["spec"])
            comparison.equal(HorizontalAspect.SPEC, ours, theirs)
        _replay(world, golden, tally, comparison)
    except UnplayableError as error:
        tally.leave_out(golden.id, str(error))
    except Exception as error:
        # Whatever ours raises is a difference.
        text = f"{type(error).__name__}: {error}"
        comparison.failed(HorizontalAspect.REPLAYED, text, "")


def _replay(
    world: HorizontalWorld, golden: Golden, tally: GoldenTally, comparison: GoldenComparison
) -> None:
    steps = golden.result["steps"]
    for number, (entry, step) in enumerate(zip(golden.case["timeline"], steps, strict=True)):
        comparison.at = f"pass {number} at {step['t']}"
        tally.attempts += 1
        world.apply(entry)
        comparison.equal(HorizontalAspect.REPLICAS, world.replicas, step["currentReplicas"])
        result = world.run(entry)
        _compare(result, world, step, comparison)
        if comparison.differences:
            return


def _compare(
    result: Result | None, world: HorizontalWorld, step: JsonObject, comparison: GoldenComparison
) -> None:
    status, equal = world.status, comparison.equal
    proposal = None if result is None else result.explanation.proposal
    equal(HorizontalAspect.PROPOSAL, proposal, step.get("proposal"))
    scaled_to = None if result is None else result.scaled_to
    equal(HorizontalAspect.SCALED_TO, scaled_to, step.get("scaledTo"))
    equal(HorizontalAspect.DESIRED, status.desired_replicas, step["desiredReplicas"])
    theirs = step["statusCurrentReplicas"]
    equal(HorizontalAspect.STATUS_REPLICAS, status.current_replicas, theirs)
    scaled = _optional_instant(world.start, step.get("lastScaleTime"))
    equal(HorizontalAspect.LAST_SCALE_TIME, status.last_scale_time, scaled)
    ours = [(c.type, str(c.status), c.reason, c.last_transition) for c in status.conditions]
    equal(HorizontalAspect.CONDITIONS, ours, _conditions(world.start, step))
    reasons = [] if result is None else [event.reason for event in result.events]
    recorded = [event["reason"] for event in step.get("events") or ()]
    equal(HorizontalAspect.EVENTS, reasons, recorded)
    metrics = [_comparable(each) for each in status.current_metrics]
    shown = [_comparable(each) for each in step.get("currentMetrics") or ()]
    equal(HorizontalAspect.METRICS, metrics, shown)
    if "state" in step:
        state = _history(world.start, step["state"])
        equal(HorizontalAspect.STATE, _slots(world.history), _slots(state))


def _optional_instant(start: Nanoseconds, seconds: float | None) -> Nanoseconds | None:
    return None if seconds is None else instant_of(start, seconds)


def _conditions(start: Nanoseconds, step: JsonObject) -> list[tuple[Any, ...]]:
    return [
        (c["type"], c["status"], c["reason"], instant_of(start, c["lastTransition"]))
        for c in step.get("conditions") or ()
    ]


def _history(start: Nanoseconds, state: JsonObject) -> ScalingHistory:
    """The recorded state in our form."""
    recommendations = (
        (replicas, instant_of(start, seconds)) for replicas, seconds in state["recommendations"]
    )
    return ScalingHistory(
        tuple(recommendations),  # type: ignore[arg-type] # compared as plain tuples
        _events(start, state["scaleUpEvents"]),
        _events(start, state["scaleDownEvents"]),
    )


def _events(start: Nanoseconds, events: list[Any]) -> tuple[ScaleEvent, ...]:
    return tuple(
        ScaleEvent(change, instant_of(start, seconds), outdated)
        for change, seconds, outdated in events
    )


def _slots(history: ScalingHistory) -> list[list[tuple[Any, ...]]]:
    return [
        [tuple(each) for each in slots]
        for slots in (history.recommendations, history.scale_up_events, history.scale_down_events)
    ]


def _comparable(value: Any, name: str = "") -> Any:
    """A JSON value with quantities by amount, in order of names."""
    if isinstance(value, dict):
        return {key: _comparable(value[key], key) for key in sorted(value)}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return _amount(value) if name in QUANTITIES | {"tolerance"} else value


def _amount(value: Any) -> Any:
    try:
        return parse(value).nanos
    except QuantityError:
        return value
