"""The real kube-scheduler in turns, beside the same scheduler running free on the same server.

    KUBESCENE_BINARIES=DIR python bench/outside.py            # 300 and 1,000 pods on 100 nodes
    KUBESCENE_BINARIES=DIR python bench/outside.py --quick    # 100 pods

DIR has a ``kube-scheduler``. Each case is a server and a scheduler of its own. In turns the pods
are those of a Scenario, given one by one (OnePod) or all at once (AllPods); running free they are
created by one client and bound as fast as the scheduler can. CPU is that of the whole case: the
server with its client, and the scheduler, from start to end.
"""

import hashlib
import os
import resource
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kubescene.actors import Actor
from kubescene.api.kinds import SCENARIO
from kubescene.api.scheme import GroupResource
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.outside.supervision import Supervisor
from kubescene.scenario.outside import OutsideController, OutsideKind
from kubescene.testing import make_node, make_pod
from measuring import Figures, alone, row, start

NAME = "kube-scheduler"
PODS = GroupResource("", "pods")
NODES = 100
ENDS = ("Succeeded", "Failed", "Paused")
MODES = ("OnePod", "AllPods", "free")


def binary() -> Path | None:
    found = Path(os.environ.get("KUBESCENE_BINARIES", "")) / NAME
    return found if found.is_file() else None


@contextmanager
def world() -> Iterator[Server]:
    """A served world whose only scheduler is the real one."""
    command = f"{binary()} {{settings}}"
    with (
        Server(port=0, controllers=False) as server,
        Supervisor(server.stage, server.engine.post, server.url) as supervisor,
    ):
        supervisor.start(OutsideController(NAME, OutsideKind.SCHEDULER), command)
        program = server.stage.program(NAME)
        while not any(program.feeds_of(PODS)):
            time.sleep(0.05)
        yield server


def measure(mode: str, pods: int) -> Figures:
    """Pods a second from the first that exists to the last that is bound."""
    with world() as server, closing(HttpClient(server.url, Actor("bench"))) as client:
        seconds = run_free(server, client, pods) if mode == "free" else play(client, mode, pods)
        placed = {each.name: each.node for each in server.cluster.store.list(PODS)}
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    server_cpu, scheduler_cpu = (each.ru_utime + each.ru_stime for each in used)
    digest = hashlib.sha256(repr(sorted(placed.items())).encode()).hexdigest()
    return {
        "wall_s": seconds,
        "server_cpu_s": server_cpu,
        "scheduler_cpu_s": scheduler_cpu,
        "bound": sum(map(bool, placed.values())),
        "placements": int(digest[:8], 16),
    }


def run_free(server: Server, client: HttpClient, pods: int) -> float:
    for index in range(NODES):
        client.create(a_node(f"n{index}"))
    began = time.perf_counter()
    for index in range(pods):
        client.create(a_pod(f"p{index}"))
    while sum(bool(each.node) for each in server.cluster.store.list(PODS)) < pods:
        time.sleep(0.01)
    return time.perf_counter() - began


def play(client: HttpClient, feed: str, pods: int) -> float:
    """The seconds from the second step, in which the pods are made, to the end."""
    document = scenario(feed, pods)
    client.create(document)
    ref = ObjectRef(SCENARIO, document["metadata"]["name"])
    began = 0.0
    while True:
        status = client.get(ref).get("status", {})
        if not began and status.get("stepStatus", {}).get("step", {}).get("major") == 2:
            began = time.perf_counter()
        if status.get("phase") in ENDS:
            break
        time.sleep(0.02)
    if status["phase"] != "Succeeded":
        raise RuntimeError(status.get("message", status["phase"]))
    return time.perf_counter() - began


def scenario(feed: str, pods: int) -> dict[str, Any]:
    outside = {"name": NAME, "kind": "scheduler", "feed": feed}
    enabled = {"enabled": [{"name": NAME}]}
    operations = [
        {"step": 1, "createOperation": {"object": a_node("n$(INDEX)"), "count": NODES}},
        {"step": 2, "createOperation": {"object": a_pod("p$(INDEX)"), "count": pods}},
        {"step": 3, "doneOperation": {}},
    ]
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": "outside"},
        "spec": {
            "controllers": {"simulationControllers": enabled, "outside": [outside]},
            "operations": operations,
        },
    }


def a_node(name: str) -> dict[str, Any]:
    return make_node(name).cpu("32").memory("64Gi").build()


def a_pod(name: str) -> dict[str, Any]:
    return make_pod(name).cpu("100m").memory("128Mi").build()


def told(pods: int, figures: Figures) -> str:
    server, scheduler = figures["server_cpu_s"], figures["scheduler_cpu_s"]
    rate = f"{pods / figures['wall_s']:6.0f} pods/s wall"
    return f"{rate}, CPU {server:5.1f} s server, {scheduler:5.1f} s scheduler"


def main(quick: bool) -> None:
    if binary() is None:
        print(f"skipped: no {NAME} in the folder that KUBESCENE_BINARIES names")
        return
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {NODES} nodes")
    for pods in (100,) if quick else (300, 1_000):
        placed = {}
        for mode in MODES:
            figures = alone(__file__, mode=mode, pods=pods)
            placed[mode] = figures["placements"]
            row(f"{pods:,} pods, {mode}", told(pods, figures))
        same = "the same" if placed["OnePod"] == placed["AllPods"] else "other"
        print(f"{pods:,} pods: AllPods gives {same} placements as OnePod", flush=True)


if __name__ == "__main__":
    start(measure, main)
