"""Bindings of pods that are not decoded for it.

A binding that brings nothing but a node replaces parts of the encoding, and pods that had one
status before have one afterwards.
"""

import orjson

from kubescene.api.records import Record
from kubescene.api.records.drafts import Parts
from kubescene.api.records.parts import (
    UNPLACED,
    PodSections,
    assigned_node,
    metadata_of,
    part_mentions,
    pod_status,
    split_nomination,
    status_of,
)
from kubescene.clock import format_time
from kubescene.registry.clocks import Clocks
from kubescene.registry.subresources.binding import bound_status, topology_labels
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

STATUSES_KEPT = 512


class Bindings:
    """Bindings by parts, for one world."""

    def __init__(self, store: Store, clocks: Clocks) -> None:
        self._store = store
        self._clocks = clocks
        self._statuses: dict[tuple[bytes, str], bytes] = {}

    def find(self, request: WriteRequest, current: Record | None) -> Parts | None:
        """The pod with its node, if it waits for one and gets nothing else."""
        if current is None or request.options.dry_run or not may_be_assigned(current):
            return None
        if not brings_node_alone(request.wish, current):
            return None
        payload = current.payload
        assert isinstance(payload, PodSections)
        spec, _, status, end = payload.members
        name = request.wish["target"]["name"]
        now = format_time(self._clocks.world.now())
        members = (spec, assigned_node(name), self.status(status, now), end)
        metadata, labels = payload.metadata, current.labels
        if zoned := topology_labels(name, self._store):
            metadata, labels = labeled(metadata, zoned)
        return Parts(
            current, metadata, members, current.name, current.uid, labels, name, current.phase
        )

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Nothing: a binding is found without an example."""

    def status(self, status: bytes, now: str) -> bytes:
        """What a binding makes of an encoded status."""
        bound = self._statuses.get((status, now))
        if bound is not None:
            return bound
        if (split := split_nomination(status)) is not None:
            status, _ = split  # A nomination ends with the binding, whatever it was.
        bound = self._statuses.get((status, now))
        if bound is None:
            if len(self._statuses) >= STATUSES_KEPT:
                self._statuses.clear()
            bound = self._store.shared(pod_status(bound_status(status_of(status), now)))
            self._statuses[status, now] = bound
        return bound


def may_be_assigned(pod: Record) -> bool:
    """Whether a pod is known to wait for a node, and for nothing else."""
    payload = pod.payload
    if type(payload) is not PodSections or pod.node or pod.deleting:
        return False
    spec, node, _, _ = payload.members
    return node == UNPLACED and not part_mentions(spec, b'"schedulingGates"')


def labeled(encoded: bytes, labels: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """Encoded metadata with more labels, and all labels that they have then."""
    metadata = metadata_of(encoded)
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return orjson.dumps(metadata)[1:], metadata["labels"]


def brings_node_alone(body: JsonObject, pod: Record) -> bool:
    """Whether a Binding names a node and, at most, the pod's uid."""
    target, given = body.get("target"), body.get("metadata")
    if given and (len(given) > 1 or given.get("uid") != pod.uid):
        return False
    if not isinstance(target, dict) or target.get("kind", "Node") != "Node":
        return False
    name = target.get("name")
    return isinstance(name, str) and name != ""
