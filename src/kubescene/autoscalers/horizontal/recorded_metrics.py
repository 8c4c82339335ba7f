"""Answers of the metrics APIs as data: what a recording, a test or a back-test hands in.

Of several series of one name the first answers whose labels satisfy the metric's selector; a
metric without a selector takes any. Where there is none, the API does not know the metric.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from kubescene.api.selectors import from_label_selector
from kubescene.autoscalers.horizontal.observing import (
    MetricsUnavailableError,
    PodMetrics,
    PodValue,
)
from kubescene.autoscalers.horizontal.specs import MetricSpec

NO_RESOURCE_METRICS = "the server could not find the requested resource (get pods.metrics.k8s.io)"


class PodSeries(Struct, frozen=True):
    """A custom metric of pods. ``error``: the API fails with this text."""

    name: str
    items: tuple[PodValue, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class ObjectSeries(Struct, frozen=True):
    """A custom metric of one object, in thousandths."""

    name: str
    kind: str
    object: str
    value: int = 0
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


class ExternalSeries(Struct, frozen=True):
    """An external metric, in thousandths."""

    name: str
    values: tuple[int, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


Series = TypeVar("Series", PodSeries, ObjectSeries, ExternalSeries)


class RecordedMetrics(Struct, frozen=True):
    """A `MetricsSource`. ``resource_metrics`` None: nobody serves metrics.k8s.io."""

    resource_metrics: tuple[PodMetrics, ...] | None = None
    resource_error: str = ""
    pod_series: tuple[PodSeries, ...] = ()
    object_series: tuple[ObjectSeries, ...] = ()
    external_series: tuple[ExternalSeries, ...] = ()

    def resource(self) -> tuple[PodMetrics, ...]:
        if self.resource_error:
            raise MetricsUnavailableError(self.resource_error)
        if self.resource_metrics is None:
            raise MetricsUnavailableError(NO_RESOURCE_METRICS)
        return self.resource_metrics

    def pods(self, metric: MetricSpec) -> tuple[PodValue, ...]:
        return _answer(self.pod_series, metric, " for pods").items

    def object(self, metric: MetricSpec, name: str) -> int:
        described = metric.source["describedObject"]
        kind, group = described["kind"], described.get("apiVersion", "").rpartition("/")[0]
        known = (each for each in self.object_series if (each.kind, each.object) == (kind, name))
        shown = f"{kind}.{group}" if group else kind
        return _answer(known, metric, f" for {shown} {name}").value

    def external(self, metric: MetricSpec) -> tuple[int, ...]:
        return _answer(self.external_series, metric, "").values


def _answer(series: Iterable[Series], metric: MetricSpec, of: str) -> Series:
    selector = None if metric.selector is None else from_label_selector(metric.selector)
    for each in series:
        if each.name == metric.name and (selector is None or selector.matches(each.labels)):
            if each.error:
                raise MetricsUnavailableError(each.error)
            return each
    raise MetricsUnavailableError(f"the server could not find the metric {metric.name}{of}")
