"""How long it takes to copy a running world.

    python bench/fork.py [--quick]

A fork has its own store, controllers, scheduler, queues, clock and streams; records are shared,
since nobody changes them.
"""

from typing import Any

from kubescene.cluster import Cluster
from kubescene.testing import make_node, make_pod
from measuring import Figures, Span, alone, best_of, row, start


def world(nodes: int, pods: int) -> Any:
    cluster = Cluster()
    for number in range(nodes):
        cluster.create(make_node(f"node-{number}").cpu("32").memory("256Gi"))
    for number in range(pods):
        cluster.create(make_pod(f"pod-{number}").cpu("250m").memory("512Mi"))
    return cluster.settle()


def measure(nodes: int, pods: int) -> Figures:
    return best_of(3, world(nodes, pods).fork)._asdict()


def main(quick: bool) -> None:
    if not hasattr(Cluster, "fork"):
        row("Cluster.fork", "not there yet")
        return
    nodes, pods = (100, 1_000) if quick else (1_000, 10_000)
    span = Span(**alone(__file__, nodes=nodes, pods=pods))
    figures = f"{span.cpu_s:8.3f} s CPU {span.wall_s:8.3f} s wall"
    row(f"fork, {nodes:,} nodes, {pods:,} pods", figures, "well under 1 s at 10,000 pods")


if __name__ == "__main__":
    start(measure, main)
