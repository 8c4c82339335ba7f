"""One look at a whole history before any of it is played.

So what is damaged is known before anything happens, and so are the ends of pods: whoever creates a
pod has to say how long it will run. Of each pod that ended that number is kept, of each workload
its uid, and nothing else.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from kubescene.clock import parse_time
from kubescene.histories.history import RecordedHistory
from kubescene.histories.table import history_at
from kubescene.types import JsonObject

CONTROLLERS = frozenset(
    {
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    }
)
"""Kinds whose objects are made and ended by a controller that is here, too."""
FINISHED = ("Succeeded", "Failed")
KEPT = 4
"""Surveys that are remembered: a scenario is read and looked at more than once."""


class PodEnd(NamedTuple):
    """How long a pod ran, and how it ended."""

    run_time: int
    exit_code: int


@dataclass(slots=True)
class Survey:
    """What is in a history. ``ends`` are those of pods by their uid, of Jobs' pods by the Job's."""

    form: str
    began_at: int
    ended_at: int
    objects: int = 0
    changes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    ends: dict[str, PodEnd] = field(default_factory=dict)
    controllers: set[str] = field(default_factory=set)
    """Uids of what controllers make objects for. Every kind is watched apart, so a pod may come
    before the workload that made it."""
    left_out: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.ended_at - self.began_at

    def end_of(self, obj: JsonObject) -> PodEnd | None:
        """How a pod, or those of a Job, ended."""
        if obj["kind"] not in ("Job", "Pod"):
            return None
        return self.ends.get(str(obj["metadata"].get("uid") or ""))


def survey(path: Path, form: str = "") -> Survey:
    """Read it from end to end; raises `SnapshotError` with file and place."""
    at = path.stat() if path.exists() else None
    return _surveyed(path, form, None if at is None else (at.st_mtime_ns, at.st_size, at.st_ino))


@lru_cache(KEPT)
def _surveyed(path: Path, form: str, _: tuple[int, ...] | None) -> Survey:
    history = history_at(path, form)
    found = Survey(history.form, history.began_at, history.began_at)
    of_jobs: dict[str, list[PodEnd]] = {}
    for obj in _objects(history, found):
        found.kinds[obj["kind"]] += 1
        end = end_of_pod(obj) if obj["kind"] == "Pod" else None
        uid = str(obj["metadata"].get("uid") or "")
        if uid and obj["kind"] in CONTROLLERS:
            found.controllers.add(uid)
        if end is not None and uid and uid not in found.ends:
            found.ends[uid] = end
            for owner in obj["metadata"].get("ownerReferences") or ():
                if owner.get("kind") == "Job" and owner.get("controller"):
                    of_jobs.setdefault(str(owner.get("uid")), []).append(end)
    for uid, ends in of_jobs.items():
        mean = sum(each.run_time for each in ends) // len(ends)
        found.ends[uid] = PodEnd(mean, ends[-1].exit_code)
    if history.ended_at is not None:
        found.ended_at = max(history.ended_at, found.ended_at)
    found.left_out, found.remarks = history.left_out, history.remarks
    return found


def _objects(history: RecordedHistory, found: Survey) -> Iterator[JsonObject]:
    for obj in history.objects:
        found.objects += 1
        yield obj
    for change in history.changes:
        found.changes += 1
        found.ended_at = max(found.ended_at, change.at)
        yield change.object


def end_of_pod(pod: JsonObject) -> PodEnd | None:
    """From the earliest start of a container to the latest end, if all have ended.

    None for a pod that was made to end: its deletion is what is replayed.
    """
    status = pod.get("status") or {}
    if status.get("phase") not in FINISHED or pod["metadata"].get("deletionTimestamp"):
        return None
    starts, ends, code = [], [], 0
    for told in status.get("containerStatuses") or ():
        over = ((told if isinstance(told, dict) else {}).get("state") or {}).get("terminated")
        if not isinstance(over, dict):
            return None
        try:
            starts.append(parse_time(str(over.get("startedAt"))))
            ends.append(parse_time(str(over.get("finishedAt"))))
        except ValueError:
            return None
        code = code or _code(over.get("exitCode"))
    return PodEnd(max(max(ends) - min(starts), 0), code) if starts else None


def _code(told: Any) -> int:
    return told if isinstance(told, int) and 0 <= told <= 255 else 1
