"""What is kept of workloads and of budgets that protect them, times in nanoseconds since 1970."""

from typing import NamedTuple

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.results.states import Labels

DEPLOYMENT, REPLICA_SET = "Deployment", "ReplicaSet"
STATEFUL_SET, DAEMON_SET = "StatefulSet", "DaemonSet"
JOB, CRON_JOB = "Job", "CronJob"
WORKLOADS = frozenset(
    {
        ("apps", DEPLOYMENT),
        ("apps", REPLICA_SET),
        ("apps", STATEFUL_SET),
        ("apps", DAEMON_SET),
        ("batch", JOB),
        ("batch", CRON_JOB),
        ("", "ReplicationController"),
    }
)
"""Kinds of objects that own pods, by group."""
BUDGET = ("policy", "PodDisruptionBudget")
COMPLETE, GOING_ON, STALLED = "Complete", "Unfinished", "Stalled"
SUPERSEDED = "Superseded"
"""States of a roll-out."""


class WrittenAt(NamedTuple):
    """When something was written."""

    step: ScenarioStep
    time: int


class WorkloadCounts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a workload says of itself from an instant on.

    ``least_available`` is the least that it said within that instant. A Job and a CronJob have no
    updated or available pods; a CronJob does not say how many it wants.
    """

    time: int = 0
    step: int = 0
    desired: int | None = None
    pods: int = 0
    updated: int | None = None
    ready: int = 0
    available: int | None = None
    completions: int = 0
    failures: int = 0
    restarts: int = 0
    least_available: int | None = None

    @property
    def still(self) -> "WorkloadCounts":
        """The same, when its instant is over."""
        return msgspec.structs.replace(self, least_available=self.available)

    def after(self, before: "WorkloadCounts") -> "WorkloadCounts":
        """The same, where pods that become available one by one in an instant are no less."""
        least, known = self.least_available, before.available
        is_dip = least is not None and known is not None and least < known
        return self if is_dip else self.still


NO_COUNTS = WorkloadCounts()


class RolloutEntry(msgspec.Struct, array_like=True):
    """From a new pod template until ``kubectl rollout status`` is content."""

    step: ScenarioStep
    time: int
    end_step: ScenarioStep | None = None
    end_time: int | None = None
    state: str = GOING_ON


class WorkloadEntry(msgspec.Struct, eq=False):
    """An object that owns pods and that no other such object owns."""

    kind: str
    namespace: str
    name: str
    uid: str
    step: ScenarioStep
    time: int
    end_step: ScenarioStep | None = None
    end_time: int | None = None
    labels: Labels = {}
    """Of its pods, by its template."""
    history: list[WorkloadCounts] = []
    rollouts: list[RolloutEntry] = []
    full_time: int | None = None
    """When as many were available as it wants, for the first time."""
    least_available: int | None = None
    """Since then, and when that was."""
    least_time: int | None = None

    @property
    def now(self) -> WorkloadCounts:
        """What it said last."""
        return self.history[-1] if self.history else NO_COUNTS

    @property
    def workload(self) -> str:
        return f"{self.kind}/{self.name}"


class BudgetEntry(msgspec.Struct, eq=False):
    """A PodDisruptionBudget, from its creation to its end."""

    namespace: str
    name: str
    step: ScenarioStep
    time: int
    end_time: int | None = None
    selector: bytes = b"null"
    healthy: int = 0
    desired: int = 0
    expected: int = 0
    allowed: int = 0
    met_time: int | None = None
    """When it was met for the first time: pods that start for the first time break no budget."""
    least_healthy: int | None = None
    below: list[tuple[int, int | None]] = []
    """Since then, from when until when fewer were healthy than it wants."""
