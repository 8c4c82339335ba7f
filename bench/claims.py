"""Pods per second of whole runs in which every pod gets a device.

    python bench/claims.py [--quick]

As the workload SchedulingWithResourceClaimTemplate of scheduler_perf: a slice of ten devices per
node, a claim per pod, made from a template by the ResourceClaim controller. Store writes, phases,
kubelet and timeline are included.
"""

import time

import kubescene
from kubescene.clock import ScenarioStep
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Instrument
from kubescene.types import JsonObject
from measuring import Figures, Span, alone, peak_mb, row, start

SIZES = ((500, 2_500), (5_000, 5_000))
QUICK_SIZES = ((50, 250), (200, 250))
DEVICES = 10
DRIVER = "gpu.example.com"
FLOOR = "floor 500 /s, aim 2,000"


class NodesReady(Instrument):
    """Notes when the first step, in which nodes and slices come, is over."""

    at: Span | None = None

    def step_finished(self, step: ScenarioStep) -> None:
        self.at = self.at or Span(time.perf_counter(), time.process_time())


def resource(kind: str, name: str, spec: JsonObject) -> JsonObject:
    metadata = {"name": name, **({} if kind != "ResourceClaimTemplate" else NAMESPACE)}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


NAMESPACE = {"namespace": "default"}
CLASS = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
TEMPLATE = {
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
}
SLICE = {
    "driver": DRIVER,
    "nodeName": "node-$(INDEX)",
    "pool": {"name": "node-$(INDEX)", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": f"gpu-{number}"} for number in range(DEVICES)],
}


def scenario(nodes: int, pods: int) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("claims")
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes)
    built.create(resource("DeviceClass", "gpu", CLASS))
    built.create(resource("ResourceClaimTemplate", "gpu", TEMPLATE))
    built.create(resource("ResourceSlice", "slice-$(INDEX)", SLICE), count=nodes).step(2)
    pod = make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi").build()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    built.create(pod, count=pods)
    return built.done()


def measure(nodes: int, pods: int) -> Figures:
    ready = NodesReady()
    result = kubescene.run(scenario(nodes, pods), instruments=(ready,))
    assert result.summary.placements_total == pods, result.message
    assert ready.at is not None
    wall_s, cpu_s = time.perf_counter() - ready.at.wall_s, time.process_time() - ready.at.cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def main(quick: bool) -> None:
    seconds = []
    for nodes, pods in QUICK_SIZES if quick else SIZES:
        figures = alone(__file__, nodes=nodes, pods=pods)
        span = Span(figures["wall_s"], figures["cpu_s"])
        seconds.append(span.cpu_s / pods)
        taken = f"{span.cpu_s:6.2f} s CPU {span.wall_s:6.2f} s wall {figures['peak_mb']:6.0f} MB"
        row(f"{nodes:,} nodes, {pods:,} pods with claims", f"{span.per(pods)} {taken}", FLOOR)
    ratio = seconds[0] / seconds[-1]
    row("most nodes over fewest, by CPU", f"{ratio:11.2f} of the pods/s", "floor 0.8, aim 1")


if __name__ == "__main__":
    start(measure, main)
