"""Pods that are resized while they run: what is granted, what waits for room on the node.

What was allocated to a container stands in its status from the first change on; until then it is
what its spec asked for before, which a kubelet remembers. A resize that fits is granted, after
``resizeTime`` if that is said; one that does not is deferred until there is room.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from kubescene.api.resource_requests import node_allocatable, pod_requests, qos_class
from kubescene.api.text.encoding import encode
from kubescene.clock import format_time, parse_time
from kubescene.controllers.kubelet import notices as say
from kubescene.controllers.kubelet.container_statuses import exited, restarted
from kubescene.controllers.kubelet.runs import TERMINATED
from kubescene.recording import NORMAL, WARNING, Notice
from kubescene.types import JsonObject

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
FIELDS = (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers"))
TERMINAL = ("Succeeded", "Failed")
POD_LEVEL = ""
"""In the place of a container's name: what the pod asks for as a whole."""
Resources: TypeAlias = Mapping[str, JsonObject]
"""Of containers, by name, and of the pod."""


class Resize(NamedTuple):
    """What changes in a pod's status, what is said of it, and when to look again."""

    status: JsonObject
    said: Sequence[Notice] = ()
    due: int | None = None
    deferred: bool = False


UNCHANGED = Resize({})


class ResizeRank(NamedTuple):
    """Who of those that wait gets room first; of equal ones, who waits longest."""

    priority: int
    is_shared: bool


def rank_of(pod: JsonObject) -> ResizeRank:
    """By priority, then guaranteed pods before others, as a kubelet's list of pending resizes."""
    spec = pod["spec"]
    return ResizeRank(-int(spec.get("priority") or 0), qos_class(spec) != "Guaranteed")


def asked(pod: JsonObject) -> dict[str, JsonObject]:
    """What the containers of a pod ask for, and the pod."""
    spec = pod["spec"]
    listed = [*spec["containers"], *(spec.get("initContainers") or ())]
    found = {each["name"]: each.get("resources") or {} for each in listed}
    return {**found, POD_LEVEL: spec["resources"]} if spec.get("resources") else found


def allocated(pod: JsonObject, before: Resources) -> dict[str, JsonObject]:
    """What they were given; ``before`` is what is known of those whose status does not tell."""
    found = {**asked(pod), **before}
    for status in (*_statuses(pod), pod["status"]):
        if "resources" in status:
            given = dict(status["resources"])
            if requests := status.get("allocatedResources"):
                given["requests"] = requests
            found[status.get("name", POD_LEVEL)] = given
    return found


def resize(
    pod: JsonObject,
    before: Resources,
    node: JsonObject | None,
    others: Iterable[JsonObject],
    time: int,
    now: int,
) -> Resize:
    """What becomes of a running pod that may ask for something else than it was given."""
    conditions = {each["type"]: each for each in pod["status"].get("conditions") or ()}
    progress = conditions.get(IN_PROGRESS)
    if progress is not None:
        done = parse_time(progress["lastTransitionTime"]) + time
        return Resize({}, due=done) if done > now else _granted(pod, before, now, begins=False)
    given, wanted = allocated(pod, before), asked(pod)
    if given == wanted:
        changes = _conditions(pod, {}) if PENDING in conditions else {}
        is_told = all("resources" in each for each in pod["status"].get(FIELDS[0][0]) or ())
        return Resize(changes if is_told else {**changes, **_told(pod, wanted, wanted)})
    missing = "" if node is None else shortage(pod, node, others)
    if missing:
        return _deferred(pod, given, missing, now)
    if time:
        begun = _condition(IN_PROGRESS, pod, now)
        changes = {**_conditions(pod, begun), **_told(pod, given, wanted)}
        return Resize(changes, [_summary(pod, "ResizeStarted", "started")], now + time)
    return _granted(pod, before, now, begins=True)


def shortage(pod: JsonObject, node: JsonObject, others: Iterable[JsonObject]) -> str:
    """Which resource a node lacks for what a pod asks for, in a kubelet's words; else empty."""
    capacity, used = node_allocatable(node), dict[str, int]()
    for other in others:
        is_over = (other.get("status") or {}).get("phase") in TERMINAL
        if other["metadata"]["uid"] != pod["metadata"]["uid"] and not is_over:
            for name, amount in pod_requests(as_allocated(other)).items():
                used[name] = used.get(name, 0) + amount
    for name, amount in pod_requests({"spec": pod["spec"]}).items():
        taken, offered = used.get(name, 0), capacity.get(name, 0)
        if amount > max(offered - taken, 0):
            told = f"requested: {amount}, used: {taken}, capacity: {offered}"
            return f"Node didn't have enough resource: {name}, {told}"
    return ""


def as_allocated(pod: JsonObject) -> JsonObject:
    """A pod that asks for what it was given."""
    given = allocated(pod, {})
    spec = dict(pod["spec"])
    for _, field in FIELDS:
        if field in spec:
            spec[field] = [{**each, "resources": given[each["name"]]} for each in spec[field]]
    if POD_LEVEL in given:
        spec["resources"] = given[POD_LEVEL]
    return {"spec": spec}


def _deferred(pod: JsonObject, given: Resources, missing: str, now: int) -> Resize:
    known = {each["type"]: each for each in pod["status"].get("conditions") or ()}.get(PENDING)
    waits = _condition(PENDING, pod, now, reason="Deferred", message=missing)
    if known is not None:
        waits["lastTransitionTime"] = known.get("lastTransitionTime", waits["lastTransitionTime"])
    changes = {**_conditions(pod, waits), **_told(pod, given, given)}
    is_news = known is None or known.get("observedGeneration") != waits["observedGeneration"]
    said = [_summary(pod, "ResizeDeferred", "Deferred", missing)] if is_news else []
    return Resize(changes, said, deferred=True)


def _granted(pod: JsonObject, before: Resources, now: int, *, begins: bool) -> Resize:
    given, wanted, time = allocated(pod, before), asked(pod), format_time(now)
    changes = _told(pod, wanted, wanted)
    said = [_summary(pod, "ResizeStarted", "started")] if begins else []
    held = {each["name"]: each.get("resources") or given[each["name"]] for each in _statuses(pod)}
    for field, specs in FIELDS:
        policies = {each["name"]: each for each in pod["spec"].get(specs) or ()}
        for place, status in enumerate(changes.get(field, ())):
            name = status["name"]
            if "running" in status["state"] and restarts(policies[name], held[name], wanted[name]):
                ended = exited(status, TERMINATED, time)
                changes[field][place] = restarted(ended, time, ready=True)
                message = f"Container {name} resize requires restart"
                said += [say.killing(pod, name, message), *say.begun(pod, policies[name])]
    said.append(_summary(pod, "ResizeCompleted", "completed"))
    conditions = _conditions(pod, {})
    if conditions["conditions"] == (pod["status"].get("conditions") or []):
        conditions = {}
    return Resize({**conditions, **changes}, said)


def restarts(container: JsonObject, held: JsonObject, wanted: JsonObject) -> bool:
    """Whether a container has to begin anew to be given what it asks for."""
    policies = container.get("resizePolicy") or ()
    named = {
        each["resourceName"] for each in policies if each["restartPolicy"] == "RestartContainer"
    }
    return any(
        (held.get(kind) or {}).get(name) != (wanted.get(kind) or {}).get(name)
        for kind in ("requests", "limits")
        for name in named
    )


def _told(pod: JsonObject, held: Resources, given: Resources) -> dict[str, Any]:
    """What a status says of containers, and of a pod, that hold some resources and were allocated
    others."""
    found: dict[str, Any] = {}
    for field, _ in FIELDS:
        listed = pod["status"].get(field) or ()
        # Init containers tell their resources only if these are changed.
        if field == "containerStatuses" or any(held[e["name"]] != given[e["name"]] for e in listed):
            found[field] = [_with(each, held[each["name"]], given[each["name"]]) for each in listed]
    if POD_LEVEL in given:
        found["resources"] = held[POD_LEVEL]
        found["allocatedResources"] = given[POD_LEVEL].get("requests") or {}
    return {field: part for field, part in found.items() if part}


def _with(status: JsonObject, held: JsonObject, given: JsonObject) -> JsonObject:
    known = {key: value for key, value in status.items() if key != "allocatedResources"}
    requests = given.get("requests")
    told = {"allocatedResources": requests} if requests else {}
    return {**known, **told, "resources": held}


def _condition(type: str, pod: JsonObject, now: int, **more: str) -> dict[str, Any]:
    return {
        "type": type,
        "status": "True",
        "lastTransitionTime": format_time(now),
        "observedGeneration": int(pod["metadata"].get("generation", 0)),
        **more,
    }


def _conditions(pod: JsonObject, added: JsonObject) -> JsonObject:
    """The conditions of a pod with one about its resize, or none."""
    listed = pod["status"].get("conditions") or ()
    others = [each for each in listed if each["type"] not in (PENDING, IN_PROGRESS)]
    return {"conditions": [*others, added] if added else others}


def _statuses(pod: JsonObject) -> Iterable[JsonObject]:
    for field, _ in FIELDS:
        yield from pod["status"].get(field) or ()


def _summary(pod: JsonObject, reason: str, what: str, error: str = "") -> Notice:
    """A kubelet tells a resize with all that the containers ask for."""
    summary: dict[str, Any] = {}
    for field in ("initContainers", "containers"):
        if listed := pod["spec"].get(field):
            summary[field] = [
                {"name": each["name"], "resources": _sorted(each.get("resources") or {})}
                for each in listed
            ]
    summary["generation"] = int(pod["metadata"].get("generation", 0))
    if error:
        summary["error"] = error
    message = f"Pod resize {what}: {encode(summary).decode()}"
    return say.of_pod(pod, reason, message, WARNING if error else NORMAL)


def _sorted(resources: JsonObject) -> JsonObject:
    return {
        kind: dict(sorted(resources[kind].items()))
        for kind in ("limits", "requests")
        if resources.get(kind)
    }
