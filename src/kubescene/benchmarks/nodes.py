"""createNodes: nodes of one template, and what is done to them afterwards."""

from kubescene.api.copies import own_copy
from kubescene.api.kinds import NODE
from kubescene.benchmarks.operations import WorkloadOperation
from kubescene.benchmarks.stage import NODES, ReplayStage
from kubescene.benchmarks.templates import ObjectTemplate
from kubescene.client.interfaces import ObjectRef
from kubescene.errors import WorkloadError
from kubescene.types import JsonObject

CAPACITY = {"pods": "110", "cpu": "4", "memory": "32Gi"}
BASE_NODE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {},
    "status": {
        "capacity": CAPACITY,
        "conditions": [{"type": "Ready", "status": "True"}],
        "phase": "Running",
    },
}
HOSTNAME = "kubernetes.io/hostname"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def create_nodes(
    stage: ReplayStage, operation: WorkloadOperation, template: ObjectTemplate | None
) -> int:
    """Create them one by one; then all nodes are read back in order of their names, and the next
    ones of them are changed as a strategy says. Returns how many there are.
    """
    count: int = operation.get("count")
    for index in range(count):
        body = BASE_NODE if template is None else template.fill(index, count)
        stage.create(_node(stage, body, f"node-{operation.index}-"))
    names = sorted(record.name for record in stage.cluster.store.list(NODES, ""))
    chosen = names[stage.next_node : stage.next_node + count]
    stage.next_node += count
    for index, name in enumerate(chosen):
        _change(stage, operation, name, index)
    return count


def _node(stage: ReplayStage, body: JsonObject, prefix: str) -> JsonObject:
    node: JsonObject = own_copy(body)
    metadata = node.setdefault("metadata", {})
    name = metadata["name"] = stage.name_for(metadata, prefix)
    metadata["labels"] = {**(metadata.get("labels") or {}), HOSTNAME: name}
    status = node.setdefault("status", {})
    if not status.get("allocatable"):
        status["allocatable"] = dict(status.get("capacity") or {})
    return node


def _change(stage: ReplayStage, operation: WorkloadOperation, name: str, index: int) -> None:
    if strategy := operation.get("labelNodePrepareStrategy"):
        values = strategy.get("labelValues") or [strategy.get("labelValue", "")]
        _label(stage, name, _key(strategy), values[index % len(values)])
    if strategy := operation.get("uniqueNodeLabelStrategy"):
        _label(stage, name, _key(strategy), f"unique-{operation.index}-{index}")
    if strategy := operation.get("nodeAllocatableStrategy"):
        _offer(stage, name, strategy)


def _key(strategy: JsonObject) -> str:
    key = strategy.get("labelKey")
    if not isinstance(key, str) or not key:
        raise WorkloadError("a strategy with labels needs a labelKey")
    return key


def _label(stage: ReplayStage, name: str, key: str, value: str) -> None:
    stage.client.patch(ObjectRef(NODE, name), {"metadata": {"labels": {key: value}}})


def _offer(stage: ReplayStage, name: str, strategy: JsonObject) -> None:
    """More resources, and the limits of storage drivers."""
    offered = strategy.get("nodeAllocatable") or {}
    patch = {"status": {"capacity": offered, "allocatable": offered}}
    stage.client.patch(ObjectRef(NODE, name), patch, subresource="status")
    limits = strategy.get("csiNodeAllocatable") or {}
    drivers = [
        {"name": driver, "nodeID": name, "topologyKeys": [], "allocatable": allocatable}
        for driver, allocatable in limits.items()
    ]
    metadata: JsonObject = {"name": name}
    if migrated := strategy.get("migratedPlugins"):
        metadata["annotations"] = {MIGRATED: ",".join(migrated)}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    stage.create({**kind, "metadata": metadata, "spec": {"drivers": drivers}})
