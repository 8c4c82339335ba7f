"""MetricSeries: numbers over time that somebody brings, as an object.

A series is the usage of pods (``resource``), or a ``metric`` of pods, of an object, or of something
outside (``external``). Its points count from its creation; between them it is a line or a step.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubescene.api.own_kinds import AMOUNT, ANYTHING, TEXT, definition, own_kind
from kubescene.api.quantity import QuantityError, milli_value
from kubescene.api.selectors import LabelSelector, SelectorError, read_label_selector
from kubescene.clock import parse_time
from kubescene.durations import parse_duration
from kubescene.types import JsonObject, Nanoseconds

METRIC_SERIES = own_kind("MetricSeries")
LINEAR, PREVIOUS = "Linear", "Previous"
RESOURCES = ("cpu", "memory")
MOST_POINTS = 100_000
LARGEST = 1 << 62

_SPEC: JsonObject = {
    "type": "object",
    "description": "What is measured, of whom, and how it goes over time.",
    "required": ["points"],
    "properties": {
        "resource": {"type": "string", "enum": list(RESOURCES), "description": "What pods use."},
        "metric": {**TEXT, "description": "The name of a custom or external metric."},
        "pods": {**ANYTHING, "description": "A label selector: it is measured of these pods."},
        "perPod": {
            "type": "boolean",
            "description": "Each pod has the value; without it ready pods share it evenly.",
        },
        "container": {**TEXT, "description": "Whose usage it is; the first if it is not said."},
        "object": {
            "type": "object",
            "required": ["kind", "name"],
            "properties": {"apiVersion": TEXT, "kind": TEXT, "name": TEXT},
            "description": "It is measured of this object of the namespace.",
        },
        "external": {
            "type": "object",
            "properties": {"labels": {"type": "object", "additionalProperties": TEXT}},
            "description": "It is measured of something outside the cluster.",
        },
        "points": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_POINTS,
            "items": {
                "type": "object",
                "required": ["at", "value"],
                "properties": {"at": TEXT, "value": AMOUNT},
            },
        },
        "interpolation": {"type": "string", "enum": [LINEAR, PREVIOUS], "default": PREVIOUS},
    },
}
_STATUS: JsonObject = {"type": "object", "properties": {"message": TEXT}}
DEFINITION = definition(
    METRIC_SERIES,
    _SPEC,
    _STATUS,
    plural="metricseries",
    namespaced=True,
    columns=[
        ("Metric", "string", ".spec.metric"),
        ("Resource", "string", ".spec.resource"),
        ("Message", "string", ".status.message"),
    ],
)


class Points(Struct, frozen=True):
    """Values at instants, the first of which is zero; before it there is nothing."""

    times: tuple[Nanoseconds, ...]
    values: tuple[int, ...]
    linear: bool = False

    def at(self, time: Nanoseconds) -> int | None:
        """The value then; None before the first point."""
        place = bisect_right(self.times, time) - 1
        if place < 0:
            return None
        if not self.linear or place + 1 == len(self.times):
            return self.values[place]
        return self._between(place, time)

    def mean(self, start: Nanoseconds, end: Nanoseconds) -> int | None:
        """The mean over a span of time, rounded down; None if nothing of it is known."""
        start = max(start, self.times[0])
        if start >= end:
            return self.at(end)
        inner = [time for time in self.times if start < time < end]
        total = 0
        for begin, until in zip([start, *inner], [*inner, end], strict=True):
            total += self._doubled_area(begin, until)
        return total // (2 * (end - start))

    def _doubled_area(self, start: Nanoseconds, end: Nanoseconds) -> int:
        """Twice the area below a piece without a point inside it."""
        place = bisect_right(self.times, start) - 1
        first = last = self.values[place]
        if self.linear and place + 1 < len(self.times):
            first, last = self._between(place, start), self._between(place, end)
        return (first + last) * (end - start)

    def _between(self, place: int, time: Nanoseconds) -> int:
        begin, end = self.times[place], self.times[place + 1]
        first, last = self.values[place], self.values[place + 1]
        return first + (last - first) * (time - begin) // (end - begin)


class MetricSeries(Struct, frozen=True):
    """A series as it is meant. ``selector`` is that of its pods, None if it has none."""

    name: str
    metric: str
    resource: str
    points: Points
    begins: Nanoseconds
    selector: LabelSelector | None = None
    per_pod: bool = False
    container: str = ""
    object: tuple[str, str] | None = None
    """Kind and name."""
    labels: Mapping[str, str] = {}
    external: bool = False

    def at(self, now: Nanoseconds) -> int | None:
        return self.points.at(now - self.begins)

    def mean(self, start: Nanoseconds, end: Nanoseconds) -> int | None:
        return self.points.mean(start - self.begins, end - self.begins)


def read_series(obj: JsonObject) -> MetricSeries:
    """What an object says; raises ValueError in words."""
    spec = obj["spec"]
    resource, metric = spec.get("resource", ""), spec.get("metric", "")
    if bool(resource) == bool(metric):
        raise ValueError("spec: either resource or metric has to be said")
    given = [name for name in ("pods", "object", "external") if name in spec]
    if len(given) != 1:
        raise ValueError(f"spec: one of pods, object and external, not {given or 'none'}")
    if resource and given != ["pods"]:
        raise ValueError(f"spec.{given[0]}: {resource} is used by pods; give their selector")
    described = spec.get("object")
    return MetricSeries(
        obj["metadata"]["name"],
        metric,
        resource,
        read_points(
            spec["points"], linear=spec.get("interpolation") == LINEAR, where="spec.points"
        ),
        parse_time(obj["metadata"]["creationTimestamp"]),
        _selector(spec["pods"]) if "pods" in spec else None,
        bool(spec.get("perPod")),
        spec.get("container", ""),
        (described["kind"], described["name"]) if described else None,
        (spec.get("external") or {}).get("labels") or {},
        "external" in spec,
    )


def _selector(given: Any) -> LabelSelector:
    try:
        return read_label_selector(given)
    except SelectorError as error:
        raise ValueError(f"spec.pods: {error}") from error


def read_points(given: Sequence[Any], *, linear: bool, where: str) -> Points:
    """Points as they are written; ``where`` they stand is said of those that make no sense."""
    times, values = list[int](), list[int]()
    for place, point in enumerate(given):
        at = f"{where}[{place}]"
        if not isinstance(point, Mapping) or set(point) != {"at", "value"}:
            raise ValueError(f"{at}: must be an object with at and value")
        try:
            time = parse_duration(point["at"])
        except (ValueError, TypeError) as error:
            raise ValueError(f"{at}.at: {error}") from error
        if times and time <= times[-1]:
            raise ValueError(f"{at}.at: {point['at']} does not come after the point before it")
        times.append(time)
        values.append(_value(point["value"], at))
    return Points(tuple(times), tuple(values), linear)


def _value(given: object, where: str) -> int:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ValueError(f"{where}.value: {given!r} is no quantity")
    try:
        value = milli_value(str(given))
    except QuantityError as error:
        raise ValueError(f"{where}.value: {error}") from error
    if not 0 <= value <= LARGEST:
        raise ValueError(f"{where}.value: {given!r} is negative or too large")
    return value


def readable_series(obj: JsonObject) -> MetricSeries | None:
    """The series; None if it makes no sense, which its own status says."""
    try:
        return read_series(obj)
    except ValueError:
        return None
