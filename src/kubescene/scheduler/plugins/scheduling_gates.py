"""SchedulingGates: a pod waits outside the queue until its last scheduling gate is removed."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubescene.api.records.changes import Change
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    Handle,
    Hint,
    Plugin,
    PreEnqueuePlugin,
)
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.state.pods import PodInfo


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.gates:
            return SUCCESS
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")

    def events_to_register(self) -> Sequence[EventRegistration]:
        ungated = ClusterEvent(EventResource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return [EventRegistration(ungated, _after_ungating, by_signature=True)]


def _after_ungating(pod: PodInfo, change: Change) -> Hint:
    return Hint.QUEUE if change.record.uid == pod.uid else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return SchedulingGates()
