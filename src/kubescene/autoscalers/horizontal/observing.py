"""What one pass sees: the target's scale, pods, and what the metrics APIs answer.

All of it is data. Amounts are thousandths (of a core, a byte, a request), times nanoseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from kubescene.api.selectors import LabelSelector
from kubescene.autoscalers.horizontal.pod_requests import PodRequests
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.clock.timestamps import parse_time
from kubescene.errors import KubesceneError
from kubescene.types import JsonObject, Nanoseconds


class MetricsUnavailableError(KubesceneError):
    """A metrics API gave no answer. The text goes into conditions and events."""


class Scale(Struct, frozen=True):
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

    scale: Scale | ScaleFailure
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
