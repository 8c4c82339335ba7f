"""Clusters as kubectl and others would write them down, made in a world of ours."""

import json
from typing import Any

import kubescene
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

LISTED = (
    "namespaces",
    "nodes",
    "priorityclasses",
    "storageclasses",
    "persistentvolumes",
    "persistentvolumeclaims",
    "serviceaccounts",
    "services",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "controllerrevisions",
    "jobs",
    "cronjobs",
    "poddisruptionbudgets",
    "pods",
)
TOKEN = "s3cr3t-in-line"


def template(name: str, cpu: str = "500m", **spec: Any) -> JsonObject:
    """A pod template with things in it that are nobody's business."""
    container = {
        "name": "app",
        "image": f"registry.acme.example/shop/{name}:v1",
        "args": ["--password", TOKEN],
        "env": [{"name": "TOKEN", "value": TOKEN}],
        "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}},
    }
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def workload(kind: str, name: str, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": spec.pop("template", None) or template(name),
            **spec,
        },
    }


def shop() -> kubescene.Cluster:
    """Three zones, every kind of workload, bound volumes, a budget, a pod that waits."""
    cluster = kubescene.Cluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    for number in range(6):
        zone = "abc"[number % 3]
        cluster.create(make_node(f"worker-{number}").cpu("8").memory("32Gi").zone(f"eu-1{zone}"))
    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast"},
            "provisioner": "csi.acme.example",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    cluster.create(workload("Deployment", "frontend", replicas=5))
    cluster.create(workload("DaemonSet", "collector", template=template("collector", "100m")))
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    cluster.create(
        workload(
            "StatefulSet",
            "ledger",
            replicas=3,
            serviceName="ledger",
            volumeClaimTemplates=[claim],
        )
    )
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "ledger", "namespace": "shop"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "ledger"}}},
        }
    )
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "frontend", "namespace": "shop"},
            "spec": {"selector": {"app": "frontend"}, "ports": [{"port": 80}]},
        }
    )
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "shop"},
        "spec": {"template": template("report", restartPolicy="Never")},
    }
    cluster.create(job)
    cluster.create(make_pod("huge").namespace("shop").cpu("64"))
    cluster.create(make_deployment("back").replicas(2).template(make_pod("back").cpu("1")))
    cluster.settle()
    cluster.advance("10m")
    return cluster


def items(cluster: kubescene.Cluster, *kinds: str) -> list[JsonObject]:
    return [obj for kind in kinds or LISTED for obj in cluster.list(kind)]


def listed(cluster: kubescene.Cluster, *kinds: str) -> JsonObject:
    """What ``kubectl get KINDS -A -o json`` writes."""
    return {"apiVersion": "v1", "kind": "List", "items": items(cluster, *kinds)}


def dump(cluster: kubescene.Cluster, *kinds: str) -> bytes:
    return json.dumps(listed(cluster, *kinds)).encode()


def placed(cluster: kubescene.Cluster) -> dict[str, tuple[str, str]]:
    """Of each pod the uid and the node."""
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": (
            pod["metadata"]["uid"],
            pod["spec"].get("nodeName", ""),
        )
        for pod in cluster.list("pods")
    }
