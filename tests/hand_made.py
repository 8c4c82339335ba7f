"""Clusters made by hand, small enough for their right answers to be arithmetic."""

import json
from pathlib import Path
from typing import Any

import kubescene
from dumped import items
from kubescene.snapshots import read_snapshot
from kubescene.testing import make_node
from kubescene.types import JsonObject
from kubescene.what_if import Answer, WhatIf

KINDS = (
    *("namespaces", "nodes", "priorityclasses", "storageclasses", "persistentvolumes"),
    *("persistentvolumeclaims", "deployments", "replicasets", "statefulsets", "daemonsets"),
    *("controllerrevisions", "jobs", "poddisruptionbudgets", "pods"),
)


def asked(cluster: kubescene.Cluster, folder: Path, **settings: Any) -> WhatIf:
    """The cluster at rest, dumped as kubectl does, and read again."""
    cluster.settle().advance("1m")
    file = folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": items(cluster, *KINDS)}))
    return WhatIf(read_snapshot(file), **settings)


def nodes(cluster: kubescene.Cluster, count: int, cpu: str = "4", **labels: str) -> None:
    """Half of them in zone a, half in zone b, in a pool."""
    for number in range(count):
        node = make_node(f"n{number}").cpu(cpu).memory("16Gi").zone("ab"[number % 2]).build()
        node["metadata"]["labels"] |= {"pool": "general", **labels}
        cluster.create(node)


def workload(kind: str, name: str, cpu: str, **spec: Any) -> JsonObject:
    pod_spec = spec.pop("pod_spec", {})
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], **pod_spec},
    }
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def budget(name: str, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def rows(answer: Answer, title: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in answer.table(title).rows]
