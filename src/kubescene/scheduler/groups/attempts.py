"""Attempts at whole pod groups: all waiting pods of a group in one cycle (`trials`).

Either its pods are put back, or all of them are placed and then bound one after the other.
"""

from collections.abc import Mapping
from contextlib import suppress

from kubescene.api.kinds import POD_GROUP
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Clock, format_time
from kubescene.errors import PluginError
from kubescene.scheduler.attempts import Attempts
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.waiting_bindings import WaitingBindings
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.framework.informers import Informers
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.groups.trials import (
    GroupMember,
    GroupTrial,
    GroupVerdict,
    TrialOutcome,
    final_decision,
)
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.queue.waiting_places import Place, QueuedPod
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.telling.attempt_reports import AttemptReports
from kubescene.scheduler.telling.statuses import StatusWriter
from kubescene.types import JsonObject, ReadOnlyObject

CONDITION = "PodGroupScheduled"
REASONS = {
    TrialOutcome.SCHEDULED: "Scheduled",
    TrialOutcome.UNSCHEDULABLE: "Unschedulable",
    TrialOutcome.PREEMPTING: "Unschedulable",
    TrialOutcome.FAILED: "SchedulerError",
}
_COMPARED = ("status", "reason", "message", "observedGeneration")


class GroupAttempts:
    """Attempts at the groups of one scheduler; each pod ends as one that is attempted alone."""

    def __init__(
        self,
        attempts: Attempts,
        cycles: Mapping[str, Cycle],
        queue: SchedulingQueue,
        pod_groups: PodGroups,
        *,
        waiting_pods: WaitingRoom,
        waiting_bindings: WaitingBindings,
        informers: Informers,
        clock: Clock,
        statuses: StatusWriter,
        reports: AttemptReports,
        plugin_errors: PluginErrors,
    ) -> None:
        self._attempts = attempts
        self._cycles = cycles
        self._queue = queue
        self._pod_groups = pod_groups
        self._waiting_pods = waiting_pods
        self._waiting_bindings = waiting_bindings
        self._informers = informers
        self._clock = clock
        self._statuses = statuses
        self._reports = reports
        self._plugin_errors = plugin_errors

    def attempt(self, entry: QueuedPod) -> bool:
        """Attempt all waiting pods of a group; the one that was popped brings the others along."""
        entries = [each for each in self._gathered(entry) if not self._attempts.is_skipped(each)]
        if not entries:
            return False
        name = entries[0].pod.scheduler_name
        for each in entries:
            if each.pod.scheduler_name != name:
                return self._refuse_group(entries, name, each.pod.scheduler_name)
        trial = GroupTrial(
            entries,
            self._cycles[name],
            self._pod_groups,
            self._attempts.make_binding,
            self._plugin_errors.bear,
            explain=self._reports.wanted,
            number=self._queue.cycle,
        )
        return self.go_on(trial)

    def _gathered(self, entry: QueuedPod) -> list[QueuedPod]:
        """The more important first, then in the order in which they first became ready."""
        mates = self._pod_groups.get(entry.pod.namespace, entry.pod.group).unscheduled()
        taken = [self._queue.take(mate.uid) for mate in mates if mate.uid != entry.pod.uid]
        return sorted([entry, *(each for each in taken if each)], key=_order_in_group)

    def _refuse_group(self, entries: list[QueuedPod], name: str, other: str) -> bool:
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, got: "
            f'"{other}" and "{name}"'
        )
        wrote = [self._attempts.failed(each, Decision(CycleState()).fail(text)) for each in entries]
        return any(wrote)

    def go_on(self, trial: GroupTrial) -> bool:
        """Try the pods of a group, as far as extenders have answered."""
        try:
            done = trial.run()
        except Exception:
            with suppress(PluginError):
                trial.revert()
            for member in trial.members:
                self._attempts.recover(member.entry)
            raise
        if not done:
            self._attempts.undecided = (trial.entry, trial)
            return False
        return self.submit(trial)

    def submit(self, trial: GroupTrial) -> bool:
        """The group is decided about: put its pods back, or place them all and then bind them."""
        bindings: list[Binding] = []
        try:
            wrote = [self._place(member, trial.verdict, bindings) for member in trial.members]
            for binding in bindings:
                self._waiting_pods.withdraw(binding.pod.uid)
                wrote.append(self._attempts.bind(binding))
        except Exception:
            self._abandon_group(trial, bindings)
            raise
        return self._tell_group(trial) or any(wrote)

    def _place(self, member: GroupMember, verdict: GroupVerdict, bindings: list[Binding]) -> bool:
        """Put one pod back, or prepare its binding."""
        entry, decision = member.entry, final_decision(member, verdict)
        if not decision.node or self._queue.get(entry.pod.uid) is not entry:
            return self._attempts.failed(entry, decision)
        binding = self._attempts.assume(entry, decision)
        bindings.append(binding)
        status = self._prepared(binding)
        return False if status.ok else self._attempts.undo(bindings.pop(), status)

    def _prepared(self, binding: Binding) -> Status:
        try:
            return binding.prepare()
        except PluginError as error:
            self._attempts.blamed(binding.decision, error)
            return Status.error(str(error))

    def _abandon_group(self, trial: GroupTrial, bindings: list[Binding]) -> None:
        """An exception came between: who is neither bound nor put back nor waits is tried again."""
        for binding in bindings:
            if self._is_lost(binding.entry):
                self._attempts.recover(binding.entry)
                with suppress(PluginError):
                    binding.undo()
        for member in trial.members:
            if self._is_lost(member.entry):
                self._attempts.recover(member.entry)

    def _is_lost(self, entry: QueuedPod) -> bool:
        uid = entry.pod.uid
        held = self._queue.get(uid) is entry and entry.place is Place.IN_FLIGHT
        return held and uid not in self._waiting_bindings

    def _tell_group(self, trial: GroupTrial) -> bool:
        """Write the condition of the group, if the verdict is news."""
        pod = trial.entry.pod
        group = self._informers.lister(POD_GROUP).get(pod.group, pod.namespace)
        if group is None:
            return False
        condition = group_condition(group, trial.verdict, format_time(self._clock.now()))
        if condition is None:
            return False
        ref = ObjectRef(POD_GROUP, pod.group, pod.namespace)
        return self._statuses.patch(ref, {"conditions": [condition]}) is not None


def _order_in_group(entry: QueuedPod) -> tuple[int, int]:
    return -entry.pod.priority, entry.entered


def group_condition(group: ReadOnlyObject, verdict: GroupVerdict, now: str) -> JsonObject | None:
    """The condition to write; None if it would change nothing.

    A group that was scheduled once stays so, whatever becomes of pods that join later.
    """
    status: ReadOnlyObject = group.get("status") or {}
    held: JsonObject = next(
        (each for each in status.get("conditions") or () if each.get("type") == CONDITION), {}
    )
    scheduled = verdict.outcome is TrialOutcome.SCHEDULED
    if held.get("status") == "True" and not scheduled:
        return None
    condition: JsonObject = {
        "type": CONDITION,
        "status": "True" if scheduled else "False",
        "reason": REASONS[verdict.outcome],
        "message": verdict.message,
    }
    if generation := group["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if all(held.get(field) == condition.get(field) for field in _COMPARED):
        return None
    changed = held.get("status") != condition["status"]
    moment = now if changed else held.get("lastTransitionTime", now)
    return condition | {"lastTransitionTime": moment}
