"""A cluster of 500 nodes and 4,700 pods read from a dump, restored, settled, and asked.

    python bench/bring.py [--quick]

The dump is as kubectl writes it with ``--show-managed-fields``. It is made in a process of its own.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from kubescene.clock import SECOND
from kubescene.clock.clocks import DEFAULT_START
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.histories.history import RecordedEvent
from kubescene.histories.recordings import RecordingWriter
from kubescene.histories.survey import survey
from kubescene.snapshots import read_snapshot, restore
from kubescene.testing import make_node
from kubescene.types import JsonObject
from kubescene.what_if import WhatIf
from measuring import Figures, Stopwatch, alone, peak_mb, row, start

KINDS = (
    *("namespaces", "nodes", "storageclasses", "persistentvolumes", "persistentvolumeclaims"),
    *("serviceaccounts", "services", "deployments", "replicasets", "statefulsets", "daemonsets"),
    *("controllerrevisions", "jobs", "poddisruptionbudgets", "pods"),
)
DAEMONS, ZONES = 3, 3


def workload(kind: str, name: str, cpu: str, **spec: Any) -> JsonObject:
    container = {
        "name": "app",
        "image": f"registry.example/{name}:v1",
        "env": [{"name": f"SETTING_{each}", "value": f"value-{each}"} for each in range(8)],
        "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}},
    }
    pod: JsonObject = {"containers": [container]}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}, **spec},
    }


def cluster_of(nodes: int) -> Cluster:
    """Pods by the node: 5 of Deployments, 3 of DaemonSets, and fewer with volumes and of Jobs."""
    cluster = Cluster()
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "csi.x"}
    binding = {"metadata": {"name": "fast"}, "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.create({**storage, **binding})
    for number in range(nodes):
        node = make_node(f"node-{number:04}").cpu("8").memory("32Gi").zone(f"z{number % ZONES}")
        cluster.create(node)
    for number in range(DAEMONS):
        cluster.create(workload("DaemonSet", f"agent-{number}", "100m"))
    for number in range(nodes // 4):
        cluster.create(workload("Deployment", f"web-{number}", "500m", replicas=20))
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    for number in range(nodes // 25):
        more = {"serviceName": "db", "volumeClaimTemplates": [claim]}
        policy = {"podManagementPolicy": "Parallel", "replicas": 10}
        cluster.create(workload("StatefulSet", f"db-{number}", "500m", **more, **policy))
    for number in range(nodes * 3 // 5):
        cluster.create(workload("Job", f"batch-{number}", "250m"))
    cluster.settle()
    return cluster.advance("10m")


def fields_of(value: Any) -> Any:
    """As managedFields say who wrote what."""
    if isinstance(value, dict):
        return {f"f:{name}": fields_of(part) for name, part in value.items()}
    return {}


def write(folder: str, nodes: int) -> Figures:
    """Dumps of the same cluster as JSON and as YAML."""
    from kubescene.api.text.yaml_text import dump_yaml

    cluster = cluster_of(nodes)
    items = [obj for kind in KINDS for obj in cluster.list(kind)]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    Path(folder, "dump.yaml").write_text(dump_yaml(document))
    for obj in items:
        entry = {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": obj["apiVersion"],
            "time": "2026-01-01T00:10:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields_of({k: v for k, v in obj.items() if k not in ("kind", "status")}),
        }
        obj["metadata"]["managedFields"] = [entry]
    Path(folder, "dump.json").write_text(json.dumps(document, indent=4))
    pods = len(cluster.list("pods"))
    return {"pods": pods, "objects": len(items)}


def recorded(path: Path, changes: int) -> Figures:
    """A recording of so many changes, of pods that come, are placed and go, read end to end."""
    writer = RecordingWriter(path)
    writer.begin(DEFAULT_START, [])
    spec = workload("Deployment", "web", "500m")["spec"]["template"]["spec"]
    for number in range(changes // 3):
        metadata = {"name": f"web-{number}", "namespace": "shop", "uid": f"uid-{number}"}
        pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        placed = {**pod, "spec": {**spec, "nodeName": "node-0"}}
        at = DEFAULT_START + number * SECOND
        for event, obj in zip(RecordedEvent, (pod, placed, placed), strict=True):
            writer.add(at, event, obj)
    writer.end(DEFAULT_START + changes * SECOND)
    watch = Stopwatch()
    survey(path)
    read = watch.read().cpu_s
    return {"read_s": read, "file_mb": path.stat().st_size / 1e6, "mb": peak_mb()}


def measure(case: str, folder: str, nodes: int = 0) -> Figures:
    if case == "write":
        return write(folder, nodes)
    if case == "recording":
        return recorded(Path(folder, "day.jsonl"), nodes)
    if case in ("json", "yaml"):
        watch = Stopwatch()
        snapshot = read_snapshot(Path(folder, f"dump.{case}"))
        read = watch.read().cpu_s
        cluster = Cluster(ClusterOptions(start=snapshot.taken_at))
        restore(cluster.registry, snapshot)
        cluster.settle()
        return {"read_s": read, "cpu_s": watch.read().cpu_s, "mb": peak_mb()}
    what_if = WhatIf(read_snapshot(Path(folder, "dump.json")))
    assert what_if.unknown
    watch = Stopwatch()
    if case == "fork":
        what_if.world.fork()
        return {"cpu_s": watch.read().cpu_s, "value": 0}
    if case == "lose":
        answer = what_if.lose("zone=z0", removed=True)
        return {"cpu_s": watch.read().cpu_s, "value": answer.measures["pods"]}
    if case == "silent":
        answer = what_if.lose("zone=z0", within="2h")
        return {"cpu_s": watch.read().cpu_s, "value": answer.measures["pods"]}
    answer = what_if.shrink()
    return {"cpu_s": watch.read().cpu_s, "value": answer.measures["removable"]}


def main(quick: bool) -> None:
    nodes = 50 if quick else 500
    with tempfile.TemporaryDirectory() as folder:
        made = alone(__file__, case="write", folder=folder, nodes=nodes)
        sizes = [Path(folder, name).stat().st_size / 1e6 for name in ("dump.json", "dump.yaml")]
        told = f"{made['objects']:,.0f} objects, {sizes[0]:.1f} MB JSON, {sizes[1]:.1f} MB YAML"
        row(f"{nodes} nodes, {made['pods']:,.0f} pods", told)
        for case, floor in (("json", "4 s, 400 MB"), ("yaml", "10 s, 400 MB")):
            it = alone(__file__, case=case, folder=folder)
            figures = f"{it['cpu_s']:6.2f} s CPU ({it['read_s']:.2f} s reading) {it['mb']:5.0f} MB"
            row(f"{case} restored and settled", figures, floor)
        changes = 6_000 if quick else 60_000
        it = alone(__file__, case="recording", folder=folder, nodes=changes)
        speed = it["file_mb"] / it["read_s"]
        figures = f"{it['file_mb']:6.1f} MB, {speed:.0f} MB/s, {it['mb']:.0f} MB held"
        row(f"a recording of {changes:,} changes, read", figures, "20 MB/s")
        for case, name, floor in (
            ("fork", "a fork", "0.3 s"),
            ("lose", "a zone removed, 30 min", "5 s"),
            ("silent", "a zone silent, 2 h", "5 s"),
            ("shrink", "shrink", "60 s"),
        ):
            it = alone(__file__, case=case, folder=folder)
            row(name, f"{it['cpu_s']:6.2f} s CPU ({it['value']:.0f})", floor)


if __name__ == "__main__":
    start(measure, main)
