"""What a cycle asks of those who may know its outcome sooner (`kubescene.scheduler.fast`).

The cycle is the specification: whoever answers must come to the same, to the last word of an
explanation. None is always right: then the cycle takes all its steps.
"""

from collections.abc import Hashable
from typing import NamedTuple, Protocol

from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.scoring import Scored
from kubescene.scheduler.cycle.verdicts import Filtering
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Window


class NextDecision(NamedTuple):
    """What there is to say of a decision that is like the one before."""

    node: str
    evaluated: int
    feasible: int
    explanation: None = None


class FastPath(Protocol):
    """Who may know the outcome of a cycle without it."""

    def decide(
        self, pod: PodInfo, explain: Explain | None, *, binds_at_once: bool = False
    ) -> Decision | None:
        """The node that a cycle would find for a pod; the search goes on as after a cycle.

        Who says ``binds_at_once`` is content with pods with which nobody has anything to do beside
        their binding, before or after it.
        """
        ...

    def decide_next(self, pod: PodInfo, *, counted: bool) -> Decision | NextDecision | None:
        """The same for a pod like the last that was decided about, if only nodes have changed.

        ``counted`` says that owners of pods have counted as well.
        """
        ...

    def filtering(self, state: CycleState, pod: PodInfo) -> Filtering | None:
        """Filter of a whole cycle that knows some verdicts; the PreFilters have run."""
        ...

    def score(
        self,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        window: Window | None,
        *,
        explain: bool,
    ) -> Scored | None:
        """What `ScoreChain.score` finds; ``window`` is said if the rows are one."""
        ...

    def failure(self, pod: PodInfo, stamp: Hashable) -> Decision | None:
        """The failure of a pod like this one, if nothing has changed since (`Cycle.stamp`)."""
        ...

    def failed(self, pod: PodInfo, decision: Decision, stamp: Hashable) -> None:
        """A pod has failed, and nobody is to make room for it."""
        ...


class StepByStep:
    """Nobody knows anything: every decision takes a whole cycle."""

    def decide(
        self, pod: PodInfo, explain: Explain | None, *, binds_at_once: bool = False
    ) -> Decision | None:
        return None

    def decide_next(self, pod: PodInfo, *, counted: bool) -> Decision | NextDecision | None:
        return None

    def filtering(self, state: CycleState, pod: PodInfo) -> Filtering | None:
        return None

    def score(
        self,
        state: CycleState,
        pod: PodInfo,
        rows: Rows,
        window: Window | None,
        *,
        explain: bool,
    ) -> Scored | None:
        return None

    def failure(self, pod: PodInfo, stamp: Hashable) -> Decision | None:
        return None

    def failed(self, pod: PodInfo, decision: Decision, stamp: Hashable) -> None:
        pass
