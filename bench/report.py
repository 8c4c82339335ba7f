"""The page of a run of 50,000 pods: CPU, memory and size, reading its directory.

    python bench/report.py [--quick]

The ledger is what results, comparison and report all read; it stands beside the page.
"""

import tempfile
from pathlib import Path

import kubescene
from kubescene.reports.html import report_html
from kubescene.results.opening import open_run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from measuring import Figures, Stopwatch, alone, peak_mb, row, start

SIZES = ((1_000, 10_000), (5_000, 50_000), (10_000, 50_000))
QUICK = ((200, 2_000),)
STEPS = 20
FLOOR = "floor, with results and comparison: 5 s CPU, 500 MB; 5 MB"


def measure(kind: str, nodes: int, pods: int, folder: str) -> Figures:
    if kind == "play":
        return play(nodes, pods, Path(folder))
    source = open_run(Path(folder))
    watch = Stopwatch()
    assert source.ledger.pods
    ledger = watch.read()
    size = len(report_html(source).encode())
    whole = watch.read()
    page_s = whole.cpu_s - ledger.cpu_s
    return {"ledger_s": ledger.cpu_s, "page_s": page_s, "size": size, "mb": peak_mb()}


def play(nodes: int, pods: int, folder: Path) -> Figures:
    """Pods in twenty steps; some of the last ones fit nowhere."""
    builder = ScenarioBuilder("report")
    builder.create(make_node("node-$(INDEX)").cpu("16").memory("64Gi"), count=nodes)
    for step in range(STEPS):
        pod = make_pod(f"web-{step}-$(INDEX)").cpu("500m").memory("1Gi")
        builder.step(step + 2).create(pod, count=pods // STEPS)
    builder.create(make_pod("giant-$(INDEX)").cpu("32"), count=100)
    assert kubescene.run(builder.done(), out=folder).ok
    return {}


def main(quick: bool) -> None:
    for nodes, pods in QUICK if quick else SIZES:
        with tempfile.TemporaryDirectory() as folder:
            case = {"nodes": nodes, "pods": pods, "folder": folder}
            alone(__file__, kind="play", **case)
            figures = alone(__file__, kind="page", **case)
        told = f"{figures['page_s']:.2f} s CPU after {figures['ledger_s']:.2f} s of reading, "
        told += f"{figures['mb']:.0f} MB, page {figures['size'] / 1e6:.2f} MB"
        row(f"{nodes:,} nodes, {pods:,} pods", told, FLOOR)


if __name__ == "__main__":
    start(measure, main)
