"""The kubelet stand-in: nodes are ready, assigned pods start, deleted pods stop.

One controller plays the kubelets of all nodes. Delays are zero unless configured; a configured
delay elapses in virtual time, so only under an advance operation. What it writes is the cluster
breathing: status of pods and nodes, never part of the timeline.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kubescene.api.changes import Change, ChangeType
from kubescene.api.kinds import NODE, POD
from kubescene.api.objects import Pod
from kubescene.api.options import DeleteOptions
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import NORMAL, Notice, regarding
from kubescene.timeline.significance import KUBELET
from kubescene.types import JsonObject

READY = "Ready"
NOT_READY = (READY, "ContainersReady")
PENDING = "Pending"
RUNNING = "Running"
TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class KubeletDelays:
    """Nanoseconds from assignment to running, from running to ready, from deletion to gone."""

    start: int = 0
    ready: int = 0
    terminate: int = 0


NO_DELAYS = KubeletDelays()


class KubeletReconciler:
    """Keys with a namespace are pods, keys without are nodes."""

    name = KUBELET
    kinds: Sequence[GroupVersionKind] = (POD, NODE)

    def __init__(self, delays: KubeletDelays = NO_DELAYS, *, talks: bool = False) -> None:
        """``talks``: whether somebody wants to hear what it does with containers."""
        self._delays = delays
        self._talks = talks
        self._waiting: dict[str, dict[ObjectKey, None]] = {}

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if change.type is ChangeType.DELETED:
            return ()
        if record.resource.resource == "nodes":
            if change.type is not ChangeType.ADDED:
                return ()
            return (ObjectKey("", record.name), *self._waiting.pop(record.name, ()))
        has_work = record.node and (
            record.phase == PENDING or record.deleting or is_respecified(change)
        )
        return (ObjectKey(record.namespace, record.name),) if has_work else ()

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        if not key.namespace:
            return self._node(key, reader, now)
        pod = reader.find(ObjectRef(POD, key.name, key.namespace))
        if pod is None:
            return NOTHING
        if pod["metadata"].get("deletionTimestamp"):
            return self._stop(pod, now)
        if pod["status"].get("phase") == PENDING:
            return self._start(key, pod, reader, now)
        if adjusted := adjusted_status(pod, format_time(now)):
            return Plan((Patch(ObjectRef.to(pod), {"status": adjusted}, subresource="status"),))
        return self._become_ready(pod, now)

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
        if any(condition.get("type") == READY for condition in conditions):
            return NOTHING
        status = {"conditions": [*conditions, ready_node(format_time(now))]}
        return Plan((Patch(ref, {"status": status}, subresource="status"),))

    def _start(self, key: ObjectKey, pod: JsonObject, reader: Reader, now: int) -> Plan:
        node = pod["spec"]["nodeName"]
        if reader.find(ObjectRef(NODE, node)) is None:
            # A pod may be assigned before its node exists: it starts when the node comes.
            self._waiting.setdefault(node, {}).setdefault(key)
            return NOTHING
        if wait := remaining(scheduled_at(pod), self._delays.start, now):
            return Plan(requeue_after=wait)
        ready = self._delays.ready == 0
        status = running(pod, format_time(now), ready=ready)
        write = Patch(ObjectRef.to(pod), {"status": status}, subresource="status")
        again = None if ready else self._delays.ready
        return Plan((write,), again, started(pod) if self._talks else ())

    def _become_ready(self, pod: JsonObject, now: int) -> Plan:
        started = pod["status"].get("startTime")
        if pod["status"].get("phase") != RUNNING or started is None or Pod(pod).is_ready:
            return NOTHING
        if wait := remaining(parse_time(started), self._delays.ready, now):
            return Plan(requeue_after=wait)
        status = running(pod, format_time(now), ready=True) | {"startTime": started}
        return Plan((Patch(ObjectRef.to(pod), {"status": status}, subresource="status"),))

    def _stop(self, pod: JsonObject, now: int) -> Plan:
        metadata = pod["metadata"]
        if self._delays.terminate:
            grace = int(metadata.get("deletionGracePeriodSeconds", 0)) * 1_000_000_000
            deleted_at = parse_time(metadata["deletionTimestamp"]) - grace
            if wait := remaining(deleted_at, min(self._delays.terminate, grace), now):
                return Plan(requeue_after=wait)
        ref, at_once = ObjectRef.to(pod), DeleteOptions(uid=metadata["uid"], grace_period_s=0)
        if metadata.get("finalizers") and pod["status"].get("phase") not in TERMINAL:
            # Its containers are gone although the object stays: others may have the room.
            ended = {"status": stopped(pod, format_time(now))}
            writes = (Patch(ref, ended, subresource="status"), Delete(ref, at_once))
            return Plan(writes, notices=self._stopping(pod))
        if metadata.get("deletionGracePeriodSeconds") == 0:
            return NOTHING
        return Plan((Delete(ref, at_once),), notices=self._stopping(pod))

    def _stopping(self, pod: JsonObject) -> Sequence[Notice]:
        if not self._talks or pod["status"].get("phase") != RUNNING:
            return ()
        return [
            notice(pod, it["name"], "Killing", f"Stopping container {it['name']}")
            for it in pod["spec"]["containers"]
        ]


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


def notice(pod: JsonObject, container: str, reason: str, message: str) -> Notice:
    about = regarding(pod, f"spec.containers{{{container}}}")
    return Notice(about, NORMAL, reason, message, KUBELET, host=pod["spec"]["nodeName"])


def is_respecified(change: Change) -> bool:
    """Whether a running pod asks for something else than before: it was resized, or is debugged."""
    previous = change.previous
    if previous is None or previous.phase != RUNNING or change.record.phase != RUNNING:
        return False
    before = change.previous_object
    return before is not None and generation_of(change.object) != generation_of(before)


def generation_of(pod: JsonObject) -> int:
    return int(pod["metadata"].get("generation", 0))


def adjusted_status(pod: JsonObject, now: str) -> JsonObject:
    """What changes in the status of a running pod when its spec has: everything is granted at once.

    A container's resources are told from the first change on. Before, they are those of the spec,
    and telling so for every pod would cost more than it says.
    """
    if pod["status"].get("phase") != RUNNING or generation_of(pod) < 2:
        return {}
    spec, status = pod["spec"], pod["status"]
    asked = {it["name"]: it.get("resources") or {} for it in spec["containers"]}
    told = status.get("containerStatuses") or []
    granted = [with_resources(it, asked.get(it["name"], {})) for it in told]
    debugging = status.get("ephemeralContainerStatuses") or []
    known = {it["name"] for it in debugging}
    added = [
        container_status(it, now, ready=False)
        for it in spec.get("ephemeralContainers") or ()
        if it["name"] not in known
    ]
    changes: JsonObject = {}
    if granted != told:
        changes["containerStatuses"] = granted
    if added:
        changes["ephemeralContainerStatuses"] = [*debugging, *added]
    return changes


def with_resources(status: JsonObject, resources: JsonObject) -> JsonObject:
    """A container's status with what it was given."""
    known = {key: value for key, value in status.items() if key != "allocatedResources"}
    allocated = resources.get("requests")
    granted = {"allocatedResources": allocated} if allocated else {}
    return {**known, **granted, "resources": resources}


def remaining(since: int, delay: int, now: int) -> int:
    """Nanoseconds until ``delay`` has passed since ``since``; zero if it has."""
    return max(since + delay - now, 0) if delay else 0


def scheduled_at(pod: JsonObject) -> int:
    """When the pod was assigned, to the second."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return parse_time(condition["lastTransitionTime"])
    return parse_time(pod["metadata"]["creationTimestamp"])


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
    kept = [c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"]
    reached = [
        {"type": name, "status": "True", "lastTransitionTime": now}
        for name in ("PodReadyToStartContainers", "Initialized")
    ]
    reached += [
        {"type": name, "status": str(ready), "lastTransitionTime": now}
        for name in (READY, "ContainersReady")
    ]
    return {
        "phase": RUNNING,
        "startTime": now,
        "conditions": [*reached, *kept],
        "containerStatuses": [
            container_status(container, now, ready=ready) for container in pod["spec"]["containers"]
        ],
    }


def stopped(pod: JsonObject, now: str) -> dict[str, Any]:
    """The status of a pod whose containers have all ended well."""
    others = [c for c in pod["status"].get("conditions", ()) if c["type"] not in NOT_READY]
    not_ready = [
        {"type": name, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
        for name in NOT_READY
    ]
    return {"phase": "Succeeded", "conditions": [*others, *not_ready]}


def container_status(container: JsonObject, now: str, *, ready: bool) -> JsonObject:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
    }


def kubelet(context: ControllerContext, delays: KubeletDelays = NO_DELAYS) -> ReconcilerController:
    """The factory of the stand-in."""
    reconciler = KubeletReconciler(delays, talks=context.recorder.on)
    return ReconcilerController(reconciler, context)
