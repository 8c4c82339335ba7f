"""KEDA's operator: an HPA for each ScaledObject, polls, activation, cool-down, and its status.

The HPA scales between one and the most; everything from and to zero (or the idle count) is done
here, at each poll. What the HPA asks for is asked of the same triggers (`external`).
"""

from collections.abc import Iterable, Mapping, Sequence

from kubescene.api.quantity import QuantityError, milli_value
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.autoscalers.keda.objects import (
    COMPOSITE,
    NAME_LABEL,
    ScaledObject,
    read_scaled_object,
)
from kubescene.client import ObjectRef, Reader
from kubescene.clock import format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of, owner_key
from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
from kubescene.controllers.builtin.autoscaling.keda.kinds import NAME, SCALED_OBJECT
from kubescene.controllers.builtin.autoscaling.keda.watching import (
    TriggerError,
    TriggerTold,
    Watched,
    Watching,
    target_of,
)
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Scale,
    Update,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.registry import MetricRefusedError, UsageRegistry

REPORTER = "keda-operator"
AUTOSCALER = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
READY, ACTIVE, FALLBACK, PAUSED, HPA_ACTIVE = "Ready", "Active", "Fallback", "Paused", "HPAActive"
CONDITIONS = (READY, ACTIVE, FALLBACK, PAUSED, HPA_ACTIVE)
Marks = dict[str, tuple[str, str, str]]
"""Status, reason and message by type of condition."""


class ScaledObjectReconciler:
    """Keeps HPAs, polls triggers, and scales from and to zero."""

    name = NAME
    kinds: Sequence[GroupVersionKind] = (SCALED_OBJECT, AUTOSCALER)

    def __init__(self, usage: UsageRegistry, reader: Reader) -> None:
        self._watching = Watching(usage, reader)
        self._watched: dict[ObjectKey, Watched] = {}

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "scaledobjects":
            return (ObjectKey(record.namespace, record.name),)
        if not self._watched:
            return ()
        before = change.previous_object
        is_same = before is not None and before["spec"] == change.object["spec"]
        if is_same and change.type is not ChangeType.DELETED:
            return ()
        key = owner_key(change.object, SCALED_OBJECT)
        return () if key is None else (key,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        obj = found(key, reader)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return self._gone(key)
        watched = self._watched.get(key)
        if watched is None or watched.uid != obj["metadata"]["uid"]:
            watched = self._watched[key] = Watched(obj["metadata"]["uid"])
        metadata = obj["metadata"]
        said = obj["spec"], metadata.get("annotations"), metadata.get("labels")
        if said != watched.said:
            watched.said, watched.polled = said, None
            self._read(key, watched, obj, reader)
        spec = watched.spec
        if spec is None:
            return self._failed(obj, watched)
        return Round(obj, watched, spec, self._watching, reader, now).plan()

    def _read(self, key: ObjectKey, watched: Watched, obj: JsonObject, reader: Reader) -> None:
        try:
            spec = read_scaled_object(obj)
            self._check_alone(key, spec, reader)
        except ValueError as error:
            watched.fault, watched.spec = str(error), None
            return
        watched.fault, watched.spec = "", spec
        known = {each.metric for each in spec.external}
        watched.failures = {each: n for each, n in watched.failures.items() if each in known}
        watched.kept = {}

    def _check_alone(self, key: ObjectKey, spec: ScaledObject, reader: Reader) -> None:
        """Nobody else scales its target; raises ValueError."""
        type = f"{spec.target[0]}.{spec.target[1]}"
        for other, watched in self._watched.items():
            also = watched.spec
            if other == key or also is None or other.namespace != key.namespace:
                continue
            if also.target == spec.target:
                raise ValueError(
                    f"the workload '{spec.target[2]}' of type '{type}' is already managed by the "
                    f"ScaledObject '{other.name}'"
                )
        for hpa in reader.list(AUTOSCALER, namespace=key.namespace):
            ref = hpa["spec"]["scaleTargetRef"]
            target = ref.get("apiVersion", ""), ref["kind"], ref["name"]
            if target == spec.target and owner_key(hpa, SCALED_OBJECT) != key:
                raise ValueError(
                    f"the workload '{spec.target[2]}' of type '{type}' is already managed by the "
                    f"hpa '{hpa['metadata']['name']}'"
                )

    def _failed(self, obj: JsonObject, watched: Watched) -> Plan:
        marks: Marks = {READY: ("False", "ScaledObjectCheckFailed", watched.fault)}
        status = {"conditions": conditions(obj, marks)}
        writes = status_write(obj, status)
        about = regarding(obj)
        told = Notice(about, WARNING, "ScaledObjectCheckFailed", watched.fault, REPORTER)
        return Plan(writes, notices=[told] if writes else ())

    def _gone(self, key: ObjectKey) -> Plan:
        """The garbage collector takes its HPA; its target may get back what it had."""
        watched = self._watched.pop(key, None)
        if watched is None or watched.scaled is None:
            return NOTHING
        return Plan([Scale(*watched.scaled)])

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del now
        obj, watched = found(key, reader), self._watched.get(key)
        if obj is None or watched is None or isinstance(error, NotFoundError):
            return NOTHING
        if isinstance(write, Patch):
            return NOTHING
        reason = "KEDAScaleTargetActivationFailed"
        if isinstance(write, Create | Update):
            reason = "ScaledObjectCheckFailed"
        return Plan(notices=[Notice(regarding(obj), WARNING, reason, error.message, REPORTER)])

    # -- what HPAs ask for (`kubescene.usage`) ---------------------------------------------------

    def external(
        self, namespace: str, metric: str, labels: Mapping[str, str], now: int, *, counted: bool
    ) -> int | None:
        """A metric of an HPA, in thousandths; None if it is not of a ScaledObject."""
        owner = labels.get(NAME_LABEL)
        watched = self._watched.get(ObjectKey(namespace, owner)) if owner else None
        if watched is None or watched.spec is None:
            return None
        spec = watched.spec
        triggers = [
            each
            for each in spec.external
            if spec.formula is not None or each.metric.lower() == metric.lower()
        ]
        if not triggers:
            raise MetricRefusedError(f"no matching metrics found for {metric}")
        told: dict[str, TriggerTold] = {}
        for each in triggers:
            seen = watched.kept.get(each.metric) if each.cached else None
            seen = seen or self._watching.see(spec, each, now)
            told[each.name or each.metric] = self._watching.tell(
                watched, each, seen, now, counted=counted
            )
        errors = [each.error for each in told.values() if each.error]
        if errors and not any(each.is_fallback for each in told.values()):
            raise MetricRefusedError(f"metric:{metric} encountered error: {errors[0]}")
        if spec.formula is not None:
            try:
                return self._watching.composed(watched, told)
            except TriggerError as error:
                raise MetricRefusedError(str(error)) from error
        [one] = told.values()
        return one.millis


class Round:
    """One look at a ScaledObject that makes sense."""

    def __init__(
        self,
        obj: JsonObject,
        watched: Watched,
        spec: ScaledObject,
        watching: Watching,
        reader: Reader,
        now: Nanoseconds,
    ) -> None:
        self._obj = obj
        self._watched = watched
        self._spec = spec
        self._watching = watching
        self._reader = reader
        self._now = now
        self._marks: Marks = {}
        self._writes: list[Write] = []
        self._notices: list[Notice] = []
        self._status: JsonObject = {}
        self._target = target_of(spec)

    def plan(self) -> Plan:
        watched, spec, now = self._watched, self._spec, self._now
        try:
            replicas = int((self._watching.scale(spec).get("spec") or {}).get("replicas", 0))
        except ApiError as error:
            self._marks[READY] = "False", "ScaledObjectCheckFailed", error.message
            return Plan(self._written(), spec.polling)
        if watched.original is None:
            known = (self._obj.get("status") or {}).get("originalReplicaCount")
            watched.original = replicas if known is None else known
        watched.scaled = (self._target, watched.original) if spec.restores else None
        if spec.is_paused:
            return self._paused(replicas)
        if PAUSED in known_conditions(self._obj):
            self._marks[PAUSED] = "False", "ScaledObjectUnpaused", "ScaledObject is unpaused"
        self._keep_hpa()
        if watched.polled is None or now - watched.polled >= spec.polling:
            watched.polled = now
            text = "ScaledObject is defined correctly and is ready for scaling"
            self._marks[READY] = "True", "ScaledObjectReady", text
            self._poll(replicas)
        return Plan(self._written(), watched.polled + spec.polling - now, self._notices)

    def _paused(self, replicas: int) -> Plan:
        self._marks[PAUSED] = "True", "ScaledObjectPaused", "ScaledObject is paused"
        ref = ObjectRef(AUTOSCALER, self._spec.hpa_name, self._spec.namespace)
        if self._reader.find(ref) is not None:
            self._writes.append(Delete(ref))
        wanted = self._spec.paused_replicas
        if wanted is not None:
            self._status["pausedReplicaCount"] = wanted
            if wanted != replicas:
                self._scale(replicas, wanted, "paused by annotation")
        return Plan(self._written(), notices=self._notices)

    # -- the HPA ---------------------------------------------------------------------------------

    def _keep_hpa(self) -> None:
        spec, wanted = self._spec, self._hpa()
        ref = ObjectRef(AUTOSCALER, spec.hpa_name, spec.namespace)
        hpa = self._reader.find(ref)
        before = (self._obj.get("status") or {}).get("hpaName")
        if before and before != spec.hpa_name:
            old = ObjectRef(AUTOSCALER, before, spec.namespace)
            if self._reader.find(old) is not None:
                self._writes.append(Delete(old))
        if hpa is None:
            self._writes.append(Create(wanted))
            return
        behavior = wanted["spec"].get("behavior")
        is_same = (
            within(wanted["spec"], hpa["spec"])
            and len(wanted["spec"]["metrics"]) == len(hpa["spec"]["metrics"])
            and (behavior is None) == (hpa["spec"].get("behavior") is None)
            and within(wanted["metadata"]["labels"], hpa["metadata"].get("labels") or {})
        )
        if not is_same:
            metadata = {**hpa["metadata"], "labels": wanted["metadata"]["labels"]}
            self._writes.append(Update({**hpa, "metadata": metadata, "spec": wanted["spec"]}))

    def _hpa(self) -> JsonObject:
        spec, (version, kind, name) = self._spec, self._spec.target
        behavior = spec.hpa_behavior()
        return {
            "apiVersion": "autoscaling/v2",
            "kind": AUTOSCALER.kind,
            "metadata": {
                "name": spec.hpa_name,
                "namespace": spec.namespace,
                "labels": {
                    "app.kubernetes.io/name": spec.hpa_name,
                    "app.kubernetes.io/part-of": spec.name,
                    "app.kubernetes.io/managed-by": REPORTER,
                    **spec.labels,
                },
                "annotations": dict(spec.annotations),
                "ownerReferences": [controller_of(self._obj)],
            },
            "spec": {
                "minReplicas": spec.least or 1,
                "maxReplicas": spec.most,
                "metrics": spec.metrics(),
                "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name},
                **({} if behavior is None else {"behavior": behavior}),
            },
        }

    # -- a poll ----------------------------------------------------------------------------------

    def _poll(self, replicas: int) -> None:
        spec, watched = self._spec, self._watched
        seen = {each.metric: self._watching.see(spec, each, self._now) for each in spec.external}
        watched.kept = {each.metric: seen[each.metric] for each in spec.external if each.cached}
        told = {
            each.metric: self._watching.tell(
                watched, each, seen[each.metric], self._now, counted=True
            )
            for each in spec.external
        }
        errors = {metric: each.error for metric, each in told.items() if each.error}
        for metric, error in errors.items():
            self._tell(WARNING, "KEDAScalerFailed", f"{metric}: {error}")
        active = [
            each.metric
            for each in spec.external
            if not told[each.metric].error
            and (told[each.metric].is_fallback or seen[each.metric].is_active)
        ]
        activity = {metric: {"isActive": metric in active} for metric in told}
        if spec.formula is not None:
            active = self._composed(told, bool(errors))
        is_active = bool(active) or (not spec.external and not errors)
        self._mark_fallback(told)
        if activity:
            self._status["triggersActivity"] = activity
        self._request(replicas, is_active, bool(errors), active)
        self._mark_hpa()

    def _composed(self, told: Mapping[str, TriggerTold], has_errors: bool) -> list[str]:
        if has_errors:
            return []
        by_name = {each.name: told[each.metric] for each in self._spec.external}
        try:
            value = self._watching.composed(self._watched, by_name)
        except TriggerError as error:
            self._tell(WARNING, "KEDAMetricSourceFailed", str(error))
            return []
        return [COMPOSITE] if value / 1000 > self._spec.formula_activation else []

    def _mark_fallback(self, told: Mapping[str, TriggerTold]) -> None:
        fallback = self._spec.fallback
        if fallback is None:
            return
        failures = {metric: self._watched.failures.get(metric, 0) for metric in told}
        self._status["health"] = {
            metric: {"numberOfFailures": count, "status": "Failing" if count else "Happy"}
            for metric, count in failures.items()
        }
        if any(count > fallback.threshold for count in failures.values()):
            text = "At least one trigger is falling back on this scaled object"
            self._marks[FALLBACK] = "True", "FallbackExists", text
        else:
            text = "No fallbacks are active on this scaled object"
            self._marks[FALLBACK] = "False", "NoFallbackFound", text

    def _request(
        self, replicas: int, is_active: bool, is_error: bool, active: Sequence[str]
    ) -> None:
        """From and to zero, or the idle count: what KEDA does itself."""
        spec = self._spec
        is_forced = spec.says("force-activation")
        if is_active or is_forced:
            why = "activation is being forced by annotation" if is_forced else "triggers are active"
            text = f"Scaling is performed because {why}"
            self._marks[ACTIVE] = "True", "ScalerActive", text
            if replicas == 0 or (spec.idle is not None and replicas < spec.least):
                self._activate(replicas, active, is_forced)
            elif is_error:
                text = "Some triggers defined in ScaledObject are not working correctly"
                self._marks[READY] = "Unknown", "PartialTriggerError", text
            else:
                self._status["lastActiveTime"] = format_time(self._now)
            return
        text = "Scaling is not performed because triggers are not active"
        self._marks[ACTIVE] = "False", "ScalerNotActive", text
        if is_error and spec.fallback is not None and spec.fallback.replicas:
            return
        if is_error and spec.fallback is None:
            text = "Triggers defined in ScaledObject are not working correctly"
            self._marks[READY] = "False", "TriggerError", text
        elif (spec.idle is not None and replicas > spec.idle) or (replicas and not spec.least):
            self._deactivate(replicas)
        elif spec.idle is None and replicas < spec.least:
            self._scale(replicas, spec.least, "fewer than minReplicaCount")

    def _activate(self, replicas: int, active: Sequence[str], is_forced: bool) -> None:
        spec = self._spec
        if spec.says("paused-scale-out"):
            return
        wanted = spec.least or 1
        why = f"triggered by {';'.join(active)}"
        if is_forced:
            why = "caused by forced activation annotation"
        text = f"Scaled {self._type} {self._path} from {replicas} to {wanted}, {why}"
        self._scale(replicas, wanted, why, ("KEDAScaleTargetActivated", text))
        self._status["lastActiveTime"] = format_time(self._now)

    def _deactivate(self, replicas: int) -> None:
        spec, now = self._spec, self._now
        if spec.says("paused-scale-in"):
            return
        last = (self._obj.get("status") or {}).get("lastActiveTime")
        if last is None:
            created = parse_time(self._obj["metadata"]["creationTimestamp"])
            is_over = created + spec.initial_cooldown < now
        else:
            is_over = parse_time(last) + spec.cooldown < now
        if not is_over:
            text = "Scaler cooling down because triggers are not active"
            self._marks[ACTIVE] = "False", "ScalerCooldown", text
            return
        wanted = spec.least if spec.idle is None else spec.idle
        text = f"Deactivated {self._type} {self._path} from {replicas} to {wanted}"
        why = "no trigger is active, and the cool-down is over"
        self._scale(replicas, wanted, why, ("KEDAScaleTargetDeactivated", text))

    def _scale(
        self, replicas: int, wanted: int, why: str, told: tuple[str, str] | None = None
    ) -> None:
        spec, (_, kind, name) = self._spec, self._spec.target
        fact = ReplicasDecided(
            spec.namespace, spec.name, f"{kind}/{name}", replicas, wanted, f"KEDA: {why}"
        )
        notice = None
        if told is not None:
            notice = Notice(regarding(self._obj), NORMAL, *told, REPORTER)
        self._writes.append(Scale(self._target, wanted, notice, fact))

    # -- the status ------------------------------------------------------------------------------

    def _mark_hpa(self) -> None:
        spec = self._spec
        hpa = self._reader.find(ObjectRef(AUTOSCALER, spec.hpa_name, spec.namespace))
        if hpa is None:
            return
        for each in (hpa.get("status") or {}).get("conditions") or ():
            if each["type"] != "ScalingActive":
                continue
            reason, text = each.get("reason", ""), each.get("message", "")
            if each["status"] == "True":
                self._marks[HPA_ACTIVE] = "True", "HPAActive", "HPA is actively scaling"
            elif reason == "ScalingDisabled":
                self._marks[HPA_ACTIVE] = "True", "HPAScalingDisabled", text
            else:
                self._marks[HPA_ACTIVE] = "False", reason, f"HPA is not actively scaling: {text}"

    def _written(self) -> list[Write]:
        spec, kind = self._spec, self._spec.target[1]
        group, _, version = spec.target[0].rpartition("/")
        status = {
            "scaleTargetKind": self._type,
            "scaleTargetGVKR": {
                "group": group,
                "version": version,
                "kind": kind,
                "resource": f"{kind.lower()}s",
            },
            "originalReplicaCount": self._watched.original,
            "hpaName": spec.hpa_name,
            "externalMetricNames": [each.metric for each in spec.external],
            "resourceMetricNames": [each.type for each in spec.triggers if each.is_resource],
            "triggersTypes": ",".join(dict.fromkeys(each.type for each in spec.triggers)),
            **({} if spec.formula is None else {"compositeScalerName": COMPOSITE}),
            **self._status,
            "conditions": conditions(self._obj, self._marks),
        }
        if self._watched.original is None:
            del status["originalReplicaCount"]
        return [*self._writes, *status_write(self._obj, status)]

    def _tell(self, type: str, reason: str, message: str) -> None:
        self._notices.append(Notice(regarding(self._obj), type, reason, message, REPORTER))

    @property
    def _type(self) -> str:
        return f"{self._spec.target[0]}.{self._spec.target[1]}"

    @property
    def _path(self) -> str:
        return f"{self._spec.namespace}/{self._spec.target[2]}"


def found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    try:
        return reader.find(ObjectRef(SCALED_OBJECT, key.name, key.namespace))
    except BadRequestError:  # somebody has deleted the definition
        return None


def within(wanted: object, found: object) -> bool:
    """Whether everything that is wanted is there; defaults may be, too. Quantities are numbers."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and within(value, found[name]) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(wanted) == len(found)
            and all(map(within, wanted, found))
        )
    if wanted == found or not (isinstance(wanted, str) and isinstance(found, str)):
        return wanted == found
    try:
        return milli_value(wanted) == milli_value(found)
    except QuantityError:
        return False


def known_conditions(obj: JsonObject) -> dict[str, JsonObject]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return {each["type"]: each for each in found}


def conditions(obj: JsonObject, marks: Marks) -> list[JsonObject]:
    """All conditions with those that are marked."""
    known = known_conditions(obj)
    result = []
    for type in CONDITIONS:
        if type in marks:
            status, reason, message = marks[type]
            each = {"type": type, "status": status, "reason": reason, "message": message}
            result.append({name: value for name, value in each.items() if value})
        elif type in known:
            result.append(known[type])
        elif type not in (HPA_ACTIVE, PAUSED):
            result.append({"type": type, "status": "Unknown"})
    return result


def status_write(obj: JsonObject, status: JsonObject) -> list[Write]:
    """The write of a status, if it says something new."""
    before = obj.get("status") or {}
    if all(before.get(name) == value for name, value in status.items()):
        return []
    return [Patch(ObjectRef.to(obj), {"status": status}, subresource="status")]


def scaled_objects(context: ControllerContext) -> ReconcilerController:
    """The controller of a world in which the kind is defined."""
    reconciler = ScaledObjectReconciler(context.usage, context.client)
    context.usage.externals = reconciler
    return ReconcilerController(reconciler, context)
