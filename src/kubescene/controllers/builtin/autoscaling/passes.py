"""One pass of the horizontal autoscaler: from objects to what it decides, and back to objects.

The decision itself is `kubescene.autoscalers.horizontal`; here it gets its scale, pods and metrics,
and what it wants becomes writes, Events and a fact.
"""

from collections.abc import Sequence

from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, parse_labels
from kubescene.autoscalers.horizontal import (
    ExternalSeries,
    HorizontalOptions,
    HorizontalSpec,
    HorizontalStatus,
    MetricsUnavailableError,
    ObjectSeries,
    Observation,
    ObservedScale,
    OtherAutoscaler,
    PodMetrics,
    PodSeries,
    PodValue,
    RecordedMetrics,
    Result,
    ScaledPod,
    ScaleFailure,
    ScalingDecision,
    ScalingHistory,
    compiled,
    complete,
    decide,
    observed_pod,
)
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
from kubescene.controllers.builtin.autoscaling.measured import NamespaceMetrics
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Plan, Scale, Update, Write
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import Notice, regarding
from kubescene.types import JsonObject
from kubescene.usage.measuring import MeasuredPod, Measurements
from kubescene.usage.registry import MetricRefusedError, UsageRegistry

REPORTER = "horizontal-pod-autoscaler"
RESCALED = "SuccessfulRescale"


class AskedMetrics:
    """The metrics APIs in a pass: what was measured, and what somebody makes of it on demand."""

    def __init__(
        self, measured: RecordedMetrics, usage: UsageRegistry, namespace: str, now: int
    ) -> None:
        self.resource = measured.resource
        self.pods = measured.pods
        self.object = measured.object
        self._measured = measured
        self._usage = usage
        self._namespace = namespace
        self._now = now

    def external(self, metric: MetricSpec) -> tuple[int, ...]:
        source, selector = self._usage.externals, metric.selector or {}
        if source is not None:
            labels = selector.get("matchLabels") or {}
            try:
                value = source.external(
                    self._namespace, metric.name, labels, self._now, counted=True
                )
            except MetricRefusedError as error:
                raise MetricsUnavailableError(str(error)) from error
            if value is not None:
                return (value,)
        return self._measured.external(metric)


class Passes:
    """What is remembered of autoscalers between their passes."""

    def __init__(self, usage: UsageRegistry, options: HorizontalOptions | None = None) -> None:
        self._usage = usage
        self._known_metrics = NamespaceMetrics(usage)
        self._options = options or HorizontalOptions()
        self._histories: dict[ObjectKey, ScalingHistory] = {}
        self._selectors: dict[ObjectKey, LabelSelector] = {}
        """Of the targets, as of the last pass that knew it."""
        self._decisions: dict[ObjectKey, tuple[JsonObject, ScalingDecision, list[Notice]]] = {}
        """The last of each and what was told of it, for as long as a write may be refused."""
        self._specs: dict[ObjectKey, tuple[object, HorizontalSpec]] = {}
        self._pods: dict[str, dict[str, tuple[Record, ScaledPod]]] = {}
        """By namespace and name, as they were read for the last pass."""

    def deleted(self, key: ObjectKey) -> None:
        """The autoscaler was deleted: its pods are nobody's, but it may come back."""
        self._selectors.pop(key, None)

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
        metrics = AskedMetrics(
            self._metrics(key.namespace, scaled, reader, now), self._usage, key.namespace, now
        )
        decision = decide(
            spec,
            HorizontalStatus.of(autoscaler.get("status") or {}),
            Observation(scale, scaled, metrics, self._others(key)),
            self._histories.get(key, ScalingHistory()),
            now=now,
            options=self._options,
        )
        if isinstance(scale, ObservedScale):
            self._remember(key, scale.selector)
        result, writes = complete(decision), list[Write]()
        told = notices(autoscaler, result)
        if decision.wanted is not None and not decision.ended:
            # Said once it is done: the write may be refused.
            done = next((each for each in told if each.reason == RESCALED), None)
            told = [each for each in told if each is not done]
            fact = decided(autoscaler, result)
            writes.append(Scale(target_of(autoscaler), decision.wanted, done, fact))
        last = told.pop() if decision.last else None
        self._decisions[key] = autoscaler, decision, told
        return self._planned(key, autoscaler, result, writes, told, last)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """The scale could not be written, or the status: the autoscaler says so."""
        del reader, now
        if key not in self._decisions:
            return NOTHING
        autoscaler, decision, told = self._decisions.pop(key)
        if isinstance(write, Scale):
            result = complete(decision, scale_error=error.message)
            return self._planned(key, autoscaler, result, [], beside(told, autoscaler, result))
        if isinstance(error, NotFoundError):
            return NOTHING
        result = complete(decision, status_error=error.message)
        done = (each for each in beside(told, autoscaler, result) if each.reason != RESCALED)
        return Plan(notices=list(done))

    def _planned(
        self,
        key: ObjectKey,
        autoscaler: JsonObject,
        result: Result,
        writes: list[Write],
        told: Sequence[Notice],
        last: Notice | None = None,
    ) -> Plan:
        """``last`` is said once the status is written."""
        self._histories[key] = result.history
        if result.status_written:
            status = {**autoscaler, "status": result.status.to_dict()}
            writes = [*writes, Update(status, subresource="status", notice=last)]
        elif last is not None:
            told = [*told, last]
        return Plan(writes, notices=told)

    # -- what it sees ----------------------------------------------------------------------

    def _spec(self, key: ObjectKey, autoscaler: JsonObject) -> HorizontalSpec:
        # Autoscalers have no generation that would tell.
        known = self._specs.get(key)
        if known is None or known[0] != autoscaler["spec"]:
            known = self._specs[key] = autoscaler["spec"], compiled(autoscaler)
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
        seen = map(scaled_as_measured, pods)
        return metrics_of(self._known_metrics.of(namespace, seen, reader, now))

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


def target_of(autoscaler: JsonObject) -> ObjectRef:
    target = autoscaler["spec"]["scaleTargetRef"]
    kind = GroupVersionKind.of(target.get("apiVersion", ""), target["kind"])
    return ObjectRef(kind, target["name"], autoscaler["metadata"]["namespace"])


def scale_of(
    autoscaler: JsonObject, spec: HorizontalSpec, reader: Reader
) -> ObservedScale | ScaleFailure:
    """The scale of the target, or why there is none."""
    ref = target_of(autoscaler)
    try:
        scale = reader.get_scale(ref)
    except BadRequestError:
        text = f'no matches for kind "{ref.gvk.kind}" in group "{ref.gvk.group}"'
        prefix = "unable to determine resource for scale target reference"
        return ScaleFailure(text, f"{prefix}: {text}")
    except ApiError as error:
        prefix = f"failed to query scale subresource for {spec.reference}"
        return ScaleFailure(error.message, f"{prefix}: {error.message}")
    status = scale.get("status") or {}
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    return ObservedScale(replicas, status.get("selector", ""), status.get("replicas", 0))


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


def beside(told: Sequence[Notice], autoscaler: JsonObject, result: Result) -> list[Notice]:
    """What there is to say that was not said before the write that was refused."""
    return [each for each in notices(autoscaler, result) if each not in told]


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
