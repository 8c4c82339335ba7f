"""The pods of a StatefulSet: which ordinal each has, how it fares, and counts of them all."""

import re
from collections import Counter

from msgspec import Struct

from kubescene.api.records import Record
from kubescene.api.selectors import LabelSelector
from kubescene.controllers.builtin.workloads.controller_revisions import (
    REVISION_LABEL,
)
from kubescene.controllers.builtin.workloads.pod_tally import TERMINAL_PHASES, ready_since_of
from kubescene.controllers.reconcile import (
    ObjectKey,
)

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NUMBERED = re.compile(r"(.*)-([0-9]+)", re.ASCII)
_GREATEST = 2**31 - 1


class StatefulReplica(Struct, frozen=True, gc=False):
    """A pod of a set. One that is not there yet has no phase."""

    ordinal: int
    name: str
    uid: str
    revision: str
    phase: str
    ready_since: int | None
    deleting: bool
    labelled: bool
    """Whether its labels say its name."""

    def __deepcopy__(self, memo: object) -> "StatefulReplica":
        return self  # nothing of it ever changes

    @property
    def is_ready(self) -> bool:
        return self.phase == "Running" and self.ready_since is not None

    def is_available(self, delay: int, now: int) -> bool:
        """Whether it runs and has been ready for so long."""
        since = self.ready_since
        return self.phase == "Running" and since is not None and (not delay or since + delay <= now)


class Members:
    """The pods of one set by name, and counts of them. ``strays`` no longer belong to it."""

    def __init__(self, key: ObjectKey, selector: LabelSelector) -> None:
        self.key = key
        self.selector = selector
        self.pods: dict[str, StatefulReplica] = {}
        self.strays: dict[str, None] = {}
        self.ready = 0
        self.away = 0
        """Pods that are not ready, or on their way out."""
        self.odd = 0
        """Pods that have ended, or are not labelled as they should be."""
        self.revisions: Counter[str] = Counter()
        self.staying: Counter[str] = Counter()
        """The revisions of pods that are not on their way out."""
        self._ordinals: Counter[int] = Counter()
        self._start = self._missing = 0

    def put(self, record: Record) -> None:
        self.remove(record.name)
        parent, ordinal = numbered(record.name)
        if parent != self.key.name or not self.selector.matches(record.labels):
            self.strays[record.name] = None
            return
        pod = self.pods[record.name] = StatefulReplica(
            ordinal,
            record.name,
            record.uid,
            record.labels.get(REVISION_LABEL, ""),
            record.phase or "Pending",
            ready_since_of(record),
            record.deleting,
            record.labels.get(NAME_LABEL) == record.name == f"{parent}-{ordinal}",
        )
        self._count(pod, 1)

    def remove(self, name: str) -> None:
        self.strays.pop(name, None)
        if (pod := self.pods.pop(name, None)) is not None:
            self._count(pod, -1)

    def first_missing(self, start: int) -> int:
        """The lowest ordinal, from a start on, that no pod has."""
        if start != self._start:
            self._start = self._missing = start
        while self._ordinals[self._missing] > 0:
            self._missing += 1
        return self._missing

    def _count(self, pod: StatefulReplica, by: int) -> None:
        self.ready += by * pod.is_ready
        self.away += by * (pod.deleting or not pod.is_ready)
        self.odd += by * (pod.phase in TERMINAL_PHASES or not pod.labelled)
        self.revisions[pod.revision] += by
        if not pod.deleting:
            self.staying[pod.revision] += by
        self._ordinals[pod.ordinal] += by
        if by < 0 and self._start <= pod.ordinal < self._missing:
            self._missing = pod.ordinal


def numbered(name: str) -> tuple[str, int]:
    """The set and the ordinal in the name of a pod; the ordinal is -1 if there is none."""
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return "", -1
    ordinal = int(found[2])
    return found[1], ordinal if ordinal <= _GREATEST else -1
