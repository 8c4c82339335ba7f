"""The built-in plugins keep the promises that those of others are held to.

They are asked about pods that concern them: with terms, ports, volumes, claims and gates, in
clusters that have what these name.
"""

from typing import Any

import pytest

from kubescene.scheduler.plugins import BUILT_IN
from kubescene.testing.plugins import CHECKS, fault_of
from kubescene.testing.plugins.worlds import PluginWorld, Subject
from kubescene.types import JsonObject

CLUSTERS = 2
ZONE = "topology.kubernetes.io/zone"
ONLY_IF_ON = "GangScheduling"


def pod(app: str = "web", **spec: Any) -> JsonObject:
    requests = {"cpu": "300m", "memory": "64Mi"}
    container = {"name": "c", "image": "app:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [{**container, **spec.pop("container", {})}], **spec},
    }


def term(app: str, key: str = ZONE) -> JsonObject:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def affinity(kind: str, app: str, *, required: bool) -> JsonObject:
    rule = "DuringSchedulingIgnoredDuringExecution"
    if required:
        return {"affinity": {kind: {f"required{rule}": [term(app)]}}}
    preferred = [{"weight": 7, "podAffinityTerm": term(app, "disk")}]
    return {"affinity": {kind: {f"preferred{rule}": preferred}}}


def near(operator: str, *values: str) -> JsonObject:
    wanted = {"matchExpressions": [{"key": "disk", "operator": operator, "values": [*values]}]}
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": wanted}]
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}}
    return {"affinity": {"nodeAffinity": {**preferred, **required}}}


def spread(when: str, key: str = ZONE) -> JsonObject:
    selector = {"matchLabels": {"app": "web"}}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": selector}]}


def volume(**source: Any) -> JsonObject:
    return {"volumes": [{"name": "v", **source}]}


PODS = [
    pod(**affinity("podAffinity", "db", required=True)),
    pod(**affinity("podAffinity", "db", required=False)),
    pod("db", **affinity("podAntiAffinity", "db", required=True)),
    pod(**affinity("podAntiAffinity", "web", required=False)),
    pod(**near("In", "ssd")),
    pod(**near("NotIn", "ssd"), nodeSelector={ZONE: "a"}),
    pod(**spread("DoNotSchedule")),
    pod(**spread("ScheduleAnyway", "disk")),
    pod(container={"ports": [{"containerPort": 80, "hostPort": 80}]}),
    pod(container={"resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}),
    pod(**volume(persistentVolumeClaim={"claimName": "bound"})),
    pod(**volume(persistentVolumeClaim={"claimName": "waits"})),
    pod(**volume(gcePersistentDisk={"pdName": "disk"})),
    pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]),
    pod(tolerations=[{"key": "dedicated", "operator": "Exists"}]),
]


def named(version: str, kind: str, name: str, **more: Any) -> JsonObject:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


def claim(name: str, storage_class: str, **spec: Any) -> JsonObject:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"storageClassName": storage_class, **asked, **spec}
    return named("v1", "PersistentVolumeClaim", name, spec=body)


REACH = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
OBJECTS = [
    named(
        "storage.k8s.io/v1",
        "StorageClass",
        "late",
        provisioner="example.com/p",
        volumeBindingMode="WaitForFirstConsumer",
    ),
    {
        **named(
            "v1",
            "PersistentVolume",
            "pv",
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "now",
                "csi": {"driver": "example.com", "volumeHandle": "h"},
                "claimRef": {"namespace": "default", "name": "bound"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [REACH]}},
            },
        ),
        "metadata": {"name": "pv", "labels": {ZONE: "a"}},
    },
    claim("bound", "now", volumeName="pv"),
    claim("waits", "late"),
    named("resource.k8s.io/v1", "DeviceClass", "gpu", spec={}),
    named(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "gpu",
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    ),
    named(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "slice",
        spec={
            "driver": "example.com",
            "allNodes": True,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        },
    ),
]

AMOUNTS = {"cpu": "4", "memory": "8Gi", "pods": "20", "example.com/gpu": "2"}
NODES = [
    named("v1", "Node", "", spec={"unschedulable": True}, status={"allocatable": AMOUNTS}),
    named(
        "v1",
        "Node",
        "",
        spec={"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]},
        status={
            "allocatable": AMOUNTS,
            "capacity": AMOUNTS,
            "images": [{"names": ["app:1"], "sizeBytes": 500_000_000}],
        },
    ),
]


def subject(name: str) -> Subject:
    return Subject(BUILT_IN[name].plugin, pods=PODS, nodes=NODES, objects=OBJECTS)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != ONLY_IF_ON])
def test_a_built_in_plugin_keeps_its_promises(name: str) -> None:
    plugin = subject(name)
    broken = {check: fault_of(check, plugin, CLUSTERS) for check in CHECKS}
    assert {check: fault for check, fault in broken.items() if fault} == {}


def test_the_plugin_that_is_asked_is_the_one_of_the_default_profile() -> None:
    world = PluginWorld(subject("InterPodAffinity"), 0)
    assert type(world.plugin) is BUILT_IN["InterPodAffinity"].plugin
