"""Pods per second of whole scenario runs: store writes, phases, kubelet and timeline included.

    python bench/throughput.py [--quick]

From the moment the nodes are ready to the finished summary. Each size runs in a process of its
own, so that peak memory is its own.
"""

import time

import kubescene
from kubescene.clock import ScenarioStep
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.timeline import Instrument
from measuring import Figures, Span, alone, peak_mb, row, start

SIZES = ((500, 10_000), (1_000, 10_000), (5_000, 10_000))
QUICK_SIZES = ((50, 500), (500, 500))
LARGE = (10_000, 100_000)
FLOOR = "floor 5,000 /s; aim 8,000"
DEPLOYMENT_FLOOR = "floor 3,000 /s; aim 6,000"
LARGE_FLOOR = "floor 30 s CPU and 800 MB; aim 13 s and 600 MB"


class NodesReady(Instrument):
    """Notes when the first step, in which the nodes come, is over."""

    at: Span | None = None

    def step_finished(self, step: ScenarioStep) -> None:
        self.at = self.at or Span(time.perf_counter(), time.process_time())


def scenario(nodes: int, pods: int, *, deployment: bool) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("throughput")
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes).step(2)
    pod = make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi")
    if deployment:
        template = make_pod("web").cpu("250m").memory("512Mi")
        built.create(make_deployment("web").replicas(pods).template(template))
    else:
        built.create(pod, count=pods)
    return built.done()


def measure(nodes: int, pods: int, deployment: bool = False) -> Figures:
    ready = NodesReady()
    result = kubescene.run(scenario(nodes, pods, deployment=deployment), instruments=(ready,))
    assert result.summary.placements_total == pods, result.message
    assert ready.at is not None
    wall_s, cpu_s = time.perf_counter() - ready.at.wall_s, time.process_time() - ready.at.cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def show(name: str, pods: int, figures: Figures, floor: str) -> None:
    span = Span(figures["wall_s"], figures["cpu_s"])
    taken = f"{span.cpu_s:6.2f} s CPU {span.wall_s:6.2f} s wall {figures['peak_mb']:6.0f} MB"
    row(name, f"{span.per(pods)} {taken}", floor)


def main(quick: bool) -> None:
    seconds = []
    for nodes, pods in QUICK_SIZES if quick else SIZES:
        figures = alone(__file__, nodes=nodes, pods=pods)
        seconds.append(figures["cpu_s"])
        show(f"{nodes:,} nodes, {pods:,} pods", pods, figures, FLOOR)
    ratio = seconds[0] / seconds[-1]
    row("most nodes over fewest, by CPU", f"{ratio:11.2f} of the pods/s", "floor 0.8, aim 1")
    nodes, pods = QUICK_SIZES[0] if quick else SIZES[1]
    figures = alone(__file__, nodes=nodes, pods=pods, deployment=True)
    show(f"{nodes:,} nodes, Deployment of {pods:,}", pods, figures, DEPLOYMENT_FLOOR)
    if not quick:
        nodes, pods = LARGE
        show(
            f"{nodes:,} nodes, {pods:,} pods",
            pods,
            alone(__file__, nodes=nodes, pods=pods),
            LARGE_FLOOR,
        )


if __name__ == "__main__":
    start(measure, main)
