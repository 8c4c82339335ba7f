"""Two runs of 50,000 pods compared, from their directories.

    python bench/compare.py [--quick]

The second run packs where the first one spreads, so that nearly every pod stands elsewhere: the
worst case. The runs are made first and do not count; the comparison is made in a process of its
own, with its Markdown. 200 pods are looked at, in a run that explains failures only and in one that
explains everything (fewer nodes, since that is written down in full).
"""

import tempfile
from pathlib import Path

import kubescene
from kubescene.reports.comparison_markdown import markdown
from kubescene.results import compare
from kubescene.testing import make_node, make_pod
from measuring import Figures, Stopwatch, alone, peak_mb, row, start

CASES = ((1_000, 50_000, "Auto"), (200, 5_000, "Full"))
QUICK_CASES = ((100, 1_000, "Auto"), (50, 500, "Full"))
FLOOR = "floor 5 s CPU and 500 MB a run, together with results and report"
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


def play(nodes: int, pods: int, explain: str, folder: str) -> None:
    built = kubescene.ScenarioBuilder("compared").settings(explain=explain)
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes).step(2)
    built.create(make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi"), count=pods).done()
    kubescene.run(built, out=Path(folder) / "a")
    kubescene.run(built, out=Path(folder) / "b", scheduler=PACKING)


def measure(folder: str) -> Figures:
    watch = Stopwatch()
    found = compare(Path(folder) / "a", Path(folder) / "b")
    page = markdown(found)
    span = watch.read()
    figures = {"cpu_s": span.cpu_s, "wall_s": span.wall_s, "peak_mb": peak_mb()}
    return figures | {"moved": len(found.placed), "page_kb": len(page) / 1024}


def main(quick: bool) -> None:
    for nodes, pods, explain in QUICK_CASES if quick else CASES:
        with tempfile.TemporaryDirectory() as folder:
            play(nodes, pods, explain, folder)
            found = alone(__file__, folder=folder)
        taken = f"{found['cpu_s']:6.2f} s CPU {found['wall_s']:6.2f} s wall"
        size = f"{found['peak_mb']:6.0f} MB, {found['moved']:,.0f} pods elsewhere"
        name = f"{pods:,} pods, {nodes:,} nodes, {explain}"
        row(name, f"{taken} {size}, page {found['page_kb']:.0f} KB", FLOOR)


if __name__ == "__main__":
    start(measure, main)
