"""ScaledObjects as they are meant, what is wrong with them, and the autoscaler that comes of one.

Names, defaults and checks are KEDA's. Triggers whose systems nobody simulates are faults: what they
watch can be brought as a ``MetricSeries``, and watched by ``prometheus`` or ``metrics-api``.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from msgspec import Struct

from kubescene.api.cron import CronSchedule, is_known_zone, parse_schedule
from kubescene.autoscalers.keda.formulas import Formula, FormulaError, read_formula
from kubescene.durations import SECOND
from kubescene.types import JsonObject, Nanoseconds

NAME_LABEL = "scaledobject.keda.sh/name"
PREFIX = "autoscaling.keda.sh/"
COMPOSITE = "composite-metric"
AVERAGE, VALUE, UTILIZATION = "AverageValue", "Value", "Utilization"
CPU, MEMORY, CRON, PROMETHEUS, METRICS_API = "cpu", "memory", "cron", "prometheus", "metrics-api"
RESOURCES = (CPU, MEMORY)
TRIGGERS = (CPU, MEMORY, CRON, PROMETHEUS, METRICS_API)
_LONGEST_NAME = 63
_CRON_NAMES = ((" ", ""), ("*", "x"), ("/", "Sl"), ("?", "Qm"), (",", "Cm"))


class Trigger(Struct, frozen=True):
    """One trigger. ``metric`` is what the HPA calls it, a resource for cpu and memory."""

    type: str
    name: str
    metric: str
    metric_type: str
    metadata: Mapping[str, str]
    threshold: float = 0
    activation: float = 0
    cached: bool = False
    start: CronSchedule | None = None
    end: CronSchedule | None = None

    @property
    def is_resource(self) -> bool:
        return self.type in RESOURCES

    def is_within(self, now: Nanoseconds) -> bool:
        """Whether a cron trigger is between its start and its end."""
        assert self.start is not None
        assert self.end is not None
        start, end = self.start.next(now), self.end.next(now)
        if end is None:
            return start is None
        return start is not None and end <= start

    def to_metric(self, owner: str) -> JsonObject:
        """The metric of an HPA."""
        if self.is_resource:
            return self._resource_metric()
        target = _target(self.metric_type, self.threshold, whole=self.type == CRON)
        named = {"name": self.metric, "selector": {"matchLabels": {NAME_LABEL: owner}}}
        return {"type": "External", "external": {"metric": named, "target": target}}

    def _resource_metric(self) -> JsonObject:
        value, container = self.metadata["value"], self.metadata.get("containerName")
        target: JsonObject = {"type": self.metric_type}
        if self.metric_type == UTILIZATION:
            target["averageUtilization"] = int(value)
        else:
            target["averageValue"] = value
        source = {"name": self.type, "target": target}
        if container:
            source["container"] = container
            return {"type": "ContainerResource", "containerResource": source}
        return {"type": "Resource", "resource": source}


class Fallback(Struct, frozen=True):
    """What holds when a trigger failed more than ``threshold`` times in a row."""

    threshold: int
    replicas: int
    behavior: str = "static"

    def wanted(self, current: int) -> int:
        if self.behavior == "currentReplicas":
            return current
        if self.behavior == "currentReplicasIfHigher":
            return max(current, self.replicas)
        if self.behavior == "currentReplicasIfLower":
            return min(current, self.replicas)
        return self.replicas


class ScaledObject(Struct, frozen=True):
    """A ScaledObject as it is meant. Times are nanoseconds; None is not said."""

    namespace: str
    name: str
    target: tuple[str, str, str]
    """API version, kind and name."""
    triggers: tuple[Trigger, ...]
    polling: Nanoseconds
    cooldown: Nanoseconds
    initial_cooldown: Nanoseconds
    idle: int | None
    least: int
    most: int
    hpa_name: str
    behavior: JsonObject | None
    restores: bool
    formula: Formula | None
    formula_target: float
    formula_activation: float
    formula_type: str
    fallback: Fallback | None
    annotations: Mapping[str, str]
    labels: Mapping[str, str]

    def says(self, annotation: str) -> bool:
        """Whether an annotation is there that does not say no."""
        value = self.annotations.get(PREFIX + annotation)
        return value is not None and value not in ("0", "f", "F", "false", "FALSE", "False")

    @property
    def paused_replicas(self) -> int | None:
        given = self.annotations.get(f"{PREFIX}paused-replicas")
        return None if given is None else int(given)

    @property
    def is_paused(self) -> bool:
        return f"{PREFIX}paused-replicas" in self.annotations or self.says("paused")

    @property
    def external(self) -> tuple[Trigger, ...]:
        return tuple(each for each in self.triggers if not each.is_resource)

    def metrics(self) -> list[JsonObject]:
        """Those of its HPA, in the order of their types."""
        found = [each.to_metric(self.name) for each in self.triggers]
        found.sort(key=lambda each: str(each["type"]))
        if self.formula is None:
            return found
        named = {"name": COMPOSITE, "selector": {"matchLabels": {NAME_LABEL: self.name}}}
        target = _target(self.formula_type, self.formula_target, whole=False)
        composite = {"type": "External", "external": {"metric": named, "target": target}}
        return [*(each for each in found if each["type"] == "Resource"), composite]

    def hpa_behavior(self) -> JsonObject | None:
        """As it is said, without the directions that are paused."""
        behavior: JsonObject = dict(self.behavior or {})
        for annotation, direction in (
            ("paused-scale-in", "scaleDown"),
            ("paused-scale-out", "scaleUp"),
        ):
            if self.says(annotation):
                behavior[direction] = {**behavior.get(direction, {}), "selectPolicy": "Disabled"}
        return behavior or None


def milli(value: float) -> int:
    """A metric in thousandths, as KEDA writes it; nothing negative, and no infinity."""
    if not isfinite(value) or value < 0:
        return 0
    return int(Decimal(f"{value:.3f}").scaleb(3))


def _target(type: str, value: float, *, whole: bool) -> JsonObject:
    amount = "1" if whole else _quantity(milli(value))
    return {"type": type, "averageValue" if type == AVERAGE else "value": amount}


def _quantity(millis: int) -> str:
    return f"{millis}m" if millis % 1000 else str(millis // 1000)


# -- reading ---------------------------------------------------------------------------------------


def read_scaled_object(obj: JsonObject) -> ScaledObject:
    """Raises ValueError in words."""
    spec, metadata = obj["spec"], obj["metadata"]
    advanced = spec.get("advanced") or {}
    config = advanced.get("horizontalPodAutoscalerConfig") or {}
    modifiers = advanced.get("scalingModifiers") or {}
    triggers = tuple(
        _trigger(place, each, bool(modifiers)) for place, each in enumerate(spec["triggers"])
    )
    target = spec["scaleTargetRef"]
    name = metadata["name"]
    fallback = spec.get("fallback")
    read = ScaledObject(
        metadata["namespace"],
        name,
        (target.get("apiVersion") or "apps/v1", target.get("kind") or "Deployment", target["name"]),
        triggers,
        spec.get("pollingInterval", 30) * SECOND,
        spec.get("cooldownPeriod", 300) * SECOND,
        spec.get("initialCooldownPeriod", 0) * SECOND,
        spec.get("idleReplicaCount"),
        spec.get("minReplicaCount", 0),
        spec.get("maxReplicaCount", 100),
        config.get("name") or f"keda-hpa-{name}",
        config.get("behavior"),
        bool(advanced.get("restoreToOriginalReplicaCount")),
        _formula(modifiers, triggers) if modifiers else None,
        _number(modifiers, "target", "spec.advanced.scalingModifiers") if modifiers else 0.0,
        _number(modifiers, "activationTarget", "spec.advanced.scalingModifiers", default=0.0),
        modifiers.get("metricType") or AVERAGE,
        None if fallback is None else _fallback(fallback, modifiers),
        metadata.get("annotations") or {},
        metadata.get("labels") or {},
    )
    for fault in _faults(read, modifiers):
        raise ValueError(fault)
    return read


def _faults(read: ScaledObject, modifiers: JsonObject) -> Iterator[str]:
    least = max(read.least, 1) if read.least else 0
    if least > read.most:
        yield f"MinReplicaCount={least} must be less than MaxReplicaCount={read.most}"
    if read.idle is not None and read.idle >= least:
        yield f"IdleReplicaCount={read.idle} must be less than MinReplicaCount={least}"
    for what, name in (("scaledobject name", read.name), ("HPA name", read.hpa_name)):
        if len(name) > _LONGEST_NAME:
            yield f'{what} "{name}" is longer than {_LONGEST_NAME} characters'
    if not read.external and not read.least:
        yield (
            "scaledobject has only cpu/memory triggers AND minReplica is 0 "
            "(scale to zero doesn't work in this case)"
        )
    if read.fallback is not None and not read.external and not modifiers:
        yield (
            "at least one trigger (that is not cpu or memory) has to have the `AverageValue` "
            "type for the fallback to be enabled"
        )
    if modifiers and read.formula_target <= 0:
        yield "spec.advanced.scalingModifiers.target: must be more than 0"
    paused = read.annotations.get(f"{PREFIX}paused-replicas")
    if paused is not None and not paused.isdecimal():
        yield f"annotation {PREFIX}paused-replicas: {paused!r} is no number of replicas"
    metrics = [each.metric for each in read.external]
    for metric in metrics:
        if metrics.count(metric) > 1:
            yield f"metricName {metric} defined multiple times in ScaledObject {read.name}"


def _trigger(place: int, given: JsonObject, is_composed: bool) -> Trigger:
    where, type = f"spec.triggers[{place}]", given["type"]
    metadata = {name: str(value) for name, value in (given.get("metadata") or {}).items()}
    if type not in TRIGGERS:
        raise ValueError(
            f"{where}.type: {type} is not simulated; bring what it watches as a MetricSeries, and "
            f"watch that with {PROMETHEUS} or {METRICS_API} (known are {', '.join(TRIGGERS)})"
        )
    if is_composed and type not in RESOURCES and not given.get("name"):
        raise ValueError(f"{where}.name: is needed where there is a formula")
    cached = bool(given.get("useCachedMetrics"))
    if cached and type in (CPU, MEMORY, CRON):
        raise ValueError(f'property "useCachedMetrics" is not supported for "{type}" scaler')
    metric_type = given.get("metricType") or ""
    name, at = given.get("name") or "", f"{where}.metadata"
    if type in RESOURCES:
        return _resource_trigger(type, name, metric_type, metadata, at)
    if metric_type == UTILIZATION:
        raise ValueError(f"{where}.metricType: Utilization is for cpu and memory")
    metric_type = metric_type or AVERAGE
    if type == CRON:
        return _cron_trigger(place, name, metric_type, metadata, at)
    is_api = type == METRICS_API
    for needed in ("url", "valueLocation") if is_api else ("serverAddress", "query"):
        if not metadata.get(needed):
            raise ValueError(f"{at}.{needed}: is needed by {type}")
    called = f"metric-api-{metadata['valueLocation']}" if is_api else PROMETHEUS
    threshold = _number(metadata, "targetValue" if is_api else "threshold", at)
    if threshold <= 0:
        raise ValueError(f"{at}: the threshold must be more than 0, found {threshold:g}")
    activation = "activationTargetValue" if is_api else "activationThreshold"
    return Trigger(
        type,
        name,
        _metric_name(place, called),
        metric_type,
        metadata,
        threshold,
        _number(metadata, activation, at, default=0.0),
        cached,
    )


def _resource_trigger(
    type: str, name: str, metric_type: str, metadata: Mapping[str, str], at: str
) -> Trigger:
    metric_type = metric_type or metadata.get("type", "")
    if metric_type not in (UTILIZATION, AVERAGE):
        raise ValueError(
            f"{at}: unknown metric type: {metric_type}, allowed values are 'Utilization' or "
            "'AverageValue'"
        )
    if not metadata.get("value"):
        raise ValueError(f"{at}.value: is needed by {type}")
    if metric_type == UTILIZATION and not metadata["value"].isdecimal():
        raise ValueError(f"{at}.value: {metadata['value']!r} is no percentage")
    return Trigger(type, name, type, metric_type, metadata)


def _cron_trigger(
    place: int, name: str, metric_type: str, metadata: Mapping[str, str], at: str
) -> Trigger:
    for needed in ("timezone", "start", "end", "desiredReplicas"):
        if not metadata.get(needed):
            raise ValueError(f"{at}.{needed}: is needed by cron")
    zone, texts = metadata["timezone"], (metadata["start"], metadata["end"])
    if not is_known_zone(zone):
        raise ValueError(f"{at}.timezone: unknown time zone {zone}")
    if texts[0] == texts[1]:
        raise ValueError(f"{at}: start and end can not have exactly same time input")
    for text in texts:
        if text.startswith(("@", "TZ=", "CRON_TZ=")):
            raise ValueError(f"{at}: {text!r}: five fields are expected")
    try:
        start, end = (parse_schedule(f"TZ={zone} {text}") for text in texts)
    except ValueError as error:
        raise ValueError(f"{at}: {error}") from error
    desired = metadata["desiredReplicas"]
    if not desired.isdecimal() or int(desired) == 0:
        raise ValueError(f"{at}.desiredReplicas: {desired!r} is no number of replicas above 0")
    for before, after in _CRON_NAMES:
        texts = texts[0].replace(before, after), texts[1].replace(before, after)
    called = _metric_name(place, f"cron-{zone}-{texts[0]}-{texts[1]}")
    return Trigger(CRON, name, called, metric_type, metadata, 1.0, 0.0, False, start, end)


def _metric_name(place: int, name: str) -> str:
    for sign in "/.:%()":
        name = name.replace(sign, "-")
    return f"s{place}-{name}"


def _fallback(given: JsonObject, modifiers: JsonObject) -> Fallback:
    behavior = given.get("behavior") or "static"
    if behavior == "scalingModifiers" and not modifiers.get("formula"):
        raise ValueError(
            "scalingModifiers fallback behavior requires scalingModifiers.formula to be defined"
        )
    if modifiers and not str(modifiers.get("target")).isdecimal():
        raise ValueError(
            "spec.fallback: with a formula it needs a target that is a whole number, found "
            f"{modifiers.get('target')!r}"
        )
    return Fallback(given["failureThreshold"], given["replicas"], behavior)


def _formula(modifiers: JsonObject, triggers: Sequence[Trigger]) -> Formula:
    where, text = "spec.advanced.scalingModifiers", modifiers.get("formula")
    if not text:
        raise ValueError(f"{where}.formula: is mandatory")
    if not modifiers.get("target"):
        raise ValueError(f"{where}: formula is given but target is empty")
    names = [each.name for each in triggers if not each.is_resource]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{where}: two triggers have the name {name}")
    try:
        formula = read_formula(text, frozenset(names))
        # Wrong kinds show with any numbers.
        formula.evaluate(dict.fromkeys(names, -1.0))
    except FormulaError as error:
        raise ValueError(f"{where}: {error}") from error
    return formula


def _number(
    given: Mapping[str, Any], name: str, where: str, *, default: float | None = None
) -> float:
    text = given.get(name)
    if text in (None, ""):
        if default is None:
            raise ValueError(f"{where}.{name}: is needed")
        return default
    try:
        value = float(str(text))
    except ValueError as error:
        raise ValueError(f"{where}.{name}: {text!r} is no number") from error
    if not isfinite(value):
        raise ValueError(f"{where}.{name}: {text!r} is no finite number")
    return value
