"""Import and first placement of a one-node scenario in a cold process (floor 1.0 s, aim 0.4 s).

The same interpreter importing nothing of ours is measured beside it, since machines differ.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 7
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


def measure(command: list[str]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
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
            goal = "  floor 1.0, aim 0.4" if name.startswith("kubescene") else ""
            print(f"{name:28} {measure(command):6.3f} s  (median of {RUNS}){goal}")


if __name__ == "__main__":
    main()
