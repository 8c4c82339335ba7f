"""Plugins of users, and pods of many classes, beside plain pods: whole scenario runs.

    python bench/plugins.py [--quick]

Plain pods, pods of 1,000 classes (each asks for another amount of cpu), and plain pods under a
plugin of the user's, written per node: a Score, a Filter, and the same Filter where it says that it
reads the node alone. Then a plugin of the user's stands in the place of a built-in one and does the
same, by the same code: nothing may be faster because it is ours. Measured from the moment the nodes
are there, store writes, phases, kubelet and timeline included; each case in a process of its own.
The ratio to plain is by CPU time; where both should take the same, by the best of three.
"""

import time
from dataclasses import replace
from typing import Any

import kubescene
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PodInfo,
    Reads,
    SchedulerOptions,
    ScorePlugin,
    Status,
)
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.scheduler.plugins import BUILT_IN
from kubescene.scheduler.plugins.default_profile import default_profile
from kubescene.testing import make_node, make_pod
from measuring import Figures, Span, alone, peak_mb, row, start
from throughput import NodesReady

NODES, PODS = 5_000, 10_000
QUICK_NODES, QUICK_PODS = 200, 400
CLASSES = 1_000


class NodeNumber(ScorePlugin):
    """A user's Score, per node: the last digits of pod and node."""

    name = "NodeNumber"

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 10 if pod.name[-1] == node.name[-1] else 0


class FreeNodes(FilterPlugin):
    """A user's Filter, per node, that says nothing of what it reads."""

    name = "FreeNodes"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.free("cpu") > 0 else Status.unschedulable("nothing is free")


class FreeNodesDeclared(FreeNodes):
    """The same, saying that it reads the node alone."""

    name = "FreeNodesDeclared"
    reads = Reads.NODE


REPLACED = ("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
"""Built-in plugins that every plain pod meets."""


def replaced(name: str) -> SchedulerOptions:
    """The default profile with a class of the user's in the place of one built-in plugin."""
    built_in, profile, own_name = BUILT_IN[name], default_profile(), f"Own{name}"
    own: Any = type(own_name, (built_in.plugin,), {"name": own_name, "__module__": __name__})

    def make(arguments: Any, handle: Handle) -> Any:
        plugin: Any = built_in.make(arguments, handle)
        plugin.__class__ = own
        return plugin

    points = {
        point: tuple(replace(each, name=own_name) if each.name == name else each for each in at)
        for point, at in profile.points.items()
    }
    return SchedulerOptions(profiles=(replace(profile, points=points),), plugins={own_name: make})


PLUGINS: dict[str, type] = {each.name: each for each in (NodeNumber, FreeNodes, FreeNodesDeclared)}


def scenario(nodes: int, pods: int, classes: int) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("plugins")
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes).step(2)
    for kind in range(classes):
        pod = make_pod(f"pod-{kind}-$(INDEX)").cpu(f"{100 + kind}m").memory("64Mi")
        built.create(pod, count=pods // classes)
    return built.done()


def measure(nodes: int, pods: int, classes: int = 1, plugin: str = "") -> Figures:
    ready, options = NodesReady(), SchedulerOptions()
    if plugin in REPLACED:
        options = replaced(plugin)
    elif plugin:
        options = with_plugin(options, PLUGINS[plugin])
    result = kubescene.run(scenario(nodes, pods, classes), instruments=(ready,), scheduler=options)
    assert result.summary.placements_total == pods, result.message
    assert ready.at is not None
    wall_s, cpu_s = time.perf_counter() - ready.at.wall_s, time.process_time() - ready.at.cpu_s
    return {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}


def main(quick: bool) -> None:
    nodes, pods = (QUICK_NODES, QUICK_PODS) if quick else (NODES, PODS)
    classes = 100 if quick else CLASSES
    plain = _row("plain", "", alone(__file__, nodes=nodes, pods=pods), pods)
    case = alone(__file__, nodes=nodes, pods=pods, classes=classes)
    many = _row(f"{classes:,} classes", "", case, pods)
    row("", f"{plain / many:11.2f} of the pods/s of one class", "floor 0.5")
    for name in PLUGINS:
        figures = alone(__file__, nodes=nodes, pods=pods, plugin=name)
        taken = _row(f"per node: {name}", "floor 2,000 /s, aim 4,000", figures, pods)
        row("", f"{plain / taken:11.2f} of the pods/s of plain")
    best = _best_of_three(nodes=nodes, pods=pods)["cpu_s"]
    for name in REPLACED:
        taken = _row(f"a user's {name}", "", _best_of_three(nodes, pods, name), pods)
        row("", f"{best / taken:11.2f} of the pods/s of plain", "floor 0.9")


def _best_of_three(nodes: int, pods: int, plugin: str = "") -> Figures:
    found = (alone(__file__, nodes=nodes, pods=pods, plugin=plugin) for _ in range(3))
    return min(found, key=lambda figures: figures["cpu_s"])


def _row(name: str, floor: str, figures: Figures, pods: int) -> float:
    span = Span(figures["wall_s"], figures["cpu_s"])
    row(name, f"{span.per(pods)} {figures['peak_mb']:6.0f} MB", floor)
    return span.cpu_s


if __name__ == "__main__":
    start(measure, main)
