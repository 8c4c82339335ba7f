"""PrioritySort: higher priority first, then who has been waiting longer. [Q-1]"""

from collections.abc import Mapping
from typing import Any

from kubescene.scheduler.framework.interfaces import (
    Handle,
    Plugin,
    QueueSortPlugin,
)
from kubescene.scheduler.state.pods import PodInfo


class PrioritySort(QueueSortPlugin):
    name = "PrioritySort"

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[Any, ...]:
        return (-pod.priority, timestamp)


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    del arguments, handle
    return PrioritySort()
