"""The pod garbage collector: pods that no kubelet will ever end.

Pods of a node that has been missing for forty seconds; pods that are being deleted and have no
node, or one that is out of service; the oldest of those that have ended, if there are very many.
They are marked as failed and deleted without grace.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from kubescene.api.kinds import NODE, POD
from kubescene.api.options import DeleteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import STRAY
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.nodes.node_conditions import (
    OUT_OF_SERVICE,
    READY,
    readiness,
    taints_of,
)
from kubescene.controllers.builtin.nodes.pods_on_nodes import ENDED, PODS, PodsOnNodes, disruption
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, ConflictError, NotFoundError
from kubescene.types import JsonObject

QUARANTINE = 40 * SECOND
"""A node may come back, or be late."""
PERIOD = 20 * SECOND
"""How often it looks for pods that go without ever having had a node."""
MOST_ENDED = 12_500
EXCESS = ObjectKey("*", "ended")
"""The turn of pods that have ended; no namespace is called so."""
MESSAGE = "PodGC: node no longer exists"
MENTION = b'"node.kubernetes.io/out-of-service"'
Rank: TypeAlias = tuple[bool, str, str, str]
"""Whether it was not evicted, time of creation, name, namespace."""


class PodGarbageCollector:
    """Keys with a namespace are pods, those without are nodes that are missing."""

    name = "pod-garbage-collector"
    kinds: Sequence[GroupVersionKind] = (NODE, POD)
    pod_traits = STRAY

    def __init__(self, most_ended: int = MOST_ENDED) -> None:
        self._most_ended = most_ended
        self._nodes: set[str] = set()
        self._missing: dict[str, int | None] = {}
        """Nodes that are not there, and when that was noticed."""
        self._out_of_service: set[str] = set()
        self._ended = EndedPods()
        self._pods = PodsOnNodes()
        self.needs_pods = False

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource == PODS:
            return [*self._observe_pod(change)]
        name = change.record.name
        if change.type is ChangeType.DELETED:
            self._nodes.discard(name)
            self._out_of_service.discard(name)
            return (self._miss(name),)
        self._nodes.add(name)
        self._missing.pop(name, None)
        return self._observe_service(name, change)

    def _observe_service(self, name: str, change: Change) -> Iterable[ObjectKey]:
        if not (change.record.members_mention(MENTION) and is_out_of_service(change.object)):
            self._out_of_service.discard(name)
            return ()
        self._out_of_service.add(name)
        if not self.needs_pods:
            self.needs_pods = True
            return (ObjectKey("", name),)
        return self._pods.on(name)

    def _observe_pod(self, change: Change) -> Iterator[ObjectKey]:
        self._pods.observe(change)
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if change.type is ChangeType.DELETED:
            self._ended.discard(key)
            return
        if record.phase in ENDED:
            self._ended.add(key)
            if len(self._ended) > self._most_ended:
                yield EXCESS
        if record.deleting and (not record.node or record.node in self._out_of_service):
            yield key
        if record.node and record.node not in self._nodes and record.node not in self._missing:
            yield self._miss(record.node)

    def _miss(self, node: str) -> ObjectKey:
        self._missing[node] = None
        self.needs_pods = True
        return ObjectKey("", node)

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        if key == EXCESS:
            return Plan([*self._excess(reader)])
        if not key.namespace:
            return self._orphans(key.name, reader, now)
        pod = reader.find(ObjectRef(POD, key.name, key.namespace))
        if pod is None or not pod["metadata"].get("deletionTimestamp"):
            return NOTHING
        node = pod["spec"].get("nodeName")
        if node:
            return Plan([*forced(pod)]) if node in self._out_of_service else NOTHING
        due = parse_time(pod["metadata"]["deletionTimestamp"]) + PERIOD
        return Plan([*forced(pod)]) if now >= due else Plan(requeue_after=due - now)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """It is gone, or another has its name."""
        del key, write, reader, now
        if isinstance(error, NotFoundError | ConflictError):
            return NOTHING
        raise error

    def _orphans(self, node: str, reader: Reader, now: int) -> Plan:
        if node not in self._missing:
            return NOTHING
        since = self._missing[node]
        if since is None:
            since = self._missing[node] = now
        if now < since + QUARANTINE:
            return Plan(requeue_after=since + QUARANTINE - now)
        del self._missing[node]
        writes: list[Write] = []
        for key in self._pods.on(node):
            if (pod := reader.find(ObjectRef(POD, key.name, key.namespace))) is not None:
                writes += forced(pod, disruption(pod, "DeletionByPodGC", MESSAGE, now))
        return Plan(writes)

    def _excess(self, reader: Reader) -> Iterator[Write]:
        """The pods that have ended and are too many: evicted ones first, then the oldest."""
        for pod in self._ended.beyond(self._most_ended, reader):
            yield from forced(pod)


class EndedPods:
    """Pods that have ended, and in which order they go if they are too many.

    A pod is ranked when that is asked for the first time: most worlds never ask, and one that does
    asks again with every pod that ends.
    """

    def __init__(self) -> None:
        self._unranked: dict[ObjectKey, None] = {}
        self._rank_of: dict[ObjectKey, Rank] = {}
        self._ranks: list[Rank] = []
        """In order."""

    def __len__(self) -> int:
        return len(self._unranked) + len(self._ranks)

    def add(self, key: ObjectKey) -> None:
        """A pod has ended, or has changed since."""
        self.discard(key)
        self._unranked[key] = None

    def discard(self, key: ObjectKey) -> None:
        self._unranked.pop(key, None)
        if (rank := self._rank_of.pop(key, None)) is not None:
            del self._ranks[bisect_left(self._ranks, rank)]

    def beyond(self, most: int, reader: Reader) -> list[JsonObject]:
        """Those that have to go so that at most so many are left, in order."""
        for key in self._unranked:
            if (pod := reader.find(ObjectRef(POD, key.name, key.namespace))) is not None:
                rank = self._rank_of[key] = order_of_going(pod)
                insort(self._ranks, rank)
        self._unranked.clear()
        going = self._ranks[: max(len(self._ranks) - most, 0)]
        found = (reader.find(ObjectRef(POD, name, namespace)) for *_, name, namespace in going)
        return [pod for pod in found if pod is not None]


def is_out_of_service(node: JsonObject) -> bool:
    """Whether somebody has said that a node that is not ready will not come back."""
    said = any(taint["key"] == OUT_OF_SERVICE for taint in taints_of(node))
    return said and readiness(node) != READY


def order_of_going(pod: JsonObject) -> Rank:
    metadata, status = pod["metadata"], pod["status"]
    is_evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    created, name = metadata["creationTimestamp"], metadata["name"]
    return not is_evicted, created, name, metadata["namespace"]


def forced(pod: JsonObject, condition: JsonObject | None = None) -> Iterator[Write]:
    """End a pod without its kubelet; nothing, if only its finalizers hold it."""
    ref, metadata = ObjectRef.to(pod), pod["metadata"]
    is_over = pod["status"].get("phase") in ENDED
    if not is_over:
        status: JsonObject = {"phase": "Failed"}
        if condition is not None:
            status["conditions"] = [condition]
        yield Patch(ref, {"status": status}, PatchType.STRATEGIC, "status")
    if not is_over or metadata.get("deletionGracePeriodSeconds") != 0:
        yield Delete(ref, DeleteOptions(uid=metadata["uid"], grace_period_s=0))


def pod_garbage_collector(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(PodGarbageCollector(), context)
