"""How fast the API server reads, lists and streams, and what a stored pod costs.

The server runs in this process, the load comes from a second one over loopback sockets:

    python bench/api_server.py                 # everything, as text and JSON
    python bench/api_server.py --only get list

- GET: one 2.6 kB pod over 32 connections, one request at a time on each
- list: 1,000 pods over 8 connections
- watch: 50 watches of all pods while 2,000 pods are written
- memory: resident memory of a fresh process before and after it holds 20,000 pods
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FLOORS = {"get": 5_000, "list": 60, "watch": 80_000}
AIMS = {"get": 12_000, "list": 130, "watch": 200_000}
UNITS = {"get": "requests/s", "list": "requests/s", "watch": "events/s", "memory": "kB/pod"}

WATCHERS, EVENTS = 50, 2_000
PODS, SECONDS = 1_000, 4.0
MANY_PODS = 20_000


def make_pod(name: str, *, namespace: str = "default") -> dict[str, Any]:
    """A pod of everyday size: about 2.6 kB once it is defaulted and running."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": "web", "tier": "front", "release": "stable", "track": "daily"},
            "annotations": {"example.com/owner": "team-a", "example.com/notes": "x" * 560},
        },
        "spec": {
            "containers": [
                {
                    "name": f"c{i}",
                    "image": "registry.k8s.io/pause:3.10",
                    "ports": [{"containerPort": 8080 + i, "name": f"http{i}"}],
                    "env": [{"name": f"NAME_{j}", "value": f"value-{j}"} for j in range(6)],
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                        "limits": {"cpu": "500m", "memory": "256Mi"},
                    },
                }
                for i in range(2)
            ],
        },
    }


# -- load, in the second process -------------------------------------------------------------------


class Requester(asyncio.Protocol):
    """Sends the same request again whenever the last reply is complete."""

    def __init__(self, request: bytes, count: Callable[[], None]) -> None:
        self._request = request
        self._count = count
        self._missing = -1
        self._head = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            start = self._head.index(b"content-length: ") + 16
            length = int(self._head[start : self._head.index(b"\r", start)])
            self._missing = length - (len(self._head) - end - 4)
            self._head = b""
        else:
            self._missing -= len(data)
        if self._missing == 0:
            self._missing = -1
            self._count()
            self._transport.write(self._request)


class Watcher(asyncio.Protocol):
    """Counts events: lines that do not belong to the chunked framing, which ends in CR LF."""

    def __init__(self, request: bytes, count: Callable[[int], None]) -> None:
        self._request = request
        self._count = count
        self._in_head = True
        self._head = b""

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            self._in_head, data = False, self._head[end + 4 :]
            print("ready", flush=True)
        self._count(data.count(b"\n") - data.count(b"\r"))


async def load_requests(port: int, path: str, connections: int) -> dict[str, float]:
    done = 0

    def count() -> None:
        nonlocal done
        done += 1

    request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Requester(request, count), "127.0.0.1", port)
    await asyncio.sleep(0.5)
    done, began = 0, time.perf_counter()
    await asyncio.sleep(SECONDS)
    return {"rate": done / (time.perf_counter() - began)}


async def load_watch(port: int, path: str, watchers: int, events: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = loop.create_future()
    seen = 0

    def count(number: int) -> None:
        nonlocal seen
        seen += number
        if seen >= watchers * events and not finished.done():
            finished.set_result(None)

    request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n".encode()
    for _ in range(watchers):
        await loop.create_connection(lambda: Watcher(request, count), "127.0.0.1", port)
    async with asyncio.timeout(60):
        await finished
    return {"ended": time.monotonic()}


def run_load(arguments: argparse.Namespace) -> None:
    try:
        import uvloop

        run: Any = uvloop.run
    except ImportError:
        run = asyncio.run
    if arguments.load == "watch":
        result = run(load_watch(arguments.port, arguments.path, WATCHERS, EVENTS))
    else:
        result = run(load_requests(arguments.port, arguments.path, arguments.connections))
    print(json.dumps(result), flush=True)


# -- measurements ----------------------------------------------------------------------------------


def start_load(kind: str, port: int, path: str, connections: int = 1) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "--load", kind, "--port", str(port), "--path", path]
    command += ["--connections", str(connections)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish_load(process: "subprocess.Popen[str]", figure: str = "rate") -> float:
    output, _ = process.communicate(timeout=120)
    return float(json.loads(output.splitlines()[-1])[figure])


def measure_server(only: list[str]) -> dict[str, float]:
    from kubescene.actors import Actor
    from kubescene.api.scheme import GroupResource
    from kubescene.apiserver.server import Server

    pods = GroupResource("", "pods")
    figures: dict[str, float] = {}
    with Server(port=0, controllers=False) as server:
        client = server.cluster.client(Actor("bench"))
        for number in range(PODS):
            server.engine.call(partial(client.create, make_pod(f"pod-{number:05d}")))
        base = "/api/v1/namespaces/default/pods"
        size = len(server.cluster.store.list(pods)[0].data)
        print(f"pod of {size} bytes", file=sys.stderr)
        if "get" in only:
            figures["get"] = finish_load(start_load("get", server.port, f"{base}/pod-00500", 32))
        if "list" in only:
            figures["list"] = finish_load(start_load("list", server.port, base, 8))
        if "watch" in only:
            figures["watch"] = measure_watch(server, pods)
    return figures


def measure_watch(server: Any, pods: Any) -> float:
    store = server.cluster.store
    path = f"/api/v1/pods?watch=1&resourceVersion={store.revision}"
    process = start_load("watch", server.port, path)
    assert process.stdout is not None
    for _ in range(WATCHERS):
        assert process.stdout.readline().strip() == "ready"
    objects = [record.decode() for record in store.list(pods)]

    def write() -> None:
        for number in range(EVENTS):
            store.update(pods, objects[number % len(objects)])

    # From the first write to the last event read; the clock is that of the machine.
    began = time.monotonic()
    server.engine.call(write)
    return WATCHERS * EVENTS / (finish_load(process, "ended") - began)


def measure_memory() -> dict[str, float]:
    output = subprocess.run(
        [sys.executable, __file__, "--load", "memory"], capture_output=True, text=True, check=True
    ).stdout
    return {"memory": float(json.loads(output)["rate"])}


def run_memory() -> None:
    from kubescene.actors import Actor
    from kubescene.clock import WallClock
    from kubescene.cluster import Cluster

    cluster = Cluster(clock=WallClock())
    client = cluster.client(Actor("bench"))
    client.create(make_pod("first"))
    before = resident_kb()
    for number in range(MANY_PODS):
        client.create(make_pod(f"pod-{number:05d}"))
    print(json.dumps({"rate": (resident_kb() - before) / MANY_PODS}))


def resident_kb() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return float(lines["VmRSS"].split()[0])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def report(figures: dict[str, float]) -> str:
    rows = []
    for name, figure in figures.items():
        goal = f"floor {FLOORS[name]:,}, aim {AIMS[name]:,}" if name in FLOORS else ""
        rows.append(f"{name:<8}{figure:>14,.1f} {UNITS[name]:<12} {goal}".rstrip())
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="*", default=["get", "list", "watch", "memory"])
    parser.add_argument("--load", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    parser.add_argument("--connections", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load == "memory":
        run_memory()
    elif arguments.load:
        run_load(arguments)
    else:
        figures = measure_server(arguments.only)
        if "memory" in arguments.only:
            figures |= measure_memory()
        print(report(figures))
        print(json.dumps({name: round(figure, 1) for name, figure in figures.items()}))


if __name__ == "__main__":
    main()
