"""Attempts at whole pod groups: all waiting pods of a group in one cycle (`trials`).

Either its pods are put back, or all of them are placed and then bound one after the other.
"""

from contextlib import suppress

from kubescene.api.kinds import POD_GROUP
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import format_time
from kubescene.errors import PluginError
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.placing import Placing
from kubescene.scheduler.cycle.deciding import Deciding
from kubescene.scheduler.cycle.decisions import Decided, Decision
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import Informers
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.groups.trials import (
    GroupTrial,
    GroupVerdict,
    Member,
    Outcome,
    final_decision,
)
from kubescene.scheduler.queue.waiting_places import Place, QueuedPod
from kubescene.types import JsonObject, ReadOnlyObject

CONDITION = "PodGroupScheduled"
REASONS = {
    Outcome.SCHEDULED: "Scheduled",
    Outcome.UNSCHEDULABLE: "Unschedulable",
    Outcome.PREEMPTING: "Unschedulable",
    Outcome.FAILED: "SchedulerError",
}
_COMPARED = ("status", "reason", "message", "observedGeneration")


class GroupAttempts(Placing):
    """The part of a scheduler that attempts groups. What is said here is made by the others."""

    _deciding: tuple[QueuedPod, Deciding | Decided | GroupTrial] | None
    _informers: Informers

    def _attempt_group(self, entry: QueuedPod) -> bool:
        """Attempt all waiting pods of a group; the one that was popped brings the others along."""
        entries = [each for each in self._gathered(entry) if not self._is_skipped(each)]
        if not entries:
            return False
        name = entries[0].pod.scheduler_name
        for each in entries:
            if each.pod.scheduler_name != name:
                return self._refuse_group(entries, name, each.pod.scheduler_name)
        trial = GroupTrial(
            entries,
            self._cycles[name],
            self.pod_groups,
            self._make_binding,
            self._bear,
            explain=self._wanted(),
            number=self.queue.cycle,
        )
        return self._try_group(trial)

    def _gathered(self, entry: QueuedPod) -> list[QueuedPod]:
        """The more important first, then in the order in which they first became ready."""
        mates = self.pod_groups.get(entry.pod.namespace, entry.pod.group).unscheduled()
        taken = [self.queue.take(mate.uid) for mate in mates if mate.uid != entry.pod.uid]
        return sorted([entry, *(each for each in taken if each)], key=_order_in_group)

    def _refuse_group(self, entries: list[QueuedPod], name: str, other: str) -> bool:
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, got: "
            f'"{other}" and "{name}"'
        )
        wrote = [self._failed(each, Decision(CycleState()).fail(text)) for each in entries]
        return any(wrote)

    def _try_group(self, trial: GroupTrial) -> bool:
        try:
            done = trial.run()
        except Exception:
            with suppress(PluginError):
                trial.revert()
            for member in trial.members:
                self._recover(member.entry)
            raise
        if not done:
            self._deciding = (trial.entry, trial)
            return False
        return self._submit_group(trial)

    def _submit_group(self, trial: GroupTrial) -> bool:
        """The group is decided about: put its pods back, or place them all and then bind them."""
        bindings: list[Binding] = []
        try:
            wrote = [self._submit(member, trial.verdict, bindings) for member in trial.members]
            for binding in bindings:
                self.waiting_pods.withdraw(binding.pod.uid)
                wrote.append(self._bind(binding))
        except Exception:
            self._abandon_group(trial, bindings)
            raise
        return self._tell_group(trial) or any(wrote)

    def _submit(self, member: Member, verdict: GroupVerdict, bindings: list[Binding]) -> bool:
        """Put one pod back, or prepare its binding."""
        entry, decision = member.entry, final_decision(member, verdict)
        if not decision.node or self.queue.get(entry.pod.uid) is not entry:
            return self._failed(entry, decision)
        binding = self._assume(entry, decision)
        bindings.append(binding)
        status = self._prepared(binding)
        return False if status.ok else self._undo(bindings.pop(), status)

    def _prepared(self, binding: Binding) -> Status:
        try:
            return binding.prepare()
        except PluginError as error:
            self._blamed(binding.decision, error)
            return Status.error(str(error))

    def _abandon_group(self, trial: GroupTrial, bindings: list[Binding]) -> None:
        """An exception came between: who is neither bound nor put back nor waits is tried again."""
        for binding in bindings:
            if self._is_lost(binding.entry):
                self._recover(binding.entry)
                with suppress(PluginError):
                    binding.undo()
        for member in trial.members:
            if self._is_lost(member.entry):
                self._recover(member.entry)

    def _is_lost(self, entry: QueuedPod) -> bool:
        uid = entry.pod.uid
        held = self.queue.get(uid) is entry and entry.place is Place.IN_FLIGHT
        return held and uid not in self._bindings

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
        return self._patch(ref, {"conditions": [condition]}) is not None


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
    scheduled = verdict.outcome is Outcome.SCHEDULED
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
