"""The writes of a pod in the lane (`kubescene.lane`): it is bound, it runs, its owners count it.

What becomes of a pod's encoding is known from those like it: the binding and the report of one were
made the long way. Here it is put together and stored; those who follow pods are not told, since the
lane tells them.
"""

from typing import NamedTuple

import orjson

from kubescene.api.options import WriteOptions
from kubescene.api.records import Record, versioned
from kubescene.api.records.changes import MODIFIED, Change
from kubescene.api.records.drafts import Parts
from kubescene.api.records.keys import alike_spec
from kubescene.api.records.parts import (
    UNPLACED,
    PodSections,
    assigned_node,
    generation_part,
    metadata_of,
    pod_status,
    split_nomination,
    status_of,
)
from kubescene.api.scheme import ResourceType
from kubescene.registry.shortcuts.status_counts import StatusCounts
from kubescene.registry.shortcuts.status_patches import StatusPatches
from kubescene.registry.subresources.binding import bound_status, topology_labels
from kubescene.store import Store
from kubescene.types import JsonObject

EMPTY = b'":{}'
"""Empty maps of metadata go with the first write of a status: the lane leaves metadata alone."""
_GATES, _NODE = b'"schedulingGates"', b'"nodeName"'


class PodParts(NamedTuple):
    """The parts of a pod that decide what a report makes of it; of the spec what others share."""

    spec: bytes
    status: bytes
    generation: bytes


class LaneWrites:
    """Writes the pods of one world that go through the lane."""

    def __init__(self, store: Store, patches: StatusPatches, counts: StatusCounts) -> None:
        self._store = store
        self._patches = patches
        self._counts = counts

    def parts_of(self, pod: Record) -> PodParts | None:
        """What pods must have in common to be written alike; None if this one is like no other."""
        payload = pod.payload
        if type(payload) is not PodSections or EMPTY in payload.metadata:
            return None
        if pod.node or pod.deleting or not self._store.is_newest(pod):
            return None
        members = payload.members
        return PodParts(alike_spec(members[0]), members[2], generation_part(payload))

    def bound_parts(self, pod: Record, parts: PodParts, now: str) -> PodParts | None:
        """The parts of pods like this one once they are bound; None if there is more to it."""
        if not may_be_assigned(pod):
            return None
        return parts._replace(status=self._bound_status(parts.status, now))

    def _bound_status(self, status: bytes, now: str) -> bytes:
        """What a binding makes of an encoded status."""
        split = split_nomination(status)
        before = status if split is None else split[0]  # A nomination ends with the binding.
        return self._store.shared(pod_status(bound_status(status_of(before), now)))

    def reported(self, options: WriteOptions, parts: PodParts) -> tuple[bytes, str] | None:
        """Status and phase that a report with these options gives to pods with these parts.

        None if nobody knows yet.
        """
        if options.blueprint is None:
            return None
        return self._patches.known(options.blueprint, parts.spec, parts.status)

    def bind(self, pod: Record, node: str, status: bytes) -> Change:
        """Give a node and the status of a bound pod to a pod that waits."""
        store, payload = self._store, pod.payload
        assert isinstance(payload, PodSections)
        revision = store.revision + 1
        spec, _, _, end = payload.members
        labels, metadata = pod.labels, payload.metadata
        if given := topology_labels(node, store):
            metadata, labels = labeled(metadata, given)
        members = (spec, assigned_node(node), status, end)
        bound = Record(
            pod.resource,
            pod.namespace,
            pod.name,
            pod.uid,
            revision,
            PodSections(payload.head, revision, metadata, members),
            labels,
            node,
            pod.phase,
            pod.owner,
        )
        change = Change(MODIFIED, bound, pod, store)
        store.commit_unheard(change)
        return change

    def report(self, pod: Record, status: bytes, phase: str) -> Change:
        """Give another status to a pod."""
        store, payload = self._store, pod.payload
        assert isinstance(payload, PodSections)
        revision = store.revision + 1
        spec, node, _, end = payload.members
        reported = Record(
            pod.resource,
            pod.namespace,
            pod.name,
            pod.uid,
            revision,
            PodSections(payload.head, revision, payload.metadata, (spec, node, status, end)),
            pod.labels,
            pod.node,
            phase,
            pod.owner,
        )
        change = Change(MODIFIED, reported, pod, store)
        store.commit_unheard(change)
        return change

    def counted(self, owner: Record, kind: ResourceType, counts: JsonObject) -> Parts | None:
        """An owner of pods with other counts in its status; None if it takes a closer look."""
        return self._counts.counted(owner, kind, counts)

    def count(self, owner: Record, counted: Parts) -> Change:
        """Give an owner its counts."""
        store = self._store
        revision = store.revision + 1
        change = Change(MODIFIED, counted.at(revision), owner, store)
        assert counted.obj is not None
        store.commit_unheard(change, versioned(counted.obj, revision))
        return change


def may_be_assigned(pod: Record) -> bool:
    """Whether a pod is known to wait for a node, and for nothing else."""
    payload = pod.payload
    if type(payload) is not PodSections or pod.node or pod.deleting:
        return False
    spec, node, _, _ = payload.members
    return node == UNPLACED and _GATES not in spec and _NODE not in spec


def labeled(encoded: bytes, labels: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """Encoded metadata with more labels, and all labels that they have then."""
    metadata = metadata_of(encoded)
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return orjson.dumps(metadata)[1:], metadata["labels"]
