"""The metrics of an autoscaler: asked for, turned into proposals, combined.

`Measuring` makes of one metric a proposal or a failure. Resource, ContainerResource and Pods
metrics have a value for each pod, Object and External ones are one number for all. Of several
metrics (`combined`) the largest proposal wins, and a failure forbids scaling down.

Names and failures are the controller's words: they are shown in conditions and events.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubescene.api.quantity import QuantityFormat, from_milli
from kubescene.api.selectors import SelectorError, from_label_selector
from kubescene.autoscalers.horizontal.observations import (
    MetricsSource,
    MetricsUnavailableError,
    PodMetrics,
    PodRequests,
    RequestError,
    ScaledPod,
)
from kubescene.autoscalers.horizontal.proposals import (
    Groups,
    MetricSample,
    NoUsageError,
    Proposal,
    by_average,
    by_total,
    by_utilization,
    by_value,
    group_pods,
    needs_ready_pods,
    summed,
)
from kubescene.autoscalers.horizontal.specs import (
    HorizontalOptions,
    HorizontalSpec,
    MetricSpec,
    Tolerances,
)
from kubescene.errors import KubesceneError
from kubescene.types import JsonObject, Nanoseconds


class MeasuringContext(Struct, frozen=True):
    """The selected pods, the names of those that are not, and the counts of the scale."""

    spec: HorizontalSpec
    metrics: MetricsSource
    pods: Sequence[ScaledPod]
    unselected: frozenset[str]
    replicas: int
    status_replicas: int
    options: HorizontalOptions
    now: Nanoseconds

    @property
    def tolerances(self) -> Tolerances:
        return self.spec.tolerances(self.options)


NO_PODS = "no pods returned by selector while calculating replica count"
NO_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"


class MetricFailure(Struct, frozen=True):
    """A metric of which nothing can be said: reason and text of its event, and the error."""

    reason: str
    message: str
    error: str


class MeasuringError(KubesceneError):
    """Ends the evaluation of one metric; ``prefix`` stands only in the error of the pass."""

    def __init__(self, message: str, prefix: str = "") -> None:
        super().__init__(message)
        self.prefix = prefix


def check_selector(metric: MetricSpec, prefix: str = "") -> None:
    try:
        from_label_selector(metric.selector)
    except SelectorError as error:
        raise MeasuringError(str(error), prefix) from error


MEMORY = "memory"


def failure_prefix(metric: MetricSpec) -> str:
    return {
        "Resource": f"failed to get {metric.name} resource metric value",
        "ContainerResource": f"failed to get {metric.container} container metric value",
        "Pods": "failed to get pods metric value",
        "Object": "failed to get object metric value",
        "External": f"failed to get {metric.name} external metric value",
    }[metric.type]


def display_name(metric: MetricSpec) -> str:
    """What a metric is called. An object's average is called like an external metric."""
    by_average = metric.target.average_value is not None
    if metric.type in ("Resource", "ContainerResource"):
        if by_average:
            return f"{metric.name} resource"
        kind = "container resource" if metric.type == "ContainerResource" else "resource"
        return f"{metric.name} {kind} utilization (percentage of request)"
    if metric.type == "Pods":
        return f"pods metric {metric.name}"
    if metric.type == "Object" and metric.target.type == "Value":
        return f"{metric.source['describedObject']['kind']} metric {metric.name}"
    return f"external metric {metric.name}({_shown_selector(metric.selector)})"


def _shown_selector(selector: JsonObject | None) -> str:
    """A LabelSelector as Go prints a pointer to one."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    expressions = "".join(map(_expression, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def _expression(expression: JsonObject) -> str:
    values = " ".join(expression.get("values") or ())
    return (
        f"LabelSelectorRequirement{{Key:{expression.get('key', '')},"
        f"Operator:{expression.get('operator', '')},Values:[{values}],}},"
    )


def current_metric(metric: MetricSpec, proposal: Proposal) -> JsonObject:
    """The entry of ``status.currentMetrics``."""
    form = (
        QuantityFormat.BINARY_SI
        if metric.name == MEMORY and _is_resource(metric)
        else QuantityFormat.DECIMAL_SI
    )
    current: JsonObject = {}
    for name, amount in (("value", proposal.value), ("averageValue", proposal.average)):
        if amount is not None:
            current[name] = str(from_milli(amount, form))
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
    kept = ("name", "container", "metric", "describedObject")
    source = {name: metric.source[name] for name in kept if name in metric.source}
    source["current"] = current
    part = metric.type[0].lower() + metric.type[1:]
    return {"type": metric.type, part: source}


def _is_resource(metric: MetricSpec) -> bool:
    return metric.type in ("Resource", "ContainerResource")


def resource_samples(
    items: Iterable[PodMetrics], resource: str, container: str = ""
) -> dict[str, MetricSample]:
    """Usage by pod, of one container or of all; pods that do not have it are left out."""
    samples: dict[str, MetricSample] = {}
    for item in items:
        value = _of_container(item, resource, container) if container else _of_pod(item, resource)
        if value is not None:
            samples[item.pod] = MetricSample(value, item.timestamp, item.window)
    return samples


def _of_pod(item: PodMetrics, resource: str) -> int | None:
    """The sum over containers; nothing if one of them has no value, or there is none."""
    total = 0
    for usage in item.containers.values():
        value = usage.get(resource)
        if value is None:
            return None
        total += value
    return total if item.containers else None


def _of_container(item: PodMetrics, resource: str, container: str) -> int | None:
    usage: Mapping[str, int] = item.containers.get(container) or {}
    return usage.get(resource)


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

    def _resource_samples(self, metric: MetricSpec) -> dict[str, MetricSample]:
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
        self, metric: MetricSpec, samples: dict[str, MetricSample], target: int
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
        self, samples: dict[str, MetricSample], target: int, resource: str
    ) -> tuple[Proposal, Groups]:
        values, groups = self._grouped(samples, resource)
        proposal = by_average(
            values, groups, target=target, current=self._with.replicas, tolerances=self._tolerances
        )
        return proposal, groups

    def _grouped(
        self, samples: dict[str, MetricSample], resource: str
    ) -> tuple[dict[str, int], Groups]:
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
        samples = {
            item.pod: MetricSample(item.value, item.timestamp, item.window) for item in items
        }
        assert metric.target.average_value is not None  # the API requires it
        return self._average(samples, metric.target.average_value, "")


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
        shown = f"{self._with.spec.namespace}/{metric.name}/{_shown_selector(metric.selector)}"
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


class MeasuredMetric(Struct, frozen=True):
    """What a metric came to. ``name`` is how it is called in texts; ``status`` may be blank."""

    spec: MetricSpec
    name: str
    proposal: Proposal | None = None
    failure: MetricFailure | None = None
    groups: Groups | None = None

    @property
    def status(self) -> JsonObject:
        return {"type": ""} if self.proposal is None else current_metric(self.spec, self.proposal)


class Measuring:
    """The metrics of one pass over the selected pods."""

    def __init__(self, context: MeasuringContext) -> None:
        self._with = context

    def measure(self, metric: MetricSpec) -> MeasuredMetric:
        try:
            proposal, groups = self._evaluated(metric)
        except MeasuringError as failed:
            reason = f"FailedGet{metric.type}Metric"
            error = f"{failure_prefix(metric)}: {failed.prefix}{failed}"
            failure = MetricFailure(reason, str(failed), error)
            return MeasuredMetric(metric, display_name(metric), failure=failure)
        return MeasuredMetric(metric, display_name(metric), proposal, groups=groups)

    def _evaluated(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        match metric.type:
            case "Pods":
                return PodMeasuring(self._with).pods_metric(metric)
            case "Object":
                return ValueMeasuring(self._with).object(metric)
            case "External":
                return ValueMeasuring(self._with).external(metric)
            case _:
                return PodMeasuring(self._with).resource(metric)


class Combined(Struct, frozen=True):
    """What the metrics came to. ``replicas`` None: nothing can be decided.

    ``failure`` is the first one; it may be there beside a count.
    """

    replicas: int | None
    metric: str = ""
    failure: MetricFailure | None = None
    error: str = ""


def combined(measurements: Sequence[MeasuredMetric], current: int) -> Combined:
    """On ties the earlier metric gives its name; a count of 0 gives way to whatever follows."""
    replicas, metric = 0, ""
    failures = [each.failure for each in measurements if each.failure is not None]
    for each in measurements:
        if each.proposal is not None and (replicas == 0 or each.proposal.replicas > replicas):
            replicas, metric = each.proposal.replicas, each.name
    if not failures:
        return Combined(replicas, metric)
    error = (
        f"invalid metrics ({len(failures)} invalid out of {len(measurements)}), "
        f"first error is: {failures[0].error}"
    )
    if len(failures) == len(measurements) or replicas < current:
        return Combined(None, "", failures[0], error)
    return Combined(replicas, metric, failures[0], error)
