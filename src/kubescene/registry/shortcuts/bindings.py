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
        if current is None or request.options.dry_run:
            return None
        payload = current.payload
        if type(payload) is not PodSections or current.node or current.deleting:
            return None
        spec, node, status, end = payload.members
        if node != UNPLACED or part_mentions(spec, b'"schedulingGates"'):
            return None
        if not brings_node_alone(request.wish, current):
            return None
        name = request.wish["target"]["name"]
        now = format_time(self._clocks.world.now())
        members = (spec, assigned_node(name), self._status(status, now), end)
        metadata, labels = payload.metadata, current.labels
        if zoned := topology_labels(name, self._store):
            obj = metadata_of(metadata)
            labels = obj["labels"] = {**(obj.get("labels") or {}), **zoned}
            metadata = orjson.dumps(obj)[1:]
        return Parts(
            current, metadata, members, current.name, current.uid, labels, name, current.phase
        )

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Nothing: a binding is found without an example."""

    def _status(self, status: bytes, now: str) -> bytes:
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


def brings_node_alone(body: JsonObject, pod: Record) -> bool:
    """Whether a Binding names a node and, at most, the pod's uid."""
    target, given = body.get("target"), body.get("metadata")
    if given and (len(given) > 1 or given.get("uid") != pod.uid):
        return False
    if not isinstance(target, dict) or target.get("kind", "Node") != "Node":
        return False
    name = target.get("name")
    return isinstance(name, str) and name != ""
