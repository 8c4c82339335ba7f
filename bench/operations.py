"""Ten thousand operations in ten thousand steps: creates, patches and deletes of real objects.

    python bench/operations.py [--quick]

A node comes; then every three steps a pod is created and placed, labelled, and deleted. What is
measured is a whole run from the object to the summary, the check of the spec included.
"""

import kubescene
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from measuring import Figures, Stopwatch, alone, peak_mb, row, start

OPERATIONS = 10_000
QUICK_OPERATIONS = 600


def scenario(operations: int) -> JsonObject:
    built = kubescene.ScenarioBuilder("operations").create(make_node("n").cpu("64"))
    for number in range(operations - 2):
        name = f"pod-{number // 3}"
        built.next_step()
        if number % 3 == 0:
            built.create(make_pod(name).cpu("100m"))
        elif number % 3 == 1:
            built.patch("v1", "Pod", name, {"metadata": {"labels": {"seen": "yes"}}})
        else:
            built.delete("v1", "Pod", name)
    return built.next_step().done().build()


def measure(operations: int) -> Figures:
    assert kubescene.run(scenario(30)).ok  # what is loaded at first use is no part of it
    document = scenario(operations)
    before, watch = peak_mb(), Stopwatch()
    run = kubescene.run(document)
    assert run.ok, run.message
    return watch.read()._asdict() | {"peak_mb": peak_mb() - before}


def main(quick: bool) -> None:
    operations = QUICK_OPERATIONS if quick else OPERATIONS
    figures = alone(__file__, operations=operations)
    cpu, wall, memory = (figures[each] for each in ("cpu_s", "wall_s", "peak_mb"))
    told = f"{cpu:8.2f} s CPU {wall:8.2f} s wall {memory:8.0f} MB"
    row(f"{operations:,} operations and steps", told, "10 s" if not quick else "")


if __name__ == "__main__":
    start(measure, main)
