"""Which of the nodes that could make room does so: the one that loses least. [PR-11]"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.preemption.victims import NOT_STARTED, earliest_start
from kubescene.scheduler.state.pods import PodInfo

NOBODY: Rows = np.zeros(0, dtype=np.intp)
PRIORITY_OFFSET = 1 << 31
"""Makes priorities positive, so that few victims of negative priority cost less than many."""


class Criterion(StrEnum):
    """What decided between the nodes."""

    ONLY_CANDIDATE = "only candidate"
    VIOLATIONS = "fewest violations of disruption budgets"
    HIGHEST_PRIORITY = "lowest priority of the most important victim"
    SUM_OF_PRIORITIES = "lowest sum of the victims' priorities"
    NUMBER = "fewest victims"
    START = "latest start of the most important victims"
    ORDER = "order of the nodes"


class Cost(NamedTuple):
    """What a node would lose; less is better, in this order."""

    violations: int
    highest_priority: int
    sum_of_priorities: int
    number: int
    start: int
    """Negative, since later is better."""


def cost_of(victims: Sequence[PodInfo], violations: int) -> Cost:
    number = len(victims)
    priorities = [each.priority for each in victims]
    total = sum(priorities) + number * PRIORITY_OFFSET
    return Cost(violations, priorities[0], total, number, -earliest_start(victims))


class Choice(NamedTuple):
    """``ties`` are the places of those that nothing tells apart from the chosen one."""

    place: int
    criterion: Criterion
    ties: Rows = NOBODY


_CRITERIA = (
    Criterion.VIOLATIONS,
    Criterion.HIGHEST_PRIORITY,
    Criterion.SUM_OF_PRIORITIES,
    Criterion.NUMBER,
    Criterion.START,
)


def choose(costs: NDArray[np.int64]) -> Choice:
    """Choose between candidates: one line per member of `Cost`, one column per candidate.

    Among victims none of which has started, kube-scheduler's clock is later for each node that it
    looks at, and the last one wins.
    """
    left = np.arange(costs.shape[1])
    if left.size == 1:
        return Choice(0, Criterion.ONLY_CANDIDATE)
    for criterion, line in zip(_CRITERIA, costs, strict=True):
        values = line.take(left)
        left = left[values == values.min()]
        if left.size == 1:
            return Choice(int(left[0]), criterion)
    none_started = costs[-1][left[0]] == -NOT_STARTED
    return Choice(int(left[-1 if none_started else 0]), Criterion.ORDER, left)
