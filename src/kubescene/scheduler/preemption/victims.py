"""Whom a node would lose to a pod.

All pods of lower priority are supposed to be gone. If the pod fits then, they are brought back one
by one, the most important first, those first that a disruption budget protects; who does not fit
beside the pod any more is a victim. [PR-5, PR-8]
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubescene.scheduler.framework.interfaces import Trial
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.preemption.budgets import DisruptionBudgets
from kubescene.scheduler.preemption.importance import by_importance
from kubescene.scheduler.state.pods import PodInfo

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
