"""What a change means for pods that wait: cluster events, and who is interested in them.

A change of a node or pod is broken down into events as kube-scheduler does. Plugins register the
events that may help the pods they rejected; `Hints` finds, for an event, the plugins that want to
hear of it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from kubescene.api.records import same_metadata
from kubescene.api.records.changes import Change
from kubescene.api.records.keys import mentions_any, pod_keys, without_nomination
from kubescene.api.resource_requests import pod_requests, resized
from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    EventRegistration,
    EventResource,
    QueueingHint,
)
from kubescene.types import JsonObject, ReadOnlyObject

POD_ADDED = ClusterEvent(EventResource.POD, Action.ADD)
POD_DELETED = ClusterEvent(EventResource.POD, Action.DELETE)
POD_UPDATED = ClusterEvent(EventResource.POD, Action.UPDATE)
NODE_ADDED = ClusterEvent(EventResource.NODE, Action.ADD)
NODE_DELETED = ClusterEvent(EventResource.NODE, Action.DELETE)

_NODE_TAINT = Action.UPDATE_NODE_TAINT
_TELLING = (b'"resourceClaimStatuses"', b'"resources"', b'"allocatedResources"')
"""Members of a status that may make more of an update."""
_SERVER_FIELDS = ("resourceVersion", "generation", "managedFields", "finalizers")


def node_events(before: ReadOnlyObject, after: ReadOnlyObject) -> list[ClusterEvent]:
    """The events of a node update; heartbeats and images make none. [Q-15]"""
    actions: list[Action] = []
    old, new = before.get("spec") or {}, after.get("spec") or {}
    if old.get("unschedulable") and not new.get("unschedulable"):
        actions.append(_NODE_TAINT)
    if _status(before, "allocatable") != _status(after, "allocatable"):
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if _metadata(before, "labels") != _metadata(after, "labels"):
        actions.append(Action.UPDATE_NODE_LABEL)
    if (old.get("taints") or []) != (new.get("taints") or []):
        actions.append(_NODE_TAINT)
    if _conditions(before) != _conditions(after):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if _metadata(before, "annotations") != _metadata(after, "annotations"):
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if _status(before, "declaredFeatures") != _status(after, "declaredFeatures"):
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return [ClusterEvent(EventResource.NODE, action) for action in actions]


def is_plain_update(change: Change) -> bool:
    """Whether a pod update is seen to be a general one without decoding the pod.

    It has the same spec, node and labels as before, and its status tells of no resources.
    """
    if change.previous is None or change.previous.labels != change.record.labels:
        return False
    before, after = pod_keys(change.previous), pod_keys(change.record)
    if before is None or after is None or before[:2] != after[:2]:
        return False
    if mentions_any(before[2], _TELLING):
        return False
    return after[2] is before[2] or not mentions_any(after[2], _TELLING)


def is_plain_note(change: Change) -> bool:
    """Whether such an update is seen to change nothing but the status, as `is_note` finds out."""
    return same_metadata(change.record, change.previous) and is_plain_update(change)


def nomination_before(change: Change) -> str:
    """The node that a pod was nominated to before a change of it; empty if there was none."""
    keys = None if change.previous is None else pod_keys(change.previous)
    split = None if keys is None else without_nomination(keys[2])
    if split is not None:
        return split[1]
    return ((change.previous_object or {}).get("status") or {}).get("nominatedNodeName") or ""


def pod_events(before: ReadOnlyObject, after: ReadOnlyObject) -> list[ClusterEvent]:
    """The events of a pod update, a general one if it changed nothing in particular."""
    actions: list[Action] = []
    old, new = before.get("spec") or {}, after.get("spec") or {}
    if _metadata(before, "labels") != _metadata(after, "labels"):
        actions.append(Action.UPDATE_POD_LABEL)
    if _scaled_down(before, after):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.get("schedulingGates") and not new.get("schedulingGates"):
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.get("tolerations") or ()) != len(new.get("tolerations") or ()):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if _status(before, "resourceClaimStatuses") != _status(after, "resourceClaimStatuses"):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent(EventResource.POD, action) for action in actions] or [POD_UPDATED]


def is_note(before: ReadOnlyObject, after: ReadOnlyObject) -> bool:
    """Whether only status or bookkeeping changed, as by a scheduler's note on a failed attempt."""
    return pod_events(before, after) == [POD_UPDATED] and _stripped(before) == _stripped(after)


def matches(registered: ClusterEvent, incoming: ClusterEvent) -> bool:
    """Whether a plugin that registered one event is to be asked about another. [Q-12]"""
    if registered.resource not in (incoming.resource, EventResource.ANY):
        return False
    return bool(registered.action & incoming.action) and incoming.action <= registered.action


class Interest(NamedTuple):
    """A plugin and its hint; without a hint it always says Queue."""

    plugin: str
    hint: QueueingHint | None
    by_signature: bool
    pods: Callable[[Change], Collection[str] | None] | None = None


class Hints:
    """The registrations of one profile."""

    def __init__(self, events: Mapping[str, Sequence[EventRegistration]]) -> None:
        self._registrations = [
            (registration.event, _interest(plugin, registration))
            for plugin, registrations in events.items()
            for registration in _completed(registrations)
        ]
        self._interested: dict[ClusterEvent, tuple[Interest, ...]] = {}

    def interested(self, event: ClusterEvent) -> tuple[Interest, ...]:
        """Whom to ask about an event, in order of the profile."""
        found = self._interested.get(event)
        if found is None:
            found = self._interested[event] = tuple(
                interest
                for registered, interest in self._registrations
                if matches(registered, event)
            )
        return found

    def resources(self) -> list[EventResource | GroupVersionKind]:
        """The kinds that somebody waits for, without the wildcard."""
        named = dict.fromkeys(event.resource for event, _ in self._registrations)
        return [each for each in named if each is not EventResource.ANY]


def _interest(plugin: str, registration: EventRegistration) -> Interest:
    return Interest(plugin, registration.hint, registration.by_signature, registration.pods)


def _completed(registrations: Sequence[EventRegistration]) -> list[EventRegistration]:
    """A plugin that waits for new nodes is also told when taints go away. [Q-16]

    Before its taints are removed, other plugins may have hidden a new node from it.
    """
    nodes = [each.event.action for each in registrations if each.event.resource == "Node"]
    covered = any(action & _NODE_TAINT for action in nodes)
    if covered or not any(action & Action.ADD for action in nodes):
        return list(registrations)
    return [*registrations, EventRegistration(ClusterEvent(EventResource.NODE, _NODE_TAINT))]


def _scaled_down(before: ReadOnlyObject, after: ReadOnlyObject) -> bool:
    reported = resized(before.get("status") or {}) or resized(after.get("status") or {})
    if not reported and before.get("spec") == after.get("spec"):
        return False
    old, new = pod_requests(before), pod_requests(after)
    return any(amount > new.get(name, 0) for name, amount in old.items())


def _stripped(obj: ReadOnlyObject) -> JsonObject:
    """What of a pod may matter to its placement; resource claims have an event of their own."""
    metadata = {name: each for name, each in obj["metadata"].items() if name not in _SERVER_FIELDS}
    rest = {name: each for name, each in obj.items() if name not in ("status", "metadata")}
    return {**rest, "metadata": metadata}


def _status(obj: ReadOnlyObject, field: str) -> object:
    return (obj.get("status") or {}).get(field) or None


def _metadata(obj: ReadOnlyObject, field: str) -> object:
    return obj["metadata"].get(field) or None


def _conditions(obj: ReadOnlyObject) -> dict[str, str]:
    listed = (obj.get("status") or {}).get("conditions") or ()
    return {each.get("type", ""): each.get("status", "") for each in listed}
