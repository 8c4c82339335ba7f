"""Metrics that are one number for all pods: Object, External."""

from kubescene.autoscalers.horizontal.go_texts import shown_selector
from kubescene.autoscalers.horizontal.grouping import Groups
from kubescene.autoscalers.horizontal.measuring_context import MeasuringContext
from kubescene.autoscalers.horizontal.metric_failures import (
    NO_PODS,
    MeasuringError,
    check_selector,
)
from kubescene.autoscalers.horizontal.observing import MetricsUnavailableError
from kubescene.autoscalers.horizontal.proposing import (
    Proposal,
    by_total,
    by_value,
    needs_ready_pods,
    summed,
)
from kubescene.autoscalers.horizontal.specs import MetricSpec


class ValueMeasuring:
    """One number, compared with a target for all pods or divided among them."""

    def __init__(self, context: MeasuringContext) -> None:
        self._with = context
        self._tolerances = context.tolerances

    def object(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        check_selector(metric)
        target = metric.target
        if target.type == "Value" and target.value is not None:
            return self._by_value(self._object_value(metric), target.value), None
        if target.type == "AverageValue" and target.average_value is not None:
            prefix = f"failed to get {metric.name} object metric: "
            usage = self._object_value(metric, prefix)
            return self._by_total(usage, target.average_value, capped=False), None
        raise MeasuringError(
            "invalid object metric source: neither a value target nor an average value target "
            "was set"
        )

    def _object_value(self, metric: MetricSpec, prefix: str = "") -> int:
        described = metric.source["describedObject"]
        kind, name, namespace = described["kind"], described["name"], self._with.spec.namespace
        is_namespace = kind == "Namespace" and "/" not in described.get("apiVersion", "")
        try:
            return self._with.metrics.object(metric, namespace if is_namespace else name)
        except MetricsUnavailableError as error:
            raise MeasuringError(
                f"unable to get metric {metric.name}: {kind} on {namespace} {name}/"
                f"unable to fetch metrics from custom metrics API: {error}",
                prefix,
            ) from error

    def external(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        target = metric.target
        if target.average_value is not None:
            values = self._external(metric, f"failed to get {metric.name} external metric: ")
            usage = summed(values, averaged=True)
            return self._by_total(usage, target.average_value, capped=True), None
        assert target.value is not None  # the API requires one of both
        prefix = f"failed to get external metric {metric.name}: "
        usage = summed(self._external(metric, prefix), averaged=False)
        return self._by_value(usage, target.value, prefix), None

    def _external(self, metric: MetricSpec, prefix: str) -> tuple[int, ...]:
        check_selector(metric, prefix)
        shown = f"{self._with.spec.namespace}/{metric.name}/{shown_selector(metric.selector)}"
        try:
            values = tuple(self._with.metrics.external(metric))
        except MetricsUnavailableError as error:
            raise MeasuringError(
                f"unable to get external metric {shown}: "
                f"unable to fetch metrics from external metrics API: {error}",
                prefix,
            ) from error
        if not values:
            raise MeasuringError(
                f"unable to get external metric {shown}: "
                "no metrics returned from external metrics API",
                prefix,
            )
        return values

    def _by_value(self, usage: int, target: int, prefix: str = "") -> Proposal:
        ready = 0
        if needs_ready_pods(usage, target, self._with.replicas, self._tolerances):
            if not self._with.pods:
                raise MeasuringError(f"unable to calculate ready pods: {NO_PODS}", prefix)
            ready = sum(pod.phase == "Running" and pod.ready == "True" for pod in self._with.pods)
        return by_value(
            usage,
            target=target,
            current=self._with.replicas,
            ready=ready,
            tolerances=self._tolerances,
        )

    def _by_total(self, usage: int, target: int, *, capped: bool) -> Proposal:
        return by_total(
            usage,
            target=target,
            status_replicas=self._with.status_replicas,
            tolerances=self._tolerances,
            capped=capped,
        )
