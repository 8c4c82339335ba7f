"""Which events may help a pod that PodTopologySpread rejected."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kubescene.api.records.changes import Change, ChangeType
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    EventRegistration,
    EventResource,
    Hint,
)
from kubescene.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

Constraints: TypeAlias = Sequence[SpreadConstraint]


class SpreadHints:
    """Hints that know the hard constraints of a pod; None if they cannot be read."""

    def __init__(self, constraints_of: Callable[[PodInfo], Constraints | None]) -> None:
        self._constraints_of = constraints_of

    def registrations(self) -> Sequence[EventRegistration]:
        pod, node = EventResource.POD, EventResource.NODE
        updates = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        node_updates = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        events = (
            (ClusterEvent(pod, Action.ADD), self.after_pod_addition),
            (ClusterEvent(pod, updates), self.after_pod_update),
            (ClusterEvent(pod, Action.DELETE), self.after_pod_deletion),
            (ClusterEvent(node, Action.ADD | Action.DELETE | node_updates), self.after_node_change),
        )
        return [EventRegistration(event, hint, by_signature=True) for event, hint in events]

    def after_pod_addition(self, pod: PodInfo, change: Change) -> Hint:
        return self._if_counted(pod, change.object)

    def after_pod_deletion(self, pod: PodInfo, change: Change) -> Hint:
        return self._if_counted(pod, change.previous_object or change.object)

    def after_pod_update(self, pod: PodInfo, change: Change) -> Hint:
        """The pod itself, or one on a node, is matched now or is not any more."""
        before, after = change.previous_object, change.object
        if before is None or not (_is_involved(before, pod) and _is_involved(after, pod)):
            return Hint.SKIP
        constraints = self._constraints_of(pod)
        if constraints is None:
            return Hint.QUEUE
        own = change.record.uid == pod.uid
        tolerates_others = own and _tolerations(before) != _tolerations(after)
        if tolerates_others and any(each.honors_taints for each in constraints):
            return Hint.QUEUE
        old, new = _labels(before), _labels(after)
        return _queue_if(any(each.matches(old) != each.matches(new) for each in constraints))

    def after_node_change(self, pod: PodInfo, change: Change) -> Hint:
        """A node with all topology keys came, left, or changed what counts."""
        constraints = self._constraints_of(pod)
        if constraints is None:
            return Hint.QUEUE
        after, before = change.record.labels, change.previous
        counts = _has_all(after, constraints)
        if change.type is ChangeType.DELETED or before is None:
            return _queue_if(counts)
        if _has_all(before.labels, constraints) != counts:
            return Hint.QUEUE
        if not counts:
            return Hint.SKIP
        moved = any(
            before.labels.get(each.topology_key) != after.get(each.topology_key)
            for each in constraints
        )
        return _queue_if(moved or _taints(change.previous_object) != _taints(change.object))

    def _if_counted(self, pod: PodInfo, other: ReadOnlyObject) -> Hint:
        """Whether a pod that came or left is one of those that are spread."""
        if not _is_involved(other, pod):
            return Hint.SKIP
        constraints = self._constraints_of(pod)
        if constraints is None:
            return Hint.QUEUE
        return _queue_if(any(each.matches(_labels(other)) for each in constraints))


def _is_involved(other: ReadOnlyObject, pod: PodInfo) -> bool:
    """The pod itself, or one in its namespace with a place on a node or the promise of one."""
    metadata = other["metadata"]
    if metadata.get("uid") == pod.uid:
        return True
    nominated = (other.get("status") or {}).get("nominatedNodeName")
    if not (other["spec"].get("nodeName") or nominated):
        return False
    return bool(metadata.get("namespace") == pod.namespace)


def _has_all(labels: Mapping[str, str], constraints: Constraints) -> bool:
    return all(each.topology_key in labels for each in constraints)


def _labels(pod: ReadOnlyObject) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}


def _tolerations(pod: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    return pod["spec"].get("tolerations") or ()


def _taints(node: ReadOnlyObject | None) -> Sequence[ReadOnlyObject]:
    return ((node or {}).get("spec") or {}).get("taints") or ()


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP
