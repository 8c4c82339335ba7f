"""The workload of KubeSBS: nodes and pods of a GPU cluster, read from manifests, explained in full.

    KUBESBS=DIR python bench/kubesbs.py [--quick]

``DIR`` holds ``nodes-N.yaml.gz`` and ``pods-N.yaml.gz`` for N = 100, 500, 1200, as `kubescene
convert` reads them. Without it there is nothing to measure. What is measured is the run of the
converted scenario with its results on disk; reading and converting stand beside it.
"""

import importlib
import os
import tempfile
from pathlib import Path
from typing import Any

import kubescene
from measuring import Figures, Stopwatch, alone, peak_mb, row, start

FOLDER = os.environ.get("KUBESBS", "")
SIZES = (100, 500, 1200)
FLOOR = "3 s and 300 MB at 1,200 nodes"


def module_of(now: str, before: str) -> Any:
    """A module of `kubescene.scenario`, which had another name at 5eb65f18."""
    try:
        return importlib.import_module(f"kubescene.scenario.{now}")
    except ImportError:
        return importlib.import_module(f"kubescene.scenario.{before}")


def measure(nodes: int) -> Figures:
    watch = Stopwatch()
    files = [Path(FOLDER) / f"{kind}-{nodes}.yaml.gz" for kind in ("nodes", "pods")]
    read_manifests = module_of("reading.object_files", "manifests").read_manifests
    objects = [obj for file in files for obj in read_manifests(file)]
    scenario = module_of("conversion", "converting").scenario_from(objects, "kubesbs").scenario
    scenario["spec"]["simulation"] = {"explain": "Full"}
    reading = watch.read()
    del objects
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as out:
        run = kubescene.run(scenario, out=out)
        span = watch.read()
        assert run.ok, run.message
        size = sum(file.stat().st_size for file in Path(out).iterdir())
    return span._asdict() | {
        "peak_mb": peak_mb(),
        "reading_s": reading.cpu_s,
        "bound": run.summary.placements_total,
        "pending": len(run.summary.pending),
        "disk_mb": size / 1e6,
    }


def main(quick: bool) -> None:
    if not FOLDER:
        row("KubeSBS", "not measured: set KUBESBS to the folder of its manifests")
        return
    for nodes in SIZES[:1] if quick else SIZES:
        found = alone(__file__, nodes=nodes)
        told = (
            f"{found['bound']:6,.0f} bound {found['pending']:5,.0f} wait "
            f"{found['cpu_s']:7.2f} s CPU {found['wall_s']:7.2f} s wall "
            f"{found['peak_mb']:6.0f} MB, {found['disk_mb']:.0f} MB "
            f"on disk; reading {found['reading_s']:.2f} s CPU"
        )
        row(f"{nodes:,} nodes", told, FLOOR if nodes == SIZES[-1] else "")


if __name__ == "__main__":
    start(measure, main)
