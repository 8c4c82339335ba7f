"""What workloads create.

createNodes: nodes of one template, and what is done to them afterwards. createResourceDriver and
allocResourceClaims: devices, and claims that have theirs in advance. createPods: many pods of one
template, with volumes of their own if the workload says so.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from kubescene.api.copies import own_copy
from kubescene.api.kinds import NODE
from kubescene.api.records.templates import Blueprint, ClaimingBlueprint
from kubescene.api.scheme import GroupVersionKind
from kubescene.benchmarks.operations import WorkloadOperation
from kubescene.benchmarks.stage import CREATED_PER_S, NODES, ReplayStage
from kubescene.benchmarks.templates import ObjectTemplate
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import SECOND, parse_duration
from kubescene.errors import WorkloadError
from kubescene.types import JsonObject

RESOURCE_CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
RESOURCE_SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")


def create_driver(stage: ReplayStage, operation: WorkloadOperation) -> None:
    """One slice for every node whose name matches, with so many devices."""
    driver, devices = operation.get("driverName"), operation.get("maxClaimsPerNode")
    names = [record.name for record in stage.cluster.store.list(NODES, "")]
    for name in names:
        if fnmatchcase(name, operation.get("nodes")):
            stage.create(_slice(driver, name, devices))


def _slice(driver: str, node: str, devices: int) -> JsonObject:
    return {
        "apiVersion": RESOURCE_SLICE.api_version,
        "kind": RESOURCE_SLICE.kind,
        "metadata": {"name": f"{driver}-{node}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(number) for number in range(devices)],
        },
    }


def _device(number: int) -> JsonObject:
    attributes = {
        "model": {"string": "A100"},
        "family": {"string": "GPU"},
        "driverVersion": {"version": "1.2.3"},
        "dra.example.com/numa": {"int": number},
    }
    capacity = {"memory": {"value": "1Gi"}}
    return {"name": f"instance-{number}", "attributes": attributes, "capacity": capacity}


def allocate_claims(stage: ReplayStage, operation: WorkloadOperation) -> None:
    """Give every claim of a namespace a device, on nodes by chance."""
    free = list(_free_devices(stage))
    chance = stage.cluster.streams.stream("scheduler-perf/claims")
    for claim in stage.client.list(RESOURCE_CLAIM, namespace=operation.get("namespace")):
        if (claim.get("status") or {}).get("allocation"):
            continue
        name = claim["metadata"]["name"]
        if not free:
            raise WorkloadError(f"no device is left for the claim {name}")
        at = chance.below(len(free))
        free[at], free[-1] = free[-1], free[at]
        allocation = _allocation(claim, free.pop())
        ref = ObjectRef(RESOURCE_CLAIM, name, operation.get("namespace"))
        stage.client.patch(ref, {"status": {"allocation": allocation}}, subresource="status")


def _free_devices(stage: ReplayStage) -> Iterator[tuple[str, str, str, str]]:
    """Driver, pool, device and node of every device that nobody has."""
    taken = {
        (each["driver"], each["pool"], each["device"])
        for claim in stage.client.list(RESOURCE_CLAIM)
        for each in _results(claim)
    }
    for each in stage.client.list(RESOURCE_SLICE):
        spec = each["spec"]
        for device in spec.get("devices") or ():
            key = (spec["driver"], spec["pool"]["name"], device["name"])
            if key not in taken and "nodeName" in spec:
                yield (*key, spec["nodeName"])


def _results(claim: JsonObject) -> list[JsonObject]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: list[JsonObject] = (allocation.get("devices") or {}).get("results") or []
    return results


def _allocation(claim: JsonObject, device: tuple[str, str, str, str]) -> JsonObject:
    requests = claim["spec"].get("devices", {}).get("requests") or []
    exactly = requests[0].get("exactly") if len(requests) == 1 else None
    if exactly is None or exactly.get("count", 1) != 1 or exactly.get("allocationMode") == "All":
        raise WorkloadError(
            f"the claim {claim['metadata']['name']} asks for more than one device: "
            "allocResourceClaims is replayed for claims with one request for exactly one"
        )
    driver, pool, name, node = device
    result = {"request": requests[0]["name"], "driver": driver, "pool": pool, "device": name}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


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


CONTAINER: JsonObject = {
    "name": "pause",
    "image": "registry.k8s.io/pause:3.10",
    "ports": [{"containerPort": 80}],
    "resources": {
        "requests": {"cpu": "100m", "memory": "500Mi"},
        "limits": {"cpu": "100m", "memory": "500Mi"},
    },
}
BASE_POD: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {"containers": [CONTAINER]},
}
_CHUNK = CREATED_PER_S // 10
_VOLUME = "vol"


class PodMaker:
    """The pods of one createPods, one after the other."""

    def __init__(
        self,
        stage: ReplayStage,
        operation: WorkloadOperation,
        template: ObjectTemplate | None,
        volumes: tuple[ObjectTemplate, ObjectTemplate] | None,
    ) -> None:
        self._stage = stage
        self.namespace: str = operation.get("namespace") or f"namespace-{operation.index}"
        self.count: int = operation.get("count")
        self._template = template
        self._volumes = volumes
        self._blueprint: Blueprint | None = None
        self._made = 0

    def create(self, amount: int) -> None:
        """Create so many more."""
        for index in range(self._made, self._made + amount):
            self._create(index)
        self._made += amount

    def _create(self, index: int) -> None:
        body = BASE_POD if self._template is None else self._template.fill(index, self.count)
        if self._volumes is not None:
            self._create_volume(index)
        if self._template is not None and self._template.varies:
            self._stage.create(self._named(self._prepared(body), index))
            return
        if self._blueprint is None:
            prepared = self._prepared(body)
            made = Blueprint if self._volumes is None else ClaimingBlueprint
            self._blueprint = made(prepared)
        pod = self._named(self._blueprint.body, index)
        self._stage.create(pod, self._blueprint)

    def _prepared(self, body: JsonObject) -> JsonObject:
        """The template as our API takes it: with a name, a namespace, and a class for its priority.

        Keys that upstream's decoder takes in any case are brought into theirs.
        """
        pod: JsonObject = own_copy(body)
        metadata = pod.setdefault("metadata", {})
        metadata["namespace"] = self.namespace
        if not metadata.get("name"):
            metadata["name"] = ""
        spec = pod["spec"]
        if spec.get("priority") and not spec.get("priorityClassName"):
            spec["priorityClassName"] = self._stage.priority_class(spec["priority"])
        for constraint in spec.get("topologySpreadConstraints") or ():
            for key in [each for each in constraint if each[:1].isupper()]:
                constraint[key[:1].lower() + key[1:]] = constraint.pop(key)
        if self._volumes is not None:
            claim = {"claimName": "pvc-0"}
            spec["volumes"] = [{"name": _VOLUME, "persistentVolumeClaim": claim}]
        return pod

    def _named(self, body: Any, index: int) -> JsonObject:
        metadata = body["metadata"]
        name = self._stage.name_for(metadata, "pod-", self.namespace)
        pod = {**body, "metadata": {**metadata, "name": name}}
        if self._volumes is not None:
            (volume,) = body["spec"]["volumes"]
            claim = {**volume["persistentVolumeClaim"], "claimName": f"pvc-{index}"}
            volumes = [{**volume, "persistentVolumeClaim": claim}]
            pod["spec"] = {**body["spec"], "volumes": volumes}
        return pod

    def _create_volume(self, index: int) -> None:
        """A volume and a claim that are bound to each other."""
        assert self._volumes is not None
        volume, claim = (own_copy(each.fill()) for each in self._volumes)
        own, wanted = f"{self.namespace}-vol-{index}", f"pvc-{index}"
        volume["metadata"] = {**(volume.get("metadata") or {}), "name": own}
        if "csi" in volume["spec"]:
            volume["spec"]["csi"]["volumeHandle"] = own
        if "awsElasticBlockStore" in volume["spec"]:
            volume["spec"]["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
        claim["metadata"] = {
            **(claim.get("metadata") or {}),
            "name": wanted,
            "namespace": self.namespace,
        }
        claim["spec"]["volumeName"] = own
        claim["status"] = {"phase": "Bound"}
        record = self._stage.create(claim)
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": wanted}
        volume["spec"]["claimRef"] = {
            **reference,
            "namespace": self.namespace,
            "uid": record.uid,
        }
        volume["status"] = {"phase": "Bound"}
        self._stage.create(volume)


def create_pods(stage: ReplayStage, maker: PodMaker, operation: WorkloadOperation) -> None:
    """createPods: create them, and wait until they have nodes."""
    if operation.get("collectMetrics") and operation.get("skipWaitToCompletion"):
        raise WorkloadError("collectMetrics and skipWaitToCompletion exclude each other")
    stage.ensure_namespace(maker.namespace)
    if operation.get("collectMetrics"):
        stage.start_collecting(maker.namespace, (maker.namespace,))
    if operation.get("steadyState"):
        _keep_steady(stage, maker, operation)
    else:
        _create_all(stage, maker)
        if operation.get("skipWaitToCompletion"):
            stage.remembered[maker.namespace] += maker.count
        else:
            wait_for_nodes(stage, maker.namespace, maker.count)
    if operation.get("collectMetrics"):
        stage.stop_collecting()


def wait_for_nodes(stage: ReplayStage, namespace: str, count: int) -> None:
    def bound() -> int:
        return sum(1 for each in stage.pods(namespace) if each.node)

    def complaint() -> str:
        return f"{bound()} of {count} pods of the namespace {namespace} have a node"

    stage.wait(lambda: bound() >= count, complaint)


def _create_all(stage: ReplayStage, maker: PodMaker) -> None:
    """At once if nothing else goes on; otherwise time passes meanwhile."""
    if not stage.is_busy:
        maker.create(maker.count)
        return
    for amount in _chunks(maker.count):
        maker.create(amount)
        stage.advance(amount * SECOND // CREATED_PER_S)


def _chunks(count: int) -> Iterator[int]:
    for made in range(0, count, _CHUNK):
        yield min(_CHUNK, count - made)


def _keep_steady(stage: ReplayStage, maker: PodMaker, operation: WorkloadOperation) -> None:
    """Delete all pods as soon as they have nodes, and create others, until the time is over."""
    end = stage.now + parse_duration(operation.get("duration") or "0s")
    scheduled = 0
    while True:
        maker.create(maker.count)
        stage.settle()
        stage.advance(max(1, maker.count * SECOND // CREATED_PER_S))
        records = stage.pods(maker.namespace)
        scheduled += sum(1 for each in records if each.node)
        if stage.now >= end:
            break
        for record in records:
            stage.delete_pod(record, at_once=True)
        stage.settle()
    if not scheduled:
        raise WorkloadError(f"no pod of the namespace {maker.namespace} got a node")
