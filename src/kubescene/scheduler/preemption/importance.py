"""Which of the pods on a node are more important: those of higher priority, then the older ones.

A pod that has not started counts as started now. kube-scheduler reads the clock anew for each
comparison, so of two such pods the one it looks at first is the older, and its insertion sort turns
their order around: of pods without a start time the last placed is the most important. [PR-6]
"""

from collections.abc import Iterable, Sequence

from kubescene.clock import parse_time
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
