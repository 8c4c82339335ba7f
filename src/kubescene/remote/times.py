"""The scenario's times in place of those that a real API server stamps.

A real server dates objects by its own clock, and nobody can tell it to do otherwise. Controllers
compare such dates with the world's time, which is virtual: a pod would have been deleted in two
years. So what the mirror hands on says when something happened in the scenario: an object was
created, its deletion was asked for, a pod was bound, at the instant at which it was heard of. Since
every write is waited for, that is the instant at which it was made. What the server itself holds
keeps its real times.
"""

from kubescene.api.kinds import LEASE, POD, SCENARIO
from kubescene.clock import Clock, format_time, go_seconds
from kubescene.types import JsonObject

REAL = frozenset({SCENARIO.kind, LEASE.kind, "Event"})
"""Kinds that live on the server's clock."""


class ScenarioTimes:
    """Remembers, by uid, what was heard of when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._created: dict[str, str] = {}
        self._deleted: dict[str, tuple[str, str]] = {}
        self._bound: dict[str, tuple[str, str]] = {}

    def note_created(self, obj: JsonObject) -> None:
        """An object has come into being now."""
        if obj["kind"] not in REAL:
            self._created[obj["metadata"].get("uid", "")] = self._now()

    def forget(self, uid: str) -> None:
        for known in (self._created, self._deleted, self._bound):
            known.pop(uid, None)

    def retimed(self, obj: JsonObject) -> JsonObject:
        """A copy with the scenario's times, as far as they are known."""
        if obj["kind"] in REAL:
            return obj
        metadata = dict(obj["metadata"])
        uid = metadata.get("uid", "")
        if created := self._created.get(uid):
            metadata["creationTimestamp"] = created
        if stamped := metadata.get("deletionTimestamp"):
            grace_s = int(metadata.get("deletionGracePeriodSeconds") or 0)
            metadata["deletionTimestamp"] = self._end(uid, stamped, grace_s)
        obj = {**obj, "metadata": metadata}
        return self._placed(obj, uid) if obj["kind"] == POD.kind and uid in self._created else obj

    def _end(self, uid: str, stamped: str, grace_s: int) -> str:
        """When the grace of an object ends; anew if somebody has shortened it."""
        known = self._deleted.get(uid)
        if known is None or known[0] != stamped:
            end = format_time(self._clock.now() + go_seconds(grace_s))
            known = self._deleted[uid] = (stamped, end)
        return known[1]

    def _placed(self, pod: JsonObject, uid: str) -> JsonObject:
        """The pod with the time at which it was bound; a server writes that condition itself."""
        conditions = (pod.get("status") or {}).get("conditions") or ()
        for at, condition in enumerate(conditions):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
                stamped = condition.get("lastTransitionTime")
                known = self._bound.setdefault(uid, (stamped, self._now()))
                if stamped != known[0]:
                    return pod
                told = {**condition, "lastTransitionTime": known[1]}
                changed = [*conditions[:at], told, *conditions[at + 1 :]]
                return {**pod, "status": {**pod["status"], "conditions": changed}}
        return pod

    def _now(self) -> str:
        return format_time(self._clock.now())
