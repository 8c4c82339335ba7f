"""One pass of the horizontal autoscaler: from objects to what it decides, and back to objects.

The decision itself is `kubescene.autoscalers.horizontal`; here it gets its scale, pods and metrics,
and what it wants becomes writes, Events and a fact.
"""

from collections.abc import Sequence

from msgspec import Struct

from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, parse_labels
from kubescene.autoscalers.horizontal import (
    Decision,
    ExternalSeries,
    History,
    HorizontalOptions,
    HorizontalSpec,
    HorizontalStatus,
    ObjectSeries,
    Observation,
    OtherAutoscaler,
    PodMetrics,
    PodSeries,
    PodValue,
    RecordedMetrics,
    Result,
    Scale,
    ScaledPod,
    ScaleFailure,
    compiled,
    complete,
    decide,
    observed_pod,
)
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Plan, Update, Write
from kubescene.controllers.reconcile import Scale as ScaleWrite
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import Notice, regarding
from kubescene.types import JsonObject
from kubescene.usage.measuring import MeasuredPod, Measurements
from kubescene.usage.registry import UsageRegistry
from kubescene.usage.series import METRIC_SERIES, MetricSeries, readable_series

REPORTER = "horizontal-pod-autoscaler"


class ReplicasDecided(Struct, frozen=True):
    """A pass changed the scale of its target: from how many to how many, and why."""

    namespace: str
    name: str
    target: str
    current: int
    desired: int
    reason: str


class Passes:
    """What is remembered of autoscalers between their passes."""

    def __init__(self, usage: UsageRegistry, options: HorizontalOptions | None = None) -> None:
        self._usage = usage
        self._options = options or HorizontalOptions()
        self._histories: dict[ObjectKey, History] = {}
        self._selectors: dict[ObjectKey, LabelSelector] = {}
        """Of the targets, as of the last pass that knew it."""
        self._decisions: dict[ObjectKey, tuple[JsonObject, Decision]] = {}
        """The last of each, for as long as a write of it may be refused."""
        self._specs: dict[ObjectKey, tuple[object, HorizontalSpec]] = {}
        self._pods: dict[str, dict[str, tuple[Record, ScaledPod]]] = {}
        """By namespace and name, as they were read for the last pass."""
        self._series: dict[str, dict[str, tuple[object, MetricSeries | None]]] = {}
        """By namespace and uid, likewise."""

    def forget(self, key: ObjectKey) -> None:
        """The autoscaler is gone."""
        for memory in (self._histories, self._selectors, self._decisions, self._specs):
            memory.pop(key, None)

    def run(self, autoscaler: JsonObject, pods: Sequence[Record], reader: Reader, now: int) -> Plan:
        metadata = autoscaler["metadata"]
        key = ObjectKey(metadata["namespace"], metadata["name"])
        spec = self._spec(key, autoscaler)
        scaled = self._read_pods(key.namespace, pods)
        scale = scale_of(autoscaler, spec, reader)
        metrics = self._metrics(key.namespace, scaled, reader, now)
        decision = decide(
            spec,
            HorizontalStatus.of(autoscaler.get("status") or {}),
            Observation(scale, scaled, metrics, self._others(key)),
            self._histories.get(key, History()),
            now=now,
            options=self._options,
        )
        if isinstance(scale, Scale):
            self._remember(key, scale.selector)
        self._decisions[key] = autoscaler, decision
        writes: list[Write] = []
        if decision.wanted is not None and not decision.ended:
            writes.append(ScaleWrite(target_of(autoscaler), decision.wanted))
        return self._planned(key, autoscaler, complete(decision), writes)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """The scale could not be written, or the status: the autoscaler says so."""
        del reader, now
        if key not in self._decisions:
            return NOTHING
        autoscaler, decision = self._decisions.pop(key)
        if isinstance(write, ScaleWrite):
            result = complete(decision, scale_error=error.message)
            return self._planned(key, autoscaler, result, [])
        if isinstance(error, NotFoundError):
            return NOTHING
        result = complete(decision, status_error=error.message)
        return Plan(notices=notices(autoscaler, result))

    def _planned(
        self, key: ObjectKey, autoscaler: JsonObject, result: Result, writes: list[Write]
    ) -> Plan:
        self._histories[key] = result.history
        if result.status_written:
            status = {**autoscaler, "status": result.status.to_dict()}
            writes = [*writes, Update(status, subresource="status")]
        facts: list[Struct] = []
        if result.scaled_to is not None:
            facts.append(decided(autoscaler, result))
        return Plan(writes, notices=notices(autoscaler, result), facts=facts)

    # -- what it sees ----------------------------------------------------------------------

    def _spec(self, key: ObjectKey, autoscaler: JsonObject) -> HorizontalSpec:
        version = autoscaler["metadata"]["uid"], autoscaler["metadata"].get("generation")
        known = self._specs.get(key)
        if known is None or known[0] != version:
            known = self._specs[key] = version, compiled(autoscaler)
        return known[1]

    def _read_pods(self, namespace: str, records: Sequence[Record]) -> list[ScaledPod]:
        """Records are never changed: a pod is read again only when it is another one."""
        before, known = self._pods.get(namespace, {}), {}
        for record in records:
            pod = before.get(record.name)
            if pod is None or pod[0] is not record:
                pod = record, observed_pod(record.decode())
            known[record.name] = pod
        self._pods[namespace] = known
        return [pod for _, pod in known.values()]

    def _metrics(
        self, namespace: str, pods: Sequence[ScaledPod], reader: Reader, now: int
    ) -> RecordedMetrics:
        measured = Measurements(
            self._known_series(namespace, reader),
            map(scaled_as_measured, pods),
            now,
            scraped=self._usage.scraped(namespace, now),
            services=self._usage.scraped_services(namespace, now),
        )
        return metrics_of(measured)

    def _others(self, key: ObjectKey) -> list[OtherAutoscaler]:
        return [
            OtherAutoscaler(other.name, selector)
            for other, selector in self._selectors.items()
            if other.namespace == key.namespace and other != key
        ]

    def _remember(self, key: ObjectKey, selector: str) -> None:
        try:
            self._selectors[key] = parse_labels(selector)
        except BadRequestError:
            self._selectors.pop(key, None)

    def _known_series(self, namespace: str, reader: Reader) -> list[MetricSeries]:
        try:
            objects = reader.list(METRIC_SERIES, namespace=namespace)
        except BadRequestError:  # somebody has deleted the definition
            return []
        before, known = self._series.get(namespace, {}), {}
        for obj in objects:
            uid, version = obj["metadata"]["uid"], obj["metadata"].get("generation")
            series = before.get(uid)
            if series is None or series[0] != version:
                series = version, readable_series(obj)
            known[uid] = series
        self._series[namespace] = known
        return [series for _, series in known.values() if series is not None]


def target_of(autoscaler: JsonObject) -> ObjectRef:
    target = autoscaler["spec"]["scaleTargetRef"]
    kind = GroupVersionKind.of(target.get("apiVersion", ""), target["kind"])
    return ObjectRef(kind, target["name"], autoscaler["metadata"]["namespace"])


def scale_of(autoscaler: JsonObject, spec: HorizontalSpec, reader: Reader) -> Scale | ScaleFailure:
    """The scale of the target, or why there is none."""
    ref = target_of(autoscaler)
    try:
        scale = reader.get_scale(ref)
    except NotFoundError as error:
        prefix = f"failed to query scale subresource for {spec.reference}"
        return ScaleFailure(error.message, f"{prefix}: {error.message}")
    except BadRequestError:
        text = f'no matches for kind "{ref.gvk.kind}" in group "{ref.gvk.group}"'
        prefix = "unable to determine resource for scale target reference"
        return ScaleFailure(text, f"{prefix}: {text}")
    status = scale.get("status") or {}
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    return Scale(replicas, status.get("selector", ""), status.get("replicas", 0))


def metrics_of(measured: Measurements) -> RecordedMetrics:
    """What the metrics APIs answer."""
    usage = measured.usage()
    return RecordedMetrics(
        resource_metrics=tuple(
            PodMetrics(pod, containers, measured.time, measured.window)
            for pod, containers in usage.items()
        ),
        pod_series=tuple(
            PodSeries(
                each.metric,
                tuple(PodValue(pod, value, measured.time) for pod, value in each.values.items()),
            )
            for each in measured.of_pods()
        ),
        object_series=tuple(
            ObjectSeries(each.metric, each.kind, each.name, each.value, each.labels)
            for each in measured.of_objects()
        ),
        external_series=tuple(
            ExternalSeries(each.metric, (value,), each.labels)
            for each, value in measured.external()
        ),
    )


def scaled_as_measured(pod: ScaledPod) -> MeasuredPod:
    is_ready = pod.ready == "True" and not pod.deleting
    containers = tuple(each.name for each in pod.requests.containers)
    return MeasuredPod(pod.name, pod.labels, containers, pod.ready_since if is_ready else None)


def notices(autoscaler: JsonObject, result: Result) -> list[Notice]:
    about = regarding(autoscaler)
    return [Notice(about, each.type, each.reason, each.message, REPORTER) for each in result.events]


def decided(autoscaler: JsonObject, result: Result) -> ReplicasDecided:
    metadata, target = autoscaler["metadata"], autoscaler["spec"]["scaleTargetRef"]
    explanation = result.explanation
    return ReplicasDecided(
        metadata["namespace"],
        metadata["name"],
        f"{target['kind']}/{target['name']}",
        explanation.current,
        result.desired,
        str(explanation),
    )
