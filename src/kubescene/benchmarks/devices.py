"""createResourceDriver and allocResourceClaims: devices, and claims that have theirs in advance."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from kubescene.api.scheme import GroupVersionKind
from kubescene.benchmarks.operations import WorkloadOperation
from kubescene.benchmarks.stage import NODES, ReplayStage
from kubescene.client.interfaces import ObjectRef
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
