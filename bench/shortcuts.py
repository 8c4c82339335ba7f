"""What each shortcut saves: whole runs with one of them switched off, beside runs with all of them.

    python bench/shortcuts.py [KIND...] [--instructions] [--only NAME,NAME]

By CPU, the least of a few rounds in turns; with ``--instructions`` by what valgrind's cachegrind
counts, which needs no quiet machine but minutes: copies of a process that has loaded the code and
played a very small run play one way each, and what had been counted by then is taken off. The last
row is the plain way, without any of them; ``--only`` leaves it and the other shortcuts out. KubeSBS
is played if ``KUBESBS`` names the folder of its manifests. What saves less than 3 % of every kind
of run is to go (design note 0052).
"""

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kubesbs
import workloads
from against import FreeNodes, scenario_of, with_plugin
from kubescene.runs.local import play
from kubescene.runs.requests import RunRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.conversion import scenario_from
from kubescene.scenario.reading.object_files import read_manifests
from kubescene.scheduler import SchedulerOptions
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from kubescene.testing import make_node, make_pod
from measuring import own_process, row

ROUNDS = 4
SMALL = 20
"""Pods of the run that is played before instructions are counted."""
SIZES: dict[str, tuple[int, int]] = {
    "plain": (150, 400),
    "full": (100, 300),
    "deployment": (100, 300),
    "mixed": (300, 600),
    "spread": (100, 150),
    "preemption": (60, 160),
    "deletions": (50, 200),
    "jobs": (50, 100),
    "rollout": (10, 100),
    "csi": (40, 80),
    "claims": (30, 60),
    "plugin": (60, 150),
    "kubesbs": (100, 600),
}
"""Nodes and pods of each kind (`against`, `workloads`, which has its own nodes, and two of our
own)."""


def ways(only: list[str]) -> dict[str, Shortcuts]:
    """All shortcuts, without one of each, without any."""
    names = only or ALL.names()
    alone = {f"without {name}": ALL.without(name) for name in names}
    return {"all": ALL, **alone, **({} if only else {"plain": PLAIN})}


def manifests(pods: int) -> dict[str, Any]:
    """The first pods of KubeSBS on its smallest cluster."""
    folder = Path(kubesbs.FOLDER)
    nodes, waiting = (
        list(read_manifests(folder / f"{it}-100.yaml.gz")) for it in ("nodes", "pods")
    )
    scenario = scenario_from([*nodes, *waiting[:pods]], "kubesbs").scenario
    scenario["spec"]["simulation"] = {"explain": "Full"}
    return scenario


def deletions(nodes: int, pods: int) -> dict[str, Any]:
    """Pods that run are deleted, each by an operation of its own."""
    built = ScenarioBuilder("deletions").step(1)
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes).step(2)
    for number in range(pods):
        built.create(make_pod(f"pod-{number}").cpu("100m"))
    built.step(3)
    for number in range(pods):
        built.delete("v1", "Pod", f"pod-{number}")
    return built.done().build()


def request_of(kind: str, pods: int) -> RunRequest:
    """A run of that many pods."""
    nodes = SIZES[kind][0]
    if kind == "kubesbs":
        return RunRequest(scenario=manifests(pods))
    if kind == "deletions":
        return RunRequest(scenario=deletions(nodes, pods))
    if kind in workloads.CASES:
        return RunRequest(scenario=workloads.CASES[kind].built(pods).done().build())
    scenario = scenario_of(kind, nodes, pods).build()
    if kind == "plugin":
        return RunRequest(scenario=scenario, scheduler=with_plugin(SchedulerOptions(), FreeNodes))
    return RunRequest(scenario=scenario)


def seconds(request: RunRequest, shortcuts: Shortcuts) -> float:
    """CPU of one whole run that writes its directory."""
    with TemporaryDirectory() as folder:
        gc.collect()
        began = time.process_time()
        result = play(replace(request, shortcuts=shortcuts, out=Path(folder) / "run"))
        took = time.process_time() - began
    assert result.ok, result.message
    return took


def compare(kind: str, only: list[str]) -> None:
    """By CPU."""
    chosen, pods = ways(only), SIZES[kind][1]
    request = request_of(kind, pods)
    least = dict.fromkeys(chosen, float("inf"))
    for _ in range(ROUNDS):
        for name, shortcuts in chosen.items():
            least[name] = min(least[name], seconds(request, shortcuts))
    show(kind, least, f"{least['all'] * 1e6 / pods:10,.1f} us a pod")


def compare_instructions(kind: str, only: list[str]) -> None:
    """By instructions."""
    found = counted(kind, ["nothing", *ways(only)])
    begun = found.pop("nothing")
    taken = {name: float(count - begun) for name, count in found.items()}
    show(kind, taken, f"{taken['all'] / 1e6:10,.0f} million instructions")


def show(kind: str, taken: dict[str, float], all_of_them: str) -> None:
    nodes, pods = SIZES[kind]
    row(f"{kind}, {nodes} nodes, {pods} pods", all_of_them)
    for name, took in taken.items():
        if name != "all":
            saved = f"saves {1 - taken['all'] / took:6.1%}"
            row(f"{kind}: {name}", f"{took / taken['all']:8.3f} times, {saved}")


def counted(kind: str, chosen: list[str]) -> dict[str, int]:
    """The instructions of processes that have all begun alike (`play_each`), by their ways."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command += [sys.executable, __file__, "--case", kind, *chosen]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    totals = dict(re.findall(r"==(\d+)== I\s+refs:\s+([\d,]+)", told.stderr))
    numbers = dict(line.split("\t") for line in told.stdout.splitlines())
    return {way: int(totals[numbers[way]].replace(",", "")) for way in chosen}


def play_each(kind: str, chosen: list[str]) -> None:
    """A copy of this process for each way, one after the other, once the code is loaded and a very
    small run was played; tells their numbers. One way is ``nothing``."""
    seconds(request_of(kind, SMALL), ALL)
    request, known = request_of(kind, SIZES[kind][1]), ways([])
    for way in chosen:
        if (number := os.fork()) == 0:
            if way != "nothing":
                seconds(request, known[way])
            os._exit(0)
        print(f"{way}\t{number}", flush=True)
        ended, status = os.waitpid(number, 0)
        assert status == 0, f"{kind}, {way}: process {ended} ended with {status}"


def arguments_of(given: list[str]) -> argparse.Namespace:
    """What the command line says; an unknown kind or shortcut ends the program."""
    parser = argparse.ArgumentParser(description="What each shortcut saves.")
    parser.add_argument("kinds", metavar="KIND", nargs="*", help=", ".join(SIZES))
    parser.add_argument("--only", metavar="NAME,NAME", default="", help=", ".join(ALL.names()))
    parser.add_argument("--instructions", action="store_true", help="counted by valgrind, not CPU")
    arguments = parser.parse_args(given)
    arguments.only = [each for each in arguments.only.split(",") if each]
    for known, named in ((tuple(SIZES), arguments.kinds), (ALL.names(), arguments.only)):
        if unknown := [each for each in named if each not in known]:
            parser.error(f"there is no {', '.join(unknown)}; there are: {', '.join(known)}")
    if arguments.instructions and shutil.which("valgrind") is None:
        parser.error("instructions are counted by valgrind, which is not installed")
    return arguments


def main(given: list[str]) -> None:
    arguments = arguments_of(given)
    measure = compare_instructions if arguments.instructions else compare
    for kind in arguments.kinds or SIZES:
        if kind == "kubesbs" and not kubesbs.FOLDER:
            row(kind, "not measured: set KUBESBS to the folder of its manifests")
        else:
            measure(kind, arguments.only)


if __name__ == "__main__":
    own_process()
    if sys.argv[1:2] == ["--case"]:
        play_each(sys.argv[2], sys.argv[3:])
    else:
        main(sys.argv[1:])
