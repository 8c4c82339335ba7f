"""Follows workloads by what their controllers write into their status: it needs no other facts.

A workload is the object on top: a Deployment, not its ReplicaSets; a CronJob, not its Jobs.
"""

from typing import Any

import msgspec
import orjson

from kubescene.results.over_time.entries import (
    COMPLETE,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    GOING_ON,
    JOB,
    NO_COUNTS,
    REPLICA_SET,
    STALLED,
    STATEFUL_SET,
    SUPERSEDED,
    BudgetEntry,
    RolloutEntry,
    WorkloadCounts,
    WorkloadEntry,
    WrittenAt,
)
from kubescene.results.states import text_of

OWNERS = frozenset({DEPLOYMENT, CRON_JOB, STATEFUL_SET, DAEMON_SET})
"""Kinds that own other workloads."""
ROLLING = frozenset({DEPLOYMENT, STATEFUL_SET, DAEMON_SET})
"""Kinds of which `kubectl rollout status` speaks."""
ON_DELETE = "OnDelete"
NOTHING = msgspec.Raw(b"null")

WorkloadKey = tuple[str, str]
"""Namespace, and ``Kind/name``."""


class _Owner(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    generation: int = 0
    owner_references: tuple[_Owner, ...] | None = None


class _RollingUpdate(msgspec.Struct, frozen=True):
    partition: int | None = None


class _Strategy(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    rolling_update: _RollingUpdate | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int | None = None
    completions: int | None = None
    parallelism: int | None = None
    template: msgspec.Raw = NOTHING
    update_strategy: _Strategy | None = None


class _WorkloadCondition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    current_revision: str = ""
    update_revision: str = ""
    active: msgspec.Raw = NOTHING
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    conditions: msgspec.Raw = NOTHING


class WorkloadText(msgspec.Struct, frozen=True):
    """A workload, as far as it tells of its pods."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_observed(self) -> bool:
        """Whether its controller has seen what is wanted now."""
        return self.status.observed_generation >= self.metadata.generation

    @property
    def is_stalled(self) -> bool:
        """Whether its deadline for progress has passed."""
        stalled = "ProgressDeadlineExceeded"
        return any(
            each.reason == stalled for each in _CONDITIONS.decode(self.status.conditions) or ()
        )

    @property
    def waits_for_deletion(self) -> bool:
        """Whether nothing rolls out by itself."""
        strategy = self.spec.update_strategy
        return strategy is not None and strategy.type == ON_DELETE


class _TemplateMetadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None


class _PodTemplate(msgspec.Struct, frozen=True):
    metadata: _TemplateMetadata = _TemplateMetadata()


class _BudgetSpec(msgspec.Struct, frozen=True):
    selector: msgspec.Raw = NOTHING


class _BudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disruptions_allowed: int = 0


class _BudgetText(msgspec.Struct, frozen=True):
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus | None = None


_WORKLOAD = msgspec.json.Decoder(WorkloadText)
_BUDGET = msgspec.json.Decoder(_BudgetText)
_CONDITIONS = msgspec.json.Decoder(tuple[_WorkloadCondition, ...] | None)
_TEMPLATE = msgspec.json.Decoder(_PodTemplate)


class WorkloadFollower:
    """Keeps the entries of workloads and budgets, given what is written of them, in order."""

    def __init__(
        self, entries: list[WorkloadEntry], budgets: list[BudgetEntry], owners: dict[str, str]
    ) -> None:
        self._entries, self._budgets, self._owners = entries, budgets, owners
        self._standing: dict[WorkloadKey, WorkloadEntry] = {}
        self._templates: dict[WorkloadKey, bytes] = {}
        self._jobs: dict[WorkloadKey, WorkloadCounts] = {}
        """What was last said by Jobs that a CronJob owns."""
        self._protecting: dict[WorkloadKey, BudgetEntry] = {}

    # -- workloads -------------------------------------------------------------------------

    def written(
        self,
        kind: str,
        namespace: str,
        name: str,
        uid: str,
        fact: Any,
        when: WrittenAt,
    ) -> None:
        """A workload was created or changed, as a fact or its line says."""
        key = namespace, f"{kind}/{name}"
        if kind == REPLICA_SET and owner_key(*key) in self._owners:
            return  # Its Deployment tells of its pods.
        told = _WORKLOAD.decode(text_of(fact))
        owner = controller_of(told)
        if owner:
            self._owners[owner_key(*key)] = owner
            if kind == JOB:
                self._job_written(key, told, owner, when)
            return
        entry = self._standing.get(key)
        if entry is None or entry.uid != uid:
            entry = WorkloadEntry(kind, namespace, name, uid, when.step, when.time)
            self._entries.append(entry)
            self._standing[key] = entry
            self._templates.pop(key, None)
        self._told(entry, counts_of(kind, told, entry.now), when)
        if kind in ROLLING:
            self._roll(key, entry, told, when)
        elif not entry.labels:
            entry.labels = template_labels(told)

    def removed(self, kind: str, namespace: str, name: str, when: WrittenAt) -> None:
        """The deletion of a workload was accepted."""
        key = namespace, f"{kind}/{name}"
        entry = self._standing.pop(key, None)
        if entry is not None:
            entry.end_step, entry.end_time = when
        before, owner = self._jobs.pop(key, None), self._owners.get(owner_key(*key), "")
        parent = self._standing.get((namespace, owner))
        if before is not None and parent is not None:
            gone = {"pods": parent.now.pods - before.pods, "ready": parent.now.ready - before.ready}
            self._told(parent, msgspec.structs.replace(parent.now, **gone), when)

    def restarted(self, namespace: str, owner: str, times: int, when: WrittenAt) -> None:
        """Containers of a pod have begun once more; ``owner`` is the controller that made it."""
        entry = self._standing.get((namespace, top_owner(self._owners, namespace, owner)))
        if entry is not None:
            restarts = entry.now.restarts + times
            self._told(entry, msgspec.structs.replace(entry.now, restarts=restarts), when)

    def _job_written(
        self, key: WorkloadKey, told: WorkloadText, owner: str, when: WrittenAt
    ) -> None:
        """A Job of a CronJob says how far it is: so much more has its CronJob done."""
        before, now = self._jobs.get(key, NO_COUNTS), counts_of(JOB, told, NO_COUNTS)
        self._jobs[key] = now
        parent = self._standing.get((key[0], owner))
        if parent is None:
            return
        added = ("pods", "ready", "completions", "failures")
        changed = {
            name: getattr(parent.now, name) + getattr(now, name) - getattr(before, name)
            for name in added
        }
        self._told(parent, msgspec.structs.replace(parent.now, **changed), when)

    def _told(self, entry: WorkloadEntry, counts: WorkloadCounts, when: WrittenAt) -> None:
        """Note what an entry says now, if that is something else than before."""
        history, least = entry.history, counts.available
        last = history[-1] if history else None
        if last is not None:
            if is_same(last, counts):
                return
            if last.time == when.time and last.step == when.step.major:
                history.pop()
                if least is not None and last.least_available is not None:
                    least = min(least, last.least_available)
        history.append(
            WorkloadCounts(
                when.time,
                when.step.major,
                counts.desired,
                counts.pods,
                counts.updated,
                counts.ready,
                counts.available,
                counts.completions,
                counts.failures,
                counts.restarts,
                least,
            )
        )
        self._reach(entry, counts, when)

    def _reach(self, entry: WorkloadEntry, counts: WorkloadCounts, when: WrittenAt) -> None:
        """It may have all that it wants for the first time, or less than ever since."""
        available = counts.available
        if available is None:
            return
        if entry.full_time is None and counts.desired and available >= counts.desired:
            entry.full_time = when.time
        if entry.full_time is None:
            return
        if entry.least_available is None or available < entry.least_available:
            entry.least_available, entry.least_time = available, when.time

    def _roll(
        self, key: WorkloadKey, entry: WorkloadEntry, told: WorkloadText, when: WrittenAt
    ) -> None:
        """A new template begins a roll-out; one that goes on may be over."""
        template, before = bytes(told.spec.template), self._templates.get(key)
        if template != before:
            self._templates[key] = template
            entry.labels = template_labels(told)
            is_new = before is None or orjson.loads(template) != orjson.loads(before)
            if is_new and not told.waits_for_deletion:
                begin_rollout(entry, when)
        current = entry.rollouts[-1] if entry.rollouts else None
        if current is None or current.state not in (GOING_ON, STALLED):
            return
        if is_rolled_out(entry.kind, told):
            current.end_step, current.end_time = when
            current.state = COMPLETE
        elif told.is_observed:
            current.state = STALLED if told.is_stalled else GOING_ON

    # -- budgets ---------------------------------------------------------------------------

    def budget_written(self, namespace: str, name: str, text: Any, when: WrittenAt) -> None:
        """A PodDisruptionBudget was created or changed."""
        told = _BUDGET.decode(text)
        budget = self._protecting.get((namespace, name))
        if budget is None:
            budget = BudgetEntry(namespace, name, when.step, when.time)
            self._protecting[namespace, name] = budget
            self._budgets.append(budget)
        budget.selector = bytes(told.spec.selector)
        if told.status is not None:
            take_over(budget, told.status, when.time)

    def budget_removed(self, namespace: str, name: str, when: WrittenAt) -> None:
        budget = self._protecting.pop((namespace, name), None)
        if budget is not None:
            budget.end_time = when.time
            rise(budget, when.time)


def take_over(budget: BudgetEntry, status: _BudgetStatus, time: int) -> None:
    """What a budget says now."""
    budget.healthy, budget.desired = status.current_healthy, status.desired_healthy
    budget.expected, budget.allowed = status.expected_pods, status.disruptions_allowed
    is_met = budget.healthy >= budget.desired
    if budget.met_time is None and is_met and budget.expected:
        budget.met_time = time
    if budget.met_time is None:
        return
    least = budget.least_healthy
    budget.least_healthy = budget.healthy if least is None else min(least, budget.healthy)
    if is_met:
        rise(budget, time)
    elif not budget.below or budget.below[-1][1] is not None:
        budget.below.append((time, None))


def rise(budget: BudgetEntry, time: int) -> None:
    """It is met again, or gone."""
    if budget.below and budget.below[-1][1] is None:
        budget.below[-1] = budget.below[-1][0], time


def begin_rollout(entry: WorkloadEntry, when: WrittenAt) -> None:
    if entry.rollouts and entry.rollouts[-1].end_time is None:
        entry.rollouts[-1].state = SUPERSEDED
    entry.rollouts.append(RolloutEntry(*when))


def owner_key(namespace: str, workload: str) -> str:
    return f"{namespace}/{workload}"


def top_owner(owners: dict[str, str], namespace: str, owner: str) -> str:
    """The workload on top of the one that made a pod.

    Whoever writes objects can let them own one another: of a circle it is the last that is new.
    """
    seen = {owner}
    while (above := owners.get(owner_key(namespace, owner))) and above not in seen:
        seen.add(above)
        owner = above
    return owner


def controller_of(told: WorkloadText) -> str:
    """The workload that owns this one, as ``Kind/name``."""
    return next(
        (
            f"{each.kind}/{each.name}"
            for each in told.metadata.owner_references or ()
            if each.controller and each.kind in OWNERS
        ),
        "",
    )


def template_labels(told: WorkloadText) -> dict[str, str]:
    template = told.spec.template
    return _TEMPLATE.decode(template).metadata.labels or {} if template != NOTHING else {}


def counts_of(kind: str, told: WorkloadText, before: WorkloadCounts) -> WorkloadCounts:
    """What a workload says of its pods; what it does not say is as before."""
    spec, status = told.spec, told.status
    if kind == CRON_JOB:
        return before
    if kind == JOB:
        return WorkloadCounts(
            desired=spec.parallelism if spec.completions is None else spec.completions,
            pods=0 if status.active == NOTHING else int(bytes(status.active)),
            ready=status.ready or 0,
            completions=status.succeeded,
            failures=status.failed,
            restarts=before.restarts,
        )
    if kind == DAEMON_SET:
        return WorkloadCounts(
            desired=status.desired_number_scheduled,
            pods=status.current_number_scheduled,
            updated=status.updated_number_scheduled,
            ready=status.number_ready,
            available=status.number_available,
            restarts=before.restarts,
        )
    return WorkloadCounts(
        desired=1 if spec.replicas is None else spec.replicas,
        pods=status.replicas,
        updated=status.updated_replicas if kind in ROLLING else None,
        ready=status.ready_replicas,
        available=status.available_replicas,
        restarts=before.restarts,
    )


def is_same(one: WorkloadCounts, other: WorkloadCounts) -> bool:
    """Whether both say the same, whenever that was."""
    return (
        one.ready == other.ready
        and one.available == other.available
        and one.pods == other.pods
        and one.updated == other.updated
        and one.desired == other.desired
        and one.restarts == other.restarts
        and one.completions == other.completions
        and one.failures == other.failures
    )


def is_rolled_out(kind: str, told: WorkloadText) -> bool:
    """Whether `kubectl rollout status` has nothing more to wait for."""
    spec, status = told.spec, told.status
    if not told.is_observed:
        return False
    if kind == DAEMON_SET:
        wanted = status.desired_number_scheduled
        return status.updated_number_scheduled >= wanted and status.number_available >= wanted
    wanted = 1 if spec.replicas is None else spec.replicas
    if kind == DEPLOYMENT:
        updated = status.updated_replicas
        return wanted <= updated <= status.available_replicas and status.replicas <= updated
    if status.ready_replicas < wanted:
        return False
    rolling = None if spec.update_strategy is None else spec.update_strategy.rolling_update
    if rolling is not None and rolling.partition:
        return status.updated_replicas >= wanted - rolling.partition
    return status.update_revision == status.current_revision
