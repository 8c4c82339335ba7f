"""Metrics that have a value for each pod: Resource, ContainerResource, Pods."""

from collections.abc import Iterable

from kubescene.autoscalers.horizontal.grouping import Groups, Sample, group_pods
from kubescene.autoscalers.horizontal.measuring_context import MeasuringContext
from kubescene.autoscalers.horizontal.metric_failures import (
    NO_PODS,
    NO_SAMPLES,
    MeasuringError,
    check_selector,
)
from kubescene.autoscalers.horizontal.observing import MetricsUnavailableError, PodMetrics
from kubescene.autoscalers.horizontal.pod_requests import PodRequests, RequestError
from kubescene.autoscalers.horizontal.proposing import (
    NoUsageError,
    Proposal,
    by_average,
    by_utilization,
)
from kubescene.autoscalers.horizontal.sampling import resource_samples
from kubescene.autoscalers.horizontal.specs import MetricSpec


class PodMeasuring:
    """Values of pods, grouped by whether they count, and what they propose."""

    def __init__(self, context: MeasuringContext) -> None:
        self._with = context
        self._tolerances = context.tolerances

    def resource(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        target = metric.target
        wanted = "utilization" if target.average_value is None else "usage"
        try:
            samples = self._resource_samples(metric)
            if target.average_value is not None:
                return self._average(samples, target.average_value, metric.name)
            assert target.average_utilization is not None  # the API requires one of both
            return self._utilization(metric, samples, target.average_utilization)
        except (MeasuringError, NoUsageError, RequestError) as error:
            raise MeasuringError(f"failed to get {metric.name} {wanted}: {error}") from error

    def _resource_samples(self, metric: MetricSpec) -> dict[str, Sample]:
        prefix = f"unable to get metrics for resource {metric.name}: "
        try:
            items = list(self._returned(self._with.metrics.resource()))
        except MetricsUnavailableError as error:
            text = f"{prefix}unable to fetch metrics from resource metrics API: {error}"
            raise MeasuringError(text) from error
        if not items:
            raise MeasuringError(f"{prefix}no metrics returned from resource metrics API")
        return resource_samples(items, metric.name, metric.container)

    def _returned(self, items: Iterable[PodMetrics]) -> Iterable[PodMetrics]:
        """The API answers for the selector: pods that are known and not selected are left out."""
        if not self._with.unselected:
            return items
        return (item for item in items if item.pod not in self._with.unselected)

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
            current=self._with.replicas,
            tolerances=self._tolerances,
        )
        return proposal, groups

    def _average(
        self, samples: dict[str, Sample], target: int, resource: str
    ) -> tuple[Proposal, Groups]:
        values, groups = self._grouped(samples, resource)
        proposal = by_average(
            values, groups, target=target, current=self._with.replicas, tolerances=self._tolerances
        )
        return proposal, groups

    def _grouped(self, samples: dict[str, Sample], resource: str) -> tuple[dict[str, int], Groups]:
        if not self._with.pods:
            raise MeasuringError(NO_PODS)
        groups = group_pods(
            self._with.pods,
            samples,
            resource=resource,
            options=self._with.options,
            now=self._with.now,
        )
        out = frozenset((*groups.ignored, *groups.unready))
        values = {pod: sample.value for pod, sample in samples.items() if pod not in out}
        if not values:
            raise MeasuringError(NO_SAMPLES)
        return values, groups

    def _requests(self, metric: MetricSpec) -> dict[str, int]:
        """Of all selected pods, also of those that do not count."""
        amounts: dict[int, int] = {}
        requests: dict[str, int] = {}
        for pod in self._with.pods:
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
            pod_level=self._with.options.pod_level_resources,
        )

    def pods_metric(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        check_selector(metric)
        prefix = f"unable to get metric {metric.name}: "
        try:
            items = list(self._with.metrics.pods(metric))
        except MetricsUnavailableError as error:
            text = f"{prefix}unable to fetch metrics from custom metrics API: {error}"
            raise MeasuringError(text) from error
        items = [item for item in items if item.pod not in self._with.unselected]
        if not items:
            raise MeasuringError(f"{prefix}no metrics returned from custom metrics API")
        samples = {item.pod: Sample(item.value, item.timestamp, item.window) for item in items}
        assert metric.target.average_value is not None  # the API requires it
        return self._average(samples, metric.target.average_value, "")
