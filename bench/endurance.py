"""A server under mixed load for a long time: how long anybody ever waited, and whether it grows.

    python bench/endurance.py [--minutes 30]

The server is a process of its own, started as people start it. Processes beside it play scenarios
of many sizes one after the other, run traffic, watch pods and Scenarios, and import worlds. One
more asks for a namespace every 20 ms and tries a write (a dry run) every 100 ms; what it waits is
what is measured. Machines are shared, so an idle process notes how late it wakes from a sleep, and
how long threads of the server waited for a processor meanwhile: the machine's part is told apart.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from typing import Any

from live_scenario import SCENARIOS, TABLE, Client, percentile, scenario

MINUTE_S = 60
STALL_S = 0.3
ASKED_EVERY_S, WRITTEN_EVERY_S = 0.02, 0.1
KEPT_SCENARIOS = 6
SIZES = (500, 2_000, 200, 5_000, 1_000)
WATCHED = ("/api/v1/pods", "/api/v1/nodes", SCENARIOS, "/api/v1/pods", "/api/v1/events")
IMPORTED = 3_000
WRITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tried"}}
WRITE_PATH = "/api/v1/namespaces/default/configmaps?dryRun=All"
RUN = {
    "run_for": 600 * 10**9,
    "initial_number_of_replicas": 2,
    "tick_interval": 2 * 10**9,
    "request_cpu_time_millis": 100,
    "traffic_pattern": "step",
    "step_config": {"rps": 40, "step_after": 30 * 10**9},
}
Role = Callable[[int], None]
"""Is given the port of the server, or its process."""


def play_scenarios(port: int) -> None:
    """One after the other; old ones are deleted, as their authors would."""
    client = Client(port)
    for number in count():
        name = f"load-{number}"
        client.ask("POST", SCENARIOS, scenario(name, SIZES[number % len(SIZES)]))
        while _phase(client, name) not in ("Succeeded", "Failed", ""):
            time.sleep(0.1)
        if number >= KEPT_SCENARIOS:
            client.ask("DELETE", f"{SCENARIOS}/load-{number - KEPT_SCENARIOS}")


def _phase(client: Client, name: str) -> str:
    rows = json.loads(client.ask("GET", SCENARIOS, accept=TABLE))["rows"]
    return next((str(row["cells"][1]) for row in rows if row["cells"][0] == name), "")


def run_traffic(port: int) -> None:
    client = Client(port)
    for number in count():
        client.ask("POST", "/run", RUN | {"seed": number})
        time.sleep(0.5)


def import_worlds(port: int) -> None:
    """A world of pods, every now and then: refused while a scenario has the world, else taken."""
    client, body = Client(port), {"kind": "List", "items": [_pod(n) for n in range(IMPORTED)]}
    while True:
        client.ask("POST", "/simulator/v1/import", body)
        time.sleep(5)


def _pod(number: int) -> dict[str, Any]:
    metadata = {"name": f"imported-{number}", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
        "status": {"phase": "Pending"},
    }


def watch(port: int) -> None:
    """Some watches, each opened anew when it ends or is cut off."""
    with ThreadPoolExecutor(len(WATCHED)) as threads:
        list(threads.map(partial(_follow, port), WATCHED))


def _follow(port: int, path: str) -> None:
    while True:
        response = _open(port, path).getresponse()
        with suppress(HTTPException):
            while response.read(65536):
                pass


def _open(port: int, path: str) -> HTTPConnection:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    accept = TABLE if path == SCENARIOS else "application/json"
    connection.request("GET", f"{path}?watch=true&timeoutSeconds=20", headers={"Accept": accept})
    return connection


def probe(port: int) -> None:
    """Ask and write on two connections; each wait is a line."""
    reader, writer, written_at = Client(port), Client(port), 0.0
    while True:
        _timed("GET", lambda: reader.ask("GET", "/api/v1/namespaces/default"))
        if time.time() - written_at > WRITTEN_EVERY_S:
            written_at = time.time()
            _timed("write", lambda: writer.ask("POST", WRITE_PATH, WRITE))
        time.sleep(ASKED_EVERY_S)


def _timed(what: str, action: Callable[[], object]) -> None:
    begun = time.time()
    action()
    print(what, begun, time.time() - begun, flush=True)


def idle(pid: int) -> None:
    """How late somebody wakes who does nothing, and how long the server waited for a processor.

    Of its threads the one that waited longest counts: it may have held Python's lock.
    """
    before = run_delays(pid)
    while True:
        begun = time.time()
        time.sleep(ASKED_EVERY_S)
        print("idle", begun, time.time() - begun - ASKED_EVERY_S, flush=True)
        now = run_delays(pid)
        longest = max((now[each] - before.get(each, now[each]) for each in now), default=0)
        print("starved", begun, longest, flush=True)
        before = now


def run_delays(pid: int) -> dict[str, float]:
    """Seconds that each thread was ready to run and did not, as Linux counts them."""
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
    return found


ROLES: dict[str, Role] = {
    "scenarios": play_scenarios,
    "traffic": run_traffic,
    "imports": import_worlds,
    "watches": watch,
    "probe": probe,
    "idle": idle,
}


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def endure(minutes: float, folder: Path) -> list[tuple[str, float, float]]:
    """Play all roles for so long; every wait of the probe and of the idle one."""
    serve = [sys.executable, "-m", "kubescene", "serve", "--port", "0"]
    with started(serve, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = server.stdout.readline().rpartition(":")[2].strip()
        numbers = {name: port if name != "idle" else str(server.pid) for name in ROLES}
        others = [[sys.executable, __file__, "--role", *each] for each in numbers.items()]
        files = [(folder / name).open("w") for name in ROLES]
        running = [
            subprocess.Popen(command, stdout=file)
            for command, file in zip(others, files, strict=True)
        ]
        begun = time.time()
        while time.time() - begun < minutes * MINUTE_S:
            time.sleep(min(MINUTE_S, minutes * MINUTE_S / 5))
            gone = [name for name, each in zip(ROLES, running, strict=True) if each.poll()]
            passed = (time.time() - begun) / MINUTE_S
            print(f"{passed:5.1f} min  {memory_mb(server.pid):6.0f} MB  {gone or ''}", flush=True)
        for each in running:
            each.terminate()
            each.wait()
    lines = [line.split() for name in ("probe", "idle") for line in (folder / name).open()]
    return [(what, float(at), float(took)) for what, at, took in (x for x in lines if len(x) == 3)]


def report(waits: list[tuple[str, float, float]]) -> None:
    late = [(at, at + took) for what, at, took in waits if what == "idle" and took > STALL_S / 2]
    starved = [(at, took) for what, at, took in waits if what == "starved"]
    for asked in ("GET", "write", "idle"):
        each = [took for what, _, took in waits if what == asked]
        median, high, worst = (percentile(each, share) for share in (0.5, 0.99, 1.0))
        print(
            f"{asked:6} {len(each):8,} times: median {median:6.1f} ms, p99 {high:7.1f} ms, "
            f"longest {worst:8.1f} ms"
        )
    stalls = [wait for wait in waits if wait[0] in ("GET", "write") and wait[2] > STALL_S]
    punctual = [
        each for each in stalls if not any(a < each[1] + each[2] and each[1] < b for a, b in late)
    ]
    print(
        f"waits over {STALL_S} s: {len(stalls)}, while the idle one was not late: {len(punctual)}"
    )
    delays = [
        sum(delay for begun, delay in starved if at - ASKED_EVERY_S < begun < at + took)
        for _, at, took in punctual
    ]
    ours = [
        (what, took, delay)
        for (what, _, took), delay in zip(punctual, delays, strict=True)
        if took - delay > STALL_S
    ]
    print(f"of these over {STALL_S} s without what the server waited for a processor: {len(ours)}")
    for what, took, delay in ours[:20]:
        print(f"  {what} {took:.2f} s, {delay:.2f} s of it without a processor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--role", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        name, number = arguments.role
        ROLES[name](int(number))
        return
    folder = Path("out/endurance")
    folder.mkdir(parents=True, exist_ok=True)
    report(endure(arguments.minutes, folder))


if __name__ == "__main__":
    main()
