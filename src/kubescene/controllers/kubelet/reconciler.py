"""The kubelet stand-in: nodes are ready, assigned pods start, deleted pods stop.

One controller plays the kubelets of all nodes. Delays are zero unless configured; a configured
delay elapses in virtual time, so only under an advance operation. What it writes is the cluster
breathing: status of pods and nodes, never part of the timeline.

A node whose condition Ready is ``Unknown`` has a kubelet that nobody hears; one with the annotation
``kubescene.dev/kubelet: stopped`` has none: until it is back, nothing starts, stops or becomes
ready there. One that is ``False`` is heard: it says so itself.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from kubescene.api.kinds import NODE, POD
from kubescene.api.objects import Pod
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.records import Record, same_metadata
from kubescene.api.records.changes import ADDED, DELETED, Change
from kubescene.api.records.templates import Blueprint
from kubescene.api.records.traits import DELETING, PLACED
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import Streams, format_time, go_seconds, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.kubelet.behaviour import (
    ANNOTATED,
    PodBehaviour,
    WorkloadBehaviour,
    behaviour_of,
)
from kubescene.controllers.kubelet.container_statuses import (
    adjusted_status,
    container_status,
    generation_of,
    terminated,
    with_resources,
)
from kubescene.controllers.kubelet.heartbeats import has_stopped, healthy_conditions
from kubescene.controllers.kubelet.lives import Lives
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

KUBELET = "kubelet"
"""The stand-in's name."""

READY = "Ready"
NOT_READY = (READY, "ContainersReady")
PENDING = "Pending"
RUNNING = "Running"
TERMINAL = ("Succeeded", "Failed")
STATUSES_KEPT = 4096
"""Pods of a thousand templates may start in turns."""
StatusParts: TypeAlias = tuple[bytes, bytes, bytes]
"""See `parts_of_status`."""
UNHEARD = "Unknown"
MENTION = b'"Unknown"'
DEADLINE = b'"activeDeadlineSeconds"'
NO_BEHAVIOUR = PodBehaviour()


class KubeletDelays(Struct, frozen=True):
    """Nanoseconds from assignment to running, from running to ready, from deletion to gone."""

    start: int = 0
    ready: int = 0
    terminate: int = 0


NO_DELAYS = KubeletDelays()


class KubeletReconciler:
    """Keys with a namespace are pods, keys without are nodes."""

    name = KUBELET
    kinds: Sequence[GroupVersionKind] = (POD, NODE)
    pod_traits = PLACED | DELETING

    def __init__(
        self,
        delays: KubeletDelays = NO_DELAYS,
        workloads: Sequence[WorkloadBehaviour] = (),
        *,
        streams: Streams | None = None,
        talks: bool = False,
        keeps: bool = True,
    ) -> None:
        """``workloads`` say how pods behave, ``streams`` are what is drawn for them.

        ``talks``: whether somebody wants to hear what it does with containers. What it ``keeps``
        are reports, for those that are alike.
        """
        self._delays = delays
        self._workloads = workloads
        self._lives = Lives(streams or Streams(), delays.ready)
        self._talks = talks
        self._statuses = RunningStatuses(keeps=keeps)
        self._ended = EndedStatuses(keeps=keeps)
        self._ready_nodes = ReadyNodes(keeps=keeps)
        self._waiting: dict[str, dict[ObjectKey, None]] = {}
        self._to_stop: set[ObjectKey] = set()
        self._to_start: dict[ObjectKey, Record] = {}
        """Pods that have come to their node, and nothing has happened to them since."""
        self._nodes: set[str] = set()
        self._silent: set[str] = set()
        self._stopped: dict[str, bool] = {}
        """Nodes whose kubelet was stopped; False: it is back, and has not said so yet."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "nodes":
            return self._observe_node(change)
        if self._to_start:
            self._to_start.pop(key_of(record), None)
        if change.type is DELETED:
            self._lives.forget(record.uid)
            return ()
        if self._talks and is_marked(change):
            self._to_stop.add(key_of(record))
        if record.node in self._silent:
            self._waiting.setdefault(record.node, {}).setdefault(key_of(record))
            return ()
        if not record.node:
            return ()
        if record.phase == PENDING:
            key = key_of(record)
            if not record.deleting:
                self._to_start[key] = record
            return (key,)
        if record.deleting or is_respecified(change):
            return (key_of(record),)
        begins = change.type is ADDED and record.phase == RUNNING and self.may_behave(record)
        return (key_of(record),) if begins else ()

    def _observe_node(self, change: Change) -> Iterable[ObjectKey]:
        name = change.record.name
        if change.type is DELETED:
            self._nodes.discard(name)
            self._silent.discard(name)
            self._stopped.pop(name, None)
            return ()
        was_silent = name in self._silent
        if has_stopped(change.record):
            self._stopped[name] = True
            self._silent.add(name)
        elif change.record.members_mention(MENTION) and is_unheard(change.object):
            if name in self._stopped:
                self._stopped[name] = False
            self._silent.add(name)
        else:
            self._silent.discard(name)
            self._stopped.pop(name, None)
        if change.type is ADDED:
            self._nodes.add(name)
        elif not was_silent:
            return ()
        waiting = () if name in self._silent else self._waiting.pop(name, ())
        return (ObjectKey("", name), *waiting)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        if not key.namespace:
            return self._node(key, reader, now)
        record = self._to_start.pop(key, None)
        if record is not None and (plan := self._start_alike(key, record, now)) is not None:
            return plan
        pod = reader.find(ObjectRef(POD, key.name, key.namespace))
        if pod is None or not pod["spec"].get("nodeName"):
            # Gone, or another pod of the same name that no kubelet has yet.
            self._to_stop.discard(key)
            return NOTHING
        if pod["spec"]["nodeName"] in self._silent:
            self._waiting.setdefault(pod["spec"]["nodeName"], {}).setdefault(key)
            return NOTHING
        if pod["metadata"].get("deletionTimestamp"):
            plan = self._stop(pod, now)
            return replace(plan, notices=stopping(pod)) if self._is_to_stop(key) else plan
        if pod["status"].get("phase") == PENDING:
            return self._start(key, pod, reader, now, record)
        return self._go_on(pod, now)

    def _is_to_stop(self, key: ObjectKey) -> bool:
        """Whether the pod was marked for deletion since this was asked last."""
        if key not in self._to_stop:
            return False
        self._to_stop.remove(key)
        return True

    def refused(self, key: ObjectKey, write: Write, error: ApiError, reader: Reader) -> Plan:
        del key, write, reader
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _node(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        ref = ObjectRef(NODE, key.name)
        node = reader.find(ref)
        if node is None:
            return NOTHING
        conditions = (node.get("status") or {}).get("conditions") or []
        if self._stopped.get(key.name):
            return NOTHING
        if self._stopped.pop(key.name, None) is False and is_unheard(node):
            status = {"conditions": healthy_conditions(node, format_time(now))}
            return Plan((Patch(ref, {"status": status}, subresource="status"),))
        if any(condition.get("type") == READY for condition in conditions):
            return NOTHING
        options = self._ready_nodes.of(conditions, format_time(now))
        assert options.blueprint is not None
        patch = options.blueprint.body
        return Plan((Patch(ref, patch, subresource="status", options=options),))

    def hears(self, node: str) -> bool:
        """Whether a node is there, and its kubelet too."""
        return node in self._nodes and node not in self._silent

    def starts_with(self, parts: StatusParts, now: str) -> WriteOptions | None:
        """All that it does about a pod that comes to its node, if that is a report which is known.

        ``parts`` are those of the pod (`parts_of_status`).
        """
        if self._delays.start or self._delays.ready or self._talks:
            return None
        return self._statuses.of_parts(parts, now)

    def may_behave(self, record: Record) -> bool:
        """Whether more may happen to a pod than that it starts, is ready, and is stopped."""
        if record.metadata_mentions(ANNOTATED) or record.members_mention(DEADLINE):
            return True
        namespace, labels = record.namespace, record.labels
        return any(each.is_of(namespace, labels) for each in self._workloads)

    def _start_alike(self, key: ObjectKey, record: Record, now: int) -> Plan | None:
        """Start a pod whose like was started at this instant: it need not be read."""
        if not self.hears(record.node) or self._delays.start or self._talks:
            return None
        if self.may_behave(record):
            return None
        parts = parts_of_status(record)
        options = None if parts is None else self._statuses.of_parts(parts, format_time(now))
        return None if options is None else self._running(key, options)

    def _start(
        self, key: ObjectKey, pod: JsonObject, reader: Reader, now: int, record: Record | None
    ) -> Plan:
        node = pod["spec"]["nodeName"]
        if node not in self._nodes and reader.find(ObjectRef(NODE, node)) is None:
            # A pod may be assigned before its node exists: it starts when the node comes.
            self._waiting.setdefault(node, {}).setdefault(key)
            return NOTHING
        delay = self._delays.start
        if delay and (wait := remaining(scheduled_at(pod), delay, now)):
            return Plan(requeue_after=wait)
        ready = self._delays.ready == 0
        options = self._statuses.of(pod, format_time(now), ready=ready)
        behaviour, complaints = self._behaviour(pod)
        if behaviour is not None:
            plan = self._running(key, options, self._said_of_start(pod))
            assert options.blueprint is not None
            begun = {**pod, "status": {**pod["status"], **options.blueprint.body["status"]}}
            return followed(plan, self._live(begun, behaviour, now))
        if record is not None and pod["metadata"]["resourceVersion"] == str(record.revision):
            self._statuses.keep(record, format_time(now), options)
        return self._running(key, options, [*complaints, *self._said_of_start(pod)])

    def _said_of_start(self, pod: JsonObject) -> Sequence[Notice]:
        return started(pod) if self._talks else ()

    def _behaviour(self, pod: JsonObject) -> tuple[PodBehaviour | None, Sequence[Notice]]:
        """What is said of a pod, and complaints about what cannot be read; None: nothing is."""
        try:
            found = behaviour_of(self._workloads, pod["metadata"], pod["metadata"]["namespace"])
        except ValueError as error:
            about = regarding(pod)
            host = pod["spec"]["nodeName"]
            told = Notice(about, WARNING, "InvalidBehaviour", str(error), KUBELET, host=host)
            return None, (told,)
        if found is None and pod["spec"].get("activeDeadlineSeconds") is not None:
            return NO_BEHAVIOUR, ()
        return found, ()

    def _live(self, pod: JsonObject, behaviour: PodBehaviour, now: int) -> Plan:
        """What the containers of a running pod have come to."""
        course = self._lives.next_status(pod, behaviour, now)
        wait = None if course.due is None else max(course.due - now, 1)
        if course.status is None:
            return Plan(requeue_after=wait)
        patch = Patch(ObjectRef.to(pod), {"status": course.status}, subresource="status")
        return Plan((patch,), wait)

    def _running(
        self, key: ObjectKey, options: WriteOptions, notices: Sequence[Notice] = ()
    ) -> Plan:
        assert options.blueprint is not None
        ref, patch = ObjectRef(POD, key.name, key.namespace), options.blueprint.body
        write = Patch(ref, patch, subresource="status", options=options)
        return Plan((write,), self._delays.ready or None, notices)

    def _go_on(self, pod: JsonObject, now: int) -> Plan:
        """A pod that runs: grant what it asks for now, and make it ready when it is time."""
        behaviour, _ = self._behaviour(pod)
        if behaviour is None:
            plan = self._become_ready(pod, now)
        elif pod["status"].get("phase") == RUNNING:
            plan = self._live(pod, behaviour, now)
        else:
            plan = NOTHING
        adjusted = adjusted_status(pod, format_time(now))
        if not adjusted:
            return plan
        write = Patch(ObjectRef.to(pod), {"status": adjusted}, subresource="status")
        return replace(plan, writes=(write, *plan.writes))

    def _become_ready(self, pod: JsonObject, now: int) -> Plan:
        started = pod["status"].get("startTime")
        if pod["status"].get("phase") != RUNNING or started is None or Pod(pod).is_ready:
            return NOTHING
        if wait := remaining(parse_time(started), self._delays.ready, now):
            return Plan(requeue_after=wait)
        status = made_ready(pod, format_time(now))
        return Plan((Patch(ObjectRef.to(pod), {"status": status}, subresource="status"),))

    def _stop(self, pod: JsonObject, now: int) -> Plan:
        metadata = pod["metadata"]
        if self._delays.terminate:
            grace = go_seconds(int(metadata.get("deletionGracePeriodSeconds", 0)))
            deleted_at = parse_time(metadata["deletionTimestamp"]) - grace
            if wait := remaining(deleted_at, min(self._delays.terminate, grace), now):
                return Plan(requeue_after=wait)
        ref, at_once = ObjectRef.to(pod), DeleteOptions(uid=metadata["uid"], grace_period_s=0)
        phase = pod["status"].get("phase")
        if phase == RUNNING or (metadata.get("finalizers") and phase not in TERMINAL):
            # Nobody shall see it go while it is ready; and if the object stays, its room is free.
            options = self._ended.of(pod["status"], format_time(now))
            assert options.blueprint is not None
            ended = Patch(ref, options.blueprint.body, subresource="status", options=options)
            return Plan((ended, Delete(ref, at_once)))
        if metadata.get("deletionGracePeriodSeconds") == 0:
            return NOTHING
        return Plan((Delete(ref, at_once),))


def followed(first: Plan, then: Plan) -> Plan:
    """Two plans as one: the writes of both in order, and looked at again as the second says."""
    return Plan((*first.writes, *then.writes), then.requeue_after, first.notices)


def key_of(record: Record) -> ObjectKey:
    return ObjectKey(record.namespace, record.name)


def is_marked(change: Change) -> bool:
    """Whether this is the change that marked a pod for deletion."""
    previous = change.previous
    return change.record.deleting and previous is not None and not previous.deleting


def is_respecified(change: Change) -> bool:
    """Whether a running pod asks for something else than before: it was resized, or is debugged."""
    previous = change.previous
    if previous is None or previous.phase != RUNNING or change.record.phase != RUNNING:
        return False
    if same_metadata(change.record, previous):
        return False
    before = change.previous_object
    return before is not None and generation_of(change.object) != generation_of(before)


def remaining(since: int, delay: int, now: int) -> int:
    """Nanoseconds until ``delay`` has passed since ``since``; zero if it has."""
    return max(since + delay - now, 0) if delay else 0


def scheduled_at(pod: JsonObject) -> int:
    """When the pod was assigned, to the second."""
    for condition in pod["status"].get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            since = condition.get("lastTransitionTime")
            return parse_time(since or pod["metadata"]["creationTimestamp"])
    return parse_time(pod["metadata"]["creationTimestamp"])


def is_unheard(node: JsonObject) -> bool:
    """Whether nobody knows how a node is."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == READY and each.get("status") == UNHEARD for each in conditions)


def ready_node(now: str) -> JsonObject:
    return {
        "type": READY,
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def running(pod: JsonObject, now: str, *, ready: bool = True) -> dict[str, Any]:
    """The status of a pod whose containers all run, and are ready or not yet."""
    kept = [c for c in pod["status"].get("conditions", ()) if c.get("type") == "PodScheduled"]
    reached = [
        {"type": name, "status": "True", "lastTransitionTime": now}
        for name in ("PodReadyToStartContainers", "Initialized")
    ]
    reached += [
        {"type": name, "status": str(ready), "lastTransitionTime": now}
        for name in (READY, "ContainersReady")
    ]
    statuses = [container_status(it, now, ready=ready) for it in pod["spec"]["containers"]]
    return {
        "phase": RUNNING,
        "startTime": now,
        "conditions": [*reached, *kept],
        "containerStatuses": with_resources(statuses, pod),
    }


def made_ready(pod: JsonObject, now: str) -> dict[str, Any]:
    """What changes when the containers of a running pod have become ready; no more than that."""
    status = pod["status"]
    conditions = status.get("conditions") or ()
    others = [each for each in conditions if not is_to_change(each, NOT_READY, "True")]
    kept = {each.get("type") for each in others}
    reached = [
        {"type": name, "status": "True", "lastTransitionTime": now}
        for name in NOT_READY
        if name not in kept
    ]
    statuses = [{**it, "ready": True} for it in status.get("containerStatuses") or ()]
    return {"conditions": [*reached, *others], "containerStatuses": statuses}


def is_to_change(condition: JsonObject, types: Sequence[str], status: str) -> bool:
    """Whether a condition is one of these and not in that status yet."""
    return condition.get("type") in types and condition.get("status") != status


class ReadyNodes:
    """The newest report that a node is ready: nodes that come together share one."""

    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._made_from: tuple[bytes, str] = (b"", "")
        self._options = WriteOptions()

    def of(self, conditions: list[JsonObject], now: str) -> WriteOptions:
        """Options whose blueprint is the patch that adds this to the conditions of a node."""
        made_from = (orjson.dumps(conditions), now)
        if made_from != self._made_from or not self._keeps:
            status = {"conditions": [*conditions, ready_node(now)]}
            self._options = WriteOptions(blueprint=Blueprint({"status": status}))
            self._made_from = made_from
        return self._options


class RunningStatuses:
    """The newest statuses of running pods: pods of one template that start together share one."""

    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._known: OrderedDict[int, RunningStatus] = OrderedDict()
        self._alike: OrderedDict[tuple[object, ...], WriteOptions] = OrderedDict()
        self._by_parts: dict[StatusParts, WriteOptions] = {}
        self._by_parts_at = ""

    def of(self, pod: JsonObject, now: str, *, ready: bool) -> WriteOptions:
        """Options whose blueprint is the patch that says that the pod runs."""
        if not self._keeps:
            status = running(pod, now, ready=ready)
            return WriteOptions(blueprint=Blueprint({"status": status}))
        containers, generation = pod["spec"]["containers"], generation_of(pod)
        conditions = orjson.dumps(pod["status"].get("conditions"))
        made_from = (conditions, generation, now, ready)
        known = self._known.get(id(containers))
        if known is not None and known.fits(containers, made_from):
            return known.options
        options = self._of_alike(pod, (orjson.dumps(containers), *made_from))
        self._known[id(containers)] = RunningStatus(containers, made_from, options)
        if len(self._known) > STATUSES_KEPT:
            self._known.popitem(last=False)
        return options

    def of_parts(self, parts: StatusParts, now: str) -> WriteOptions | None:
        """The same for a pod that has the parts of one for which it was kept; else None."""
        return self._by_parts.get(parts) if now == self._by_parts_at else None

    def keep(self, record: Record, now: str, options: WriteOptions) -> None:
        """Remember what was made of a pod for those with the same parts, at this instant."""
        if not self._keeps:
            return
        if now != self._by_parts_at or len(self._by_parts) >= STATUSES_KEPT:
            self._by_parts.clear()
            self._by_parts_at = now
        if (parts := parts_of_status(record)) is not None:
            self._by_parts[parts] = options

    def _of_alike(self, pod: JsonObject, made_from: tuple[object, ...]) -> WriteOptions:
        """The same for pods whose specs differ, but not in their containers."""
        found = self._alike.get(made_from)
        if found is None:
            *_, now, ready = made_from
            status = running(pod, str(now), ready=bool(ready))
            found = self._alike[made_from] = WriteOptions(blueprint=Blueprint({"status": status}))
            if len(self._alike) > STATUSES_KEPT:
                self._alike.popitem(last=False)
        return found


def parts_of_status(record: Record) -> StatusParts | None:
    """The parts of a pod that the status depends on which it runs with: spec, status, generation.

    None if it is not encoded in such parts.
    """
    return record.pod_key


class RunningStatus(Struct, frozen=True):
    """A status, and all that it was made from."""

    containers: list[JsonObject]
    made_from: tuple[object, ...]
    options: WriteOptions

    def fits(self, containers: object, made_from: tuple[object, ...]) -> bool:
        """Whether it is also that of another pod, which shares its containers."""
        return self.containers is containers and self.made_from == made_from


class EndedStatuses:
    """The newest last statuses: pods that had one status and stop together share one."""

    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._known: OrderedDict[tuple[int, str], tuple[JsonObject, WriteOptions]] = OrderedDict()
        """With the status before, so that nobody else has its id."""

    def of(self, status: JsonObject, now: str) -> WriteOptions:
        """Options whose blueprint is the patch that says that the pod has ended."""
        known = self._known.get((id(status), now))
        if known is None:
            options = WriteOptions(blueprint=Blueprint({"status": stopped(status, now)}))
            if not self._keeps:
                return options
            known = self._known[id(status), now] = (status, options)
            if len(self._known) > STATUSES_KEPT:
                self._known.popitem(last=False)
        return known[1]

    def __deepcopy__(self, memo: dict[int, Any]) -> "EndedStatuses":
        """Copies of what was known have other ids: a fork begins anew."""
        twin = memo[id(self)] = EndedStatuses(keeps=self._keeps)
        return twin


def stopped(before: JsonObject, now: str) -> dict[str, Any]:
    """The status of a pod whose containers have all ended well."""
    conditions = before.get("conditions") or ()
    others = [each for each in conditions if not is_to_change(each, NOT_READY, "False")]
    kept = {each.get("type") for each in others}
    not_ready = [
        {"type": name, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
        for name in NOT_READY
        if name not in kept
    ]
    ended = [terminated(it, now) for it in before.get("containerStatuses") or ()]
    status = {"phase": "Succeeded", "conditions": [*others, *not_ready]}
    return {**status, "containerStatuses": ended} if ended else status


def kubelet(
    context: ControllerContext,
    delays: KubeletDelays = NO_DELAYS,
    workloads: Sequence[WorkloadBehaviour] = (),
) -> ReconcilerController:
    """The factory of the stand-in."""
    reconciler = KubeletReconciler(
        delays,
        workloads,
        streams=context.streams,
        talks=context.recorder.on,
        keeps=context.shortcuts.kubelet_reports,
    )
    return ReconcilerController(reconciler, context)


def started(pod: JsonObject) -> list[Notice]:
    """What a kubelet says of containers whose images it has already."""
    said = []
    for container in pod["spec"]["containers"]:
        name, image = container["name"], container.get("image", "")
        there = f'Container image "{image}" already present on machine'
        said += [
            notice(pod, name, "Pulled", f"{there} and can be accessed by the pod"),
            notice(pod, name, "Created", "Container created"),
            notice(pod, name, "Started", "Container started"),
        ]
    return said


def stopping(pod: JsonObject) -> list[Notice]:
    """What it says of those that it stops; nothing, if they never ran."""
    if pod["status"].get("phase") != "Running":
        return []
    names = [container["name"] for container in pod["spec"]["containers"]]
    return [notice(pod, name, "Killing", f"Stopping container {name}") for name in names]


def notice(pod: JsonObject, container: str, reason: str, message: str) -> Notice:
    about = regarding(pod, f"spec.containers{{{container}}}")
    return Notice(about, NORMAL, reason, message, KUBELET, host=pod["spec"]["nodeName"])
