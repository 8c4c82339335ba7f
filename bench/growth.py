"""What gets dearer as a world grows: each line is one event's cost at several sizes, and the ratio.

    python bench/growth.py [--quick]

- deletions of pods while others wait: every deletion may help every waiting pod
- nodes that join while pods wait
- nodes that join one by one, a pod after each (what a cluster autoscaler does)
- pods of many classes, that is, of different requests
"""

from kubescene.cluster import Cluster
from kubescene.testing import make_node, make_pod
from measuring import Figures, Measure, Stopwatch, alone, row, start

HUGE = "64"
"""More than any node has: such a pod waits."""


def filled(nodes: int, pods: int, waiting: int = 0) -> Cluster:
    cluster = Cluster()
    for number in range(nodes):
        cluster.create(make_node(f"node-{number}").cpu("32").memory("256Gi"))
    for number in range(pods):
        cluster.create(make_pod(f"pod-{number}").cpu("100m").memory("64Mi"))
    for number in range(waiting):
        cluster.create(make_pod(f"waiting-{number}").cpu(HUGE))
    return cluster.settle()


def deletions(waiting: int, count: int) -> Figures:
    cluster = filled(nodes=20, pods=count, waiting=waiting)
    watch = Stopwatch()
    for number in range(count):
        cluster.delete("pods", f"pod-{number}")
    cluster.settle()
    return watch.read()._asdict()


def joins(nodes: int, count: int, waiting: int = 0) -> Figures:
    cluster = filled(nodes=nodes, pods=nodes, waiting=waiting)
    watch = Stopwatch()
    for number in range(count):
        cluster.create(make_node(f"late-{number}").cpu("32").memory("256Gi"))
        cluster.settle()
        cluster.create(make_pod(f"late-{number}").cpu("100m"))
        cluster.settle()
    return watch.read()._asdict()


def classes(nodes: int, kinds: int, count: int) -> Figures:
    cluster = filled(nodes=nodes, pods=1)
    for number in range(count):
        cluster.create(make_pod(f"kind-{number}").cpu(f"{100 + number % kinds}m"))
    watch = Stopwatch()
    cluster.settle()
    return watch.read()._asdict()


MEASURES: dict[str, Measure] = {"deletions": deletions, "joins": joins, "classes": classes}


def measure(what: str, **case: int) -> Figures:
    return MEASURES[what](**case)


def compare(name: str, floor: str, what: str, cases: dict[int, dict[str, int]]) -> None:
    costs = []
    for size, case in cases.items():
        figures = alone(__file__, what=what, **case)
        cpu, wall = (figures[each] / case["count"] * 1e6 for each in ("cpu_s", "wall_s"))
        costs.append(cpu)
        row(name.format(size), f"{cpu:10,.0f} us CPU {wall:10,.0f} us wall each")
    row("", f"{costs[-1] / costs[0]:10.2f} times the first, by CPU", floor)


def main(quick: bool) -> None:
    few = 20 if quick else 200
    waiting = (10, 100) if quick else (100, 1_000, 4_000)
    nodes = (20, 80) if quick else (200, 800)
    kinds = (1, 50) if quick else (1, 100, 1_000)
    compare(
        "deletion, {:,} pods wait",
        "floor 2, aim 1",
        "deletions",
        {each: {"waiting": each, "count": few} for each in waiting},
    )
    compare(
        "node joins, {:,} pods wait",
        "aim 1",
        "joins",
        {each: {"nodes": nodes[0], "count": few // 4, "waiting": each} for each in (0, waiting[1])},
    )
    compare(
        "node joins {:,} nodes",
        "aim 1",
        "joins",
        {each: {"nodes": each, "count": few} for each in nodes},
    )
    compare(
        "pods of {:,} classes",
        "floor 2, aim 1",
        "classes",
        {each: {"nodes": nodes[1], "kinds": each, "count": 10 * few} for each in kinds},
    )


if __name__ == "__main__":
    start(measure, main)
