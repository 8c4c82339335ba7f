"""One metric of an autoscaler: asked for, grouped, and turned into a proposal or a failure.

The texts of failures are the controller's, because they are shown in conditions and events.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from kubescene.api.selectors import SelectorError, from_label_selector
from kubescene.autoscalers.horizontal.go_texts import shown_selector
from kubescene.autoscalers.horizontal.grouping import Groups, Sample, group_pods
from kubescene.autoscalers.horizontal.metric_texts import (
    current_metric,
    display_name,
    failure_prefix,
)
from kubescene.autoscalers.horizontal.observing import (
    MetricsSource,
    MetricsUnavailableError,
    PodMetrics,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.pod_requests import PodRequests, RequestError
from kubescene.autoscalers.horizontal.proposing import (
    NoUsageError,
    Proposal,
    by_average,
    by_total,
    by_utilization,
    by_value,
    needs_ready_pods,
    summed,
)
from kubescene.autoscalers.horizontal.sampling import resource_samples
from kubescene.autoscalers.horizontal.specs import HorizontalSpec, MetricSpec
from kubescene.errors import KubesceneError
from kubescene.types import JsonObject, Nanoseconds

NO_PODS = "no pods returned by selector while calculating replica count"
NO_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"


class MetricFailure(Struct, frozen=True):
    """A metric of which nothing can be said: reason and text of its event, and the error."""

    reason: str
    message: str
    error: str


class Measurement(Struct, frozen=True):
    """What a metric came to. ``name`` is how it is called in texts; ``status`` may be blank."""

    spec: MetricSpec
    name: str
    proposal: Proposal | None = None
    failure: MetricFailure | None = None
    groups: Groups | None = None

    @property
    def status(self) -> JsonObject:
        return {"type": ""} if self.proposal is None else current_metric(self.spec, self.proposal)


class _FailedError(KubesceneError):
    """Ends the evaluation of one metric; ``prefix`` stands only in the error of the pass."""

    def __init__(self, message: str, prefix: str = "") -> None:
        super().__init__(message)
        self.prefix = prefix


class Measuring:
    """The metrics of one pass over the selected pods."""

    def __init__(
        self,
        spec: HorizontalSpec,
        metrics: MetricsSource,
        pods: Sequence[ScaledPod],
        *,
        unselected: frozenset[str],
        replicas: int,
        status_replicas: int,
        options: HorizontalOptions,
        now: Nanoseconds,
    ) -> None:
        self._spec = spec
        self._metrics = metrics
        self._pods = pods
        self._unselected = unselected
        self._replicas = replicas
        self._status_replicas = status_replicas
        self._options = options
        self._now = now
        self._tolerances = spec.tolerances(options)

    def measure(self, metric: MetricSpec) -> Measurement:
        evaluate = _EVALUATIONS[metric.type]
        try:
            proposal, groups = evaluate(self, metric)
        except _FailedError as failed:
            reason = f"FailedGet{metric.type}Metric"
            error = f"{failure_prefix(metric)}: {failed.prefix}{failed}"
            failure = MetricFailure(reason, str(failed), error)
            return Measurement(metric, display_name(metric), failure=failure)
        return Measurement(metric, display_name(metric), proposal, groups=groups)

    # -- pods --------------------------------------------------------------------------

    def resource(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        target = metric.target
        wanted = "utilization" if target.average_value is None else "usage"
        try:
            samples = self._resource_samples(metric)
            if target.average_value is not None:
                return self._average(samples, target.average_value, metric.name)
            assert target.average_utilization is not None  # the API requires one of both
            return self._utilization(metric, samples, target.average_utilization)
        except (_FailedError, NoUsageError, RequestError) as error:
            raise _FailedError(f"failed to get {metric.name} {wanted}: {error}") from error

    def _resource_samples(self, metric: MetricSpec) -> dict[str, Sample]:
        prefix = f"unable to get metrics for resource {metric.name}: "
        try:
            items = list(self._returned(self._metrics.resource()))
        except MetricsUnavailableError as error:
            text = f"{prefix}unable to fetch metrics from resource metrics API: {error}"
            raise _FailedError(text) from error
        if not items:
            raise _FailedError(f"{prefix}no metrics returned from resource metrics API")
        return resource_samples(items, metric.name, metric.container)

    def _returned(self, items: Iterable[PodMetrics]) -> Iterable[PodMetrics]:
        """The API answers for the selector: pods that are known and not selected are left out."""
        if not self._unselected:
            return items
        return (item for item in items if item.pod not in self._unselected)

    def _utilization(
        self, metric: MetricSpec, samples: dict[str, Sample], target: int
    ) -> tuple[Proposal, Groups]:
        values, groups = self._grouped(samples, metric.name)
        requests = self._requests(metric)
        proposal = by_utilization(
            values,
            groups,
            requests,
            target=target,
            current=self._replicas,
            tolerances=self._tolerances,
        )
        return proposal, groups

    def _average(
        self, samples: dict[str, Sample], target: int, resource: str
    ) -> tuple[Proposal, Groups]:
        values, groups = self._grouped(samples, resource)
        proposal = by_average(
            values, groups, target=target, current=self._replicas, tolerances=self._tolerances
        )
        return proposal, groups

    def _grouped(self, samples: dict[str, Sample], resource: str) -> tuple[dict[str, int], Groups]:
        if not self._pods:
            raise _FailedError(NO_PODS)
        groups = group_pods(
            self._pods, samples, resource=resource, options=self._options, now=self._now
        )
        out = frozenset((*groups.ignored, *groups.unready))
        values = {pod: sample.value for pod, sample in samples.items() if pod not in out}
        if not values:
            raise _FailedError(NO_SAMPLES)
        return values, groups

    def _requests(self, metric: MetricSpec) -> dict[str, int]:
        """Of all selected pods, also of those that do not count."""
        amounts: dict[int, int] = {}
        requests: dict[str, int] = {}
        for pod in self._pods:
            # Pods of a template share their requests; looked at once, by identity.
            amount = amounts.get(id(pod.requests))
            if amount is None:
                amount = amounts[id(pod.requests)] = self._request(pod.requests, metric, pod.name)
            requests[pod.name] = amount
        return requests

    def _request(self, requests: PodRequests, metric: MetricSpec, pod: str) -> int:
        return requests.amount(
            metric.name,
            container=metric.container,
            pod=pod,
            pod_level=self._options.pod_level_resources,
        )

    def pods_metric(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        _check_selector(metric)
        prefix = f"unable to get metric {metric.name}: "
        try:
            items = list(self._metrics.pods(metric))
        except MetricsUnavailableError as error:
            text = f"{prefix}unable to fetch metrics from custom metrics API: {error}"
            raise _FailedError(text) from error
        items = [item for item in items if item.pod not in self._unselected]
        if not items:
            raise _FailedError(f"{prefix}no metrics returned from custom metrics API")
        samples = {item.pod: Sample(item.value, item.timestamp, item.window) for item in items}
        assert metric.target.average_value is not None  # the API requires it
        return self._average(samples, metric.target.average_value, "")

    # -- one number ----------------------------------------------------------------------

    def object(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        _check_selector(metric)
        target = metric.target
        if target.type == "Value" and target.value is not None:
            return self._by_value(self._object_value(metric), target.value), None
        if target.type == "AverageValue" and target.average_value is not None:
            prefix = f"failed to get {metric.name} object metric: "
            usage = self._object_value(metric, prefix)
            return self._by_total(usage, target.average_value, capped=False), None
        raise _FailedError(
            "invalid object metric source: neither a value target nor an average value target "
            "was set"
        )

    def _object_value(self, metric: MetricSpec, prefix: str = "") -> int:
        described = metric.source["describedObject"]
        kind, name, namespace = described["kind"], described["name"], self._spec.namespace
        is_namespace = kind == "Namespace" and "/" not in described.get("apiVersion", "")
        try:
            return self._metrics.object(metric, namespace if is_namespace else name)
        except MetricsUnavailableError as error:
            raise _FailedError(
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
        _check_selector(metric, prefix)
        shown = f"{self._spec.namespace}/{metric.name}/{shown_selector(metric.selector)}"
        try:
            values = tuple(self._metrics.external(metric))
        except MetricsUnavailableError as error:
            raise _FailedError(
                f"unable to get external metric {shown}: "
                f"unable to fetch metrics from external metrics API: {error}",
                prefix,
            ) from error
        if not values:
            raise _FailedError(
                f"unable to get external metric {shown}: "
                "no metrics returned from external metrics API",
                prefix,
            )
        return values

    def _by_value(self, usage: int, target: int, prefix: str = "") -> Proposal:
        ready = 0
        if needs_ready_pods(usage, target, self._replicas, self._tolerances):
            if not self._pods:
                raise _FailedError(f"unable to calculate ready pods: {NO_PODS}", prefix)
            ready = sum(pod.phase == "Running" and pod.ready == "True" for pod in self._pods)
        return by_value(
            usage,
            target=target,
            current=self._replicas,
            ready=ready,
            tolerances=self._tolerances,
        )

    def _by_total(self, usage: int, target: int, *, capped: bool) -> Proposal:
        return by_total(
            usage,
            target=target,
            status_replicas=self._status_replicas,
            tolerances=self._tolerances,
            capped=capped,
        )


_EVALUATIONS: dict[str, Callable[[Measuring, MetricSpec], tuple[Proposal, Groups | None]]] = {
    "Resource": Measuring.resource,
    "ContainerResource": Measuring.resource,
    "Pods": Measuring.pods_metric,
    "Object": Measuring.object,
    "External": Measuring.external,
}


def _check_selector(metric: MetricSpec, prefix: str = "") -> None:
    try:
        from_label_selector(metric.selector)
    except SelectorError as error:
        raise _FailedError(str(error), prefix) from error
