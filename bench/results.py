"""Results of a run, read from its directory: measures and tables, streaming.

    python bench/results.py [--quick]

The run is played first, in a process of its own. What is measured is what ``kubescene results``
does: imports, one pass over the timeline, all measures; and on top of that tables as CSV.
"""

import tempfile
from pathlib import Path
from typing import Any

from measuring import Figures, Stopwatch, alone, peak_mb, row, start

SIZES = ((1_000, 10_000), (5_000, 50_000))
STEPS = 10
FLOOR = "5 s CPU and 500 MB at 50,000 pods, comparison and report included; aim 1.5 s"


def measure(what: str, folder: str, nodes: int = 0, pods: int = 0) -> Figures:
    return play(folder, nodes, pods) if what == "play" else read(folder, what)


def play(folder: str, nodes: int, pods: int) -> Figures:
    """A run of plain pods in ten steps, with its results on disk."""
    import kubescene
    from kubescene.scenario import ScenarioBuilder
    from kubescene.testing import make_node, make_pod

    scenario = ScenarioBuilder("results")
    scenario.create(make_node("node-$(INDEX)").cpu("16").memory("64Gi"), count=nodes)
    for step in range(2, STEPS + 2):
        pod: Any = make_pod(f"pod-{step}-$(INDEX)").cpu("100m").memory("256Mi")
        scenario.step(step).create(pod, count=pods // STEPS)
    watch = Stopwatch()
    run = kubescene.run(scenario.done(), out=folder)
    assert run.ok, run.message
    size = (Path(folder) / "timeline.jsonl").stat().st_size
    return watch.read()._asdict() | {"disk_mb": size / 1e6}


def read(folder: str, what: str) -> Figures:
    watch = Stopwatch()
    from kubescene.results import open_run

    source = open_run(folder)
    bound = source.measures()["pods_bound"]
    if what == "tables":
        for name in ("pods", "nodes", "steps", "attempts", "utilization"):
            for _ in source.tables()[name].csv_lines():
                pass
    return watch.read()._asdict() | {"peak_mb": peak_mb(), "bound": bound}


def main(quick: bool) -> None:
    for nodes, pods in SIZES[:1] if quick else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            played = alone(__file__, what="play", folder=folder, nodes=nodes, pods=pods)
            for what in ("measures", "tables"):
                found = alone(__file__, what=what, folder=folder)
                assert found["bound"] == pods
                told = (
                    f"{found['cpu_s']:6.2f} s CPU {found['wall_s']:6.2f} s wall "
                    f"{found['peak_mb']:5.0f} MB; {played['disk_mb']:.0f} MB on disk"
                )
                row(f"{pods:,} pods, {what}", told, FLOOR if (nodes, pods) == SIZES[-1] else "")


if __name__ == "__main__":
    start(measure, main)
