"""GangScheduling: pods of a gang get nodes together or not at all.

A gang is a PodGroup with a minimum. Its pods stay out of the queue until there are that many of
them, and wait at Permit until that many have a node. Behind the gate of the same name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kubescene.api.kinds import POD_GROUP
from kubescene.api.records.changes import Change
from kubescene.clock import MINUTE
from kubescene.errors import ConfigurationError
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    Handle,
    Hint,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
)
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.state.pod_kinds import PodSignature, group_of
from kubescene.scheduler.state.pods import PodInfo

LONGEST_WAIT = 5 * MINUTE
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_YET = "waiting for minCount pods from a gang to be scheduled"


class GangScheduling(PreEnqueuePlugin, PermitPlugin, EnqueueExtensions):
    name = "GangScheduling"
    concerns_by_kind = True

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._objects = handle.lister(POD_GROUP)
        self._groups = handle.pod_groups

    def concerns(self, signature: PodSignature) -> bool:
        return bool(signature.group)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.group:
            return SUCCESS
        group = self._objects.get(pod.group, pod.namespace)
        if group is None:
            return Status.unresolvable(
                f'waiting for pods\'s pod group "{pod.group}" to appear in scheduling queue'
            )
        if len(self._groups.get(pod.namespace, pod.group)) < minimum(group):
            return Status.unresolvable(TOO_FEW)
        return SUCCESS

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        del state, node
        if not pod.group:
            return SUCCESS, 0
        group = self._objects.get(pod.group, pod.namespace)
        if group is None:
            return Status.error(
                f"failed to get podGroup {pod.namespace}/{pod.group}: "
                f'podgroup.scheduling.k8s.io "{pod.group}" not found'
            ), 0
        if not is_gang(group):
            return SUCCESS, 0
        members = self._groups.get(pod.namespace, pod.group)
        if members.scheduled < minimum(group):
            self._handle.activate(members.unscheduled())
            return Status(Code.WAIT, (NOT_YET,)), LONGEST_WAIT
        for uid in members.assumed:
            if (waiting := self._handle.waiting_pods.get(uid)) is not None:
                waiting.allow(self.name)
        return SUCCESS, 0

    def events_to_register(self) -> Sequence[EventRegistration]:
        pod_added = ClusterEvent(EventResource.POD, Action.ADD)
        group_added = ClusterEvent(POD_GROUP, Action.ADD)
        return [
            EventRegistration(pod_added, _after_pod_added, by_signature=True),
            EventRegistration(group_added, _after_group_added, by_signature=True),
        ]


def is_gang(group: Mapping[str, Any]) -> bool:
    return _policy(group).get("gang") is not None


def minimum(group: Mapping[str, Any]) -> int:
    """How many pods a gang needs; other groups need none."""
    count: int = (_policy(group).get("gang") or {}).get("minCount") or 0
    return count


def _policy(group: Mapping[str, Any]) -> Mapping[str, Any]:
    policy: Mapping[str, Any] = group["spec"].get("schedulingPolicy") or {}
    return policy


def _after_pod_added(pod: PodInfo, change: Change) -> Hint:
    same_namespace = change.record.namespace == pod.namespace
    mates = same_namespace and group_of(change.object.get("spec") or {}) == pod.group
    return Hint.QUEUE if pod.group and mates else Hint.SKIP


def _after_group_added(pod: PodInfo, change: Change) -> Hint:
    return Hint.QUEUE if change.record.key == (pod.namespace, pod.group) else Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments
    if not handle.feature_gates.gang_scheduling:
        raise ConfigurationError(
            "plugin GangScheduling needs the feature gates GenericWorkload and GangScheduling"
        )
    return GangScheduling(handle)
