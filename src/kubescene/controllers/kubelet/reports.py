"""What is reported of nodes and pods, made once for those alike.

Statuses are given as options whose blueprint is the patch, so that a thousand pods share one.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson
from msgspec import Struct

from kubescene.api.options import WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.keys import alike_spec
from kubescene.api.records.templates import Blueprint
from kubescene.controllers.kubelet.behaviour import PodBehaviour
from kubescene.controllers.kubelet.container_statuses import (
    container_status,
    generation_of,
    terminated,
    with_resources,
)
from kubescene.controllers.kubelet.lives import DueStatus
from kubescene.types import JsonObject

READY = "Ready"
NOT_READY = (READY, "ContainersReady")
RUNNING = "Running"
STATUSES_KEPT = 4096
"""Pods of a thousand templates may start in turns."""
StatusParts: TypeAlias = tuple[bytes, bytes, bytes]
"""See `parts_of_status`."""


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

    Of the spec it is what pods share that differ in their claims. None if it is not encoded in such
    parts.
    """
    key = record.pod_key
    return None if key is None else (alike_spec(key[0]), key[1], key[2])


class RunningStatus(Struct, frozen=True):
    """A status, and all that it was made from."""

    containers: list[JsonObject]
    made_from: tuple[object, ...]
    options: WriteOptions

    def fits(self, containers: object, made_from: tuple[object, ...]) -> bool:
        """Whether it is also that of another pod, which shares its containers."""
        return self.containers is containers and self.made_from == made_from


class KnownCourse(Struct, frozen=True):
    """What has become of a pod; its behaviour is held so that no other one has its id."""

    behaviour: PodBehaviour
    course: DueStatus
    options: WriteOptions


class KnownCourses:
    """What becomes of pods with a life of their own, at the newest instant, if it is simple.

    Pods with one behaviour, the same spec but for its node, and equal statuses share this, too.
    """

    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._known: dict[tuple[object, ...], KnownCourse] = {}
        self._at = -1

    def of(self, pod: JsonObject, behaviour: PodBehaviour, now: int) -> KnownCourse | None:
        """What was worked out for another pod like this one; None if nobody knows."""
        return self._known.get(course_key(pod, behaviour)) if now == self._at else None

    def keep(
        self, pod: JsonObject, behaviour: PodBehaviour, now: int, course: DueStatus
    ) -> KnownCourse:
        """Remember it for those like this one."""
        options = WriteOptions(blueprint=Blueprint({"status": course.status}))
        found = KnownCourse(behaviour, course, options)
        if now != self._at or len(self._known) >= STATUSES_KEPT:
            self._known.clear()
            self._at = now
        if self._keeps:
            self._known[course_key(pod, behaviour)] = found
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> "KnownCourses":
        """Copies of what was known have other ids: a fork begins anew."""
        twin = memo[id(self)] = KnownCourses(keeps=self._keeps)
        return twin


def course_key(pod: JsonObject, behaviour: PodBehaviour) -> tuple[object, ...]:
    """The same for pods of which the same becomes, on whatever node."""
    read = ({**pod["spec"], "nodeName": ""}, pod["status"])
    return id(behaviour), generation_of(pod), orjson.dumps(read)


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
