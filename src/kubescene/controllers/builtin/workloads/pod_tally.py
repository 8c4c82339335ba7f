"""Running counts of the pods that one controller object owns.

Updated pod by pod as changes arrive, so that a status costs the same for ten pods and for ten
thousand. Label sets are counted as groups: there are few of them, however many pods.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import msgspec

from kubescene.api.records import Record, status_of_key
from kubescene.bounded import KEPT
from kubescene.clock import parse_time
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

Labels: TypeAlias = tuple[tuple[str, str], ...]

UNKNOWN_TIME = 1 << 62
"""When a pod became ready that does not say so: never long enough ago."""
TERMINAL_PHASES = ("Succeeded", "Failed")


class OwnedPod(msgspec.Struct, frozen=True, gc=False):
    """What the counts need to know of a pod."""

    active: bool
    terminating: bool
    ready_since: int | None
    labels: Labels

    def __deepcopy__(self, memo: object) -> "OwnedPod":
        return self  # nothing of it ever changes


def owned_pod(pod: JsonObject, labels: Labels | None = None) -> OwnedPod:
    """The summary of a pod, whose ``labels`` may be known already."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    finished = status.get("phase") in TERMINAL_PHASES
    deleting = bool(metadata.get("deletionTimestamp"))
    return OwnedPod(
        active=not finished and not deleting,
        terminating=deleting and not finished,
        ready_since=ready_since(status),
        labels=label_pairs(metadata.get("labels") or {}) if labels is None else labels,
    )


def owned_record(record: Record, labels: Labels | None = None) -> OwnedPod:
    """The same from a pod's record, decoded only where it shares its status with nobody."""
    status = record.status_key
    if status is None:
        return owned_pod(record.decode(), labels)
    finished, deleting = record.phase in TERMINAL_PHASES, record.deleting
    return OwnedPod(
        active=not finished and not deleting,
        terminating=deleting and not finished,
        ready_since=_ready_in(status),
        labels=label_pairs(record.labels) if labels is None else labels,
    )


def ready_since_of(record: Record) -> int | None:
    """When the pod of a record became ready, or None if it is not."""
    status = record.status_key
    return ready_since(record.decode().get("status") or {}) if status is None else _ready_in(status)


@lru_cache(KEPT)
def _ready_in(status: bytes) -> int | None:
    return ready_since(status_of_key(status))


def label_pairs(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def counts_alike(one: OwnedPod, other: OwnedPod) -> bool:
    """Whether two states of a pod make no difference to the counts."""
    return (
        one.active == other.active
        and one.terminating == other.terminating
        and (one.ready_since is None) == (other.ready_since is None)
        and one.labels == other.labels
    )


def ready_since(status: Mapping[str, object]) -> int | None:
    """When the pod became ready, or None if it is not; `UNKNOWN_TIME` if it does not say."""
    conditions = status.get("conditions") or ()
    assert isinstance(conditions, list | tuple)
    for condition in conditions:
        if condition.get("type") == "Ready":
            if condition.get("status") != "True":
                return None
            since = condition.get("lastTransitionTime")
            return parse_time(since) if since else UNKNOWN_TIME
    return None


class PodTally:
    """Counts over the pods of one owner."""

    def __init__(self) -> None:
        self.pods: dict[ObjectKey, OwnedPod] = {}
        self.active = 0
        self.ready = 0
        self.terminating = 0
        self.owner: ObjectKey | None = None
        self.changes = 0
        """Goes up with every change of the counts."""
        self.active_labels: Counter[Labels] = Counter()

    def put(self, key: ObjectKey, pod: OwnedPod) -> None:
        old = self.pods.pop(key, None)
        self.pods[key] = pod
        if old is None:
            self._count(pod, 1)
        elif old != pod and not counts_alike(old, pod):
            self._recount(old, pod)

    def remove(self, key: ObjectKey) -> None:
        if (pod := self.pods.pop(key, None)) is not None:
            self._count(pod, -1)

    def matching(self, wanted: Mapping[str, str]) -> int:
        """Active pods that carry all of these labels."""
        pairs = wanted.items()
        groups = self.active_labels.items()
        return sum([count for labels, count in groups if pairs <= dict(labels).items()])

    def _recount(self, old: OwnedPod, new: OwnedPod) -> None:
        """A pod has changed; most of them become ready, and that is all."""
        if old.active and new.active and old.labels == new.labels:
            self.changes += 1
            self.ready += (new.ready_since is not None) - (old.ready_since is not None)
        else:
            self._count(old, -1)
            self._count(new, 1)

    def _count(self, pod: OwnedPod, by: int) -> None:
        self.changes += 1
        self.terminating += by * pod.terminating
        if pod.active:
            self.active += by
            self.ready += by * (pod.ready_since is not None)
            self.active_labels[pod.labels] += by
            if not self.active_labels[pod.labels]:
                del self.active_labels[pod.labels]
