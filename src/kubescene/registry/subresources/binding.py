"""The ``binding`` subresource of pods: from pending to assigned, once.

`bound` makes the assigned pod of a decoded one. Most pods need not be decoded for it: a binding
that brings nothing but a node replaces parts of the encoding (`Bindings`), and pods that had one
status before have one afterwards.
"""

import orjson

from kubescene.api.records import Record
from kubescene.api.records.parts import (
    UNPLACED,
    PodSections,
    Sections,
    assigned_node,
    metadata_of,
    part_mentions,
    pod_status,
    split_nomination,
    status_of,
)
from kubescene.api.scheme import GroupResource
from kubescene.clock import Clock, format_time
from kubescene.errors import BadRequestError, ConflictError
from kubescene.registry.objects import set_condition
from kubescene.store import Store
from kubescene.types import JsonObject

NODES = GroupResource("", "nodes")
# E-9
STATUSES_KEPT = 512
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_TOPOLOGY = frozenset(TOPOLOGY_LABELS)


def target_node(body: JsonObject, pod: JsonObject) -> str:
    """The node a Binding names, after checking that this pod may still be bound."""
    target = body.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node") or not target.get("name"):
        raise BadRequestError("a Binding needs target.kind Node and target.name")
    metadata = pod["metadata"]
    _check_preconditions(body.get("metadata") or {}, pod)
    if metadata.get("deletionTimestamp"):
        raise _refused(
            pod, f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
        )
    if assigned := pod["spec"].get("nodeName"):
        raise _refused(pod, f'pod {metadata["name"]} is already assigned to node "{assigned}"')
    if pod["spec"].get("schedulingGates"):
        raise _refused(pod, f"pod {metadata['name']} has non-empty .spec.schedulingGates")
    return str(target["name"])


def _check_preconditions(given: JsonObject, pod: JsonObject) -> None:
    for field, word in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, actual = given.get(field), pod["metadata"][field]
        if wanted and wanted != actual:
            raise _refused(
                pod,
                f"Precondition failed: {word} in precondition: {wanted}, "
                f"{word} in object meta: {actual}",
            )


def bound(pod: JsonObject, body: JsonObject, node: str, store: Store, clock: Clock) -> JsonObject:
    """The pod on its node: assigned, PodScheduled, nomination cleared.

    It takes over labels and annotations of the Binding, and the node's zone and region.
    """
    metadata, given = pod["metadata"], body.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **topology_labels(node, store)}
    for field, added in (("labels", labels), ("annotations", given.get("annotations"))):
        if added:
            metadata = {**metadata, field: {**(metadata.get(field) or {}), **added}}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": bound_status(pod.get("status", {}), format_time(clock.now())),
    }


def bound_status(status: JsonObject, now: str) -> JsonObject:
    kept = {name: value for name, value in status.items() if name != "nominatedNodeName"}
    condition = {"type": "PodScheduled", "status": "True"}
    return {**kept, "conditions": set_condition(kept.get("conditions", []), condition, now)}


def topology_labels(node: str, store: Store) -> dict[str, str]:
    """Zone and region of a node, as pods on it carry them; nothing if there is no such node."""
    record = store.get(NODES, "", node)
    if record is None or _TOPOLOGY.isdisjoint(record.labels):
        return {}
    return {key: record.labels[key] for key in TOPOLOGY_LABELS if key in record.labels}


def labeled(encoded: bytes, labels: dict[str, str]) -> tuple[bytes, dict[str, str]]:
    """Encoded metadata with more labels, and all labels that they have then."""
    metadata = metadata_of(encoded)
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return orjson.dumps(metadata)[1:], metadata["labels"]


def binding_to(node: str, uid: str = "") -> JsonObject:
    """The Binding of a pod, of that one alone which has the ``uid`` if it is given."""
    body: JsonObject = {"target": {"kind": "Node", "name": node}}
    if uid:
        body["metadata"] = {"uid": uid}
    return body


class Bindings:
    """Bindings by parts, for one world."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._statuses: dict[tuple[bytes, str], bytes] = {}

    def are_quick(self, pod: Record, body: JsonObject) -> bool:
        """Whether the pod may be assigned, and gets nothing but a node; it may not know."""
        return self.may_be_assigned(pod) and brings_node_alone(body, pod)

    def may_be_assigned(self, pod: Record) -> bool:
        """Whether a pod is known to wait for a node, and for nothing else."""
        payload = pod.payload
        if type(payload) is not PodSections or pod.node or pod.deleting:
            return False
        spec, node, _, _ = payload.members
        return node == UNPLACED and not part_mentions(spec, b'"schedulingGates"')

    def bind(self, pod: Record, node: str, now: str) -> Record:
        """Assign a pod for which `may_be_assigned` was true."""
        assert isinstance(pod.payload, Sections)
        spec, _, status, end = pod.payload.members
        members = (spec, assigned_node(node), self.status(status, now), end)
        labels = topology_labels(node, self._store)
        if not labels:
            return self._store.rewrite(pod, members, node=node, phase=pod.phase)
        metadata, labels = labeled(pod.payload.metadata, labels)
        return self._store.rewrite(
            pod, members, node=node, phase=pod.phase, metadata=metadata, labels=labels
        )

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


def brings_node_alone(body: JsonObject, pod: Record) -> bool:
    """Whether a Binding names a node and, at most, the pod's uid."""
    target, given = body.get("target"), body.get("metadata")
    if given and (len(given) > 1 or given.get("uid") != pod.uid):
        return False
    if not isinstance(target, dict) or target.get("kind", "Node") != "Node":
        return False
    name = target.get("name")
    return isinstance(name, str) and name != ""


def _refused(pod: JsonObject, why: str) -> ConflictError:
    name = pod["metadata"]["name"]
    return ConflictError(
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        name=name,
        kind="pods/binding",
    )
