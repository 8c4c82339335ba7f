"""All benchmarks, one after the other; each prints its figures beside the floor it has to reach.

python bench/run.py [--quick] [NAME ...]
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = (
    "cold_start",
    "event_queue",
    "autoscalers",
    "autoscaler_processes",
    "scheduler_cycle",
    "throughput",
    "explanations",
    "volumes",
    "topology",
    "claims",
    "steps",
    "operations",
    "kubesbs",
    "results",
    "growth",
    "plugins",
    "preemption",
    "workloads",
    "fork",
    "bring",
    "api_server",
    "http_client",
    "live_scenario",
    "outside",
    "compare",
    "report",
    "matrix",
    "traffic",
)


def main(arguments: list[str]) -> int:
    options = [each for each in arguments if each.startswith("-")]
    names = [each for each in arguments if each not in options] or list(BENCHMARKS)
    codes = []
    for name in names:
        print(f"\n== {name} ==", flush=True)
        command = [sys.executable, str(HERE / f"{name}.py"), *options]
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
