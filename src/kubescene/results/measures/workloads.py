"""Workloads: restarts, Jobs, roll-outs, and how far below what they want they ever were."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kubescene.results.clockwork import SECOND
from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import (
    WORKLOAD,
    AnyMeasure,
    Measure,
    Value,
    WorkloadMeasure,
)
from kubescene.results.measures.pending import Waits, total, waits
from kubescene.results.over_time.entries import CRON_JOB, JOB, WorkloadEntry
from kubescene.results.over_time.scaling import ToldRun
from kubescene.results.over_time.workloads import Group, Workloads, covered, taken

JOBS = (JOB, CRON_JOB)


class StandingWorkloads(NamedTuple):
    """Workloads that say how many of their pods are available, and their account."""

    workloads: Workloads
    groups: list[Group]


def standing(source: ToldRun) -> StandingWorkloads:
    """The newest of every name; one that came again replaces the one before."""
    workloads = Workloads(source.ledger)
    newest = {group.key: group for group in workloads.own if group.entry is not None}
    return StandingWorkloads(
        workloads, [each for each in newest.values() if entry_of(each).kind not in JOBS]
    )


def entry_of(group: Group) -> WorkloadEntry:
    assert group.entry is not None
    return group.entry


def pending_seconds(waits: Waits) -> float:
    return total(waits.all) / SECOND


def restarts(ledger: Ledger) -> int:
    return sum(pod.restarts for pod in ledger.pods)


def of_jobs(ledger: Ledger, *, name: str) -> Value:
    jobs = [each for each in ledger.workloads if each.kind in JOBS]
    return sum(getattr(each.now, name) for each in jobs) if jobs else None


def rollouts(ledger: Ledger) -> list[float | None]:
    return [taken(each) for entry in ledger.workloads for each in entry.rollouts]


def unfinished(ledger: Ledger) -> int:
    """Of each workload that is there, the last."""
    last = (e.rollouts[-1] for e in ledger.workloads if e.rollouts and e.end_time is None)
    return sum(each.end_time is None for each in last)


def longest_rollout(ledger: Ledger) -> Value:
    return max((each for each in rollouts(ledger) if each is not None), default=None)


def below_budgets(ledger: Ledger) -> Value:
    met = [each for each in ledger.budgets if each.met_time is not None]
    spans = [(begin, ledger.time if end is None else end) for b in met for begin, end in b.below]
    return covered(spans) / SECOND if met else None


def of_each(
    standing: StandingWorkloads, of: Callable[[StandingWorkloads, Group], Value]
) -> Iterator[tuple[str, str, Value]]:
    for group in standing.groups:
        yield group.namespace, group.name, of(standing, group)


def least_available(standing: StandingWorkloads, group: Group) -> Value:
    del standing
    return entry_of(group).least_available


def below(standing: StandingWorkloads, group: Group) -> Value:
    return standing.workloads.below(group)


def last_rollout(standing: StandingWorkloads, group: Group) -> Value:
    del standing
    entry = entry_of(group)
    return taken(entry.rollouts[-1]) if entry.rollouts else None


MEASURES: tuple[AnyMeasure, ...] = (
    Measure(
        name="pod_pending_seconds",
        meaning="Virtual time that pods waited for their first node, all of them together.",
        formula="sum over pods of min(first bound, ended, end of run) - created",
        unit="seconds",
        basis=waits,
        of=pending_seconds,
    ),
    Measure(
        name="restarts",
        meaning="Containers that began once more.",
        formula="sum over pods of the restarts of their containers",
        unit="restarts",
        of=restarts,
    ),
    *(
        Measure(
            name=name,
            meaning=f"Pods of Jobs that {what}, as the Jobs count them; absent without a Job.",
            formula=f"sum over Jobs of status.{field}",
            unit="pods",
            of=partial(of_jobs, name=name),
        )
        for name, what, field in (
            ("completions", "succeeded", "succeeded"),
            ("failures", "failed", "failed"),
        )
    ),
    Measure(
        name="rollouts_unfinished",
        meaning="Workloads whose last roll-out is not over at the end.",
        formula="number of workloads whose last roll-out is Unfinished or Stalled",
        unit="workloads",
        of=unfinished,
    ),
    Measure(
        name="rollout_seconds_max",
        meaning="The longest roll-out that came to its end.",
        formula="max over complete roll-outs of end - begin",
        unit="seconds",
        of=longest_rollout,
    ),
    Measure(
        name="below_budget_seconds",
        meaning=(
            "For how long fewer pods were healthy than any PodDisruptionBudget wants, since it was "
            "met for the first time; absent without a budget that ever was."
        ),
        formula="length of the union over budgets of the time with healthy < desired",
        unit="seconds",
        of=below_budgets,
    ),
    *(
        WorkloadMeasure(
            name=f"{name}_{WORKLOAD}",
            meaning=meaning,
            formula=formula,
            unit=unit,
            basis=standing,
            of=partial(of_each, of=of),
        )
        for name, meaning, formula, unit, of in (
            (
                "least_available",
                f"The fewest available pods of {WORKLOAD} since it had all of them.",
                "min of status.availableReplicas since it was spec.replicas for the first time",
                "pods",
                least_available,
            ),
            (
                "below_budget_seconds",
                f"For how long {WORKLOAD} was below a budget that selects its pods.",
                "length of the union over its budgets of the time with healthy < desired",
                "seconds",
                below,
            ),
            (
                "rollout_seconds",
                f"How long the last roll-out of {WORKLOAD} took; absent if it is not over.",
                "end - begin of the last roll-out",
                "seconds",
                last_rollout,
            ),
        )
    ),
)
