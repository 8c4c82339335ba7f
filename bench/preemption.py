"""Preemption: pods of high priority take the place of others, as whole scenario runs.

    python bench/preemption.py [--quick]

The nodes are full of pods of low priority; then pods of high priority come, each of which fits only
if some of them go. Measured from the moment the nodes are full until the last one runs, store
writes, phases, kubelet and timeline included; the summary of the whole run, which is mostly about
the others, is not. Each size runs in a process of its own.

The second table asks what one decision costs while others hold nominations: nothing more, if nobody
is nominated to the nodes in question.
"""

import time

import kubescene
from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import ScenarioStep
from kubescene.cluster import Cluster
from kubescene.testing import make_node, make_pod, make_priority_class
from kubescene.timeline import Instrument
from measuring import Figures, Measure, Span, Stopwatch, alone, peak_mb, row, start

SIZES = ((500, 2_000, 500), (1_000, 4_000, 1_000))
QUICK_SIZES = ((50, 200, 50),)
NOMINATED = (10, 100, 1_000)
FLOOR = "floor 500 /s; aim 2,000"


class StepEnds(Instrument):
    """Notes when each step was over: the second fills the nodes, the third makes room."""

    def __init__(self) -> None:
        self.at: dict[int, Span] = {}

    def step_finished(self, step: ScenarioStep) -> None:
        self.at[step.major] = Span(time.perf_counter(), time.process_time())


def scenario(nodes: int, low: int, high: int) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("preemption")
    built.create(make_priority_class("high", 1_000))
    built.create(make_node("node-$(INDEX)").cpu("4").memory("32Gi"), count=nodes)
    built.step(2).create(make_pod("low-$(INDEX)").cpu("900m").memory("500Mi"), count=low)
    pod = make_pod("high-$(INDEX)").cpu("3").memory("500Mi").priority_class("high")
    return built.step(3).create(pod, count=high).done()


def whole(nodes: int, low: int, high: int) -> Figures:
    ends = StepEnds()
    result = kubescene.run(scenario(nodes, low, high), instruments=(ends,))
    assert result.summary.placements_total == low + high, result.message
    full, over = ends.at[2], ends.at[3]
    wall_s, cpu_s = over.wall_s - full.wall_s, over.cpu_s - full.cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def nominated(count: int, pods: int) -> Figures:
    """Plain pods are placed while others, of higher priority, hold nominations elsewhere."""
    cluster = Cluster()
    client = cluster.client(Actor("bench"))
    cluster.create(make_priority_class("high", 1_000))
    for number in range(1_000):
        cluster.create(make_node(f"node-{number}").cpu("32").memory("256Gi"))
    for number in range(count):
        cluster.create(make_pod(f"waiting-{number}").cpu("4").gate("wait").priority_class("high"))
        nominated = {"status": {"nominatedNodeName": f"node-{number}"}}
        ref = ObjectRef(POD, f"waiting-{number}", "default")
        client.patch(ref, nominated, subresource="status")
    cluster.settle()
    for number in range(pods):
        cluster.create(make_pod(f"pod-{number}").cpu("100m"))
    watch = Stopwatch()
    cluster.settle()
    return watch.read()._asdict()


MEASURES: dict[str, Measure] = {"whole": whole, "nominated": nominated}


def measure(what: str, **case: int) -> Figures:
    return MEASURES[what](**case)


def main(quick: bool) -> None:
    for nodes, low, high in QUICK_SIZES if quick else SIZES:
        figures = alone(__file__, what="whole", nodes=nodes, low=low, high=high)
        span = Span(figures["wall_s"], figures["cpu_s"])
        taken = f"{span.cpu_s:6.2f} s CPU {span.wall_s:6.2f} s wall {figures['peak_mb']:6.0f} MB"
        row(f"{nodes:,} nodes, {low:,} low, {high:,} high", f"{span.per(high)} {taken}", FLOOR)
    pods = 100 if quick else 1_000
    for count in NOMINATED:
        figures = alone(__file__, what="nominated", count=count, pods=pods)
        cost = figures["cpu_s"] / pods * 1e6
        row(f"a pod while {count:,} are nominated", f"{cost:10,.0f} us CPU", "flat")


if __name__ == "__main__":
    start(measure, main)
