"""The KPA as a controller: it measures every second, decides every two, scales to zero and back.

What is measured is exact: who was inside a pod, or waited for one, in each second. Where the last
pod has gone, the first request that waits is decided about at once, as Knative's activator has it.
"""

from collections.abc import Iterable, Mapping, Sequence

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.autoscalers.kpa import TICK
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.knative.kinds import AUTOSCALER, NAME
from kubescene.controllers.builtin.autoscaling.knative.passes import (
    READY,
    Decider,
    NextCondition,
    Pass,
    conditions,
    written,
)
from kubescene.controllers.builtin.autoscaling.knative.settings import (
    CONFIG,
    KPA_CLASS,
    PREFIX,
    RPS,
    KpaSettings,
    read_settings,
)
from kubescene.controllers.builtin.autoscaling.targets import ScaledTarget, target_of
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.registry import RequestLoad, UsageRegistry

REPORTER = "kpa-class-autoscaler"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
LOOK_AHEAD = 60 * SECOND
"""So often somebody without any request is looked at."""
LOOK_AGAIN = 10 * SECOND
"""And somebody that cannot be read, or whose target is not there."""


class PodAutoscalerReconciler:
    """Measures, and lets passes do what was decided."""

    name = NAME
    kinds: Sequence[GroupVersionKind] = (AUTOSCALER,)

    def __init__(self, usage: UsageRegistry) -> None:
        self.needs_pods = False
        self._usage = usage
        self._deciders: dict[ObjectKey, Decider] = {}
        self._pods: dict[str, dict[str, Mapping[str, str]]] = {}
        """By namespace and name the labels of pods that are ready."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource != "pods":
            self.needs_pods = True
            return (ObjectKey(record.namespace, record.name),)
        pods = self._pods.setdefault(record.namespace, {})
        if change.type is not ChangeType.DELETED and is_ready(change.object):
            pods[record.name] = record.labels
        elif pods.pop(record.name, None) is None:
            return ()
        return self._concerned(record.namespace, record.labels)

    def _concerned(self, namespace: str, labels: Mapping[str, str]) -> list[ObjectKey]:
        found = []
        for key, decider in self._deciders.items():
            selector = decider.selector
            if key.namespace == namespace and (selector is None or selector.matches(labels)):
                decider.is_counted = False
                found.append(key)
        return found

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        autoscaler = found(key, reader)
        if autoscaler is None or not is_ours(autoscaler):
            self._deciders.pop(key, None)
            return NOTHING
        decider = self._deciders.get(key)
        if decider is None or decider.uid != autoscaler["metadata"]["uid"]:
            decider = self._deciders[key] = Decider(autoscaler["metadata"]["uid"], now)
        try:
            settings = read_settings(autoscaler, config_of(reader))
            target = target_of(autoscaler, reader)
        except (ValueError, ApiError) as error:
            return self._failed(autoscaler, decider, str(error), now)
        decider.fault = ""
        if decider.selector != target.selector:
            decider.selector, decider.is_counted = target.selector, False
        decider.configure(settings)
        self._measure(key, decider, settings, target, now)
        self._count(key, decider)
        decider.decide(settings, now)
        one = Pass(autoscaler, decider, settings, target, now)
        writes = one.writes()
        return Plan(writes, min(self._due(key, decider, target, now), *one.due, LOOK_AHEAD))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del now
        autoscaler = found(key, reader)
        if autoscaler is None or isinstance(error, NotFoundError) or isinstance(write, Patch):
            return NOTHING
        told = f"failed to apply scale to scale target: {error.message}"
        notice = Notice(regarding(autoscaler), WARNING, "InternalError", told, REPORTER)
        return Plan(requeue_after=TICK, notices=[notice])

    def _failed(self, autoscaler: JsonObject, decider: Decider, why: str, now: Nanoseconds) -> Plan:
        """What it asks for makes no sense, or its target is not there: looked at again in time."""
        notices = []
        if decider.fault != why:
            decider.fault = why
            notices = [Notice(regarding(autoscaler), WARNING, "InternalError", why, REPORTER)]
        marked = {READY: NextCondition("False", "InternalError", why)}
        status = {"conditions": conditions(autoscaler, marked, now)}
        return Plan(written(autoscaler, status), LOOK_AGAIN, notices)

    # -- what is measured ------------------------------------------------------------------------

    def _measure(
        self,
        key: ObjectKey,
        decider: Decider,
        settings: KpaSettings,
        target: ScaledTarget,
        now: Nanoseconds,
    ) -> None:
        """Record every second that is over; who comes where no pod is wanted, at once."""
        end = now - (now - decider.begun) % SECOND
        if not decider.ready and not self._load(key, target, decider.measured, end).inside:
            decider.measured, decider.early = max(end, decider.measured), 0
        while decider.measured < end:
            begin, decider.measured = decider.measured, decider.measured + SECOND
            load = self._load(key, target, begin, decider.measured)
            if decider.ready or load.inside:
                value = load.arrived if settings.metric == RPS else load.inside / SECOND
                decider.record(decider.measured, max(value - decider.early, 0.0))
            decider.early = 0
        waits = decider.desired == 0 and not decider.early
        if waits and self._load(key, target, decider.measured, now).inside:
            decider.early = 1
            decider.record(now, 1.0)
            decider.ticked = min(decider.ticked, now - TICK)

    def _load(
        self, key: ObjectKey, target: ScaledTarget, begin: Nanoseconds, end: Nanoseconds
    ) -> RequestLoad:
        """Of the requests to its pods; nothing if there are none."""
        requests = self._usage.requests
        if requests is None or begin >= end:
            return NO_LOAD
        return requests.load(key.namespace, target.labels, begin, end) or NO_LOAD

    def _count(self, key: ObjectKey, decider: Decider) -> None:
        if not decider.is_counted:
            decider.is_counted, selector = True, decider.selector
            assert selector is not None
            pods = self._pods.get(key.namespace, {}).values()
            decider.ready = sum(selector.matches(labels) for labels in pods)

    def _due(
        self, key: ObjectKey, decider: Decider, target: ScaledTarget, now: Nanoseconds
    ) -> Nanoseconds:
        """After how long it has to be looked at again."""
        tick = TICK - (now - decider.begun) % TICK
        requests = self._usage.requests
        if decider.desired or target.replicas or requests is None:
            return tick
        due = requests.next_request(key.namespace, target.labels, now, now + LOOK_AHEAD)
        first = LOOK_AHEAD if due is None else max(due + 1 - now, 1)
        return first if decider.stable.is_empty(now) else min(first, tick)


NO_LOAD = RequestLoad(0, 0)


def found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    """The object, if it is there and somebody serves its kind."""
    try:
        return reader.find(ObjectRef(AUTOSCALER, key.name, key.namespace))
    except BadRequestError:  # somebody has deleted the definition
        return None


def is_ours(autoscaler: JsonObject) -> bool:
    """Whether it is of the class that is simulated."""
    annotations = autoscaler["metadata"].get("annotations") or {}
    return bool(annotations.get(f"{PREFIX}class", KPA_CLASS) == KPA_CLASS)


def is_ready(pod: JsonObject) -> bool:
    """Whether requests reach it."""
    conditions_of = (pod.get("status") or {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions_of)
    return ready and not pod["metadata"].get("deletionTimestamp")


def config_of(reader: Reader) -> Mapping[str, str]:
    """What the ConfigMap of all autoscalers says."""
    namespace, name = CONFIG
    config = reader.find(ObjectRef(CONFIG_MAP, name, namespace))
    return {} if config is None else config.get("data") or {}


def pod_autoscalers(context: ControllerContext) -> LatePodsController:
    """The controller of a world in which the kind is defined."""
    reconciler = PodAutoscalerReconciler(context.usage)
    return LatePodsController(reconciler, context, traits=EVERYTHING)
