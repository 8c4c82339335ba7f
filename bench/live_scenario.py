"""How soon a server answers while it plays a large scenario, and what the audience costs it.

The server is a process of its own, started as people start it. While it plays, this process asks
for a pod, a node and the table of Scenarios, one request after the other on one connection:

    python bench/live_scenario.py            # 50,000 pods on 1,000 nodes
    python bench/live_scenario.py --quick    # 5,000 pods

Printed are the median, the 99th percentile and the longest wait of each question, and how long the
scenario took, beside a play without questions and one that somebody watches (``kubectl get -w``).
"""

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
NODES, PODS, FEW_PODS = 1_000, 50_000, 5_000
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
QUESTIONS = {
    "a node": ("/api/v1/nodes/node-7", "application/json"),
    "a pod": ("/api/v1/namespaces/default/pods/pod-7", "application/json"),
    "scenarios": (SCENARIOS, TABLE),
}
PAUSE_S = 0.005
"""Between two questions: people and controllers do not ask without end."""


def scenario(name: str, pods: int) -> dict[str, Any]:
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-$(INDEX)"},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    requests = {"cpu": "100m", "memory": "128Mi"}
    container = {"name": "c", "image": "pause", "resources": {"requests": requests}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod-$(INDEX)"},
        "spec": {"containers": [container]},
    }
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": {
            "operations": [
                {"step": 1, "createOperation": {"object": node, "count": NODES}},
                {"step": 1, "createOperation": {"object": pod, "count": pods}},
                {"step": 1, "doneOperation": {}},
            ]
        },
    }


@contextmanager
def server() -> Iterator[int]:
    """A served cluster; its port."""
    command = [sys.executable, "-m", "kubescene", "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().rpartition(":")[2])
    finally:
        process.terminate()
        process.wait()


def cpu_of_servers() -> float:
    """CPU seconds of all servers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method: str, path: str, body: Any = None, accept: str = "*/*") -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": accept, "Content-Type": "application/json"}
        self._connection.request(method, path, data, headers)
        return self._connection.getresponse().read()

    def phase(self) -> str:
        rows = json.loads(self.ask("GET", SCENARIOS, accept=TABLE))["rows"]
        return str(rows[0]["cells"][1])


def is_over(client: Client) -> bool:
    return client.phase() in ("Succeeded", "Failed")


def play(pods: int, *, asking: bool, watching: bool) -> tuple[float, dict[str, list[float]]]:
    """How long the scenario took, and the seconds of each answer."""
    waits: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    with server() as port:
        client = Client(port)
        if watching:
            threading.Thread(target=follow, args=(port,), daemon=True).start()
        began = time.perf_counter()
        client.ask("POST", SCENARIOS, scenario("large", pods))
        while not is_over(client):
            if not asking:
                time.sleep(0.25)
                continue
            for name, (path, accept) in QUESTIONS.items():
                asked = time.perf_counter()
                client.ask("GET", path, accept=accept)
                waits[name].append(time.perf_counter() - asked)
                time.sleep(PAUSE_S)
        return time.perf_counter() - began, waits


def follow(port: int) -> None:
    """Watch Scenarios as ``kubectl get -w`` does."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", f"{SCENARIOS}?watch=true", headers={"Accept": TABLE})
    response = connection.getresponse()
    try:
        while response.readline():
            pass
    except OSError:
        return


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    pods = FEW_PODS if parser.parse_args().quick else PODS
    print(f"{pods:,} pods on {NODES:,} nodes", flush=True)
    measure("alone", pods, asking=False, watching=False)
    waits = measure(f"asked every {PAUSE_S * 1000:g} ms", pods, asking=True, watching=False)
    for name, seconds in waits.items():
        median, high, worst = (percentile(seconds, share) for share in (0.5, 0.99, 1.0))
        print(
            f"  GET {name:10} {len(seconds):6,} times: median {median:6.1f} ms, "
            f"p99 {high:6.1f} ms, longest {worst:7.1f} ms"
        )
    measure("watched by one client", pods, asking=False, watching=True)


def measure(label: str, pods: int, *, asking: bool, watching: bool) -> dict[str, list[float]]:
    """Play once and print what it took; returns the waits."""
    before = cpu_of_servers()
    wall_s, waits = play(pods, asking=asking, watching=watching)
    cpu_s = cpu_of_servers() - before
    print(f"{label:22} {wall_s:6.1f} s wall {cpu_s:6.1f} s CPU of the server", flush=True)
    return waits


if __name__ == "__main__":
    main()
