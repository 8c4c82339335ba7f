"""Whom a node would lose to a pod.

All pods of lower priority are supposed to be gone. If the pod fits then, they are brought back one
by one, the most important first, those first that a disruption budget protects; who does not fit
beside the pod any more is a victim. [PR-5, PR-8]

More important are pods of higher priority, then the older ones. A pod that has not started counts
as started now. kube-scheduler reads the clock anew for each comparison, so of two such pods the one
it looks at first is the older, and its insertion sort turns their order around: of pods without a
start time the last placed is the most important. [PR-6]
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubescene.clock import parse_time
from kubescene.scheduler.framework.interfaces import Trial
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.preemption.budgets import DisruptionBudgets
from kubescene.scheduler.state.pods import PodInfo

NOT_STARTED = 1 << 62
"""Later than every start."""


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """The most important first; ``pods`` in the order of their node."""
    started: list[tuple[int, int, int, PodInfo]] = []
    for number, pod in enumerate(pods):
        if pod.start_time:
            started.append((-pod.priority, parse_time(pod.start_time), number, pod))
        else:
            started.append((-pod.priority, NOT_STARTED, -number, pod))
    started.sort()
    return [pod for *_, pod in started]


def started_at(pod: PodInfo) -> int:
    return parse_time(pod.start_time) if pod.start_time else NOT_STARTED


def earliest_start(victims: Sequence[PodInfo]) -> int:
    """When the first of the most important victims started; they are in order. [PR-11]"""
    highest = victims[0].priority
    return min(started_at(each) for each in victims if each.priority == highest)


NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


class Victims(NamedTuple):
    """The pods to remove, the most important first, or why removing pods does not help."""

    status: Status
    pods: tuple[PodInfo, ...] = ()
    violations: int = 0


def pool_of(pod: PodInfo, pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Those that a pod may preempt."""
    return [each for each in pods if each.priority < pod.priority]


def find_victims(
    pool: Sequence[PodInfo], trial: Trial, node: str, budgets: DisruptionBudgets
) -> Victims:
    """``pool`` holds the pods that may go, in the order of the node; at least one."""
    for each in pool:
        trial.remove(each)
    status = trial.filter()
    return _reprieve(pool, trial, node, budgets) if status.ok else Victims(status)


def _reprieve(
    pool: Sequence[PodInfo], trial: Trial, node: str, budgets: DisruptionBudgets
) -> Victims:
    violating, others = budgets.split(by_importance(pool))
    victims = [pod for pod in violating if not _stays(pod, trial)]
    violations = len(victims)
    victims += [pod for pod in others if not _stays(pod, trial)]
    if violating and others:
        victims = by_importance(victims)
    if not victims:
        # PR-9
        return Victims(Status.error(f'expected at least one victim pod on node "{node}"'))
    return Victims(SUCCESS, tuple(victims), violations)


def _stays(pod: PodInfo, trial: Trial) -> bool:
    trial.add(pod)
    if trial.filter().ok:
        return True
    trial.remove(pod)
    return False
