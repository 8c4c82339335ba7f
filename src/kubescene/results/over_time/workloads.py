"""Tables of workloads, their roll-outs, and the budgets that protect them."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import orjson

from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.api.selectors.requirements import SelectorError
from kubescene.results.clockwork import SECOND, Clockwork, row_of, text
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import DELETED, FINISHED, PENDING, PodEntry
from kubescene.results.over_time.entries import (
    BudgetEntry,
    RolloutEntry,
    WorkloadEntry,
)
from kubescene.results.over_time.following import top_owner

ALL_BARE = "*"
"""The name of the pods of a namespace that nobody owns."""
POD = "Pod"
SUCCEEDED, FAILED = "Succeeded", "Failed"


class WorkloadRow(msgspec.Struct, frozen=True, kw_only=True):
    """One workload, as it says of itself at the end, or when it was deleted.

    Pods that nobody owns are one row for each namespace: kind ``Pod``, name ``*``. They and those
    of owners that are no workloads of Kubernetes do not say how many there should be or are ready.
    ``pods`` are those that exist (of a Job: that are active), ``pending`` those without a node.

    ``least_available`` counts since as many were available as it wants for the first time;
    ``below_budget_s`` is for how long fewer pods were healthy than a PodDisruptionBudget wants,
    since it was met for the first time, and absent without a budget that ever was. The columns
    ``rollout`` are those of the last roll-out: Complete, Stalled (its deadline for progress has
    passed), or Unfinished.
    """

    namespace: str
    kind: str
    name: str
    present: bool
    created_step: str
    created_s: float
    ended_step: str | None
    ended_s: float | None
    desired: int | None
    pods: int
    updated: int | None
    ready: int | None
    available: int | None
    pending: int
    least_available: int | None
    least_available_s: float | None
    full_s: float | None
    below_budget_s: float | None
    rollouts: int
    rollout: str
    rollout_begin_s: float | None
    rollout_end_s: float | None
    rollout_s: float | None
    restarts: int
    completions: int
    failures: int


class RolloutRow(msgspec.Struct, frozen=True, kw_only=True):
    """One roll-out: from a new pod template until `kubectl rollout status` is content.

    ``state`` is Complete, Superseded (by the next), Stalled (its deadline for progress has passed)
    or Unfinished; ``seconds`` is absent unless it is complete.
    """

    namespace: str
    kind: str
    name: str
    number: int
    state: str
    begin_step: str
    begin_s: float
    end_step: str | None
    end_s: float | None
    seconds: float | None


class BudgetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One PodDisruptionBudget, as it was at the end, or when it was deleted.

    ``workloads`` are those whose pods it selects. ``least_healthy``, ``below_s`` and
    ``times_below`` count since it was met for the first time.
    """

    namespace: str
    name: str
    present: bool
    workloads: str
    healthy: int
    desired: int
    expected: int
    allowed: int
    least_healthy: int | None
    times_below: int
    below_s: float | None


class Group(NamedTuple):
    """A workload and its pods; without an entry, nobody tells what it wants."""

    namespace: str
    kind: str
    name: str
    entry: WorkloadEntry | None
    pods: list[PodEntry]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.namespace, self.name, self.kind


class Workloads:
    """The workloads of a ledger, each with its pods, by namespace and name."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.clock = Clockwork(ledger)

    @cached_property
    def groups(self) -> list[Group]:
        """Every workload that ever was; one that comes again under its name is another."""
        groups: dict[tuple[str, str], list[Group]] = {}
        for entry in self.ledger.workloads:
            own = Group(entry.namespace, entry.kind, entry.name, entry, [])
            groups.setdefault((entry.namespace, entry.workload), []).append(own)
        for pod in self.ledger.pods:
            workload = f"{POD}/{ALL_BARE}"
            if pod.owner:
                workload = top_owner(self.ledger.owners, pod.namespace, pod.owner)
            known = groups.get((pod.namespace, workload))
            if known is None:
                kind, _, name = workload.partition("/")
                known = [Group(pod.namespace, kind, name, None, [])]
                groups[pod.namespace, workload] = known
            owning = (each for each in reversed(known) if came_before(each, pod))
            next(owning, known[0]).pods.append(pod)
        return sorted((each for known in groups.values() for each in known), key=lambda g: g.key)

    @cached_property
    def own(self) -> list[Group]:
        """Those that say of themselves how they are, without their pods."""
        entries = sorted(self.ledger.workloads, key=lambda e: (e.namespace, e.name, e.kind))
        return [Group(e.namespace, e.kind, e.name, e, []) for e in entries]

    @cached_property
    def protecting(self) -> dict[str, list[tuple[Any, BudgetEntry]]]:
        """Budgets with their selectors, by namespace."""
        found: dict[str, list[tuple[Any, BudgetEntry]]] = {}
        for budget in self.ledger.budgets:
            try:
                selector = from_label_selector(orjson.loads(budget.selector))
            except (KeyError, SelectorError):
                continue  # no server would have taken it
            found.setdefault(budget.namespace, []).append((selector, budget))
        return found

    def budgets_of(self, group: Group) -> Iterator[BudgetEntry]:
        """Those that select its pods."""
        labels = group.entry.labels if group.entry is not None else None
        for selector, budget in self.protecting.get(group.namespace, ()):
            if labels is not None:
                if selector.matches(labels):
                    yield budget
            elif any(selector.matches(pod.labels) for pod in group.pods):
                yield budget

    def spans_below(self, group: Group) -> list[tuple[int, int]] | None:
        """When it was below a budget; None if no budget was ever met."""
        budgets = [each for each in self.budgets_of(group) if each.met_time is not None]
        entry, end = group.entry, self.ledger.time
        first = 0 if entry is None else entry.time
        last = end if entry is None or entry.end_time is None else entry.end_time
        return [*spans_below(budgets, first, last)] if budgets else None

    def below(self, group: Group) -> float | None:
        """For how long that was, in seconds."""
        spans = self.spans_below(group)
        return None if spans is None else covered(spans) / SECOND


def spans_below(budgets: Iterable[BudgetEntry], first: int, last: int) -> Iterator[tuple[int, int]]:
    """When fewer were healthy than one of them wants, between two instants."""
    for each in budgets:
        for begin, end in each.below:
            until = last if end is None else min(end, last)
            if until > max(begin, first):
                yield max(begin, first), until


def came_before(group: Group, pod: PodEntry) -> bool:
    return group.entry is None or group.entry.time <= pod.created_time


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """How much time all of them cover together."""
    total, reached = 0, None
    for begin, end in sorted(spans):
        first = begin if reached is None else max(begin, reached)
        total += max(end - first, 0)
        reached = end if reached is None else max(reached, end)
    return total


def workload_rows(ledger: Ledger) -> Iterator[WorkloadRow]:
    """All workloads that ever were, by namespace and name."""
    workloads = Workloads(ledger)
    return (workload_row(group, workloads) for group in workloads.groups)


def workload_row(group: Group, workloads: Workloads) -> WorkloadRow:
    entry, clock = group.entry, workloads.clock
    told = own_columns(entry, clock) if entry is not None else columns_of_pods(group.pods, clock)
    return WorkloadRow(
        namespace=group.namespace,
        kind=group.kind,
        name=group.name,
        pending=sum(pod.state == PENDING for pod in group.pods),
        below_budget_s=workloads.below(group),
        **told,
    )


def own_columns(entry: WorkloadEntry, clock: Clockwork) -> dict[str, Any]:
    """What a workload says of itself."""
    now, last = entry.now, entry.rollouts[-1] if entry.rollouts else None
    counts = ("desired", "pods", "updated", "available", "restarts", "completions", "failures")
    return {
        **{name: getattr(now, name) for name in counts},
        "ready": now.ready,
        "present": entry.end_time is None,
        "created_step": str(entry.step),
        "created_s": clock.seconds(entry.time),
        "ended_step": text(entry.end_step),
        "ended_s": clock.maybe(entry.end_time),
        "least_available": entry.least_available,
        "least_available_s": clock.maybe(entry.least_time),
        "full_s": clock.maybe(entry.full_time),
        "rollouts": len(entry.rollouts),
        "rollout": "" if last is None else last.state,
        "rollout_begin_s": None if last is None else clock.seconds(last.time),
        "rollout_end_s": None if last is None else clock.maybe(last.end_time),
        "rollout_s": None if last is None else taken(last),
    }


def columns_of_pods(pods: list[PodEntry], clock: Clockwork) -> dict[str, Any]:
    """The same of pods that nobody speaks for."""
    there = [pod for pod in pods if pod.state not in (FINISHED, DELETED)]
    first = min(pods, key=lambda pod: pod.created_time)
    absent = ("ended_step", "ended_s", "desired", "updated", "ready", "available", "full_s")
    of_others = ("least_available", "least_available_s", "rollout_begin_s", "rollout_end_s")
    return {
        **dict.fromkeys((*absent, *of_others, "rollout_s")),
        "present": any(pod.state != DELETED for pod in pods),
        "created_step": str(first.created_step),
        "created_s": clock.seconds(first.created_time),
        "pods": len(there),
        "rollouts": 0,
        "rollout": "",
        "restarts": sum(pod.restarts for pod in pods),
        "completions": sum(pod.phase == SUCCEEDED for pod in pods),
        "failures": sum(pod.phase == FAILED for pod in pods),
    }


def taken(rollout: RolloutEntry) -> float | None:
    """Seconds of a roll-out that is over."""
    return None if rollout.end_time is None else (rollout.end_time - rollout.time) / SECOND


def rollout_rows(ledger: Ledger) -> Iterator[RolloutRow]:
    """All roll-outs, by workload and in their order."""
    clock = Clockwork(ledger)
    for group in Workloads(ledger).groups:
        rollouts = group.entry.rollouts if group.entry is not None else ()
        for number, each in enumerate(rollouts, 1):
            yield RolloutRow(
                namespace=group.namespace,
                kind=group.kind,
                name=group.name,
                number=number,
                state=each.state,
                begin_step=str(each.step),
                begin_s=clock.seconds(each.time),
                end_step=text(each.end_step),
                end_s=clock.maybe(each.end_time),
                seconds=taken(each),
            )


def budget_rows(ledger: Ledger) -> Iterator[BudgetRow]:
    """All PodDisruptionBudgets that ever were, in the order of their creation."""
    workloads, selected = Workloads(ledger), dict[int, list[str]]()
    for group in workloads.groups if ledger.budgets else ():
        for budget in workloads.budgets_of(group):
            selected.setdefault(id(budget), []).append(f"{group.kind}/{group.name}")
    for budget in ledger.budgets:
        spans = [(begin, ledger.time if end is None else end) for begin, end in budget.below]
        yield row_of(
            BudgetRow,
            budget,
            present=budget.end_time is None,
            workloads=", ".join(dict.fromkeys(selected.get(id(budget), ()))),
            times_below=len(budget.below),
            below_s=None if budget.met_time is None else covered(spans) / SECOND,
        )
