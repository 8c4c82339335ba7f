"""Trying a whole pod group in one cycle: all its waiting pods, one after the other.

Each pod is decided about as usual and, if there is a node for it, assumed on it, reserved and
permitted, so that the next one finds the node as it would be. A pod that would have to preempt is
assumed on the node that it would get. In the end everything is taken back: a trial leaves nothing
behind but its decisions. `GroupTrial.verdict` says what becomes of the group, `final_decision`
what that means for each pod.

Like a single cycle, a trial that has to wait for an extender stands still until it is called again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from kubescene.errors import PluginError
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.deciding import Deciding
from kubescene.scheduler.cycle.decisions import SCHEDULER_ERROR, UNSCHEDULABLE, Decision
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.state.pods import PodInfo

GROUP_UNSCHEDULABLE = "pod group is unschedulable"
WAITING_FOR_ROOM = "pod group is waiting for preemption to complete"

MakeBinding: TypeAlias = Callable[[QueuedPod, Decision, PodInfo], Binding]
Bear: TypeAlias = Callable[[PluginError], str]
"""Raises the error of a plugin if it has to end the run; otherwise tells where it happened."""


class TrialOutcome(Enum):
    """What becomes of a group."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    PREEMPTING = "preempting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    outcome: TrialOutcome
    message: str = ""


@dataclass(slots=True)
class GroupMember:
    """One pod of the group. ``permit`` is what Permit said if the pod came that far."""

    entry: QueuedPod
    decision: Decision | None = None
    permit: Status = SUCCESS
    preempts: bool = False
    next_start: int = 0
    """Where the search of the next one starts."""


class GroupTrial:
    """One cycle of a group, on its way to a verdict."""

    def __init__(
        self,
        entries: Sequence[QueuedPod],
        cycle: Cycle,
        groups: PodGroups,
        make_binding: MakeBinding,
        bear: Bear,
        *,
        explain: Explain | None = None,
        number: int | None = None,
    ) -> None:
        self.members = [GroupMember(entry) for entry in entries]
        self.verdict = GroupVerdict(TrialOutcome.UNSCHEDULABLE, GROUP_UNSCHEDULABLE)
        self._cycle = cycle
        self._groups = groups
        self._make_binding = make_binding
        self._bear = bear
        self._explain = explain
        self._number = number
        self._position = 0
        self._preempts = False
        self._deciding: Deciding | None = None
        self._assumed: list[Binding] = []

    @property
    def entry(self) -> QueuedPod:
        """The first pod, which stands for all."""
        return self.members[0].entry

    @property
    def is_waiting(self) -> bool:
        return self._deciding is not None and self._deciding.is_waiting

    def run(self) -> bool:
        """Go on; False as long as an extender has to answer first."""
        while self._position < len(self.members):
            member = self.members[self._position]
            if self._deciding is None:
                pod = member.entry.pod
                self._deciding = self._cycle.begin(pod, self._explain, self._number)
            if not self._decide(self._deciding):
                return False
            member.decision, self._deciding = self._deciding.decision, None
            member.next_start = self._cycle.start.index
            self._position += 1
            self._take(member, member.decision)
            if self.verdict.outcome is TrialOutcome.FAILED:
                break
        self.revert()
        return True

    def revert(self) -> None:
        """Take back what was assumed, the last one first, whoever raises in between."""
        failed: PluginError | None = None
        while self._assumed:
            try:
                self._forget(self._assumed.pop())
            except PluginError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    # -- one pod ---------------------------------------------------------------------------

    def _decide(self, deciding: Deciding) -> bool:
        try:
            return deciding.run()
        except PluginError as error:
            deciding.decision.traceback = self._bear(error)
            deciding.decision.fail(str(error))
            return True

    def _take(self, member: GroupMember, decision: Decision) -> None:
        node = decision.node or decision.nominated or ""
        if node:
            member.preempts = not decision.node
            self._rehearse(member, decision, node)
        if not (decision.node or member.preempts):
            self._rejected(decision)
            return
        self._preempts |= member.preempts
        if member.permit.code is not Code.WAIT:
            self.verdict = GroupVerdict(TrialOutcome.SCHEDULED)
            if self._preempts:
                text = f"{GROUP_UNSCHEDULABLE}, {WAITING_FOR_ROOM}"
                self.verdict = GroupVerdict(TrialOutcome.PREEMPTING, text)

    def _rehearse(self, member: GroupMember, decision: Decision, node: str) -> None:
        """Assume the pod on its node; if that does not work out, it is refused."""
        pod = member.entry.pod
        assumed = pod.assumed(node)
        binding = self._make_binding(member.entry, decision, assumed)
        self._cycle.nodes.try_pod(assumed, node)
        self._cycle.nominations.remove(pod)
        self._groups.assume(pod.namespace, pod.group, pod.uid)
        self._assumed.append(binding)
        status = self._rehearsed(binding)
        if status.ok or status.code is Code.WAIT:
            member.permit = status
            return
        self._forget(self._assumed.pop())
        member.preempts = False
        decision.refuse(status)

    def _rehearsed(self, binding: Binding) -> Status:
        try:
            return binding.rehearse()
        except PluginError as error:
            binding.decision.traceback = self._bear(error)
            return Status.error(str(error))

    def _forget(self, binding: Binding) -> None:
        pod, waiting = binding.pod, binding.entry.pod
        try:
            binding.undo()
        except PluginError as error:
            binding.decision.traceback += self._bear(error)
        finally:
            self._cycle.nodes.take_back(pod, pod.node)
            self._groups.forget(pod.namespace, pod.group, pod.uid)
            self._cycle.nominations.add(waiting, waiting.nominated_node)

    def _rejected(self, decision: Decision) -> None:
        """A pod that cannot be placed need not stop the others; an error does."""
        if decision.reason == SCHEDULER_ERROR:
            text = f"failed to schedule other pod from a pod group: {decision.message}"
            self.verdict = GroupVerdict(TrialOutcome.FAILED, text)


def final_decision(member: GroupMember, verdict: GroupVerdict) -> Decision:
    """What the verdict on the group makes of the decision about one pod, which stays as it is."""
    decision = member.decision
    if verdict.outcome is TrialOutcome.FAILED:
        return _failed(decision, verdict)
    assert decision is not None
    if verdict.outcome is TrialOutcome.PREEMPTING and decision.node:
        return _alone(decision, verdict.message, decision.node)
    if verdict.outcome is TrialOutcome.UNSCHEDULABLE and (decision.node or member.preempts):
        return _alone(decision, f"{GROUP_UNSCHEDULABLE}, {member.permit.message}", "")
    return decision


def _failed(decision: Decision | None, verdict: GroupVerdict) -> Decision:
    """Whoever caused the error keeps it; all the others fail with the group."""
    if decision is not None and decision.reason == SCHEDULER_ERROR:
        return decision
    return _blamed_on_nobody(decision or Decision(CycleState())).fail(verdict.message)


def _alone(decision: Decision, message: str, nominated: str) -> Decision:
    """No plugin turned this pod away: the others of its group stand in its way."""
    return _blamed_on_nobody(decision).fail(message, UNSCHEDULABLE, nominated=nominated)


def _blamed_on_nobody(decision: Decision) -> Decision:
    return replace(decision, plugins=(), pending_plugins=())
