"""Whatever validation accepts breaks nobody: controllers, scheduler, printing, import."""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import pytest

from kubescene import Cluster
from kubescene.api.printing.columns import table_columns
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.cluster.cluster import USER
from kubescene.errors import ApiError, NotFoundError
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.testing import make_node, make_pod
from sparse_objects import Sparse, own_objects, sparse_objects, sparse_statuses, variants

LABELLED = make_pod("plain").label(app="a").cpu("1").build()


def pod_with(name: str, **spec: Any) -> dict[str, Any]:
    pod = make_pod(name).label(app="a").build()
    return {**pod, "spec": {**pod["spec"], **spec}}


def claim(name: str, **spec: Any) -> dict[str, Any]:
    size = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": size, **spec},
    }


def mounting(name: str, claim_name: str) -> dict[str, Any]:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    return pod_with(name, volumes=[volume])


def device_claim() -> dict[str, Any]:
    request = {"name": "q", "exactly": {"deviceClassName": "a"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "own"},
        "spec": {"devices": {"requests": [request]}},
    }


DEVICES = [
    device_claim(),
    pod_with("d", resourceClaims=[{"name": "r", "resourceClaimName": "own"}]),
]
USERS: dict[str, list[dict[str, Any]]] = {
    "PriorityClass": [pod_with("c", priorityClassName="a")],
    "PersistentVolumeClaim": [mounting("p", "a")],
    "PersistentVolume": [claim("b", storageClassName="s", volumeName="a"), mounting("p", "b")],
    "StorageClass": [claim("b", storageClassName="a"), mounting("p", "b")],
    "CSIStorageCapacity": [claim("b", storageClassName="s"), mounting("p", "b")],
    "CSINode": [claim("b", storageClassName="s"), mounting("p", "b")],
    "ResourceClaimTemplate": [
        pod_with("t", resourceClaims=[{"name": "r", "resourceClaimTemplateName": "a"}])
    ],
    "ResourceClaim": [pod_with("d", resourceClaims=[{"name": "r", "resourceClaimName": "a"}])],
    "DeviceClass": DEVICES,
    "ResourceSlice": DEVICES,
    "RuntimeClass": [pod_with("r", runtimeClassName="a")],
    "ServiceAccount": [pod_with("s", serviceAccountName="a")],
    "PodGroup": [pod_with("g", schedulingGroup={"podGroupName": "a"})],
}
"""Who uses an object named ``a`` of a kind; a labelled pod is always there."""


@pytest.fixture(scope="module")
def world() -> ClusterWorld:
    """Two nodes and a ReplicaSet whose pods everything selects."""
    cluster = ClusterWorld(ClusterOptions(events=True))
    for name in ("n", "m"):
        cluster.create(make_node(name).cpu("8").labels({"zone": name, "k": "v"}))
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "rs", "labels": {"app": "a"}},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": "a"}},
                "template": template,
            },
        }
    )
    return cluster.settle()


@cache
def by_kind() -> dict[str, list[Sparse]]:
    found: dict[str, list[Sparse]] = defaultdict(list)
    for sparse in sparse_objects():
        found[sparse.object["kind"]].append(sparse)
    return found


OWN_NAMES = frozenset({"APIService", "ClusterTrustBundle", "CustomResourceDefinition", "IPAddress"})
"""Kinds whose names say something; of these the first that is accepted is tried."""


PLAYED = frozenset(
    {
        *USERS,
        "CronJob",
        "DaemonSet",
        "Deployment",
        "EndpointSlice",
        "Endpoints",
        "HorizontalPodAutoscaler",
        "Job",
        "Lease",
        "LimitRange",
        "Namespace",
        "Node",
        "Pod",
        "PodDisruptionBudget",
        "ReplicaSet",
        "ReplicationController",
        "ResourceQuota",
        "Service",
        "StatefulSet",
        "VolumeAttachment",
        "Workload",
    }
)
"""Kinds that somebody acts on. Of the others only printing, export and import know."""


def live(world: ClusterWorld, sparse: Sparse) -> bool:
    """A life of the object among its users; False if it is refused."""
    cluster, obj = world.fork(), sparse.object
    try:
        cluster.create(obj)
    except ApiError:
        return False
    for user in (LABELLED, *USERS.get(obj["kind"], ())):
        attempt(cluster, user)
    cluster.settle().advance("6m")
    show_all(cluster)
    if sparse.label.endswith((sparse.title, " name-alone")) or obj["kind"] != "Pod":
        load_again(cluster)
    resource_type = cluster.registry.scheme.of_kind(obj["apiVersion"], obj["kind"])
    place = "default" if resource_type.namespaced else ""
    ref = ObjectRef(resource_type.gvk, obj["metadata"]["name"], place)
    with contextlib.suppress(NotFoundError):
        cluster.client(USER).patch(ref, {"metadata": {"labels": {"x": "y"}}})
        cluster.client(USER).delete(ref)
    cluster.settle()
    return True


def load_again(cluster: Cluster) -> None:
    again = Cluster()
    again.load(cluster.export())
    again.settle()


def attempt(cluster: Cluster, obj: dict[str, Any]) -> None:
    """A user may be refused for what the object lacks."""
    with contextlib.suppress(ApiError):
        cluster.create(obj)


def tell(world: ClusterWorld, obj: dict[str, Any], sparse: Sparse) -> bool:
    """A life of an object whose status somebody has written; False if that is refused."""
    cluster = world.fork()
    cluster.create(obj)
    resource_type = cluster.registry.scheme.of_kind(obj["apiVersion"], obj["kind"])
    place = "default" if resource_type.namespaced else ""
    ref = ObjectRef(resource_type.gvk, obj["metadata"]["name"], place)
    try:
        cluster.client(USER).patch(ref, sparse.object, subresource="status")
    except ApiError:
        return False
    for user in USERS.get(obj["kind"], ()):
        attempt(cluster, user)
    show_all(cluster.settle())
    with contextlib.suppress(NotFoundError):
        cluster.client(USER).delete(ref)
    cluster.settle()
    return True


def show_all(cluster: Cluster) -> None:
    for obj in stored(cluster):
        resource_type = cluster.registry.scheme.of_kind(obj["apiVersion"], obj["kind"])
        if not resource_type.custom:
            columns = table_columns(resource_type)
            assert len(columns.row(obj, cluster.clock.now())) == len(columns.columns)


def stored(cluster: Cluster) -> Iterator[dict[str, Any]]:
    yield from json.loads(cluster.export())["items"]


@pytest.mark.parametrize("kind", sorted(PLAYED))
def test_what_is_accepted_breaks_nobody(world: ClusterWorld, kind: str) -> None:
    accepted = 0
    for sparse in by_kind()[kind]:
        try:
            accepted += live(world, sparse)
        except Exception as error:
            raise AssertionError(f"{sparse.label}: {error!r}") from error
    assert accepted > 0


OWN: dict[str, list[Sparse]] = defaultdict(list)
for _whole in own_objects():
    OWN[_whole.object["kind"]].append(_whole)


@pytest.mark.parametrize("kind", OWN)
def test_what_is_accepted_of_our_own_kinds_breaks_nobody(
    world: ClusterWorld, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: set[str] = set()
    for whole in OWN[kind]:
        assert live(world, whole), whole.label
        for sparse in variants(whole):
            if (text := json.dumps(sparse.object)) not in seen:
                seen.add(text)
                try:
                    live(world, sparse)
                except Exception as error:
                    raise AssertionError(f"{sparse.label}: {error!r}") from error
    assert [each for each in caplog.messages if "Error" in each] == []


REFUSED = {
    "VerticalPodAutoscaler": (
        "resourcePolicy.containerPolicies.memoryAggregationInterval",
        "resourcePolicy.containerPolicies.oom",
        "resourcePolicy.containerPolicies.startupBoost",
        "startupBoost",
        "updatePolicy.evictAfterOOMSeconds",
    )
}
"""What is behind feature gates that are off: the webhook refuses objects with it."""


def test_our_own_kinds_are_tried_with_every_field(world: ClusterWorld) -> None:
    missing = {}
    world.serve_offers()
    for record in world.store.list(DEFINITIONS):
        spec = record.decode()["spec"]
        kind = spec["names"]["kind"]
        if kind == "Scenario":
            continue
        version = next(each for each in spec["versions"] if each["storage"])
        schema = version["schema"]["openAPIV3Schema"]
        fields = set(fields_of(schema["properties"]["spec"]))
        used = {field for whole in OWN[kind] for field in members_of(whole.object["spec"])}
        missing[kind] = sorted(
            each for each in fields - used if not each.startswith(REFUSED.get(kind, ()))
        )
    assert not any(missing.values()), missing


def fields_of(schema: Any, above: str = "") -> Iterator[str]:
    for name, inner in (schema.get("properties") or {}).items():
        yield above + name
        yield from fields_of(inner, f"{above}{name}.")
    if "items" in schema:
        yield from fields_of(schema["items"], above)


def members_of(value: Any, above: str = "") -> Iterator[str]:
    for name, inner in value.items() if isinstance(value, dict) else ():
        yield above + name
        yield from members_of(inner, f"{above}{name}.")
    for item in value if isinstance(value, list) else ():
        yield from members_of(item, above)


def whole_statuses() -> dict[str, list[tuple[Sparse, Sparse]]]:
    found: dict[str, list[tuple[Sparse, Sparse]]] = defaultdict(list)
    for whole, sparse in sparse_statuses():
        found[whole.title].append((whole, sparse))
    return found


@pytest.mark.parametrize("title", whole_statuses())
def test_every_status_that_is_accepted_breaks_nobody(
    world: ClusterWorld, title: str, caplog: pytest.LogCaptureFixture
) -> None:
    accepted = 0
    for whole, sparse in whole_statuses()[title]:
        try:
            accepted += tell(world, whole.object, sparse)
        except Exception as error:
            raise AssertionError(f"{sparse.label}: {error!r}") from error
        assert [each for each in caplog.messages if "Error" in each] == [], sparse.label
    assert accepted > 0


SINCE = "2026-01-01T00:00:00Z"


def condition(kind: str, **more: str) -> dict[str, str]:
    said = {"type": kind, "status": "True", "reason": "R", "message": "m"}
    return {**said, "lastTransitionTime": SINCE, **more}


def workload(kind: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "b"}}, "spec": make_pod("p").build()["spec"]}
    spec = {"selector": {"matchLabels": {"app": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


RESULT = {
    "request": "q",
    "driver": "d.x",
    "pool": "p",
    "device": "e",
    "bindingConditions": ["b"],
    "bindingFailureConditions": ["f"],
    "consumedCapacity": {"c": "1"},
}
COUNTED = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}
RUNNING = {"running": {"startedAt": SINCE}}
STATUSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Pod": (
        pod_with("a", nodeName="n", resourceClaims=[{"name": "r", "resourceClaimName": "own"}]),
        {
            "phase": "Running",
            "conditions": [condition("Ready"), condition("PodScheduled")],
            "containerStatuses": [
                {"name": "c", "image": "i", "restartCount": 1, "ready": True, "state": RUNNING}
            ],
            "hostIPs": [{"ip": "1.2.3.4"}],
            "podIPs": [{"ip": "1.2.3.5"}],
            "startTime": SINCE,
            "resourceClaimStatuses": [{"name": "r", "resourceClaimName": "own"}],
        },
    ),
    "a pod that waits": (
        pod_with("a", resourceClaims=[{"name": "r", "resourceClaimTemplateName": "t"}]),
        {
            "conditions": [condition("PodScheduled", status="False")],
            "nominatedNodeName": "m",
            "resourceClaimStatuses": [{"name": "r", "resourceClaimName": "own"}],
        },
    ),
    "Node": (
        make_node("a").build(),
        {
            "capacity": {"cpu": "1"},
            "allocatable": {"cpu": "1", "pods": "5"},
            "conditions": [condition("Ready", lastHeartbeatTime=SINCE)],
            "addresses": [{"type": "Hostname", "address": "a"}],
            "images": [{"names": ["i"], "sizeBytes": 1}],
            "volumesAttached": [{"name": "v", "devicePath": "p"}],
        },
    ),
    "ResourceClaim": (
        {**device_claim(), "metadata": {"name": "a"}},
        {
            "allocation": {
                "devices": {"results": [RESULT]},
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n"]}
                            ]
                        }
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": "d", "uid": "u"}],
            "devices": [
                {"driver": "d.x", "pool": "p", "device": "e", "conditions": [condition("b")]}
            ],
        },
    ),
    "PodDisruptionBudget": (
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "a"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        },
        {
            "disruptionsAllowed": 1,
            "expectedPods": 1,
            "disruptedPods": {"plain": SINCE},
            "conditions": [condition("DisruptionAllowed")],
        },
    ),
    "Deployment": (
        workload("Deployment"),
        {**COUNTED, "conditions": [condition("Available"), condition("Progressing")]},
    ),
    "ReplicaSet": (
        workload("ReplicaSet"),
        {**COUNTED, "conditions": [condition("ReplicaFailure")]},
    ),
    "Namespace": (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
        {"phase": "Active", "conditions": [condition("NamespaceContentRemaining")]},
    ),
}


@pytest.mark.parametrize("what", STATUSES)
def test_a_status_that_is_accepted_breaks_nobody(
    world: ClusterWorld, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    obj, status = STATUSES[what]
    accepted = 0
    for sparse in variants(Sparse(what, {"status": status})):
        try:
            accepted += tell(world, obj, sparse)
        except Exception as error:
            raise AssertionError(f"{sparse.label}: {error!r}") from error
        assert [each for each in caplog.messages if "Error" in each] == [], sparse.label
    assert accepted > 0


def test_what_nobody_acts_on_is_printed_exported_and_imported(world: ClusterWorld) -> None:
    cluster, names, kinds = world.fork(), count(), by_kind()
    for sparse in (it for kind in sorted(kinds.keys() - PLAYED) for it in kinds[kind]):
        obj = sparse.object
        if obj["kind"] not in OWN_NAMES:
            name = f"a{next(names)}"
            obj = {**obj, "metadata": {**obj["metadata"], "name": name}}
        attempt(cluster, obj)
    show_all(cluster)
    load_again(cluster)
