"""Whole runs beside those of another version of Kubescene, in turns, as ratios.

    git worktree add --detach ../before 8a22b98
    python bench/against.py ../before [--quick]

Machines differ and are shared; what two versions do in the same minutes can be compared. Both play
the same scenario, each time in a new process and after a small run that loads the code, from the
moment the nodes are ready to the finished summary, by CPU. Only what both versions have is used.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import kubescene
from kubescene.clock import ScenarioStep
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Instrument
from measuring import Figures, own_process, row

HERE = Path(__file__).resolve().parent.parent
PAIRS = 3
NODES, PODS, FIRST_PODS = 1_000, 3_000, 200
FLOORS = {"plain": "floor 2.3 of 8a22b98", "deployment": "floor 2.1 of 8a22b98"}


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


def play(kind: str, nodes: int, pods: int) -> float:
    """Pods a second, by CPU."""
    built = kubescene.ScenarioBuilder("against").step(1)
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes).step(2)
    if kind == "deployment":
        built.create(deployment(pods))
    else:
        built.create(make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi"), count=pods)
    ready = NodesReady()
    result = kubescene.run(built.done(), instruments=(ready,))
    assert result.summary.placements_total == pods, result.message
    assert ready.at is not None
    return pods / (time.process_time() - ready.at)


def measure(kind: str, nodes: int, pods: int) -> Figures:
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


def compare(kind: str, other: Path, nodes: int, pods: int) -> None:
    pairs = []
    for _ in range(PAIRS):
        case = {"kind": kind, "nodes": nodes, "pods": pods}
        before, now = measured_in(other, **case), measured_in(HERE, **case)
        pairs.append(now / before)
        row(f"{kind}, {nodes:,} nodes, {pods:,} pods", f"{before:8,.0f} /s, now {now:8,.0f} /s")
    told = ", ".join(f"{ratio:.2f}" for ratio in pairs)
    row(f"{kind}: times as fast", f"{told}; median {median(pairs):.2f}", FLOORS[kind])


def main(arguments: list[str]) -> int:
    trees = [Path(each).resolve() for each in arguments if not each.startswith("-")]
    if len(trees) != 1 or not (trees[0] / "src" / "kubescene").is_dir():
        print("usage: python bench/against.py CHECKOUT [--quick]: a folder with src/kubescene")
        return 2
    nodes, pods = (100, 300) if "--quick" in arguments else (NODES, PODS)
    for kind in FLOORS:
        compare(kind, trees[0], nodes, pods)
    return 0


if __name__ == "__main__":
    own_process()
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(measure(**json.loads(sys.argv[2]))))
    else:
        sys.exit(main(sys.argv[1:]))
