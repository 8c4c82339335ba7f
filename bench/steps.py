"""What a major step costs by itself, and whether the ten-thousandth costs more than the first.

    python bench/steps.py [--quick]

Every step creates one ConfigMap, so that what is measured is the engine, its results and the
timeline. Time and memory a step have to be the same for a short and a long scenario.
"""

import kubescene
from kubescene.types import JsonObject
from measuring import Figures, Stopwatch, alone, peak_mb, row, start

SIZES = (2_000, 20_000)
QUICK_SIZES = (200, 1_000)


def tiny(number: int) -> JsonObject:
    metadata = {"name": f"step-{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def scenario(steps: int) -> JsonObject:
    built = kubescene.ScenarioBuilder("steps")
    for number in range(1, steps + 1):
        built.step(number).create(tiny(number))
    return built.done().build()


def measure(steps: int) -> Figures:
    assert kubescene.run(scenario(10)).ok  # what is loaded at first use is no part of a step
    document = scenario(steps)
    before, watch = peak_mb(), Stopwatch()
    assert kubescene.run(document).ok
    return watch.read()._asdict() | {"peak_mb": peak_mb() - before}


def main(quick: bool) -> None:
    found = []
    for steps in QUICK_SIZES if quick else SIZES:
        figures = alone(__file__, steps=steps)
        cpu, wall = (figures[each] / steps * 1e6 for each in ("cpu_s", "wall_s"))
        memory = figures["peak_mb"] * 1024 / steps
        found.append((cpu, memory))
        row(f"{steps:,} steps", f"{cpu:8.0f} us CPU {wall:8.0f} us wall {memory:8.1f} kB a step")
    cpu, memory = (long / short for short, long in zip(*found, strict=True))
    row("long over short, a step", f"{cpu:8.2f} CPU {memory:8.2f} memory", "flat: about 1")


if __name__ == "__main__":
    start(measure, main)
