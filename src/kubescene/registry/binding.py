"""The ``binding`` subresource of pods: from pending to assigned, once."""

from kubescene.api.scheme import GroupResource
from kubescene.clock import Clock, format_time
from kubescene.errors import BadRequestError, ConflictError
from kubescene.registry.objects import set_condition
from kubescene.store import Store
from kubescene.types import JsonObject

NODES = GroupResource("", "nodes")
TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def target_node(body: JsonObject, pod: JsonObject) -> str:
    """The node a Binding names, after checking that this pod may still be bound."""
    target = body.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node") or not target.get("name"):
        raise BadRequestError("a Binding needs target.kind Node and target.name")
    metadata = pod["metadata"]
    uid = (body.get("metadata") or {}).get("uid")
    if uid and uid != metadata["uid"]:
        raise _refused(
            pod,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}",
        )
    if metadata.get("deletionTimestamp"):
        raise _refused(
            pod, f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
        )
    if assigned := pod["spec"].get("nodeName"):
        raise _refused(pod, f'pod {metadata["name"]} is already assigned to node "{assigned}"')
    if pod["spec"].get("schedulingGates"):
        raise _refused(pod, f"pod {metadata['name']} has non-empty .spec.schedulingGates")
    return str(target["name"])


def bound(pod: JsonObject, body: JsonObject, node: str, store: Store, clock: Clock) -> JsonObject:
    """The pod on its node: assigned, PodScheduled, nomination cleared, topology labels copied."""
    metadata = _with_labels(pod["metadata"], node, store)
    if annotations := (body.get("metadata") or {}).get("annotations"):
        metadata = {
            **metadata,
            "annotations": {**metadata.get("annotations", {}), **annotations},
        }
    status = {k: v for k, v in pod.get("status", {}).items() if k != "nominatedNodeName"}
    condition = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = set_condition(
        status.get("conditions", []), condition, format_time(clock.now())
    )
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": status,
    }


def _with_labels(metadata: JsonObject, node: str, store: Store) -> JsonObject:
    record = store.get(NODES, "", node)
    if record is None:
        return metadata
    labels = {key: record.labels[key] for key in TOPOLOGY_LABELS if key in record.labels}
    return {**metadata, "labels": {**metadata.get("labels", {}), **labels}} if labels else metadata


def _refused(pod: JsonObject, why: str) -> ConflictError:
    name = pod["metadata"]["name"]
    return ConflictError(
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        name=name,
        kind="pods/binding",
    )
