"""The world of one recording of the horizontal pod autoscaler: what its API server held and said.

It knows the form of the recordings and no rule of autoscaling.
"""

from typing import Any

from kubescene.api.quantity import milli_value
from kubescene.api.selectors import parse_labels
from kubescene.autoscalers.horizontal.accepting import accepted
from kubescene.autoscalers.horizontal.history import History
from kubescene.autoscalers.horizontal.observing import (
    Observation,
    OtherAutoscaler,
    PodMetrics,
    PodValue,
    Scale,
    ScaledPod,
    ScaleFailure,
)
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.pod_requests import PodRequests
from kubescene.autoscalers.horizontal.reconciling import Result, reconcile
from kubescene.autoscalers.horizontal.recorded_metrics import (
    ExternalSeries,
    ObjectSeries,
    PodSeries,
    RecordedMetrics,
)
from kubescene.autoscalers.horizontal.specs import compiled
from kubescene.autoscalers.horizontal.statuses import HorizontalStatus
from kubescene.clock.timestamps import MILLISECOND, SECOND, parse_time
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
        self.history = History()

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
            self.history = History()

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
            self.history = History()
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

    def _scale(self, entry: JsonObject) -> Scale | ScaleFailure:
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
        return Scale(self.replicas, selector, entry.get("statusReplicas"))

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
