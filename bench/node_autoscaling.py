"""What a loop of the cluster autoscaler costs in a world of objects, and what a virtual day does.

    python bench/node_autoscaling.py [--quick]

First with pods that wait, of as many sorts as there are groups; then when nothing has changed, with
nodes that are half empty and whose pods fit nowhere else; then when such a loop can be left out.
At last a day, with its growth: pods come for eight hours, run for eight, and machines with them.
"""

from time import process_time

import kubescene
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.node_autoscaling.autoscaler import ClusterAutoscaler, LoopReport
from kubescene.node_autoscaling.flags import read_settings
from kubescene.node_autoscaling.turns import Turns
from kubescene.testing import make_pod
from kubescene.types import JsonObject
from measuring import Figures, alone, row, start

QUARTERS = 96
"""Of an hour, in a day."""


def group(name: str, size: int) -> JsonObject:
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {
            "size": size,
            "max": size + 1000,
            "boot": {"time": "5m"},
            "template": {"metadata": {"labels": {"pool": name}}, "status": {"capacity": capacity}},
        },
    }


def pod(name: str, cpu: str, pool: str) -> JsonObject:
    obj = make_pod(name).cpu(cpu).memory("8Gi").build()
    obj["spec"]["nodeSelector"] = {"pool": pool}
    return obj


def world(nodes: int, groups: int) -> ClusterWorld:
    settings = read_settings({"scale-down-unneeded-time": "2h"}, "autoscaler")
    cluster = ClusterWorld(ClusterOptions(autoscaler=settings))
    for number in range(groups):
        cluster.create(group(f"g{number:02}", nodes // groups))
    cluster.settle()
    cluster.advance("301s")
    for number in range(nodes):
        pool = f"g{number % groups:02}"
        cluster.create(pod(f"used-{number}", "12", pool))
    cluster.settle()
    return cluster


def day(pods: int) -> JsonObject:
    """Ten of them fill a machine; in the eighth hour all that came are there."""
    builder = kubescene.ScenarioBuilder("a-day")
    for number in range(4):
        machines = group(f"g{number}", 0)
        machines["spec"] |= {"max": pods // 20, "boot": {"time": "90s"}}
        machines["spec"]["template"]["metadata"]["labels"]["pool"] = f"g{number}"
        builder.create(machines)
    builder.step(2)
    for quarter in range(QUARTERS):
        for number in range(4 if quarter < QUARTERS // 3 else 0):
            obj = pod(f"p-{quarter}-{number}-$(INDEX)", "1500m", f"g{number}")
            obj["spec"]["containers"][0]["resources"]["requests"]["memory"] = "4Gi"
            obj["metadata"]["annotations"] = {"kubescene.dev/run-time": "8h"}
            obj["spec"]["restartPolicy"] = "Never"
            builder.create(obj, count=pods // (4 * QUARTERS // 3))
        builder.step(2 * quarter + 3).advance("15m").step(2 * quarter + 4)
    scenario = builder.build()
    scenario["spec"]["simulation"] = {"clusterAutoscaler": {}}
    return scenario


def measure_day(pods: int) -> Figures:
    began = process_time()
    run = kubescene.run(day(pods))
    assert run.ok, run.message
    return {"day": process_time() - began, "placed": float(run.summary.placements_total)}


def measure(nodes: int = 0, pods: int = 0, groups: int = 0, day: bool = False) -> Figures:
    if day:
        return measure_day(pods)
    spent: list[float] = []
    turns: list[float] = []
    loop, turn = ClusterAutoscaler.run_once, Turns.run

    def timed_loop(self: ClusterAutoscaler, now: int) -> LoopReport:
        began = process_time()
        try:
            return loop(self, now)
        finally:
            spent.append(process_time() - began)

    def timed_turn(self: Turns) -> bool:
        began = process_time()
        try:
            return turn(self)
        finally:
            turns.append(process_time() - began)

    ClusterAutoscaler.run_once, Turns.run = timed_loop, timed_turn  # type: ignore[method-assign]
    cluster = world(nodes, groups)
    cluster.advance("10m")
    spent.clear()
    turns.clear()
    cluster.advance("40s")
    idle, left_out = turns[-1], not spent
    for number in range(pods):
        pool = f"g{number % groups:02}"
        cluster.create(pod(f"waiting-{number}", "6", pool))
    cluster.settle()
    spent.clear()
    cluster.advance("11s")
    return {"loop": spent[0], "next": spent[-1], "idle": idle, "left_out": left_out}


def main(quick: bool) -> None:
    sizes = [(500, 200, 4, "100 ms")] + ([] if quick else [(5_000, 1_000, 20, "1.5 s")])
    for nodes, pods, groups, floor in sizes:
        figures = alone(__file__, nodes=nodes, pods=pods, groups=groups)
        name = f"loop, {nodes:,} nodes, {pods:,} pods, {groups} groups"
        row(name, f"{figures['loop'] * 1e3:8.1f} ms CPU", floor)
        said = "left out" if figures["left_out"] else "looped"
        row("  idle turn", f"{figures['idle'] * 1e3:8.3f} ms CPU, {said}", "0.1 ms")
    for pods, floor in [(1_000, "")] + ([] if quick else [(10_000, "60 s")]):
        figures = alone(__file__, pods=pods, day=True)
        name = f"a day, {pods // 10:,} nodes, {pods:,} pods that come and go"
        row(name, f"{figures['day']:8.1f} s CPU", floor)


if __name__ == "__main__":
    start(measure, main)
