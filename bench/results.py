"""Results of a run, read from its directory: measures, tables, report and comparison.

    python bench/results.py [--quick]

The run is played first, in a process of its own, and once more by a scheduler that packs where the
first one spreads, so that nearly every pod stands elsewhere. What is measured is what ``kubescene
results``, ``report`` and ``compare`` do, each in a process of its own: imports, one pass over the
timeline, and all measures, or these and tables as CSV, the page, the comparison in Markdown.
The floor is for measures, report and comparison together.
"""

import tempfile
from pathlib import Path
from typing import Any

from measuring import Figures, Stopwatch, alone, peak_mb, row, start

SIZES = ((1_000, 10_000), (5_000, 50_000))
STEPS = 10
FLOOR = "5 s CPU and 500 MB at 50,000 pods"
COUNTED = ("measures", "report", "comparison")
READ = (*COUNTED, "tables")
PACKING = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated"}},
                }
            ]
        }
    ],
}


def measure(what: str, folder: str, nodes: int = 0, pods: int = 0) -> Figures:
    if what == "play":
        play(f"{folder}/b", nodes, pods, PACKING)
        return play(f"{folder}/a", nodes, pods, None)
    return read(folder, what)


def play(folder: str, nodes: int, pods: int, scheduler: Any) -> Figures:
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
    run = kubescene.run(scenario.done(), out=folder, scheduler=scheduler)
    assert run.ok, run.message
    size = (Path(folder) / "timeline.jsonl").stat().st_size
    return watch.read()._asdict() | {"disk_mb": size / 1e6}


def read(folder: str, what: str) -> Figures:
    watch = Stopwatch()
    {"report": report, "comparison": comparison, "tables": tables, "measures": measures}[what](
        Path(folder)
    )
    return watch.read()._asdict() | {"peak_mb": peak_mb()}


def measures(folder: Path) -> None:
    from kubescene.results import open_run

    assert open_run(folder / "a").measures()["pods_bound"]


def tables(folder: Path) -> None:
    from kubescene.results import open_run

    source = open_run(folder / "a")
    for name in ("measures", "pods", "nodes", "steps", "attempts", "utilization"):
        for _ in source.tables()[name].csv_lines():
            pass


def report(folder: Path) -> None:
    from kubescene.reports.html import report_html

    assert len(report_html(folder / "a")) < 5_000_000


def comparison(folder: Path) -> None:
    from kubescene.reports.comparison_markdown import markdown
    from kubescene.results import compare

    assert markdown(compare(folder / "a", folder / "b"))


def main(quick: bool) -> None:
    for nodes, pods in SIZES[:1] if quick else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            played = alone(__file__, what="play", folder=folder, nodes=nodes, pods=pods)
            found = {what: alone(__file__, what=what, folder=folder) for what in READ}
        for what in READ:
            told = (
                f"{found[what]['cpu_s']:6.2f} s CPU {found[what]['wall_s']:6.2f} s wall "
                f"{found[what]['peak_mb']:5.0f} MB; {played['disk_mb']:.0f} MB on disk"
            )
            row(f"{pods:,} pods, {what}", told)
        whole = sum(found[what]["cpu_s"] for what in COUNTED)
        most = max(found[what]["peak_mb"] for what in COUNTED)
        row(f"{pods:,} pods, {' + '.join(COUNTED)}", f"{whole:6.2f} s CPU {most:5.0f} MB", FLOOR)


if __name__ == "__main__":
    start(measure, main)
