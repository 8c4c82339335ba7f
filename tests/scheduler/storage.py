"""Claims, volumes and what belongs to them, in one line each."""

from typing import Any

from kubescene.testing.builders import make_pod, merged
from kubescene.types import JsonObject

WFFC = "WaitForFirstConsumer"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ZONE = "topology.kubernetes.io/zone"


def claim(name: str, size: str = "1Gi", storage_class: str = "slow", **spec: Any) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
            **spec,
        },
    }


def bound_claim(name: str, volume: str, **spec: Any) -> JsonObject:
    obj = claim(name, volumeName=volume, **spec)
    return merged(obj, {"metadata": {"annotations": BOUND}})


def volume(
    name: str, size: str = "1Gi", storage_class: str = "slow", zone: str = "", **spec: Any
) -> JsonObject:
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class,
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            **spec,
        },
        "status": {"phase": "Available"},
    }
    return merged(obj, {"spec": {"nodeAffinity": in_zone(zone)}}) if zone else obj


def in_zone(zone: str, key: str = ZONE) -> JsonObject:
    expression = {"key": key, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def storage_class(
    name: str = "slow", mode: str = WFFC, provisioner: str = "disk.example.com", **more: Any
) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def csi_node(name: str, **limits: int) -> JsonObject:
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name, "topologyKeys": []}
        | {"allocatable": {"count": limit}}
        for driver, limit in limits.items()
    ]
    metadata = {"name": name}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    return {**kind, "metadata": metadata, "spec": {"drivers": drivers}}


def using(name: str, *claims: str, **spec: Any) -> JsonObject:
    volumes = [
        {"name": f"v{at}", "persistentVolumeClaim": {"claimName": each}}
        for at, each in enumerate(claims)
    ]
    return merged(make_pod(name).build(), {"spec": {"volumes": volumes, **spec}})


def mounting(name: str, *volumes: JsonObject) -> JsonObject:
    named = [{"name": f"v{at}", **each} for at, each in enumerate(volumes)]
    return merged(make_pod(name).build(), {"spec": {"volumes": named}})
