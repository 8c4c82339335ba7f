"""The provider of machines: orders and gives back Instances until every NodeGroup has its size.

It plays the cloud. A machine boots, runs, registers its Node, which gets ready; each takes the time
that its spec says. Whoever deletes an Instance gives that machine back: its group shrinks with it,
unless it says ``replace`` or has its least size. Nothing else that dies is replaced.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from kubescene.api.kinds import NODE
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, Streams, format_micro_time, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import LateReconcilerController, owner_key
from kubescene.controllers.builtin.nodes.node_conditions import NO_SCHEDULE, taint, taints_of
from kubescene.controllers.builtin.nodes.node_groups import (
    BOOTING,
    DELETING,
    FAILED,
    FINALIZER,
    INSTANCE,
    NODE_GROUP,
    OTHER,
    REGISTERED,
    RUNNING,
    Orders,
    fault_of,
    launched,
    node_from,
    phase_of,
    ready_conditions,
    size_of,
    takes,
)
from kubescene.controllers.reconcile import NOTHING, Create, Delete, ObjectKey, Patch, Plan, Write
from kubescene.durations import parse_duration
from kubescene.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    InvalidError,
    NotFoundError,
)
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject

GROUPS, INSTANCES = "node groups", "instances"
"""Where keys belong: no namespace is called so."""
BURST = 500
"""So many machines are ordered or given back in one pass."""
REPLACED_AFTER = 60 * SECOND
"""How long a failed machine stays before a group that says ``replace`` orders another."""
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"


class NodeProviderReconciler:
    """Keys are those of groups (how many) and of instances (what becomes of them)."""

    name = "node-provider"
    kinds: tuple[GroupVersionKind, ...] = (NODE_GROUP, INSTANCE, NODE)

    def __init__(self, streams: Streams, *, at_once: bool = False) -> None:
        self._orders = Orders(streams, at_once=at_once)
        self._machines: defaultdict[str, GroupMachines] = defaultdict(GroupMachines)
        self._surplus: set[str] = set()
        """Machines that we gave back ourselves, since the group was to be smaller."""
        self._given_back: defaultdict[str, int] = defaultdict(int)
        """How many machines of a group others have deleted."""

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        kind = change.record.resource.resource
        if kind == "nodegroups":
            return (ObjectKey(GROUPS, change.record.name),)
        if kind == "nodes":
            return self._observe_node(change)
        return self._observe_instance(change)

    def _observe_node(self, change: Change) -> Iterable[ObjectKey]:
        """Counts of groups follow their nodes; a node that changes is none of our business."""
        if change.type is ChangeType.MODIFIED or not change.record.owner:
            return ()
        machine = owner_key(change.object, INSTANCE)
        return () if machine is None else (ObjectKey(INSTANCES, machine.name),)

    def _observe_instance(self, change: Change) -> Iterable[ObjectKey]:
        name, instance = change.record.name, change.object
        group, is_gone = instance["spec"]["group"], change.type is ChangeType.DELETED
        before = self._machines[group].put(name, None if is_gone else instance)
        if (is_gone or is_deleted(instance)) and before is not None and not is_deleted(before):
            self._given_back[group] += name not in self._surplus
        if is_gone:
            self._surplus.discard(name)
        return (ObjectKey(INSTANCES, name), ObjectKey(GROUPS, group))

    # -- groups ----------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        kind = NODE_GROUP if key.namespace == GROUPS else INSTANCE
        found = find(ObjectRef(kind, key.name), reader)
        if found is None:
            return NOTHING
        return self._group(found, now) if kind == NODE_GROUP else self._instance(found, reader, now)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A machine whose node cannot be made has failed; the group says why."""
        del now
        if isinstance(error, NotFoundError):
            return NOTHING
        if key.namespace == INSTANCES and isinstance(write, Create):
            instance = find(ObjectRef(INSTANCE, key.name), reader)
            if instance is None:
                return NOTHING
            launch = instance["status"]["launchedAt"]
            return Plan((failed(instance, launch, OTHER, "NotRegistered", error.message),))
        if isinstance(error, AlreadyExistsError | BadRequestError | InvalidError):
            group = find(ObjectRef(NODE_GROUP, key.name), reader)
            return NOTHING if group is None else Plan(self._status(group, error.message))
        raise error

    def _group(self, group: JsonObject, now: int) -> Plan:
        if is_deleted(group):
            return NOTHING
        if fault := fault_of(group):
            return Plan(self._status(group, message=fault))
        machines = self._machines[group["metadata"]["name"]]
        if shrunk := self._shrunk(group, machines.staying):
            return Plan((shrunk,))
        surplus = machines.staying - size_of(group)
        if surplus > 0:
            return Plan(self._given(machines, min(surplus, BURST)))
        if surplus < 0:
            return Plan(self._ordered(group, machines, min(-surplus, BURST)))
        return self._replaced(group, machines, now)

    def _shrunk(self, group: JsonObject, there: int) -> Patch | None:
        """Whoever gives a machine back wants the group to be smaller by it."""
        given = self._given_back.pop(group["metadata"]["name"], 0)
        size = max(size_of(group) - given, there, group["spec"].get("min", 0))
        if not given or group["spec"].get("replace") or size >= size_of(group):
            return None
        return Patch(ObjectRef.to(group), {"spec": {"size": size}})

    def _given(self, machines: "GroupMachines", count: int) -> list[Write]:
        """Those that serve nobody go first: failed, then not registered, the newest before."""
        leaving = machines.least_useful(count)
        self._surplus.update(each["metadata"]["name"] for each in leaving)
        return [Delete(ObjectRef.to(each)) for each in leaving]

    def _ordered(self, group: JsonObject, machines: "GroupMachines", count: int) -> list[Write]:
        first = (group.get("status") or {}).get("ordered", 0)
        quota = group["spec"].get("quota")
        working = len(machines) - machines.in_phase(FAILED)
        orders = list[Write]()
        for number in range(first, first + count):
            over = quota is not None and working + number - first >= quota
            orders.append(Create(self._orders.of(group, number, over_quota=over)))
        return [told(group, ordered=first + count), *orders]

    def _replaced(self, group: JsonObject, machines: "GroupMachines", now: int) -> Plan:
        """Failed machines go after a while if others are to come in their place."""
        status = self._status(group)
        failed = machines.first_failed if group["spec"].get("replace") else None
        if failed is None:
            return Plan(status)
        wait = parse_time(failed["status"]["failedAt"]) + REPLACED_AFTER - now
        if wait > 0:
            return Plan(status, wait)
        return Plan([*status, Delete(ObjectRef.to(failed))])

    def _status(self, group: JsonObject, message: str | None = None) -> list[Write]:
        machines = self._machines[group["metadata"]["name"]]
        if message is None and (failed := machines.first_failed) is not None:
            message = failed["status"]["error"]["message"]
        status: JsonObject = {
            "instances": len(machines),
            "nodes": machines.in_phase(REGISTERED),
            "failed": machines.in_phase(FAILED),
            "observedGeneration": group["metadata"].get("generation", 0),
            "message": message,
        }
        before = group.get("status") or {}
        if all(before.get(name) == value for name, value in status.items()):
            return []
        return [told(group, **status)]

    # -- machines --------------------------------------------------------------------------

    def _instance(self, instance: JsonObject, reader: Reader, now: int) -> Plan:
        try:
            return self._next(instance, reader, now)
        except (ValueError, TypeError) as error:
            # Somebody else's Instance may have any text for a duration.
            if phase_of(instance) == FAILED:
                return NOTHING
            when = format_micro_time(now)
            return Plan((failed(instance, when, OTHER, "InvalidInstance", str(error)),))

    def _next(self, instance: JsonObject, reader: Reader, now: int) -> Plan:
        if is_deleted(instance):
            return going(instance, reader, now)
        match phase_of(instance):
            case "":
                return started(instance, now)
            case phase if phase == BOOTING:
                return booting(instance, now)
            case phase if phase == RUNNING:
                return registering(instance, now)
            case phase if phase == REGISTERED:
                return getting_ready(instance, reader, now)
        return NOTHING


class GroupMachines:
    """The machines of a group in the order of their making, and how many of them do what."""

    def __init__(self) -> None:
        self._all: dict[str, JsonObject] = {}
        self._phases: Counter[str] = Counter()
        self._leaving = 0

    def put(self, name: str, instance: JsonObject | None) -> JsonObject | None:
        """Note what a machine is now, None if it is gone; returns what it was."""
        before = self._all.get(name)
        for each, change in ((before, -1), (instance, 1)):
            if each is not None:
                self._phases[phase_of(each)] += change
                self._leaving += change * is_deleted(each)
        if instance is not None:
            self._all[name] = instance
        elif before is not None:
            del self._all[name]
        return before

    def __len__(self) -> int:
        return len(self._all)

    @property
    def staying(self) -> int:
        """How many nobody has given back."""
        return len(self._all) - self._leaving

    def in_phase(self, phase: str) -> int:
        return self._phases[phase]

    @property
    def first_failed(self) -> JsonObject | None:
        if not self._phases[FAILED]:
            return None
        return next(each for each in self._all.values() if phase_of(each) == FAILED)

    def least_useful(self, count: int) -> list[JsonObject]:
        """Those to give back: failed ones first, registered ones last, the newest before others."""
        staying = [each for each in reversed(self._all.values()) if not is_deleted(each)]
        return sorted(staying, key=usefulness)[:count]


def started(instance: JsonObject, now: int) -> Plan:
    """An order becomes a machine that boots and is paid for, or fails."""
    if fault := instance["spec"].get("fault"):
        ordered = parse_time(instance["metadata"]["creationTimestamp"])
        wait = ordered + parse_duration(fault.get("after", "0s")) - now
        if wait > 0:
            return Plan(requeue_after=wait)
        known = {name: fault.get(name, "") for name in ("class", "code", "message")}
        return Plan((failed(instance, format_micro_time(now), *known.values()),))
    return Plan((told(instance, phase=BOOTING, launchedAt=format_micro_time(now)),))


def booting(instance: JsonObject, now: int) -> Plan:
    wait = launched(instance) + takes(instance, "boot", "time") - now
    return Plan(requeue_after=wait) if wait > 0 else Plan((told(instance, phase=RUNNING),))


def registering(instance: JsonObject, now: int) -> Plan:
    name = instance["metadata"]["name"]
    taken = takes(instance, "boot", "time") + takes(instance, "boot", "registration")
    wait = launched(instance) + taken - now
    if wait > 0:
        return Plan(requeue_after=wait)
    return Plan((Create(node_from(instance)), told(instance, phase=REGISTERED, node=name)))


def getting_ready(instance: JsonObject, reader: Reader, now: int) -> Plan:
    """A node that registered before it was ready gets ready, once."""
    ready = takes(instance, "boot", "ready")
    if not ready or "readyAt" in instance["status"]:
        return NOTHING
    taken = takes(instance, "boot", "time") + takes(instance, "boot", "registration") + ready
    if (wait := launched(instance) + taken - now) > 0:
        return Plan(requeue_after=wait)
    is_told = told(instance, readyAt=format_micro_time(now))
    node = reader.find(ObjectRef(NODE, instance["metadata"]["name"]))
    if node is None:
        return Plan((is_told,))
    patch = {"status": {"conditions": ready_conditions(node, now)}}
    return Plan((Patch(ObjectRef.to(node), patch, subresource="status"), is_told))


def going(instance: JsonObject, reader: Reader, now: int) -> Plan:
    """A machine that was given back takes its time; with it go its node and its bill."""
    node = reader.find(ObjectRef(NODE, instance["metadata"]["name"]))
    if node is not None and owner_key(node, INSTANCE) is None:
        node = None
    status = instance.get("status") or {}
    if "deletedAt" not in status and takes(instance, "shutdown", "time"):
        first: list[Write] = [] if node is None else [shut_down(node, now)]
        return Plan([*first, told(instance, phase=DELETING, deletedAt=format_micro_time(now))])
    began = parse_time(status["deletedAt"]) if "deletedAt" in status else now
    if (wait := began + takes(instance, "shutdown", "time") - now) > 0:
        return Plan(requeue_after=wait)
    last: list[Write] = [] if node is None else [Delete(ObjectRef.to(node))]
    kept = [each for each in instance["metadata"].get("finalizers") or () if each != FINALIZER]
    return Plan(
        [
            *last,
            told(instance, phase=DELETING, endedAt=format_micro_time(now)),
            Patch(ObjectRef.to(instance), {"metadata": {"finalizers": kept or None}}),
        ]
    )


def shut_down(node: JsonObject, now: int) -> Patch:
    """Nothing new comes to a machine that goes."""
    taints = [*taints_of(node), taint(SHUTDOWN, NO_SCHEDULE, format_time(now))]
    return Patch(ObjectRef.to(node), {"spec": {"taints": taints}})


def failed(instance: JsonObject, when: str, error_class: str, code: str, message: str) -> Patch:
    error = {"class": error_class, "code": code, "message": message}
    notice = Notice(regarding(instance), WARNING, "FailedToStart", message, "node-provider")
    status = {"phase": FAILED, "failedAt": when, "error": error}
    return Patch(ObjectRef.to(instance), {"status": status}, subresource="status", notice=notice)


def usefulness(instance: JsonObject) -> int:
    """Failed machines are of no use, those that boot of little."""
    phase = phase_of(instance)
    return 0 if phase == FAILED else 2 if phase == REGISTERED else 1


def told(obj: JsonObject, **status: object) -> Patch:
    return Patch(ObjectRef.to(obj), {"status": status}, subresource="status")


def is_deleted(obj: JsonObject) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def find(ref: ObjectRef, reader: Reader) -> JsonObject | None:
    """The object; None if it is gone, or its kind is: somebody may delete the definition."""
    try:
        return reader.find(ref)
    except BadRequestError:
        return None


def node_provider(context: ControllerContext, *, at_once: bool = False) -> LateReconcilerController:
    """The factory of the controller; ``at_once``: machines take no time."""
    reconciler = NodeProviderReconciler(context.streams, at_once=at_once)
    return LateReconcilerController(reconciler, context)
