"""The ``binding`` subresource of pods: from pending to assigned, once."""

from kubescene.api.scheme import GroupResource
from kubescene.clock import Clock, format_time
from kubescene.errors import BadRequestError, ConflictError
from kubescene.registry.objects import set_condition
from kubescene.store import Store
from kubescene.types import JsonObject

NODES = GroupResource("", "nodes")
# E-9
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


def binding_to(node: str, uid: str = "") -> JsonObject:
    """The Binding of a pod, of that one alone which has the ``uid`` if it is given."""
    body: JsonObject = {"target": {"kind": "Node", "name": node}}
    if uid:
        body["metadata"] = {"uid": uid}
    return body


def _refused(pod: JsonObject, why: str) -> ConflictError:
    name = pod["metadata"]["name"]
    return ConflictError(
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        name=name,
        kind="pods/binding",
    )
