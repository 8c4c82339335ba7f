"""What PluginAutoscalers are told and asked when, and what becomes of their answers.

Pods are told of where time has come to a scrape or a question, in the order in which things
happened. An autoscaler that fails says so in its object, and is asked again in its time.
"""

from collections.abc import Iterable, Mapping, Sequence

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.autoscalers.available import OwnOptions, PluginSource, available_in_cluster
from kubescene.autoscalers.dispatcher import Dispatcher
from kubescene.autoscalers.interfaces import Capability, PodState
from kubescene.client import ObjectRef, Reader
from kubescene.clock import format_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
from kubescene.controllers.builtin.autoscaling.flags import AutoscalingSettings
from kubescene.controllers.builtin.autoscaling.measured import NamespaceMetrics
from kubescene.controllers.builtin.autoscaling.plugins.hosting import (
    INVALID,
    NO_CONTAINER,
    NO_SCALE,
    NO_SIZE,
    NO_TARGET,
    UNKNOWN_TYPE,
    Hosted,
    PluginFault,
    shortened,
)
from kubescene.controllers.builtin.autoscaling.plugins.kinds import NAME, PLUGIN_AUTOSCALER
from kubescene.controllers.builtin.autoscaling.plugins.messages import (
    selects,
    stats_of,
    stats_of_nobody,
)
from kubescene.controllers.builtin.autoscaling.plugins.sizing import SizedPods, recommendation_of
from kubescene.controllers.builtin.autoscaling.plugins.spec import read_spec
from kubescene.controllers.builtin.autoscaling.targets import ScaledTarget, target_of
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Scale, Write
from kubescene.errors import ApiError, BadRequestError, ConfigurationError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.measuring import RESOLUTION, last_scrape
from kubescene.usage.registry import RequestLoad

REPORTER = NAME
SIZE = ("recommendation", "admit", "sizeReason")
"""What the status says of the size of pods."""
SERVICE = GroupVersionKind("", "v1", "Service")
FINE = PluginFault("Asked", "")


class PluginAutoscalerReconciler:
    """Keeps a run of an autoscaler for each object."""

    name = NAME
    kinds: Sequence[GroupVersionKind] = (PLUGIN_AUTOSCALER,)

    def __init__(
        self,
        context: ControllerContext,
        sources: Sequence[PluginSource],
        settings: AutoscalingSettings,
    ) -> None:
        self.needs_pods = False
        self._clock = context.clock
        self._usage = context.usage
        self._metrics = NamespaceMetrics(context.usage)
        self._sources = sources
        self._options = OwnOptions(
            settings.horizontal.options, settings.vertical.recommender, settings.vertical.updater
        )
        self._dispatcher: Dispatcher | None = None
        self._hosted: dict[ObjectKey, Hosted] = {}
        self._pods: dict[str, dict[str, Record]] = {}
        """By namespace and name."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if record.resource.resource != "pods":
            self.needs_pods = True
            return (key,)
        pods = self._pods.setdefault(record.namespace, {})
        is_gone = change.type is ChangeType.DELETED
        if is_gone:
            pods.pop(record.name, None)
        else:
            pods[record.name] = record
        now = self._clock.now()
        for owner, hosted in self._hosted.items():
            if owner.namespace == record.namespace:
                hosted.pods.note(now, record, is_gone=is_gone)
        return ()

    def reconcile(self, key: ObjectKey, reader: Reader, now: Nanoseconds) -> Plan:
        obj = found(key, reader)
        if obj is None:
            self._end(key, now)
            return NOTHING
        try:
            hosted = self._hosted_by(key, obj, now)
        except ValueError as error:
            self._end(key, now)
            return PluginPass(obj, None, now).plan(PluginFault(INVALID, str(error)))
        one = PluginPass(obj, hosted, now)
        if not hosted.is_begun:
            return one.plan(hosted.faults["begin"])
        target: ScaledTarget | None = None
        try:
            target = target_of(obj, reader)
            hosted.faults.pop("target", None)
            hosted.pods.follow(target.selector, self._in(key.namespace), now)
        except (ValueError, ApiError) as error:
            # Its pods are told of all the same, for as long as they are there.
            hosted.faults["target"] = PluginFault(NO_TARGET, shortened(str(error)))
        self._turn(key, one, target, reader)
        return one.plan(next(iter(hosted.faults.values()), FINE))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: Nanoseconds
    ) -> Plan:
        """A scale that could not be written is tried again when the autoscaler is asked next."""
        obj, hosted = found(key, reader), self._hosted.get(key)
        if obj is None or hosted is None:
            return NOTHING
        one = PluginPass(obj, hosted, now)
        if write not in hosted.planned:  # the status, and it is somebody else's turn to say it
            return Plan(requeue_after=one.due())
        one.go_on_after(write)
        if not isinstance(error, NotFoundError):
            name, reason = ("scale", NO_SCALE) if isinstance(write, Scale) else ("size", NO_SIZE)
            hosted.faults[name] = PluginFault(reason, shortened(error.message))
        return one.plan(next(iter(hosted.faults.values()), FINE))

    def conclude(self) -> None:
        """All have to forget: nobody turns this controller any more, or a run is over.

        If it is turned again all the same, autoscalers are made anew.
        """
        now = self._clock.now()
        for key in list(self._hosted):
            self._end(key, now)
        dispatcher, self._dispatcher = self._dispatcher, None
        if dispatcher is not None:
            dispatcher.close()

    # -- runs of autoscalers ---------------------------------------------------------------------

    def _hosted_by(self, key: ObjectKey, obj: JsonObject, now: Nanoseconds) -> Hosted:
        """The run of an object; other words for the autoscaler are another run."""
        spec, uid = read_spec(obj["spec"]), obj["metadata"]["uid"]
        hosted = self._hosted.get(key)
        if hosted is not None and hosted.is_of(uid, spec):
            hosted.follow(spec, now)
            return hosted
        self._end(key, now)
        hosted = self._hosted[key] = Hosted(uid, spec, now)
        try:
            hosted.begin(self._available(), now)
        except ConfigurationError as error:  # one of them cannot be made
            hosted.faults["begin"] = PluginFault(UNKNOWN_TYPE, shortened(str(error)))
        return hosted

    def _available(self) -> Dispatcher:
        if self._dispatcher is None:
            self._dispatcher = available_in_cluster(self._sources, RESOLUTION, self._options)
        return self._dispatcher

    def _end(self, key: ObjectKey, now: Nanoseconds) -> None:
        hosted = self._hosted.pop(key, None)
        if hosted is not None:
            hosted.end(now)

    def _in(self, namespace: str) -> list[Record]:
        pods = self._pods.get(namespace, {})
        return [pods[name] for name in sorted(pods)]

    # -- telling and asking ----------------------------------------------------------------------

    def _turn(
        self, key: ObjectKey, one: "PluginPass", target: ScaledTarget | None, reader: Reader
    ) -> None:
        """Everything that is due."""
        hosted, now = one.hosted, one.now
        assert hosted is not None
        asked = hosted.asked(now)
        is_scraped = hosted.wants_stats and last_scrape(now) > hosted.said
        if not (asked or is_scraped):
            return
        hosted.tell_pods()
        if is_scraped:
            self._tell_stats(key, hosted, target, reader, now)
        if not asked or target is None:
            return
        begin, hosted.asked_at = hosted.asked_at, now
        if hosted.wants_stats:
            self._tell_of_nobody(key, hosted, target, begin, now)
        if Capability.HORIZONTAL_RECOMMENDATION in asked:
            one.scale(target)
        if Capability.VERTICAL_RECOMMENDATION in asked:
            there = self._pods.get(key.namespace, {})
            told = hosted.pods.told
            pods = {name: there[name] for name in sorted(told) if name in there}
            one.size(pods, reader)

    def _tell_stats(
        self,
        key: ObjectKey,
        hosted: Hosted,
        target: ScaledTarget | None,
        reader: Reader,
        now: Nanoseconds,
    ) -> None:
        records = self._in(key.namespace)
        measured = self._metrics.of_records(key.namespace, records, reader, now)
        services = [] if target is None else services_before(key.namespace, target, reader)
        container = hosted.spec.container
        hosted.tell_stats(now, stats_of(measured, hosted.pods.told, services, container))

    def _tell_of_nobody(
        self,
        key: ObjectKey,
        hosted: Hosted,
        target: ScaledTarget,
        begin: Nanoseconds,
        now: Nanoseconds,
    ) -> None:
        """Requests that come where no pod is active, since the last question."""
        requests, pods = self._usage.requests, hosted.pods.told.values()
        if requests is None or begin >= now:
            return
        load: RequestLoad | None = None
        if not any(known.pod.state == PodState.ACTIVE for known in pods):
            load = requests.load(key.namespace, target.labels, begin, now)
        hosted.tell_of_nobody(now, stats_of_nobody(load or RequestLoad(0, 0), begin, now))


class PluginPass:
    """What comes of looking at an object now."""

    def __init__(self, obj: JsonObject, hosted: Hosted | None, now: Nanoseconds) -> None:
        self.hosted = hosted
        self.now = now
        self._obj = obj
        self._writes: list[Write] = []

    def scale(self, target: ScaledTarget) -> None:
        """Ask, and do as it is said."""
        hosted, current = self.hosted, target.replicas
        assert hosted is not None
        hosted.faults.pop("scale", None)
        answer = hosted.ask(self.now)
        if answer is None:
            hosted.status["currentReplicas"] = current
            return
        want = answer.rec
        hosted.status |= {"currentReplicas": current, "desiredReplicas": want}
        if want == current:
            return
        reason = shortened(answer.reason)
        hosted.status |= {"lastScaleTime": format_time(self.now), "reason": reason}
        told = f"New size: {want}; reason: {reason or 'it was recommended'}"
        notice = Notice(regarding(self._obj), NORMAL, "SuccessfulRescale", told, REPORTER)
        metadata, ref = self._obj["metadata"], target.ref
        shown = f"{ref.gvk.kind}/{ref.name}"
        fact = ReplicasDecided(
            metadata["namespace"], metadata["name"], shown, current, want, reason
        )
        self._writes.append(Scale(ref, want, notice, fact))

    def size(self, pods: Mapping[str, Record], reader: Reader) -> None:
        """Ask how large a pod should be, and see to it."""
        hosted = self.hosted
        assert hosted is not None
        hosted.faults.pop("size", None)
        hosted.faults.pop("container", None)
        answer = hosted.ask_size(self.now)
        if answer is None:
            return
        reason, status = shortened(answer.reason), hosted.status
        if answer.rec:
            known = status.get("recommendation") or {}
            status["recommendation"] = recommendation_of(known, answer.rec)
            status |= {"admit": answer.admit, "sizeReason": reason}
        sized = SizedPods({**self._obj, "status": status}, pods, reader)
        self._writes += sized.writes(answer, reason)
        if sized.open:
            hosted.faults["container"] = PluginFault(NO_CONTAINER, shortened(sized.open))

    def go_on_after(self, refused: Write) -> None:
        """The rest of what was planned."""
        hosted = self.hosted
        assert hosted is not None
        self._writes = hosted.planned[hosted.planned.index(refused) + 1 :]

    def plan(self, state: PluginFault) -> Plan:
        """The writes, the status if it says something new, and when it is looked at again."""
        writes, notices = list(self._writes), []
        if self.hosted is not None:
            self.hosted.planned = self._writes
        before = self._obj.get("status") or {}
        known: JsonObject = next(iter(before.get("conditions") or ()), {})
        condition = {
            "type": "Ready",
            "status": "True" if state is FINE else "False",
            "reason": state.reason,
            "message": state.message,
        }
        is_new = any(known.get(name) != value for name, value in condition.items())
        if is_new and state is not FINE:
            about = regarding(self._obj)
            notices = [Notice(about, WARNING, state.reason, state.message, REPORTER)]
        same = known.get("status") == condition["status"]
        since = known.get("lastTransitionTime") if same else None
        condition["lastTransitionTime"] = since or format_time(self.now)
        status = {
            "observedGeneration": self._obj["metadata"].get("generation"),
            "conditions": [condition],
            # What an earlier autoscaler has recommended, new pods shall not get any more.
            **dict.fromkeys(SIZE),
            **({} if self.hosted is None else self.hosted.status),
        }
        if any(before.get(name) != value for name, value in status.items()):
            ref = ObjectRef.to(self._obj)
            writes.append(Patch(ref, {"status": status}, subresource="status"))
        return Plan(writes, self.due(), notices)

    def due(self) -> Nanoseconds | None:
        """After how long there is something to do; None if nothing comes by itself."""
        hosted = self.hosted
        if hosted is None or not hosted.is_begun:
            return None
        due = hosted.due
        if hosted.wants_stats:
            due = min(due, last_scrape(self.now) + RESOLUTION)
        return due - self.now


def found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    """The object, if it is there and somebody serves its kind."""
    try:
        return reader.find(ObjectRef(PLUGIN_AUTOSCALER, key.name, key.namespace))
    except BadRequestError:  # somebody has deleted the definition
        return None


def services_before(namespace: str, target: ScaledTarget, reader: Reader) -> list[str]:
    """The Services that send requests to the pods of a target."""
    services = reader.list(SERVICE, namespace=namespace)
    return [each["metadata"]["name"] for each in services if selects(each, target.labels)]


class PluginController(LatePodsController):
    """The controller of a world in which the kind is defined."""

    def __init__(
        self,
        context: ControllerContext,
        sources: Sequence[PluginSource],
        settings: AutoscalingSettings,
    ) -> None:
        self._plugins = PluginAutoscalerReconciler(context, sources, settings)
        super().__init__(self._plugins, context, traits=EVERYTHING)

    def conclude(self) -> None:
        """A run is over: autoscalers forget what they know."""
        self._plugins.conclude()

    def release(self) -> None:
        """It is let go: the same."""
        self._plugins.conclude()
