"""Whole runs beside those of another version of Kubescene, in turns, as ratios.

    git worktree add --detach ../before 5eb65f18
    python bench/against.py ../before [CASE...] [--quick]

Machines differ and are shared; what two versions do in the same minutes can be compared. Both play
the same scenario, each time in a new process and after a small run that loads the code, from the
moment the nodes are ready to the finished summary, by CPU. Only what both versions have is used.
KubeSBS is played if ``KUBESBS`` names the folder of its manifests (see `kubesbs`).
"""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import claims
import kubesbs
import kubescene
import volumes
from kubescene.clock import ScenarioStep
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    NodeInfo,
    PodInfo,
    SchedulerOptions,
    Status,
)
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Instrument
from measuring import Figures, own_process, row

HERE = Path(__file__).resolve().parent.parent
PAIRS = 7
FIRST_PODS = 200
OWNED = "deployment"


class Case(NamedTuple):
    """What is played, and how much faster than 5eb65f18 it has to be."""

    kind: str
    nodes: int
    pods: int
    floor: float = 0.97


CASES = {
    "plain": Case("plain", 1_000, 3_000, 1.6),
    "plain-5000": Case("plain", 5_000, 3_000, 1.6),
    "full": Case("full", 1_000, 2_000, 1.4),
    OWNED: Case(OWNED, 1_000, 2_000, 1.7),
    "mixed": Case("mixed", 1_000, 2_000),
    "spread": Case("spread", 500, 500),
    "preemption": Case("preemption", 200, 400),
    "volumes": Case("csi", 500, 1_000),
    "local-volumes": Case("local", 500, 500),
    "provisioned": Case("provisioned", 500, 500),
    "claims": Case("claims", 200, 500),
    "plugin": Case("plugin", 500, 1_000),
    "kubesbs": Case("kubesbs", 500, 0, 1.4),
    "large": Case("plain", 10_000, 100_000, 1.7),
}
"""All but ``large`` are played unless others are named."""


class FreeNodes(FilterPlugin):
    """A user's Filter, per node."""

    name = "FreeNodes"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.free("cpu") > 0 else Status.unschedulable("nothing is free")


def with_plugin(options: SchedulerOptions, plugin: type) -> SchedulerOptions:
    """The options with a plugin of the user's, wherever a version has that."""
    try:
        adding = importlib.import_module("kubescene.scheduler.configuration.added_plugins")
    except ImportError:
        adding = importlib.import_module("kubescene.scheduler.adding")
    added: SchedulerOptions = adding.with_plugin(options, plugin)
    return added


class NodesReady(Instrument):
    """Notes the CPU time at which the first step, in which the nodes come, is over."""

    at: float | None = None

    def step_finished(self, step: ScenarioStep) -> None:
        self.at = self.at or time.process_time()


def deployment(replicas: int) -> dict[str, object]:
    labels = {"app": "web"}
    pod = make_pod("web").cpu("250m").memory("512Mi").build()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


def spread(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod that keeps away from those like it, by host."""
    pod["metadata"]["labels"] = {"app": "web"}
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    return pod


def scenario_of(kind: str, nodes: int, pods: int) -> kubescene.ScenarioBuilder:
    """Nodes in the first step, pods in the second; those that take their place in a third."""
    if kind in ("csi", "local", "provisioned"):
        return volumes.scenario(kind, nodes, pods)
    if kind == "claims":
        return claims.scenario(nodes, pods)
    built = kubescene.ScenarioBuilder("against").step(1)
    node = make_node("node-$(INDEX)").cpu("2" if kind == "preemption" else "32").memory("256Gi")
    labels = {"kubernetes.io/hostname": "node-$(INDEX)"} if kind == "spread" else {}
    built.create(node.labels(labels), count=nodes)
    pod = make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi")
    if kind == "preemption":
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
        built.create({**high, "metadata": {"name": "high"}}).step(2)
        built.create(make_pod("low-$(INDEX)").cpu("1").memory("1Gi"), count=pods // 2).step(3)
        built.create(make_pod("top-$(INDEX)").cpu("2").priority_class("high"), count=pods // 2)
    elif kind == "mixed":
        built.step(2)
        for number in range(pods):
            built.create(make_pod(f"pod-{number}").cpu(f"{100 + number % 7}m").memory("512Mi"))
    elif kind == OWNED:
        built.step(2).create(deployment(pods))
    else:
        made = spread(pod.build()) if kind == "spread" else pod
        built.step(2).create(made, count=pods)
    if kind == "full":
        built.settings(explain="Full")
    return built.done()


def play(kind: str, nodes: int, pods: int) -> float:
    """Pods a second, by CPU."""
    ready, options = NodesReady(), SchedulerOptions()
    if kind == "plugin":
        options = with_plugin(options, FreeNodes)
    scenario = scenario_of(kind, nodes, pods)
    result = kubescene.run(scenario, instruments=(ready,), scheduler=options)
    assert result.ok, result.message
    placed = 0 if kind == "preemption" else pods
    assert result.summary.placements_total >= placed, result.message
    assert ready.at is not None
    return pods / (time.process_time() - ready.at)


def measure(kind: str, nodes: int, pods: int) -> Figures:
    if kind == "kubesbs":
        kubesbs.measure(min(kubesbs.SIZES))
        found = kubesbs.measure(nodes)
        return {"pods_s": found["bound"] / found["cpu_s"]}
    play(kind, nodes, min(pods, FIRST_PODS))
    return {"pods_s": play(kind, nodes, pods)}


def measured_in(tree: Path, **case: object) -> float:
    """One case in a new process that imports Kubescene from ``tree``."""
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    output = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout
    return float(json.loads(output.splitlines()[-1])["pods_s"])


def compare(name: str, case: Case, other: Path, count: int) -> None:
    kind, nodes, pods, floor = case
    pairs = []
    for _ in range(count):
        played = {"kind": kind, "nodes": nodes, "pods": pods}
        before, now = measured_in(other, **played), measured_in(HERE, **played)
        pairs.append(now / before)
        row(f"{name}, {nodes:,} nodes, {pods:,} pods", f"{before:8,.0f} /s, now {now:8,.0f} /s")
    told = ", ".join(f"{ratio:.2f}" for ratio in pairs)
    row(f"{name}: times as fast", f"{told}; median {median(pairs):.2f}", f"floor {floor}")


def main(arguments: list[str]) -> int:
    plain = [each for each in arguments if not each.startswith("-")]
    tree, names = Path(plain[0] if plain else ".").resolve(), plain[1:]
    unknown = [each for each in names if each not in CASES]
    if not plain or unknown or not (tree / "src" / "kubescene").is_dir():
        print("usage: python bench/against.py CHECKOUT [CASE...] [--quick]")
        print(f"CHECKOUT is a folder with src/kubescene, a CASE one of {', '.join(CASES)}")
        return 2
    is_quick = "--quick" in arguments
    for name in names or [each for each in CASES if each != "large"]:
        case = CASES[name]
        if case.kind == "kubesbs" and not kubesbs.FOLDER:
            row(name, "not measured: set KUBESBS to the folder of its manifests")
            continue
        if is_quick:
            nodes = min(kubesbs.SIZES) if case.kind == "kubesbs" else case.nodes // 10
            case = case._replace(nodes=nodes, pods=case.pods // 10)
        compare(name, case, tree, 1 if is_quick else PAIRS)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        own_process()
        print(json.dumps(measure(**json.loads(sys.argv[2]))))
    else:
        sys.exit(main(sys.argv[1:]))
