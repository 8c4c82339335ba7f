"""What the Job controller knows of the pods of one Job, counted as they change.

Only pods that run, or that have ended and were not counted yet, take a place in a pass: a Job of
ten thousand pods costs no more at its end than at its beginning.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key
from typing import NamedTuple

from msgspec import Struct

from kubescene.clock import SECOND, parse_time
from kubescene.controllers.builtin.workloads.pod_tally import ready_since
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
NO_INDEX = -1
_ENDED = ("Succeeded", "Failed")
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class JobPod(Struct, frozen=True):
    """A pod as the controller sees it."""

    key: ObjectKey
    uid: str
    phase: str
    deleting: bool
    tracked: bool
    """Whether it has the finalizer that is taken off when the pod has been counted."""
    index: int
    assigned: bool
    ready_since: int | None
    restarts: int
    """Of all its containers together."""
    created: int
    ended_at: int
    exits: tuple[tuple[str, int], ...] = ()
    """Containers that have ended, with their exit codes."""
    conditions: tuple[tuple[str, str], ...] = ()
    failures: int = 0
    ignored_failures: int = 0

    def __deepcopy__(self, memo: object) -> "JobPod":
        return self  # nothing of it ever changes

    @property
    def active(self) -> bool:
        return not self.deleting and self.phase not in _ENDED

    @property
    def terminating(self) -> bool:
        return self.deleting and self.phase not in _ENDED


def job_pod(pod: JsonObject) -> JobPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    statuses = [*(status.get("containerStatuses") or ())]
    before = [*(status.get("initContainerStatuses") or ())]
    ended = [
        (each["name"], int(each["state"]["terminated"].get("exitCode", 0)))
        for each in (*statuses, *before)
        if (each.get("state") or {}).get("terminated")
    ]
    return JobPod(
        key=ObjectKey(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        phase=status.get("phase", "Pending"),
        deleting="deletionTimestamp" in metadata,
        tracked=TRACKING in (metadata.get("finalizers") or ()),
        index=number(annotations.get(INDEX), NO_INDEX),
        assigned=bool(pod["spec"].get("nodeName")),
        ready_since=ready_since(status),
        restarts=sum(int(each.get("restartCount", 0)) for each in (*statuses, *before)),
        created=parse_time(metadata["creationTimestamp"]),
        ended_at=ended_at(pod),
        exits=tuple(ended),
        conditions=tuple(
            (each.get("type", ""), each.get("status", ""))
            for each in status.get("conditions") or ()
        ),
        failures=number(annotations.get(FAILURES), 0),
        ignored_failures=number(annotations.get(IGNORED_FAILURES), 0),
    )


def number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default


def ended_at(pod: JsonObject) -> int:
    """When a pod ended: by its containers, else its readiness, its deletion, its creation."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ends = [
        ((each.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for each in status.get("containerStatuses") or ()
    ]
    if ends and all(ends):
        return max(parse_time(each) for each in ends)
    for each in status.get("conditions") or ():
        since = each.get("lastTransitionTime")
        if each.get("type", "") == "Ready" and each.get("status", "") == "False" and since:
            return parse_time(since)
    if "deletionTimestamp" in metadata:
        grace = int(metadata.get("deletionGracePeriodSeconds", 0)) * SECOND
        return parse_time(metadata["deletionTimestamp"]) - grace
    return parse_time(metadata["creationTimestamp"])


class PodNumbers(NamedTuple):
    """How the pods of a Job stand."""

    active: int
    ready: int
    terminating: int
    restarts: int
    to_count: int


class JobPods:
    """The pods of one Job."""

    def __init__(self) -> None:
        self.all: dict[ObjectKey, JobPod] = {}
        self._active: dict[ObjectKey, JobPod] = {}
        self._to_count: dict[ObjectKey, JobPod] = {}
        self._tracked: dict[ObjectKey, JobPod] = {}
        self.active_at: Counter[int] = Counter()
        self.terminating_at: Counter[int] = Counter()
        """How many pods have each completion index; no index has none."""
        self._highest = NO_INDEX
        """No active pod has had a higher index."""
        self.ready = 0
        self.terminating = 0
        self.restarts = 0
        """Of pods that are waiting or running."""

    @property
    def standing(self) -> PodNumbers:
        """How many there are of each kind, as far as a pass looks at numbers alone."""
        active, ended = len(self._active), len(self._to_count)
        return PodNumbers(active, self.ready, self.terminating, self.restarts, ended)

    def put(self, pod: JobPod) -> None:
        old = self.all.get(pod.key)
        if old == pod:
            return
        if old is not None:
            self._count(old, -1)
        self.all[pod.key] = pod
        self._count(pod, 1)
        _place(self._active, pod, here=pod.active)
        is_over = pod.deleting or pod.phase in _ENDED
        _place(self._to_count, pod, here=pod.tracked and is_over)
        _place(self._tracked, pod, here=pod.tracked)

    def remove(self, key: ObjectKey) -> JobPod | None:
        pod = self.all.pop(key, None)
        if pod is not None:
            self._count(pod, -1)
            self._active.pop(key, None)
            self._to_count.pop(key, None)
            self._tracked.pop(key, None)
        return pod

    @property
    def active(self) -> list[JobPod]:
        return [*self._active.values()]

    @property
    def count_active(self) -> int:
        return len(self._active)

    @property
    def to_count(self) -> list[JobPod]:
        """Those that have ended, or go, and still have the finalizer."""
        return [*self._to_count.values()]

    @property
    def tracked(self) -> list[JobPod]:
        """Those that have the finalizer."""
        return [*self._tracked.values()]

    def has_places(self, completions: int) -> bool:
        """Whether each active pod has an index of its own, as far as that is known at once."""
        places = self.active_at
        is_each_alone = len(places) == len(self._active) and NO_INDEX not in places
        return is_each_alone and self._highest < completions

    def _count(self, pod: JobPod, by: int) -> None:
        if pod.active:
            self.ready += by * (pod.ready_since is not None)
            _add(self.active_at, pod.index, by)
            self._highest = max(self._highest, pod.index)
        elif pod.terminating:
            self.terminating += by
            _add(self.terminating_at, pod.index, by)
        if pod.phase in ("Pending", "Running"):
            self.restarts += by * pod.restarts


def _add(counts: Counter[int], index: int, by: int) -> None:
    counts[index] += by
    if not counts[index]:
        del counts[index]


def _place(pods: dict[ObjectKey, JobPod], pod: JobPod, *, here: bool) -> None:
    if here:
        pods[pod.key] = pod
    else:
        pods.pop(pod.key, None)


def removal_order(pods: Iterable[JobPod]) -> list[JobPod]:
    """Which of several active pods goes first; equal ones in the order given."""
    return sorted(pods, key=cmp_to_key(_compare))


def _compare(one: JobPod, other: JobPod) -> int:
    ranks = [
        (pod.assigned, _PHASES.get(pod.phase, 1), pod.ready_since is not None)
        for pod in (one, other)
    ]
    if ranks[0] != ranks[1]:
        return -1 if ranks[0] < ranks[1] else 1
    times = (one.ready_since, other.ready_since)
    if times[0] is not None and times[1] is not None and times[0] != times[1]:
        return -1 if times[0] > times[1] else 1
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return -1 if one.created > other.created else 1
    return 0
