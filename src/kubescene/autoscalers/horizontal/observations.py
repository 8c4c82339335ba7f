"""What a pass sees: the target's scale, its pods, and what the metrics APIs answer.

All of it is data. Amounts are thousandths (of a core, a byte, a request), times nanoseconds.

What a pod asks for (`PodRequests`) is counted as utilization does it, not as the scheduler does:
containers and sidecars add up, and every one of them has to ask for the resource, else utilization
has no meaning and the metric fails. A pod that has requests of its own is counted by those; what
they leave out comes from the containers, which then need not all have it.

Which pods belong to the target, the selector of its scale says (`usable_selector`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from kubescene.api.quantity import Quantity, milli_value
from kubescene.api.resource_requests import exact_requests, has_pod_level_requests
from kubescene.api.selectors import LabelSelector, parse_labels
from kubescene.autoscalers.horizontal.specs import HorizontalSpec, MetricSpec
from kubescene.clock.timestamps import parse_time
from kubescene.errors import BadRequestError, KubesceneError
from kubescene.types import JsonObject, Nanoseconds


class RequestError(KubesceneError):
    """A pod has no request to compare its usage with. The text is the controller's."""


class ContainerRequests(Struct, frozen=True):
    """Thousandths by resource."""

    name: str
    requests: Mapping[str, int]


class PodRequests(Struct, frozen=True):
    """What one pod asks for; pods of one template may share it.

    ``containers`` are those that run beside each other, sidecars last; ``pod_level`` is there
    if the pod has requests of its own.
    """

    containers: tuple[ContainerRequests, ...]
    pod_level: Mapping[str, int] | None = None

    @classmethod
    def of(cls, spec: JsonObject) -> "PodRequests":
        """The requests of a pod's spec."""
        running = [*(spec.get("containers") or ()), *_sidecars(spec)]
        pod: JsonObject = {"spec": spec}
        pod_level = None
        if has_pod_level_requests(pod):
            total = exact_requests(pod)
            pod_level = {name: Quantity(nanos).milli_value() for name, nanos in total.items()}
        return cls(tuple(map(_container, running)), pod_level)

    @classmethod
    def single(cls, container: str, requests: Mapping[str, int]) -> "PodRequests":
        """A pod of one container."""
        return cls((ContainerRequests(container, requests),))

    def amount(self, resource: str, *, container: str, pod: str, pod_level: bool) -> int:
        """What is asked for, of one container or (``""``) all; `RequestError` if it is not.

        ``pod`` is the name for the text.
        """
        if self.pod_level is not None and pod_level and not container:
            if resource not in self.pod_level:
                raise RequestError(f"missing pod-level request for {resource} in Pod {pod}")
            return self.pod_level[resource]
        if not container:
            return sum(_amount(each, resource, pod) for each in self.containers)
        for each in self.containers:
            if each.name == container:
                return _amount(each, resource, pod)
        raise RequestError(f"container {container} not found in Pod {pod}")


def _amount(container: ContainerRequests, resource: str, pod: str) -> int:
    amount = container.requests.get(resource)
    if amount is None:
        raise RequestError(
            f"missing request for {resource} in container {container.name} of Pod {pod}"
        )
    return amount


def _sidecars(spec: JsonObject) -> Iterable[JsonObject]:
    return (
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    )


def _container(container: JsonObject) -> ContainerRequests:
    requests = (container.get("resources") or {}).get("requests") or {}
    return ContainerRequests(
        container.get("name", ""), {name: milli_value(text) for name, text in requests.items()}
    )


class MetricsUnavailableError(KubesceneError):
    """A metrics API gave no answer. The text goes into conditions and events."""


class ObservedScale(Struct, frozen=True):
    """The scale subresource of the target. ``status_replicas`` None: as many as wanted."""

    replicas: int
    selector: str
    status_replicas: int | None = None


class ScaleFailure(Struct, frozen=True):
    """The scale could not be read: what the API said, and the error of the pass."""

    message: str
    error: str


class ScaledPod(Struct, frozen=True):
    """A pod of the namespace, as far as autoscaling looks at it.

    ``ready`` is the status of its condition Ready, None if it has none; ``ready_since`` is when
    that last changed.
    """

    name: str
    requests: PodRequests
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    phase: str = "Running"
    ready: str | None = "True"
    ready_since: Nanoseconds = 0
    started: Nanoseconds | None = 0
    deleting: bool = False


class PodMetrics(Struct, frozen=True):
    """One pod's usage by container and resource, as metrics.k8s.io gives it."""

    pod: str
    containers: Mapping[str, Mapping[str, int]]
    timestamp: Nanoseconds = 0
    window: Nanoseconds = 0


class PodValue(Struct, frozen=True):
    """One pod's value of a custom metric."""

    pod: str
    value: int
    timestamp: Nanoseconds = 0
    window: Nanoseconds = 60 * 10**9


class MetricsSource(Protocol):
    """The metrics APIs. Each answer may be `MetricsUnavailableError` instead."""

    def resource(self) -> Iterable[PodMetrics]:
        """Usage of pods."""

    def pods(self, metric: MetricSpec) -> Iterable[PodValue]:
        """A custom metric, per pod."""

    def object(self, metric: MetricSpec, name: str) -> int:
        """A custom metric of the described object; ``name`` is the one to look it up by."""

    def external(self, metric: MetricSpec) -> Iterable[int]:
        """All values of an external metric."""


class OtherAutoscaler(Struct, frozen=True):
    """Another autoscaler of the namespace; it must not select the same pods."""

    name: str
    selector: LabelSelector


class Observation(Struct, frozen=True):
    """All that a pass looks at, apart from the object and the history."""

    scale: ObservedScale | ScaleFailure
    pods: Sequence[ScaledPod]
    metrics: MetricsSource
    others: Sequence[OtherAutoscaler] = ()


def observed_pod(pod: JsonObject) -> ScaledPod:
    """A Kubernetes pod as autoscaling sees it."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ready = _ready_condition(status)
    return ScaledPod(
        name=metadata["name"],
        requests=PodRequests.of(pod.get("spec") or {}),
        labels=metadata.get("labels") or {},
        phase=status.get("phase", ""),
        ready=None if ready is None else ready.get("status", ""),
        ready_since=_instant((ready or {}).get("lastTransitionTime")) or 0,
        started=_instant(status.get("startTime")),
        deleting=metadata.get("deletionTimestamp") is not None,
    )


def _ready_condition(status: JsonObject) -> JsonObject | None:
    conditions = status.get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "Ready"), None)


def _instant(text: str | None) -> Nanoseconds | None:
    return None if text is None else parse_time(text)


class SelectorRefusal(Struct, frozen=True):
    """A selector that cannot be used: event and error, and what the condition says."""

    event: str
    error: str
    reason: str
    message: str


def usable_selector(
    text: str,
    spec: HorizontalSpec,
    pods: Iterable[ScaledPod],
    others: Sequence[OtherAutoscaler],
) -> LabelSelector | SelectorRefusal:
    """The selector of a scale. Its pods must not be selected by another autoscaler, too."""
    if not text:
        message = "the HPA target's scale is missing a selector"
        return SelectorRefusal(
            "SelectorRequired", "selector is required", "InvalidSelector", message
        )
    try:
        selector = parse_labels(text)
    except BadRequestError as error:
        prefix = "couldn't convert selector into a corresponding internal selector object"
        return _refusal("InvalidSelector", f"{prefix}: {error}")
    if rivals := _rivals(selector, pods, others):
        names = sorted((spec.name, *rivals))
        keys = " ".join(f"{spec.namespace}/{each}" for each in names)
        error_text = f"pods by selector {text} are controlled by multiple HPAs: [{keys}]"
        return _refusal("AmbiguousSelector", error_text)
    return selector


def selected(pods: Iterable[ScaledPod], selector: LabelSelector) -> list[ScaledPod]:
    """Pods of a template share their labels: looked at once, by identity."""
    known: dict[int, bool] = {}
    found: list[ScaledPod] = []
    for pod in pods:
        matches = known.get(id(pod.labels))
        if matches is None:
            matches = known[id(pod.labels)] = selector.matches(pod.labels)
        if matches:
            found.append(pod)
    return found


def _refusal(reason: str, error: str) -> SelectorRefusal:
    return SelectorRefusal(reason, error, reason, error)


def _rivals(
    selector: LabelSelector, pods: Iterable[ScaledPod], others: Sequence[OtherAutoscaler]
) -> list[str]:
    if not others:
        return []
    ours = selected(pods, selector)
    return [
        other.name for other in others if any(other.selector.matches(pod.labels) for pod in ours)
    ]
