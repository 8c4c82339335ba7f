"""How fast the API server reads, lists, creates and streams, and what a stored pod costs.

The server runs in this process, the load comes from a second one over loopback sockets:

    python bench/api_server.py                 # everything, as text
    python bench/api_server.py --only get list
    python bench/api_server.py --quick

Beside each rate stands the CPU time of the server's process for one request or event.

- GET: one 2.6 kB pod over 32 connections, one request at a time on each
- list: 1,000 pods over 8 connections
- create: new pods over 8 connections
- watch: 50 watches of all pods while 2,000 pods are written straight to the store
- live: 50 watches of all pods while clients create pods over 8 connections
- kept: the same as create, in a world on disk: answered when it is there; floor 0.7 of create
- restart: a world of 100,000 pods read again from disk, by CPU; floor 3 s
- served: 8 clients create pods in a world with controllers and 1,000 nodes, until all are bound
- memory: resident memory of a fresh process before and after it holds 20,000 pods
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import Any, NamedTuple

from kubescene.clock import WallClock
from measuring import Stopwatch, own_process, row

FLOORS = {
    "get": 24_000,
    "list": 170,
    "create": 2_500,
    "live": 58_000,
    "served": 913,
    "restart": 33_333,
}
AIMS = {"get": 30_000, "list": 200, "create": 5_000, "live": 100_000, "served": 3_000}
UNITS = {
    "get": "requests/s",
    "list": "requests/s",
    "create": "requests/s",
    "watch": "events/s",
    "live": "events/s",
    "served": "pods/s",
    "kept": "requests/s",
    "restart": "objects/s",
    "memory": "kB/pod",
}

WATCHERS, EVENTS = 50, 2_000
CLIENTS = 8
PODS, SECONDS = 1_000, 4.0
MANY_PODS = 20_000
KEPT_PODS = 100_000
SERVED_NODES, SERVED_PODS = 1_000, 5_000
BASE = "/api/v1/namespaces/default/pods"


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
    """Sends the next request whenever the last reply is complete, until there is none."""

    def __init__(self, requests: Iterator[bytes], count: Callable[[], None]) -> None:
        self._requests = requests
        self._count = count
        self._missing = -1
        self._head = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            assert self._head[9:11] == b"20", self._head
            start = self._head.index(b"content-length: ") + 16
            length = int(self._head[start : self._head.index(b"\r", start)])
            self._missing = length - (len(self._head) - end - 4)
            self._head = b""
        else:
            self._missing -= len(data)
        if self._missing == 0:
            self._missing = -1
            self._count()
            self._send()


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


def get_request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n".encode()


def create_request(path: str, name: str) -> bytes:
    body = json.dumps(make_pod(name)).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def load_requests(
    port: int, requests: Iterator[bytes], connections: int, limit: int
) -> dict[str, float]:
    """For some seconds, or until ``limit`` replies have come."""
    total = 0
    finished = asyncio.Event()

    def replied() -> None:
        nonlocal total
        total += 1
        if total == limit:
            finished.set()

    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: Requester(requests, replied), "127.0.0.1", port)
    if limit:
        await finished.wait()
        return {"rate": 0.0, "total": total}
    await asyncio.sleep(0.5)
    before, began = total, time.perf_counter()
    await asyncio.sleep(SECONDS)
    return {"rate": (total - before) / (time.perf_counter() - began), "total": total}


async def load_watch(port: int, path: str, watchers: int, events: int) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = loop.create_future()
    seen = 0

    def count(number: int) -> None:
        nonlocal seen
        seen += number
        if seen >= watchers * events and not finished.done():
            finished.set_result(None)

    request = get_request(path)
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
        requests = requests_of(arguments.load, arguments.path, arguments.limit)
        result = run(
            load_requests(arguments.port, requests, arguments.connections, arguments.limit)
        )
    print(json.dumps(result), flush=True)


def requests_of(load: str, path: str, limit: int) -> Iterator[bytes]:
    if load != "create":
        return repeat(get_request(path))
    # Made beforehand where their number is known: the load should not wait for its own JSON.
    if limit:
        return iter([create_request(path, f"new-{number:06d}") for number in range(limit)])
    return (create_request(path, f"more-{number:06d}") for number in count())


# -- measurements ----------------------------------------------------------------------------------


def start_load(
    kind: str, port: int, path: str, connections: int = 1, limit: int = 0
) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "--load", kind, "--port", str(port), "--path", path]
    command += ["--connections", str(connections), "--limit", str(limit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish_load(process: "subprocess.Popen[str]", figure: str = "rate") -> float:
    output, _ = process.communicate(timeout=300)
    if process.returncode:
        raise RuntimeError(f"the load ended with exit code {process.returncode}")
    return float(json.loads(output.splitlines()[-1])[figure])


class Figure(NamedTuple):
    """A rate by wall, and what one request or event costs the server's process."""

    rate: float
    cpu_us: float = 0.0


def under_load(kind: str, port: int, path: str, connections: int) -> Figure:
    watch = Stopwatch()
    process = start_load(kind, port, path, connections)
    output, _ = process.communicate(timeout=300)
    cpu_s = watch.read().cpu_s
    if process.returncode:
        raise RuntimeError(f"the load ended with exit code {process.returncode}")
    result = json.loads(output.splitlines()[-1])
    return Figure(result["rate"], cpu_s / result["total"] * 1e6)


def measure_server(only: list[str]) -> dict[str, Figure]:
    from kubescene.actors import Actor
    from kubescene.api.scheme import GroupResource
    from kubescene.apiserver.server import Server

    pods = GroupResource("", "pods")
    figures: dict[str, Figure] = {}
    with Server(port=0, controllers=False) as server:
        client = server.cluster.client(Actor("bench"))
        for number in range(PODS):
            server.engine.call(partial(client.create, make_pod(f"pod-{number:05d}")))
        size = len(server.cluster.store.list(pods)[0].data)
        print(f"pod of {size} bytes", file=sys.stderr)
        if "get" in only:
            figures["get"] = under_load("get", server.port, f"{BASE}/pod-00500", 32)
        if "list" in only:
            figures["list"] = under_load("list", server.port, BASE, CLIENTS)
        if "watch" in only:
            figures["watch"] = measure_watch(server, pods)
        if "live" in only:
            figures["live"] = measure_live(server)
        if "create" in only:
            figures["create"] = under_load("create", server.port, BASE, CLIENTS)
    return figures


def start_watchers(server: Any) -> "subprocess.Popen[str]":
    path = f"/api/v1/pods?watch=1&resourceVersion={server.cluster.store.revision}"
    process = start_load("watch", server.port, path)
    assert process.stdout is not None
    for _ in range(WATCHERS):
        assert process.stdout.readline().strip() == "ready"
    return process


def measure_live(server: Any) -> Figure:
    watchers = start_watchers(server)
    watch, began = Stopwatch(), time.monotonic()
    clients = start_load("create", server.port, BASE, CLIENTS, limit=EVENTS)
    ended = finish_load(watchers, "ended")
    finish_load(clients)
    events = WATCHERS * EVENTS
    return Figure(events / (ended - began), watch.read().cpu_s / events * 1e6)


def measure_served() -> Figure:
    from kubescene.actors import Actor
    from kubescene.apiserver.server import Server
    from kubescene.testing import make_node

    with Server(port=0) as server:
        client = server.cluster.client(Actor("bench"))
        for number in range(SERVED_NODES):
            node = make_node(f"node-{number}").cpu("32").memory("256Gi").build()
            server.engine.call(partial(client.create, node))
        watch = Stopwatch()
        clients = start_load("create", server.port, BASE, CLIENTS, limit=SERVED_PODS)
        finish_load(clients)
        while server.engine.call(partial(bound_pods, server.cluster)) < SERVED_PODS:
            time.sleep(0.05)
        span = watch.read()
    return Figure(SERVED_PODS / span.wall_s, span.cpu_s / SERVED_PODS * 1e6)


def measure_kept() -> Figure:
    """New pods over 8 connections, each answered when it is on disk."""
    from kubescene.apiserver.server import Server
    from kubescene.cluster import ClusterOptions, ClusterWorld
    from kubescene.store.disk import open_store

    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        world = ClusterWorld(ClusterOptions(events=True), clock=WallClock(), store=store)
        with Server(world, port=0, controllers=False) as server:
            return under_load("create", server.port, BASE, CLIENTS)


def measure_restart() -> Figure:
    """A world of as many pods is read again from what was written as they came."""
    from kubescene.api.scheme import GroupResource
    from kubescene.store.disk import open_store

    pods = GroupResource("", "pods")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        for number in range(KEPT_PODS):
            store.put(pods, make_pod(f"pod-{number:06d}"))
        store.close()
        watch = Stopwatch()
        again = open_store(Path(folder))
        span = watch.read()
        assert again.count(pods) == KEPT_PODS
        again.close()
    return Figure(KEPT_PODS / span.cpu_s, span.cpu_s / KEPT_PODS * 1e6)


def bound_pods(cluster: Any) -> int:
    from kubescene.api.scheme import GroupResource

    return sum(bool(record.node) for record in cluster.store.list(GroupResource("", "pods")))


def measure_watch(server: Any, pods: Any) -> Figure:
    store = server.cluster.store
    process = start_watchers(server)
    objects = [record.decode() for record in store.list(pods)]

    def write() -> None:
        for number in range(EVENTS):
            store.put(pods, objects[number % len(objects)])

    # From the first write to the last event read; the clock is that of the machine.
    watch, began = Stopwatch(), time.monotonic()
    server.engine.call(write)
    ended, events = finish_load(process, "ended"), WATCHERS * EVENTS
    return Figure(events / (ended - began), watch.read().cpu_s / events * 1e6)


def measure_memory() -> Figure:
    output = subprocess.run(
        [sys.executable, __file__, "--load", "memory"], capture_output=True, text=True, check=True
    ).stdout
    return Figure(float(json.loads(output)["rate"]))


def run_memory() -> None:
    from kubescene.actors import Actor
    from kubescene.cluster import ClusterWorld

    cluster = ClusterWorld(clock=WallClock())
    client = cluster.client(Actor("bench"))
    client.create(make_pod("first"))
    before = resident_kb()
    for number in range(MANY_PODS):
        client.create(make_pod(f"pod-{number:05d}"))
    print(json.dumps({"rate": (resident_kb() - before) / MANY_PODS}))


LATER = {
    "served": measure_served,
    "memory": measure_memory,
    "kept": measure_kept,
    "restart": measure_restart,
}
"""Each in a world of its own."""


def resident_kb() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return float(lines["VmRSS"].split()[0])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def report(figures: dict[str, Figure]) -> None:
    for name, (rate, cpu_us) in figures.items():
        goal = f"floor {FLOORS[name]:,}" if name in FLOORS else ""
        goal += f", aim {AIMS[name]:,}" if name in AIMS else ""
        cost = f"{cpu_us:10,.1f} us CPU each" if cpu_us else ""
        row(name, f"{rate:12,.1f} {UNITS[name]:<10} wall {cost}", goal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="*", default=list(UNITS))
    parser.add_argument("--quick", action="store_true", help="only get, list and watch")
    parser.add_argument("--load", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--path", default="", help=argparse.SUPPRESS)
    parser.add_argument("--connections", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load == "memory":
        run_memory()
    elif arguments.load:
        run_load(arguments)
    else:
        only = ["get", "list", "watch"] if arguments.quick else arguments.only
        figures = measure_server(only)
        for name, measure in LATER.items():
            if name in only:
                figures[name] = measure()
        report(figures)


if __name__ == "__main__":
    own_process()
    main()
