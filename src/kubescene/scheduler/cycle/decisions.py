"""What an attempt at a pod came to."""

from collections.abc import Callable
from dataclasses import dataclass

from kubescene.errors import PluginError
from kubescene.instruments.attempts import Explanation, ExtenderRecord, PreemptionRecord, WaitRecord
from kubescene.scheduler.cycle.preparation import PreFilterOutcome
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.status import Code, Status
from kubescene.scheduler.state.pods import PodInfo

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"  # M-10


@dataclass(slots=True)
class Decision:
    """What a cycle came to.

    Either ``node`` is set, or ``message`` and ``reason`` say why not and ``plugins`` who refused
    (they decide which events bring the pod back; with none of them it is an error and comes back
    after a while). ``nominated`` is the node to nominate, empty to end a nomination, None to
    leave it. ``victims`` are pods that have to leave to make room, ``preemption`` says why they.
    ``effect`` is a write that PostFilter asks for, ``traceback`` that of a plugin that raised,
    ``extenders`` what extenders said if somebody wants to know, ``waits`` what the pod had to wait
    for afterwards.
    """

    state: CycleState
    node: str = ""
    evaluated: int = 0
    feasible: int = 0
    message: str = ""
    reason: str = ""
    plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    nominated: str | None = None
    explanation: Explanation | None = None
    victims: tuple[PodInfo, ...] = ()
    preemption: PreemptionRecord | None = None
    effect: Callable[[], None] | None = None
    traceback: str = ""
    extenders: list[ExtenderRecord] | None = None
    waits: list[WaitRecord] | None = None
    pre_filter: PreFilterOutcome | None = None
    post_filtered: str = ""
    """The PostFilter plugin that had the last word, if one was asked."""

    def binds_alone(self, pod: PodInfo) -> bool:
        """Whether it is known that there is a node and no plugin has anything to do beside Bind."""
        relevant = self.state.relevant
        try:
            known = relevant is not None and relevant.binds_alone(self.state, pod)
        except PluginError:
            return False
        return known and bool(self.node)

    def repeated(self) -> "Decision":
        """The same failure for another pod."""
        return Decision(
            self.state,
            evaluated=self.evaluated,
            message=self.message,
            reason=self.reason,
            plugins=self.plugins,
            pending_plugins=self.pending_plugins,
            nominated=self.nominated,
            explanation=self.explanation,
            preemption=self.preemption,
            pre_filter=self.pre_filter,
            post_filtered=self.post_filtered,
        )

    def fail(
        self, message: str, reason: str = SCHEDULER_ERROR, *, nominated: str | None = ""
    ) -> "Decision":
        """Make this a failed attempt."""
        self.node = ""
        self.message = message
        self.reason = reason
        self.nominated = nominated
        return self

    def refuse(self, status: Status) -> None:
        """The chosen node did not work out. [M-8]"""
        if status.code.is_rejection:
            self.plugins = (status.plugin,) if status.code is not Code.PENDING else ()
            self.pending_plugins = (status.plugin,) if status.code is Code.PENDING else ()
            reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
            self.fail(f"0/1 nodes are available: {reasons}.", UNSCHEDULABLE)
        else:
            self.fail(status.message)


class Decided:
    """A decision that was made, or the error that kept it from being made: for the next turn."""

    is_waiting = False

    def __init__(self, decision: Decision, error: PluginError | None = None) -> None:
        self.decision = decision
        self._error = error

    def run(self) -> bool:
        """As that of a cycle."""
        if self._error is not None:
            raise self._error
        return True
