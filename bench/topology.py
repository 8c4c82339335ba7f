"""Pods per second of whole runs whose pods are attracted, repelled or spread, beside plain ones.

    python bench/topology.py [--quick]

The pods are those of kube-scheduler's own benchmarks: required affinity within a zone, required
anti-affinity by hostname, a hard spread constraint over three zones; and those of a Deployment,
which the system's default constraints spread by hostname and zone. Each case runs in a process of
its own. From the moment the nodes are ready to the finished summary.
"""

import time

import kubescene
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.testing.builders import PodBuilder
from measuring import Figures, Span, alone, peak_mb, row, start
from throughput import NodesReady

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FLOOR = "floor 2,000 /s, aim 5,000"

CASES = {
    "plain": "",
    "required affinity, zone": FLOOR,
    "required anti-affinity, hostname": FLOOR,
    "hard spread, zone": FLOOR,
    "hard spread, hostname": FLOOR,
    "soft spread, zone": "",
    "preferred affinity, hostname": "",
    "Deployment, default spread": "",
}
SIZE, QUICK_SIZE = (5_000, 4_000), (200, 150)


def pod(name: str, case: str) -> PodBuilder:
    plain = make_pod(name).cpu("100m").memory("500Mi").label(color="blue")
    cases = {
        "required affinity, zone": plain.near(ZONE, color="blue"),
        "required anti-affinity, hostname": plain.away_from(HOSTNAME, color="blue"),
        "hard spread, zone": plain.spread(ZONE, skew=5, color="blue"),
        "hard spread, hostname": plain.spread(HOSTNAME, color="blue"),
        "soft spread, zone": plain.spread(ZONE, skew=5, soft=True, color="blue"),
        "preferred affinity, hostname": plain.near(HOSTNAME, weight=1, color="blue"),
    }
    return cases.get(case, plain)


def scenario(case: str, nodes: int, pods: int) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("topology")
    for zone in ("moon-1", "moon-2", "moon-3"):
        labelled = make_node(f"{zone}-$(INDEX)").cpu("32").memory("256Gi").zone(zone)
        built.create(labelled, count=-(-nodes // 3))
    built.step(2)
    if case.startswith("Deployment"):
        built.create(make_deployment("web").replicas(pods).template(pod("web", case)))
    else:
        built.create(pod("pod-$(INDEX)", case), count=pods)
    return built.done()


def measure(case: str, nodes: int, pods: int) -> Figures:
    ready = NodesReady()
    result = kubescene.run(scenario(case, nodes, pods), instruments=(ready,))
    assert result.summary.placements_total == pods, result.message
    assert ready.at is not None
    wall_s, cpu_s = time.perf_counter() - ready.at.wall_s, time.process_time() - ready.at.cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def main(quick: bool) -> None:
    nodes, pods = QUICK_SIZE if quick else SIZE
    plain = 0.0
    for case, floor in CASES.items():
        figures = alone(__file__, case=case, nodes=nodes, pods=pods)
        plain = plain or figures["cpu_s"]
        span = Span(figures["wall_s"], figures["cpu_s"])
        row(case, f"{span.per(pods)} {plain / span.cpu_s:6.2f} of plain", floor)


if __name__ == "__main__":
    start(measure, main)
