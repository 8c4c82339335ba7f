"""A rollout that waits for its pods: each that becomes ready changes three counts."""

from kubescene.api.records import same_metadata
from kubescene.api.records.changes import MODIFIED, Change
from kubescene.controllers.builtin.workloads.deployments.rollout import Rollout
from kubescene.types import JsonObject

READY, AVAILABLE, UNAVAILABLE = "readyReplicas", "availableReplicas", "unavailableReplicas"


class CountedRollout:
    """What a pass has told of a rollout with one set whose pods come: all that the next one needs.

    ``status`` is the Deployment's as it is stored. As long as the set gets nothing but more ready
    pods, a pass at the same instant changes counts alone: neither that there are enough of them
    changes, nor that it goes on.
    """

    __slots__ = ("_least", "_of_set", "_seen", "_uid", "now", "status")

    def __init__(self, rollout: Rollout, status: JsonObject, now: int) -> None:
        assert rollout.new is not None
        self.now = now
        self.status = status
        self._of_set: JsonObject = rollout.new.obj["status"]
        self._seen = self._of_set
        self._uid: str = rollout.new.obj["metadata"]["uid"]
        self._least = rollout.limits.least

    def sees(self, change: Change) -> bool:
        """Take note of a change of a set; False if it is more than a status of this one."""
        record, previous = change.record, change.previous
        if change.type is not MODIFIED or previous is None or record.uid != self._uid:
            return False
        # Another spec would be another generation.
        if not same_metadata(record, previous):
            return False
        self._seen = change.object["status"]
        return True

    def recount(self) -> JsonObject | None:
        """The counts that are new by now; None if there is more to say."""
        before, seen, status = self._of_set, self._seen, self.status
        ready, available = seen.get(READY, 0), seen.get(AVAILABLE, 0)
        if {**before, READY: ready, AVAILABLE: available} != seen or ready <= status[READY]:
            return None
        unavailable = status[UNAVAILABLE] - (available - before[AVAILABLE])
        is_enough = available >= self._least
        if unavailable <= 0:  # all are there
            return None
        if is_enough is not (before[AVAILABLE] >= self._least):
            return None
        return {READY: ready, AVAILABLE: available, UNAVAILABLE: unavailable}

    def told(self, status: JsonObject) -> None:
        """The Deployment has this status now."""
        self._of_set, self.status = self._seen, status


def waiting_of(rollout: Rollout, status: JsonObject, now: int) -> CountedRollout | None:
    """What a pass leaves to the next one that has changed nothing but these three counts."""
    told = rollout.status
    if rollout.new is None or rollout.olds or told.keys() != status.keys():
        return None
    counts = {READY, AVAILABLE, UNAVAILABLE}
    of_set = rollout.new.obj.get("status") or {}
    if not counts <= status.keys() or READY not in of_set or AVAILABLE not in of_set:
        return None
    if any(told[name] != value for name, value in status.items() if name not in counts):
        return None
    return CountedRollout(rollout, status, now) if status[READY] > told[READY] else None
