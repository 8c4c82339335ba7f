"""Bindings of pods that need not be decoded for it: what is new in them is put into their encoding.

The long way is `kubescene.registry.subresources.binding`. It is taken if the pod may not be bound,
or if the Binding says more than which pod goes where.
"""

import orjson

from kubescene.api.records import Record
from kubescene.api.records.drafts import Parts
from kubescene.api.records.parts import (
    UNPLACED,
    PodSections,
    assigned_node,
    metadata_of,
    pod_status,
    status_of,
)
from kubescene.clock import Clock, format_time
from kubescene.registry.subresources.binding import binding_to, bound_status, topology_labels
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

_GATES, _NODE = b'"schedulingGates"', b'"nodeName"'


class Bindings:
    """Binds the pods of one world."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def find(self, request: WriteRequest, current: Record | None) -> Parts | None:
        """The pod on its node; None if it takes a closer look."""
        if current is None or request.options.dry_run:
            return None
        return bound_parts(current, request.wish, self._store, self._clock)

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Nothing is kept from one binding to the next."""


def bound_parts(pod: Record, body: JsonObject, store: Store, clock: Clock) -> Parts | None:
    """What `bound` makes of a pod that is not decoded for it; None if it has to be."""
    node, payload = (body.get("target") or {}).get("name"), pod.payload
    if type(node) is not str or not node or body != binding_to(node, pod.uid):
        return None
    if type(payload) is not PodSections or not may_be_assigned(pod):
        return None
    spec, _, status, end = payload.members
    given = topology_labels(node, store)
    metadata, labels = labeled(payload.metadata, given) if given else (payload.metadata, pod.labels)
    now = format_time(clock.now())
    status = store.shared(pod_status(bound_status(status_of(status), now)))
    members = (spec, assigned_node(node), status, end)
    return Parts(pod, metadata, members, pod.name, pod.uid, labels, node, pod.phase)


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
