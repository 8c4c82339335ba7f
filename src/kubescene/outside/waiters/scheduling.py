"""The waiter ``kube-scheduler``: every pod that waits was tried.

Draft 003 of KEP-140 wants pods tried twice since the last change. Resources cannot tell: an attempt
that fails as the one before it did writes nothing. What they tell is that a pod was tried at all,
since it carries ``PodScheduled=False``. That a later change gave it another chance and the
scheduler has not looked yet is seen by how its turns are judged (park pods, or that it is still),
not here. So this is a second opinion, and enough alone only for schedulers that write a condition
for every attempt.
"""

from collections.abc import Collection, Iterator
from typing import Any

from kubescene.api.kinds import POD
from kubescene.client import Reader
from kubescene.clock import parse_time
from kubescene.outside.waiters.waiter import listed, name_of
from kubescene.scenario.outside import DEFAULT_SCHEDULER_NAME, scheduler_of
from kubescene.types import JsonObject

ENDED = ("Succeeded", "Failed")


class SchedulerWaiter:
    """Looks at the pods of one scheduler."""

    name = "kube-scheduler"

    def __init__(self, scheduler_names: Collection[str] = (DEFAULT_SCHEDULER_NAME,)) -> None:
        self._scheduler_names = scheduler_names

    def condition(self, reader: Reader) -> bool:
        return next(self._untried(reader), None) is None

    def unmet(self, reader: Reader) -> str:
        return listed(f"{name_of(pod)} was not tried yet" for pod in self._untried(reader))

    def _untried(self, reader: Reader) -> Iterator[JsonObject]:
        for pod in reader.list(POD):
            if self._is_mine(pod) and may_be_tried(pod) and not was_tried(pod):
                yield pod

    def _is_mine(self, pod: JsonObject) -> bool:
        return scheduler_of(pod) in self._scheduler_names


def may_be_tried(pod: JsonObject) -> bool:
    """Whether a scheduler looks at it: it waits, and nobody keeps it back."""
    spec, status = pod["spec"], pod.get("status") or {}
    return not (
        spec.get("nodeName")
        or spec.get("schedulingGates")
        or pod["metadata"].get("deletionTimestamp")
        or status.get("phase") in ENDED
    )


def was_tried(pod: JsonObject) -> bool:
    """Whether a scheduler has failed at it; what it says of an older pod does not count."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return not is_older(condition.get("lastTransitionTime"), pod["metadata"])
    return False


def is_older(time: Any, metadata: JsonObject) -> bool:
    created = metadata.get("creationTimestamp")
    return bool(time and created and parse_time(time) < parse_time(created))
