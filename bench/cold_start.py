"""Import and first placement of a one-node scenario in a cold process.

    python bench/cold_start.py [--quick]

Bytecode is cached, as it is once a package is installed: a first run that is not counted writes
it where this benchmark keeps it. The same interpreter importing nothing of ours is measured beside
it, since machines differ.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Span, row

RUNS, QUICK_RUNS = 9, 3
FLOOR = "floor 0.5 s, aim 0.3 s"
SCENARIO = """
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: cold}
spec:
  operations:
  - step: 1
    createOperation:
      object:
        apiVersion: v1
        kind: Node
        metadata: {name: n}
        status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
  - step: 2
    createOperation:
      object:
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
  - {step: 2, doneOperation: {}}
"""


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def environment(folder: str) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


def once(command: list[str], folder: str) -> Span:
    wall, cpu = time.perf_counter(), children_s()
    subprocess.run(command, check=True, capture_output=True, env=environment(folder))
    return Span(time.perf_counter() - wall, children_s() - cpu)


def median(command: list[str], runs: int, folder: str) -> Span:
    """The median of both times, each by itself."""
    once(command, folder)
    spans = [once(command, folder) for _ in range(runs)]
    walls, cpus = sorted(span.wall_s for span in spans), sorted(span.cpu_s for span in spans)
    return Span(walls[runs // 2], cpus[runs // 2])


def main(quick: bool) -> None:
    runs = QUICK_RUNS if quick else RUNS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cold.yaml"
        file.write_text(SCENARIO)
        library = f"import kubescene; assert kubescene.run({str(file)!r}).summary.placements_total"
        rows = {
            "python, nothing imported": [sys.executable, "-c", "pass"],
            "python, numpy imported": [sys.executable, "-c", "import numpy"],
            "kubescene.run": [sys.executable, "-c", library],
            "kubescene run (command)": [sys.executable, "-m", "kubescene", "run", str(file)],
        }
        for name, command in rows.items():
            span = median(command, runs, folder)
            figures = f"{span.cpu_s:6.3f} s CPU {span.wall_s:6.3f} s wall (medians of {runs})"
            row(name, figures, FLOOR if name.startswith("kubescene") else "")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
