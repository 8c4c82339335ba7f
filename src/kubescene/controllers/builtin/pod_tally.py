"""Running counts of the pods that one controller object owns.

Updated pod by pod as changes arrive, so that a status costs the same for ten pods and for ten
thousand. Label sets are counted as groups: there are few of them, however many pods.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kubescene.clock import parse_time
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

Labels: TypeAlias = tuple[tuple[str, str], ...]

TERMINAL_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class OwnedPod:
    """What the counts need to know of a pod."""

    active: bool
    terminating: bool
    ready_since: int | None
    labels: Labels


def owned_pod(pod: JsonObject) -> OwnedPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    finished = status.get("phase") in TERMINAL_PHASES
    deleting = bool(metadata.get("deletionTimestamp"))
    return OwnedPod(
        active=not finished and not deleting,
        terminating=deleting and not finished,
        ready_since=ready_since(status),
        labels=tuple(sorted((metadata.get("labels") or {}).items())),
    )


def ready_since(status: Mapping[str, object]) -> int | None:
    """When the pod became ready, or None if it is not."""
    conditions = status.get("conditions") or ()
    assert isinstance(conditions, list | tuple)
    for condition in conditions:
        if condition["type"] == "Ready":
            is_ready = condition["status"] == "True"
            return parse_time(condition["lastTransitionTime"]) if is_ready else None
    return None


class PodTally:
    """Counts over the pods of one owner."""

    def __init__(self) -> None:
        self.pods: dict[ObjectKey, OwnedPod] = {}
        self.active = 0
        self.ready = 0
        self.terminating = 0
        self.active_labels: Counter[Labels] = Counter()

    def put(self, key: ObjectKey, pod: OwnedPod) -> None:
        self.remove(key)
        self.pods[key] = pod
        self._count(pod, 1)

    def remove(self, key: ObjectKey) -> None:
        if (pod := self.pods.pop(key, None)) is not None:
            self._count(pod, -1)

    def matching(self, wanted: Mapping[str, str]) -> int:
        """Active pods that carry all of these labels."""
        groups = self.active_labels.items()
        return sum(n for labels, n in groups if wanted.items() <= dict(labels).items())

    def _count(self, pod: OwnedPod, by: int) -> None:
        self.terminating += by * pod.terminating
        if pod.active:
            self.active += by
            self.ready += by * (pod.ready_since is not None)
            self.active_labels[pod.labels] += by
            if not self.active_labels[pod.labels]:
                del self.active_labels[pod.labels]
