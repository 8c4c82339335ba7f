"""Pods per second of whole scenario runs in which every pod has a volume.

    python bench/volumes.py [--quick]

One PersistentVolume and one claim per pod, as in scheduler_perf: bound beforehand to CSI volumes
(SchedulingCSIPVs) or to volumes of an old kind that a CSI driver has taken over
(SchedulingMigratedInTreePVs), free local volumes of which the scheduler chooses, or volumes that
are provisioned with the pod's node. Counted from the moment nodes, volumes and claims are there to
the finished summary.
"""

import time

import kubescene
from kubescene.clock import ScenarioStep
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Instrument
from kubescene.types import JsonObject
from measuring import Figures, Span, alone, peak_mb, row, start

NODES, PODS = 5_000, 5_000
QUICK_NODES, QUICK_PODS = 100, 300
FLOOR = "floor 1,500 /s; aim 4,000"
DRIVER = "ebs.csi.aws.com"
CLAIM_NAME = "claim-$(INDEX)"


class StepEnds(Instrument):
    """Notes when each step was over."""

    def __init__(self) -> None:
        self.at: list[Span] = []

    def step_finished(self, step: ScenarioStep) -> None:
        self.at.append(Span(time.perf_counter(), time.process_time()))


def volume(shape: str) -> JsonObject:
    spec: JsonObject = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "local" if shape == "local" else "",
    }
    if shape == "csi":
        spec["csi"] = {"driver": DRIVER, "volumeHandle": "vol-$(INDEX)"}
    elif shape == "in-tree":
        spec["awsElasticBlockStore"] = {"volumeID": "vol-$(INDEX)"}
    else:
        expression = {
            "key": "kubernetes.io/hostname",
            "operator": "In",
            "values": ["node-$(INDEX)"],
        }
        spec["local"] = {"path": "/mnt/disk"}
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    if shape != "local":
        spec["claimRef"] = {"namespace": "default", "name": CLAIM_NAME}
    metadata = {"name": "volume-$(INDEX)"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def claim(shape: str) -> JsonObject:
    spec: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": shape if shape in ("local", "provisioned") else "",
    }
    if shape in ("csi", "in-tree"):
        spec["volumeName"] = "volume-$(INDEX)"
    metadata = {"name": CLAIM_NAME, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def storage_class(name: str, provisioner: str) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def csi_node() -> JsonObject:
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    driver = {"name": DRIVER, "nodeID": "node-$(INDEX)", "topologyKeys": []}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "node-$(INDEX)", "annotations": migrated},
        "spec": {"drivers": [{**driver, "allocatable": {"count": 39}}]},
    }


def scenario(shape: str, nodes: int, pods: int) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("volumes")
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes)
    built.create(csi_node(), count=nodes)
    built.create(storage_class("local", "kubernetes.io/no-provisioner"))
    built.create(storage_class("provisioned", "disk.example.com"))
    if shape != "provisioned":
        built.create(volume(shape), count=pods)
    built.create(claim(shape), count=pods)
    built.step(2)
    pod = make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi").build()
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM_NAME}}]
    return built.create(pod, count=pods).done()


def measure(shape: str, nodes: int, pods: int) -> Figures:
    ends = StepEnds()
    result = kubescene.run(scenario(shape, nodes, pods), instruments=(ends,))
    assert result.summary.placements_total == pods, result.message
    wall_s, cpu_s = time.perf_counter() - ends.at[0].wall_s, time.process_time() - ends.at[0].cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def main(quick: bool) -> None:
    nodes, pods = (QUICK_NODES, QUICK_PODS) if quick else (NODES, PODS)
    for shape in ("csi", "in-tree", "local", "provisioned"):
        count = min(pods, nodes) if shape == "local" else pods
        figures = alone(__file__, shape=shape, nodes=nodes, pods=count)
        span = Span(figures["wall_s"], figures["cpu_s"])
        row(
            f"{nodes:,} nodes, {count:,} pods, {shape}",
            f"{span.per(count)} {figures['peak_mb']:6.0f} MB",
            FLOOR,
        )


if __name__ == "__main__":
    start(measure, main)
