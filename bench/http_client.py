"""How fast `HttpClient` reads, lists and follows; one client, one thread.

The server runs in a second process, so the CPU time shown is the client's alone:

    python bench/http_client.py                # everything, as text and JSON
    python bench/http_client.py --only get

- get: one 2.6 kB pod, one request after the other on one connection
- create: small ConfigMaps, one after the other
- list: 1,000 pods, decoded
- watch: 5,000 pods are imported while one watch follows, handlers called and objects counted
- watch-raw: 50,000 events of 2.6 kB, one chunk each as kube-apiserver sends them, from a server
  that does nothing but send
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from kubescene.actors import Actor
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.http import HttpClient
from kubescene.client.interfaces import ObjectRef

POD = GroupVersionKind("", "v1", "Pod")
PODS, IMPORTED, SENT, SECONDS = 1_000, 5_000, 50_000, 3.0
CORE = {"resources": [{"name": "pods", "namespaced": True, "kind": "Pod", "verbs": ["list"]}]}


def make_pod(name: str) -> dict[str, Any]:
    """A pod of everyday size: about 2.6 kB."""
    env = [{"name": f"NAME_{number}", "value": f"value-{number}"} for number in range(24)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "web", "tier": "front", "release": "stable"},
            "annotations": {"example.com/notes": "x" * 560},
        },
        "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause", "env": env}]},
    }


class Count:
    """A handler that counts."""

    def __init__(self) -> None:
        self.changes = 0

    def __call__(self, change: Change) -> None:
        self.changes += 1


class Meter:
    """Wall and CPU time of this process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    def row(self, name: str, done: int, unit: str) -> dict[str, Any]:
        wall, cpu = self.wall, time.process_time() - self._cpu
        return {
            "name": name,
            "per_second": round(done / wall),
            "unit": unit,
            "client_cpu_us": round(cpu / done * 1e6, 1),
        }


def repeat(name: str, unit: str, act: Callable[[], Any]) -> dict[str, Any]:
    act()
    meter, done = Meter(), 0
    while meter.wall < SECONDS:
        act()
        done += 1
    return meter.row(name, done, unit)


def measure_get(url: str) -> dict[str, Any]:
    client = HttpClient(url, Actor("bench"))
    client.create(make_pod("one"))
    ref = ObjectRef(POD, "one", "default")
    return repeat("get", "requests/s", lambda: client.get(ref))


def measure_create(url: str) -> dict[str, Any]:
    client, names = HttpClient(url, Actor("bench")), iter(range(10**9))

    def create() -> None:
        metadata = {"name": f"c{next(names)}", "namespace": "default"}
        client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    return repeat("create", "requests/s", create)


def measure_list(url: str) -> dict[str, Any]:
    load(url, PODS)
    client = HttpClient(url, Actor("bench"))
    return repeat("list", "lists of 1,000/s", lambda: client.list(POD))


def measure_watch(url: str) -> dict[str, Any]:
    client, count = HttpClient(url, Actor("bench")), Count()
    client.watch(POD, count)
    load(url, IMPORTED)
    meter = Meter()
    while count.changes < IMPORTED:
        client.pump(10)
    return meter.row("watch", count.changes, "events/s")


def measure_raw_watch(url: str) -> dict[str, Any]:
    client, count = HttpClient(url, Actor("bench")), Count()
    client.watch(POD, count)
    meter = Meter()
    while count.changes < SENT:
        client.pump(10)
    return meter.row("watch-raw", count.changes, "events/s")


def load(url: str, count: int) -> None:
    """Put pods into the world at one go."""
    items = [make_pod(f"p{number}") for number in range(count)]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port)
    connection.request("POST", "/simulator/v1/import", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    assert reply.status < 300, reply.read()
    connection.close()


# -- servers, in the second process ----------------------------------------------------------------


def serve() -> None:
    from kubescene.apiserver.server import Server

    server = Server(port=0, controllers=False, max_body=256 * 1024 * 1024)
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


def send() -> None:
    """Answer discovery and a list, then send events as fast as they are read."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    plain, _ = listener.accept()
    for document in (CORE, {"metadata": {"resourceVersion": "10"}, "items": []}):
        plain.recv(65536)
        body = orjson.dumps(document)
        plain.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    watch, _ = listener.accept()
    watch.recv(65536)
    watch.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    pod = make_pod("p")
    for start in range(0, SENT, 100):
        watch.sendall(b"".join(chunk(pod, number) for number in range(start, start + 100)))
    sys.stdin.read()


def chunk(pod: dict[str, Any], number: int) -> bytes:
    metadata = {**pod["metadata"], "name": f"p{number}", "resourceVersion": str(11 + number)}
    line = orjson.dumps({"type": "ADDED", "object": {**pod, "metadata": metadata}}) + b"\n"
    return b"%x\r\n%s\r\n" % (len(line), line)


@contextmanager
def other_process(role: str) -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).resolve()), "--role", role]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.communicate()


MEASURES: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "get": ("serve", measure_get),
    "create": ("serve", measure_create),
    "list": ("serve", measure_list),
    "watch": ("serve", measure_watch),
    "watch-raw": ("send", measure_raw_watch),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="*", choices=MEASURES, default=list(MEASURES))
    parser.add_argument("--quick", action="store_true", help="only get and watch")
    parser.add_argument("--role", choices=("serve", "send"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        {"serve": serve, "send": send}[arguments.role]()
        return
    rows = []
    for name in ("get", "watch") if arguments.quick else arguments.only:
        role, measure = MEASURES[name]
        with other_process(role) as url:
            row = measure(url)
        rows.append(row)
        cpu = f"{row['client_cpu_us']} us of client CPU each"
        print(f"{row['name']:10} {row['per_second']:>9,} {row['unit']:18} {cpu}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
