"""The kubelet stand-in: nodes are ready, assigned pods start, deleted pods stop.

One controller plays the kubelets of all nodes. Delays are zero unless configured; a configured
delay elapses in virtual time, so only under an advance operation. What it writes is the cluster
breathing: status of pods and nodes, never part of the timeline.

A node whose condition Ready is ``Unknown`` has a kubelet that nobody hears; one with the annotation
``kubescene.dev/kubelet: stopped`` has none: until it is back, nothing starts, stops or becomes
ready there. One that is ``False`` is heard: it says so itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from kubescene.api.kinds import NODE, POD
from kubescene.api.objects import Pod
from kubescene.api.options import NO_OPTIONS, DeleteOptions, WriteOptions
from kubescene.api.records import Record, same_metadata
from kubescene.api.records.changes import ADDED, DELETED, Change
from kubescene.api.records.keys import mentions_any
from kubescene.api.records.traits import DELETING, PLACED
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import Streams, format_time, go_seconds, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.kubelet.addresses import Addresses
from kubescene.controllers.kubelet.behaviour import (
    ANNOTATED,
    OUT_OF_MEMORY,
    PodBehaviour,
    WorkloadBehaviour,
    behaviour_of,
)
from kubescene.controllers.kubelet.container_statuses import debugged, generation_of
from kubescene.controllers.kubelet.heartbeats import has_stopped, healthy_conditions
from kubescene.controllers.kubelet.images import PULLS_MENTION
from kubescene.controllers.kubelet.lives import (
    NO_DELAYS,
    DueStatus,
    KubeletDelays,
    Lives,
    scheduled_at,
)
from kubescene.controllers.kubelet.notices import KUBELET, started, stopping
from kubescene.controllers.kubelet.registering import registration
from kubescene.controllers.kubelet.reports import (
    READY,
    RUNNING,
    EndedStatuses,
    KnownCourses,
    ReadyNodes,
    RunningStatuses,
    StatusParts,
    made_ready,
    parts_of_status,
    running,
)
from kubescene.controllers.kubelet.resizes import (
    UNCHANGED,
    Resize,
    ResizeRank,
    allocated,
    rank_of,
    resize,
)
from kubescene.controllers.kubelet.usages import BehaviourUsage
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject
from kubescene.usage.registry import UsageRegistry

SERVICE = GroupVersionKind("", "v1", "Service")
PENDING = "Pending"
TERMINAL = ("Succeeded", "Failed")
UNHEARD = "Unknown"
MENTION = b'"Unknown"'
OUT_OF_MEMORY_MENTION = OUT_OF_MEMORY.encode()
DEADLINE, GATED = b'"activeDeadlineSeconds"', b'"readinessGates"'
"""Of what a pod's spec may ask more than that its containers run."""
ADDRESSED = b'"podIP"'
SECOND_GENERATION = 2
NO_BEHAVIOUR = PodBehaviour()


class KubeletReconciler:
    """Keys with a namespace are pods, keys without are nodes."""

    name = KUBELET
    kinds: Sequence[GroupVersionKind] = (POD, NODE, SERVICE)
    pod_traits = PLACED | DELETING

    def __init__(
        self,
        delays: KubeletDelays = NO_DELAYS,
        workloads: Sequence[WorkloadBehaviour] = (),
        *,
        streams: Streams | None = None,
        talks: bool = False,
        keeps: bool = True,
        registers: bool = False,
        usage: UsageRegistry | None = None,
    ) -> None:
        """``workloads`` say how pods behave, ``streams`` are what is drawn for them.

        ``talks``: whether somebody wants to hear what it does with containers. What it ``keeps``
        are reports, for those that are alike. Whether it ``registers`` nodes: they get the labels
        and the info of real ones. ``usage`` knows when those that are stopped are done,
        and is told what those use of which it is said.
        """
        streams = streams or Streams()
        self._delays = delays
        self._used = BehaviourUsage(streams)
        self._usage = UsageRegistry() if usage is None else usage
        self._usage.bring(KUBELET, self._used)
        self._workloads = workloads
        self._lives = Lives(streams, delays, talks=talks)
        self._talks = talks
        self._registers = registers
        self._statuses = RunningStatuses(keeps=keeps)
        self._ended = EndedStatuses(keeps=keeps)
        self._courses = KnownCourses(keeps=keeps)
        self._ready_nodes = ReadyNodes(keeps=keeps)
        self._waiting: dict[str, dict[ObjectKey, None]] = {}
        self._to_stop: set[ObjectKey] = set()
        self._to_start: dict[ObjectKey, Record] = {}
        """Pods that have come to their node, and nothing has happened to them since."""
        self._addresses = Addresses()
        self._shows_addresses = talks
        """Statuses name them where somebody looks: people, or Services."""
        self._nodes: set[str] = set()
        self._silent: set[str] = set()
        self._pulling: set[str] = set()
        """Nodes of whose pulls their annotations say something."""
        self._allocated: dict[str, Mapping[str, JsonObject]] = {}
        """What containers were given, by uid of their pod, whose first resize is new."""
        self._deferred: dict[str, dict[ObjectKey, ResizeRank]] = {}
        """Pods that wait for room to be resized, by node."""
        self._stopped: dict[str, bool] = {}
        """Nodes whose kubelet was stopped; False: it is back, and has not said so yet."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        match change.record.resource.resource:
            case "pods":
                return self._observe_pod(change)
            case "nodes":
                return self._observe_node(change)
        return self._observe_service(change)

    def _observe_pod(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if self._to_start:
            self._to_start.pop(key_of(record), None)
        if change.type is DELETED:
            return self._forget(record)
        if record.phase in TERMINAL:
            self._addresses.take_back(record.node, record.uid)
        elif change.type is ADDED and record.members_mention(ADDRESSED):
            self._addresses.learn(change.object)
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
        return self._observe_running(change)

    def _observe_running(self, change: Change) -> Iterable[ObjectKey]:
        """Pods that were started, or have ended."""
        record = change.record
        if is_respecified(change):
            if not is_marked(change):  # which is a new generation as well
                self._remember(change)
            return (key_of(record), *self._in_line(record.node))
        if record.deleting or is_gated_anew(change) or is_out_of_memory(change):
            return (key_of(record),)
        if self._deferred and record.phase in TERMINAL:
            return self._in_line(record.node)
        begins = change.type is ADDED and record.phase == RUNNING and self.may_behave(record)
        return (key_of(record),) if begins else ()

    def _forget(self, record: Record) -> Iterable[ObjectKey]:
        """A pod has gone: those that wait for its room are looked at again."""
        self._addresses.take_back(record.node, record.uid)
        self._lives.forget(record.uid)
        self._used.forget(record.namespace, record.name)
        self._allocated.pop(record.uid, None)
        self._deferred.get(record.node, {}).pop(key_of(record), None)
        return self._in_line(record.node)

    def _in_line(self, node: str) -> Sequence[ObjectKey]:
        """Those that wait for room on a node, in the order in which they get it."""
        waiting = self._deferred.get(node)
        return sorted(waiting, key=waiting.__getitem__) if waiting else ()

    def _remember(self, change: Change) -> None:
        """A running pod asks for something else: what was it given until now?"""
        before = change.previous_object
        if before is not None and change.record.uid not in self._allocated:
            self._allocated[change.record.uid] = allocated(before, {})

    def _observe_service(self, change: Change) -> Iterable[ObjectKey]:
        """The first Service that has pods: from now on their addresses matter."""
        if self._shows_addresses or not change.object["spec"].get("selector"):
            return ()
        self._shows_addresses = True
        return [ObjectKey("", name) for name in self._addresses.nodes]

    def _observe_node(self, change: Change) -> Iterable[ObjectKey]:
        name = change.record.name
        if change.type is DELETED:
            self._addresses.node_left(name)
            self._nodes.discard(name)
            self._silent.discard(name)
            self._pulling.discard(name)
            self._stopped.pop(name, None)
            return ()
        if change.record.metadata_mentions(PULLS_MENTION):
            self._pulling.add(name)
        else:
            self._pulling.discard(name)
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
            self._addresses.node_came(change.object)
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
            plan = self._end(pod, now)
            said = stopping(pod) if self._is_to_stop(key) else ()
            return replace(plan, notices=[*said, *plan.notices]) if said else plan
        if pod["status"].get("phase") == PENDING:
            return self._start(key, pod, reader, now, record)
        return self._go_on(pod, reader, now)

    def _is_to_stop(self, key: ObjectKey) -> bool:
        """Whether the pod was marked for deletion since this was asked last."""
        if key not in self._to_stop:
            return False
        self._to_stop.remove(key)
        return True

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _node(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        node = reader.find(ObjectRef(NODE, key.name))
        if node is None:
            return NOTHING
        plan = self._healthy(key, node, now)
        if not self._shows_addresses or key.name in self._silent:
            return plan
        return replace(plan, writes=(*plan.writes, *self._addressed(node, reader)))

    def _addressed(self, node: JsonObject, reader: Reader) -> Iterator[Write]:
        """A node and its pods get to say which addresses they have."""
        ref, name = ObjectRef.to(node), node["metadata"]["name"]
        told = (node.get("status") or {}).get("addresses")
        if not told and (addresses := self._addresses.of_node(name)):
            yield Patch(ref, {"status": {"addresses": addresses}}, subresource="status")
        for pod in reader.on_node(name):
            if pod["status"].get("phase") == RUNNING and (told := self._addresses.of_pod(pod)):
                yield Patch(ObjectRef.to(pod), {"status": told}, subresource="status")

    def _healthy(self, key: ObjectKey, node: JsonObject, now: int) -> Plan:
        """A node that nobody knew of, or nobody has heard of, is ready."""
        ref = ObjectRef(NODE, key.name)
        conditions = (node.get("status") or {}).get("conditions") or []
        if self._stopped.get(key.name):
            return NOTHING
        registered = list(registration(ref, node)) if self._registers else []
        if self._stopped.pop(key.name, None) is False and is_unheard(node):
            status = {"conditions": healthy_conditions(node, format_time(now))}
            return Plan((*registered, Patch(ref, {"status": status}, subresource="status")))
        if any(condition.get("type") == READY for condition in conditions):
            return Plan(registered)
        options = self._ready_nodes.of(conditions, format_time(now))
        assert options.blueprint is not None
        patch = options.blueprint.body
        return Plan((*registered, Patch(ref, patch, subresource="status", options=options)))

    def hears(self, node: str) -> bool:
        """Whether a node is there, and its kubelet too."""
        return node in self._nodes and node not in self._silent

    def starts_at_once(self, node: str) -> bool:
        """Whether a pod of which nothing is said runs on a node as soon as it has come there."""
        return self.hears(node) and node not in self._pulling

    def starts(self, record: Record) -> None:
        """A pod has been started on its node, by whoever knows how (`starts_at_once`)."""
        self._addresses.give(record.node, record.uid)

    def starts_with(self, parts: StatusParts, now: str) -> WriteOptions | None:
        """All that it does about a pod that comes to its node, if that is a report which is known.

        ``parts`` are those of the pod (`parts_of_status`).
        """
        if self._delays.start or self._delays.ready or self._talks or self._shows_addresses:
            return None
        return self._statuses.of_parts(parts, now)

    def may_behave(self, record: Record) -> bool:
        """Whether more may happen to a pod than that it starts, is ready, and is stopped."""
        if self.is_annotated(record) or record.node in self._pulling:
            return True
        if mentions_any(record.spec_key or record.data, (DEADLINE, GATED)):
            return True
        namespace, labels = record.namespace, record.labels
        return any(each.is_of(namespace, labels) for each in self._workloads)

    def is_annotated(self, record: Record) -> bool:
        """Whether more may happen to this one of pods that are alike and have no node yet."""
        return record.metadata_mentions(ANNOTATED)

    def _start_alike(self, key: ObjectKey, record: Record, now: int) -> Plan | None:
        """Start a pod whose like was started at this instant: it need not be read."""
        if not self.hears(record.node) or self._delays.start or self._talks:
            return None
        if self._shows_addresses or self.may_behave(record):
            return None
        parts = parts_of_status(record)
        options = None if parts is None else self._statuses.of_parts(parts, format_time(now))
        if options is None:
            return None
        self.starts(record)
        return self._running(key, options)

    def _start(
        self, key: ObjectKey, pod: JsonObject, reader: Reader, now: int, record: Record | None
    ) -> Plan:
        node = pod["spec"]["nodeName"]
        if node not in self._nodes and reader.find(ObjectRef(NODE, node)) is None:
            # A pod may be assigned before its node exists: it starts when the node comes.
            self._waiting.setdefault(node, {}).setdefault(key)
            return NOTHING
        behaviour, complaints = self._behaviour(pod)
        if behaviour is not None:
            return self._live(pod, behaviour, reader, now)
        delay = self._delays.start
        if delay and (wait := remaining(scheduled_at(pod), delay, now)):
            return Plan(requeue_after=wait)
        ready = self._delays.ready == 0
        self._addresses.give(node, pod["metadata"]["uid"])
        if self._shows_addresses:
            status = {**running(pod, format_time(now), ready=ready), **self._addresses.of_pod(pod)}
            write = Patch(ObjectRef.to(pod), {"status": status}, subresource="status")
            said = [*complaints, *self._said_of_start(pod)]
            return Plan((write,), self._delays.ready or None, said)
        options = self._statuses.of(pod, format_time(now), ready=ready)
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
        if found is None and self._is_special(pod):
            return NO_BEHAVIOUR, ()
        return found, ()

    def _is_special(self, pod: JsonObject) -> bool:
        spec = pod["spec"]
        if spec.get("activeDeadlineSeconds") is not None or spec.get("readinessGates"):
            return True
        return spec["nodeName"] in self._pulling

    def _live(self, pod: JsonObject, behaviour: PodBehaviour, reader: Reader, now: int) -> Plan:
        """What the containers of a pod have come to."""
        node = self._host(pod, behaviour, reader)
        if node is None and not self._shows_addresses and not behaviour.uses:
            return self._live_alike(pod, behaviour, now)
        course = self._lives.next_status(pod, behaviour, node, now)
        if course.begins:
            course = self._with_addresses(pod, course)
        self._used.note({**pod, "status": {**pod["status"], **(course.status or {})}}, behaviour)
        return self._planned(pod, node, course, now)

    def _live_alike(self, pod: JsonObject, behaviour: PodBehaviour, now: int) -> Plan:
        """The same where pods that are alike come to the same."""
        uid, lives, courses = pod["metadata"]["uid"], self._lives, self._courses
        is_new = not lives.remembers(uid)
        known = courses.of(pod, behaviour, now) if is_new else None
        if known is not None and known.course.over:
            lives.forget(uid)
        course = lives.next_status(pod, behaviour, None, now) if known is None else known.course
        if course.begins:
            self._with_addresses(pod, course)
        is_told = known is None and is_new and course.status is not None
        if is_told and lives.is_simple(behaviour) and not lives.remembers(uid):
            known = courses.keep(pod, behaviour, now, course)
        options = NO_OPTIONS if known is None else known.options
        return self._planned(pod, None, course, now, options)

    def _with_addresses(self, pod: JsonObject, course: DueStatus) -> DueStatus:
        """A pod has its address before its images are pulled."""
        if not course.over:
            self._addresses.give(pod["spec"]["nodeName"], pod["metadata"]["uid"])
        told = self._addresses.of_pod(pod) if self._shows_addresses else {}
        return course._replace(status={**(course.status or {}), **told}) if told else course

    def _host(self, pod: JsonObject, behaviour: PodBehaviour, reader: Reader) -> JsonObject | None:
        """The pod's node, if its images matter."""
        name = pod["spec"]["nodeName"]
        if not behaviour.pulls and name not in self._pulling:
            return None
        return reader.find(ObjectRef(NODE, name))

    def _planned(
        self,
        pod: JsonObject,
        node: JsonObject | None,
        course: DueStatus,
        now: int,
        options: WriteOptions = NO_OPTIONS,
    ) -> Plan:
        wait = None if course.due is None else max(course.due - now, 1)
        writes: list[Write] = []
        if course.status is not None:
            blueprint = options.blueprint
            patch = {"status": course.status} if blueprint is None else blueprint.body
            writes.append(Patch(ObjectRef.to(pod), patch, subresource="status", options=options))
        if course.images and node is not None:
            listed = (node.get("status") or {}).get("images") or ()
            images = {"status": {"images": [*listed, *course.images]}}
            writes.append(Patch(ObjectRef.to(node), images, subresource="status"))
        return Plan(writes, wait, course.said)

    def _running(
        self, key: ObjectKey, options: WriteOptions, notices: Sequence[Notice] = ()
    ) -> Plan:
        assert options.blueprint is not None
        ref, patch = ObjectRef(POD, key.name, key.namespace), options.blueprint.body
        write = Patch(ref, patch, subresource="status", options=options)
        return Plan((write,), self._delays.ready or None, notices)

    def _go_on(self, pod: JsonObject, reader: Reader, now: int) -> Plan:
        """A pod that runs: grant what it asks for now, and make it ready when it is time."""
        if pod["status"].get("phase") != RUNNING:
            return NOTHING
        behaviour, _ = self._behaviour(pod)
        resized = self._resize(pod, behaviour, reader, now)
        changes = {**resized.status, **debugged(pod, format_time(now))}
        after = {**pod, "status": {**pod["status"], **changes}} if changes else pod
        if behaviour is None:
            plan = self._become_ready(after, now)
        else:
            plan = self._live(after, behaviour, reader, now)
        due = None if resized.due is None else max(resized.due - now, 1)
        waits = [each for each in (plan.requeue_after, due) if each is not None]
        said = [*(resized.said if self._talks else ()), *plan.notices]
        write = Patch(ObjectRef.to(pod), {"status": changes}, subresource="status")
        writes = (write, *plan.writes) if changes else plan.writes
        return Plan(writes, min(waits, default=None), said)

    def _resize(
        self, pod: JsonObject, behaviour: PodBehaviour | None, reader: Reader, now: int
    ) -> Resize:
        """What becomes of what a running pod asks for."""
        metadata, node = pod["metadata"], pod["spec"]["nodeName"]
        if generation_of(pod) < SECOND_GENERATION:
            return UNCHANGED
        before = self._allocated.pop(metadata["uid"], {})
        time = 0 if behaviour is None else self._lives.resize_time(pod, behaviour)
        host = reader.find(ObjectRef(NODE, node))
        found = resize(pod, before, host, reader.on_node(node), time, now)
        key = ObjectKey(metadata["namespace"], metadata["name"])
        if found.deferred:
            self._deferred.setdefault(node, {}).setdefault(key, rank_of(pod))
        else:
            self._deferred.get(node, {}).pop(key, None)
        return found

    def _become_ready(self, pod: JsonObject, now: int) -> Plan:
        started = pod["status"].get("startTime")
        if pod["status"].get("phase") != RUNNING or started is None or Pod(pod).is_ready:
            return NOTHING
        if wait := remaining(parse_time(started), self._delays.ready, now):
            return Plan(requeue_after=wait)
        status = made_ready(pod, format_time(now))
        return Plan((Patch(ObjectRef.to(pod), {"status": status}, subresource="status"),))

    def _end(self, pod: JsonObject, now: int) -> Plan:
        """A pod that is marked for deletion."""
        behaviour, _ = self._behaviour(pod)
        is_alive = pod["status"].get("phase") in (PENDING, RUNNING)
        if behaviour is None or not is_alive or not pod["status"].get("containerStatuses"):
            return self._stop(pod, now)
        course = self._lives.last_status(pod, behaviour, now, self._drained(pod["metadata"], now))
        plan = self._planned(pod, None, course, now)
        if not course.over:
            return plan
        at_once = DeleteOptions(uid=pod["metadata"]["uid"], grace_period_s=0)
        return replace(plan, writes=(*plan.writes, Delete(ObjectRef.to(pod), at_once)))

    def _stop(self, pod: JsonObject, now: int) -> Plan:
        metadata = pod["metadata"]
        if wait := self._until_stopped(metadata, now):
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

    def _until_stopped(self, metadata: JsonObject, now: int) -> int:
        """How long the containers of a pod that was deleted still run."""
        delay = self._delays.terminate
        if not delay and not self._usage:
            return 0
        grace = go_seconds(int(metadata.get("deletionGracePeriodSeconds", 0)))
        end = parse_time(metadata["deletionTimestamp"])
        done = self._drained(metadata, now)
        return max(min(max(end - grace, done) + delay, end) - now, 0)

    def _drained(self, metadata: JsonObject, now: int) -> int:
        """When a pod that was deleted is done with what it does; the past if nobody knows."""
        end = parse_time(metadata["deletionTimestamp"])
        return self._usage.drained_at(metadata["uid"], now, end) if self._usage else 0


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
    before, now = previous.generation, change.record.generation
    if before is not None and now is not None:
        return before != now
    old = change.previous_object
    return old is not None and generation_of(change.object) != generation_of(old)


def is_gated_anew(change: Change) -> bool:
    """Whether something has changed of a running pod that waits for conditions of others."""
    previous, record = change.previous, change.record
    if previous is None or previous.phase != RUNNING or record.phase != RUNNING:
        return False
    return record.members_mention(GATED)


def is_out_of_memory(change: Change) -> bool:
    """Whether somebody may just have said so of a running pod."""
    previous, record = change.previous, change.record
    if previous is None or record.phase != RUNNING or same_metadata(record, previous):
        return False
    return record.metadata_mentions(OUT_OF_MEMORY_MENTION)


def remaining(since: int, delay: int, now: int) -> int:
    """Nanoseconds until ``delay`` has passed since ``since``; zero if it has."""
    return max(since + delay - now, 0) if delay else 0


def is_unheard(node: JsonObject) -> bool:
    """Whether nobody knows how a node is."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == READY and each.get("status") == UNHEARD for each in conditions)


def kubelet(
    context: ControllerContext,
    delays: KubeletDelays = NO_DELAYS,
    workloads: Sequence[WorkloadBehaviour] = (),
    *,
    registers: bool = False,
) -> ReconcilerController:
    """The factory of the stand-in."""
    reconciler = KubeletReconciler(
        delays,
        workloads,
        streams=context.streams,
        talks=context.recorder.on,
        keeps=context.shortcuts.kubelet_reports,
        registers=registers,
        usage=context.usage,
    )
    return ReconcilerController(reconciler, context)
