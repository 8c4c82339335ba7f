"""What triggers see: cron, and numbers that somebody brings or a Traffic makes.

A query is the name of an external ``MetricSeries`` of the namespace, perhaps with labels, perhaps
in ``sum()``; or ``requests_per_second`` or ``concurrent_requests`` with the label ``traffic``: that
counts what comes before the pods, so it is known where there is none. Numbers are those of
the last scrape.
"""

import re
from typing import NamedTuple

from kubescene.api.kinds import POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import parse_labels
from kubescene.autoscalers.keda.formulas import FormulaError
from kubescene.autoscalers.keda.objects import (
    AVERAGE,
    CRON,
    METRICS_API,
    ScaledObject,
    Trigger,
    milli,
)
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND
from kubescene.controllers.builtin.autoscaling.measured import NamespaceMetrics
from kubescene.errors import ApiError
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.measuring import RESOLUTION
from kubescene.usage.registry import UsageRegistry

RATE, INSIDE = "requests_per_second", "concurrent_requests"
_NAME = r"(?P<name>[A-Za-z_:][\w:.-]*)"
_QUERY = re.compile(rf"(?P<sum>sum\s*\(\s*)?{_NAME}\s*(?:\{{(?P<labels>[^{{}}]*)\}})?\s*(?(sum)\))")
_LABEL = re.compile(r'\s*([A-Za-z_][\w./-]*)\s*=\s*"([^"]*)"\s*')
NEVER_MEASURED = -1000
"""What a trigger is in a formula that has to do without it."""


class TriggerError(Exception):
    """A trigger has no answer."""


class Seen(NamedTuple):
    """What a trigger says: a number, or why it has none."""

    value: float | None
    is_active: bool
    error: str = ""


class TriggerTold(NamedTuple):
    """The same with fallback, in thousandths."""

    millis: int | None
    is_fallback: bool
    error: str = ""


class Watched:
    """What is remembered of one ScaledObject."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.said: object = None
        self.spec: ScaledObject | None = None
        self.fault = ""
        self.failures: dict[str, int] = {}
        """In a row, by metric."""
        self.kept: dict[str, Seen] = {}
        """Of triggers whose last poll counts for the HPA, too."""
        self.polled: Nanoseconds | None = None
        self.original: int | None = None
        self.scaled: tuple[ObjectRef, int] | None = None
        """Its target, and how many replicas that gets back in the end."""


class Watching:
    """Asks triggers, and what holds when they fail."""

    def __init__(self, usage: UsageRegistry, reader: Reader) -> None:
        self._usage = usage
        self._reader = reader
        self._metrics = NamespaceMetrics(usage)

    def see(self, spec: ScaledObject, trigger: Trigger, now: Nanoseconds) -> Seen:
        if trigger.type == CRON:
            is_within = trigger.is_within(now)
            desired = float(trigger.metadata["desiredReplicas"])
            return Seen(desired if is_within else 0.0, is_within)
        name = "valueLocation" if trigger.type == METRICS_API else "query"
        try:
            value = self._answer(spec.namespace, trigger.metadata[name], now)
        except TriggerError as error:
            return Seen(None, False, str(error))
        if value is None:
            if trigger.metadata.get("ignoreNullValues", "true").lower() in ("false", "f", "0"):
                return Seen(None, False, "the query has no value")
            value = 0.0
        return Seen(value, value > trigger.activation)

    def tell(
        self, watched: Watched, trigger: Trigger, seen: Seen, now: Nanoseconds, *, counted: bool
    ) -> TriggerTold:
        """With ``counted`` a failure counts; who only looks changes nothing."""
        del now
        spec, metric = watched.spec, trigger.metric
        assert spec is not None
        fallback = spec.fallback
        if not seen.error:
            if fallback is not None and counted:
                watched.failures[metric] = 0
            assert seen.value is not None
            return TriggerTold(milli(seen.value), False)
        if fallback is None:
            return TriggerTold(None, False, seen.error)
        failures = watched.failures.get(metric, 0) + counted
        if counted:
            watched.failures[metric] = failures
        if failures <= fallback.threshold:
            return TriggerTold(None, False, seen.error)
        if fallback.behavior == "scalingModifiers":
            return TriggerTold(NEVER_MEASURED, False)
        wanted = self._fallen_back(spec, trigger)
        return TriggerTold(None, False, seen.error) if wanted is None else TriggerTold(wanted, True)

    def composed(self, watched: Watched, told: dict[str, TriggerTold]) -> int:
        """What the formula makes of all triggers, by their names; raises `TriggerError`."""
        spec = watched.spec
        assert spec is not None
        assert spec.formula is not None
        fallen = [each.millis for each in told.values() if each.is_fallback]
        if fallen:
            assert fallen[0] is not None
            return fallen[0]
        values = {
            name: None if each.millis is None or each.millis < 0 else each.millis / 1000
            for name, each in told.items()
        }
        try:
            found = spec.formula.evaluate(values)
        except FormulaError as error:
            raise TriggerError(str(error)) from error
        if found is None:
            if spec.fallback is None:
                raise TriggerError("the formula is nil, and there is no fallback")
            found = spec.fallback.replicas * spec.formula_target
        return int(found * 1000)

    def scale(self, spec: ScaledObject) -> JsonObject:
        return self._reader.get_scale(target_of(spec))

    # -- queries ---------------------------------------------------------------------------------

    def _answer(self, namespace: str, query: str, now: Nanoseconds) -> float | None:
        mark = now - now % RESOLUTION
        found = _QUERY.fullmatch(query.strip())
        name, labels = (found["name"], _labels(found["labels"])) if found else (query, {})
        if labels is not None and name in (RATE, INSIDE) and "traffic" in labels:
            return self._requests(namespace, labels["traffic"], name, mark)
        known = self._metrics.series(namespace, self._reader)
        series = [
            each
            for each in known
            if each.external
            and (
                each.metric == query
                or (
                    labels is not None
                    and each.metric == name
                    and all(each.labels.get(label) == labels[label] for label in labels)
                )
            )
        ]
        if not series:
            raise TriggerError(f"no MetricSeries of {namespace} is what {query!r} asks for")
        values = [value for each in series if (value := each.at(mark)) is not None]
        if len(values) > 1 and not (found and found["sum"]):
            raise TriggerError(f"{query!r} has several answers: write sum({query})")
        return sum(values) / 1000 if values else None

    def _requests(self, namespace: str, traffic: str, name: str, mark: Nanoseconds) -> float | None:
        requests = self._usage.requests
        load = None
        if requests is not None:
            load = requests.load_of(namespace, traffic, mark - RESOLUTION, mark)
        if load is None:
            raise TriggerError(f"there is no Traffic {namespace}/{traffic} with requests")
        if name == RATE:
            return load.arrived * SECOND / RESOLUTION
        return load.inside / RESOLUTION

    # -- fallback --------------------------------------------------------------------------------

    def _fallen_back(self, spec: ScaledObject, trigger: Trigger) -> int | None:
        fallback, is_composed = spec.fallback, spec.formula is not None
        assert fallback is not None
        try:
            scale = self.scale(spec)
        except ApiError:
            return None
        wanted = float(fallback.wanted((scale.get("spec") or {}).get("replicas", 0)))
        type = spec.formula_type if is_composed else trigger.metric_type
        if type != AVERAGE:
            ready = self._ready(spec.namespace, (scale.get("status") or {}).get("selector", ""))
            if not ready:
                return None
            wanted /= ready
        target = spec.formula_target if is_composed else milli(trigger.threshold) / 1000
        return int(target * 1000 * wanted)

    def _ready(self, namespace: str, selector: str) -> int:
        labels = parse_labels(selector)
        return sum(
            (pod.get("status") or {}).get("phase") == "Running" and is_ready(pod)
            for pod in self._reader.list(POD, namespace=namespace)
            if labels.matches(pod["metadata"].get("labels") or {})
        )


def is_ready(pod: JsonObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def target_of(spec: ScaledObject) -> ObjectRef:
    version, kind, name = spec.target
    return ObjectRef(GroupVersionKind.of(version, kind), name, spec.namespace)


def _labels(text: str | None) -> dict[str, str] | None:
    """Label matchers of a query; None if they are more than equalities."""
    found = {}
    for part in filter(str.strip, (text or "").split(",")):
        label = _LABEL.fullmatch(part)
        if label is None:
            return None
        found[label[1]] = label[2]
    return found
