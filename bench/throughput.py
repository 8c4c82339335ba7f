"""Pods per second of whole scenario runs: store writes, phases, kubelet and timeline included.

    python bench/throughput.py [NODES:PODS ...]

From the moment the nodes are ready to the finished summary. Each size runs in a process of its
own, so that peak memory is its own. Floor at 5,000 nodes: 2,000 pods/s, aim 8,000.
"""

import json
import resource
import subprocess
import sys
import time

SIZES = ("500:10000", "1000:10000", "5000:10000")


def measure(nodes: int, pods: int) -> dict[str, float]:
    import kubescene
    from kubescene.clock import ScenarioStep
    from kubescene.testing import make_node, make_pod
    from kubescene.timeline import Instrument

    scenario = (
        kubescene.ScenarioBuilder("throughput")
        .step(1)
        .create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes)
        .step(2)
        .create(make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi"), count=pods)
        .done()
    )

    class NodesReady(Instrument):
        """Notes when the first step, in which the nodes come, is over."""

        at = 0.0

        def step_finished(self, step: ScenarioStep) -> None:
            self.at = self.at or time.perf_counter()

    ready = NodesReady()
    result = kubescene.run(scenario, instruments=(ready,))
    seconds = time.perf_counter() - ready.at
    assert result.summary.placements_total == pods, result.message
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "nodes": nodes,
        "pods": pods,
        "seconds": seconds,
        "pods_per_s": pods / seconds,
        "peak_mb": peak,
    }


def main(sizes: tuple[str, ...]) -> None:
    print(f"{'nodes':>6} {'pods':>7} {'seconds':>8} {'pods/s':>7} {'peak MB':>8}")
    figures = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", size]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        figure = json.loads(output)
        figures.append(figure)
        print(
            f"{figure['nodes']:6} {figure['pods']:7} {figure['seconds']:8.2f} "
            f"{figure['pods_per_s']:7.0f} {figure['peak_mb']:8.0f}",
            flush=True,
        )
    if len(figures) > 1:
        ratio = figures[-1]["pods_per_s"] / figures[0]["pods_per_s"]
        print(f"growth: {ratio:.2f} of the first size's pods/s at the last (floor 0.3, aim 0.8)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        given = sys.argv[2].split(":")
        print(json.dumps(measure(int(given[0]), int(given[1]))))
    else:
        main(tuple(sys.argv[1:]) or SIZES)
