"""A server under mixed load for a long time: how long anybody ever waited, and whether it grows.

    python bench/endurance.py [--minutes 30] [--large]

The server is a process of its own. Processes beside it play scenarios of many sizes one after the
other, run traffic, watch pods and Scenarios, and import worlds. One more asks for a namespace every
20 ms and tries a write (a dry run) every 100 ms; what it waits is what is measured. Machines are
shared, so an idle process notes how late it wakes from a sleep, and how long threads of the server
waited for a processor meanwhile: the machine's part is told apart. With ``--large`` there are ten
times as large ones, too: scenarios, imports, lists, exports, definitions, resets.

Inside the server is noted what no machine's load changes: the CPU time of each piece of work of the
engine thread (a command, a moment, a round), and of all that the event loop does between two of its
beats; and what was done then. Who keeps Python's lock is asked from outside, by a process that
needs no lock: a thread of the server writes down again and again that it runs. When it has not for
a while, the thread that uses the processor meanwhile gets a signal, and tells where it stands.
"""

import argparse
import ctypes
import faulthandler
import json
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import count
from mmap import mmap
from pathlib import Path
from typing import Any

from live_scenario import SCENARIOS, TABLE, Client, percentile, scenario

MINUTE_S = 60
STALL_S = 0.3
ASKED_EVERY_S, WRITTEN_EVERY_S = 0.02, 0.1
HOLD_S = 0.05
"""CPU time of one piece of work that is noted."""
BEAT_S = 0.005
LOCKED_S = 0.05
"""CPU time that a thread may use while no other runs."""
SHOWN_HOLDS = 8
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
FOLDER = Path("out/endurance")
Role = Callable[[int], None]
"""Is given the port of the server, or its process."""
LARGE_SCENARIO, LARGE_IMPORT, LONG_LIST = 10_000, 10_000, 50_000
SIMULATOR = "/simulator/v1"
POD_LIST = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Holds:
    """What held the threads of a server, by their CPU time. Lives in the server."""

    def __init__(self, file: Path) -> None:
        self._lines = file.open("w", buffering=1)
        self._pieces: dict[int, tuple[str, float, float]] = {}
        self._seen: dict[int, Counter[str]] = {}
        pulse = file.with_name("pulse")
        pulse.write_bytes(bytes(8))
        self._pulse = mapped(pulse)
        stands = file.with_name("stands").open("w")
        faulthandler.register(signal.SIGUSR1, stands, all_threads=False)

    def begin(self, name: str) -> None:
        """The calling thread begins a piece of work."""
        thread = threading.get_ident()
        self._seen[thread] = Counter()
        self._pieces[thread] = (name, time.thread_time(), time.perf_counter())

    def end(self) -> None:
        """It has ended."""
        thread = threading.get_ident()
        name, cpu, wall = self._pieces.pop(thread, ("", time.thread_time(), 0.0))
        if (took := time.thread_time() - cpu) > HOLD_S:
            self._note(name, took, time.perf_counter() - wall, self._seen.get(thread, Counter()))

    def watch(self) -> None:
        """Look again and again what is done in long pieces; write down that the lock is free."""
        threading.Thread(target=self._watch, name="holds", daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(BEAT_S)
            struct.pack_into("d", self._pulse, 0, time.monotonic())
            for thread, frame in sys._current_frames().items():
                if thread in self._pieces:
                    self._seen[thread][spelled(frame)] += 1

    def _note(self, name: str, cpu: float, wall: float, seen: Counter[str]) -> None:
        what = [place for place, _ in seen.most_common(3)]
        self._lines.write(json.dumps([name, cpu, wall, time.time(), what]) + "\n")


class LockWatch:
    """Finds who keeps Python's lock in a server, from another process."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid = pid
        self._pulse = mapped(folder / "pulse")
        self._stands = (folder / "stands").open()
        self._lines = (folder / "locks").open("w", buffering=1)
        self._beat, self._before = 0.0, run_times(pid)
        self._asked: tuple[str, float] | None = None

    def look(self) -> None:
        beat, now = float(struct.unpack_from("d", self._pulse)[0]), run_times(self._pid)
        used = {each: now[each] - self._before.get(each, now[each]) for each in now}
        if beat != self._beat:
            if self._asked is not None:
                self._note(*self._asked)
            self._beat, self._before, self._asked = beat, now, None
        elif used and (longest := max(used, key=used.__getitem__)) and used[longest] > LOCKED_S:
            if self._asked is None:
                ctypes.CDLL(None).tgkill(self._pid, int(longest), signal.SIGUSR1)
            self._asked = longest, used[longest]

    def _note(self, thread: str, cpu: float) -> None:
        frames = [place_of(line) for line in self._stands.read().splitlines() if " line " in line]
        what = " < ".join(frames[:9])
        self._lines.write(json.dumps(["lock", cpu, 0.0, time.time(), [what]]) + "\n")


def mapped(file: Path) -> mmap:
    with file.open("r+b") as opened:
        return mmap(opened.fileno(), 0)


def run_times(pid: int) -> dict[str, float]:
    """CPU seconds of each thread."""
    return scheduled(pid, 0)


def place_of(line: str) -> str:
    """``  File "/x/module.py", line 7 in function`` as ``module.function:7``."""
    file, _, rest = line.strip().removeprefix('File "').partition('", line ')
    number, _, function = rest.partition(" in ")
    return f"{Path(file).stem}.{function}:{number}"


def spelled(frame: Any) -> str:
    """Where a thread is, from the outside in: functions of ours, and the innermost."""
    names: list[str] = []
    while frame is not None:
        code = frame.f_code
        if "kubescene" in code.co_filename or not names:
            names.append(f"{Path(code.co_filename).stem}.{code.co_name}")
        frame = frame.f_back
    return " < ".join(names[:9])


def serve_and_note(file: str) -> None:
    """``kubescene serve``, with notes of what held its threads."""
    import asyncio

    from kubescene import cli
    from kubescene.apiserver import server
    from kubescene.apiserver.engine_thread import EngineThread

    holds = Holds(Path(file))
    holds.watch()
    next_command, startup = EngineThread._next, server._Uvicorn.startup

    def noted_next(thread: EngineThread, timeout_s: float) -> Any:
        holds.end()
        try:
            return next_command(thread, timeout_s)
        finally:
            holds.begin("engine")

    def beat() -> None:
        holds.end()
        holds.begin("loop")
        asyncio.get_running_loop().call_later(BEAT_S, beat)

    async def noted_startup(http: Any, sockets: Any = None) -> None:
        await startup(http, sockets)
        beat()

    patched: Any = EngineThread
    patched._next = noted_next
    patched = server._Uvicorn
    patched.startup = noted_startup
    sys.argv = ["kubescene", "serve", "--port", "0"]
    cli.main()


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
    try:
        rows = json.loads(client.ask("GET", SCENARIOS, accept=TABLE))["rows"]
    except ValueError:
        return "unknown: the world is just being reset"
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


def import_large_worlds(port: int) -> None:
    """Large imports, exports and resets, and collections that are deleted."""
    client = Client(port)
    pods = {"kind": "List", "items": [_pod(n) for n in range(LARGE_IMPORT)]}
    maps = {"kind": "List", "items": [_map(n) for n in range(LARGE_IMPORT)]}
    while True:
        client.ask("POST", f"{SIMULATOR}/import", maps)
        client.ask("GET", f"{SIMULATOR}/export")
        client.ask("DELETE", MAPS)
        client.ask("POST", f"{SIMULATOR}/import", pods)
        client.ask("DELETE", POD_LIST)
        client.ask("PUT", f"{SIMULATOR}/reset")
        time.sleep(5)


def _map(number: int) -> dict[str, Any]:
    metadata = {"name": f"imported-{number}", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def write_large_objects(port: int) -> None:
    """A Scenario of many operations, and a definition with many fields, again and again."""
    client = Client(port)
    for number in count():
        body = large_scenario(f"large-{number}")
        client.ask("POST", SCENARIOS, body)
        client.ask("PATCH", f"{SCENARIOS}/large-{number}", {"metadata": {"labels": {"a": "b"}}})
        client.ask("POST", DEFINITIONS, large_definition())
        client.ask("GET", "/openapi/v2")
        client.ask("DELETE", f"{DEFINITIONS}/larges.x.io")
        time.sleep(20)
        client.ask("DELETE", f"{SCENARIOS}/large-{number}")


def large_scenario(name: str) -> dict[str, Any]:
    body = scenario(name, 0)
    metadata = [{"name": f"pod-{n}"} for n in range(LARGE_SCENARIO)]
    spec = {"containers": [{"name": "c", "image": "pause"}]}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": m, "spec": spec} for m in metadata]
    operations = [{"step": 2, "createOperation": {"object": pod}} for pod in pods]
    done = {"step": 3, "doneOperation": {}}
    body["spec"]["operations"] = [body["spec"]["operations"][0], *operations, done]
    return body


def large_definition() -> dict[str, Any]:
    def fields(depth: int) -> dict[str, Any]:
        if not depth:
            return {"type": "string", "description": "some text " * 5, "maxLength": 60}
        return {"type": "object", "properties": {f"f{n}": fields(depth - 1) for n in range(14)}}

    schema = {"type": "object", "properties": {"spec": fields(3)}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "larges", "singular": "large", "kind": "Large", "listKind": "LargeList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "larges.x.io"},
        "spec": {"group": "x.io", "names": names, "scope": "Cluster", "versions": [version]},
    }


def read_much(port: int) -> None:
    """Long lists in each form, and the pages of scenarios, while they are played and after."""
    client = Client(port)
    while True:
        for accept in ("application/json", TABLE, "application/yaml"):
            client.ask("GET", "/api/v1/pods", accept=accept)
            client.ask("GET", f"{SCENARIOS}", accept=accept)
        client.ask("GET", "/api/v1/pods?labelSelector=a%3Db")
        for row in json.loads(client.ask("GET", SCENARIOS, accept=TABLE))["rows"]:
            place = f"{SIMULATOR}/scenarios/{row['cells'][0]}"
            for page in ("progress", "summary", "result", "timeline", "explanations"):
                client.ask("GET", f"{place}/{page}")
            client.ask("GET", f"{place}/explain?pod=default/pod-7")
            client.ask("GET", f"{SIMULATOR}/remedies?pod=default/pod-7")
        time.sleep(2)


def play_long(port: int) -> None:
    client = Client(port)
    for number in count():
        client.ask("POST", SCENARIOS, scenario(f"long-{number}", LONG_LIST))
        while _phase(client, f"long-{number}") not in ("Succeeded", "Failed", ""):
            time.sleep(0.5)
        time.sleep(30)
        client.ask("DELETE", f"{SCENARIOS}/long-{number}")


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
    return scheduled(pid, 1)


def scheduled(pid: int, column: int) -> dict[str, float]:
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found[thread.name] = int((thread / "schedstat").read_text().split()[column]) / 1e9
    return found


def watch_lock(pid: int) -> None:
    watching = LockWatch(pid, FOLDER)
    while True:
        time.sleep(BEAT_S)
        watching.look()


ROLES: dict[str, Role] = {
    "scenarios": play_scenarios,
    "traffic": run_traffic,
    "imports": import_worlds,
    "watches": watch,
    "probe": probe,
    "idle": idle,
    "lock": watch_lock,
}
OF_PROCESS = ("idle", "lock")
LARGE_ROLES: dict[str, Role] = {
    "large-imports": import_large_worlds,
    "large-objects": write_large_objects,
    "reads": read_much,
    "long-scenarios": play_long,
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


def endure(minutes: float, folder: Path, roles: dict[str, Role]) -> list[tuple[str, float, float]]:
    """Play all roles for so long; every wait of the probe and of the idle one."""
    serve = [sys.executable, __file__, "--noted", str(folder / "holds")]
    with started(serve, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = server.stdout.readline().rpartition(":")[2].strip()
        numbers = {name: port if name not in OF_PROCESS else str(server.pid) for name in roles}
        others = [[sys.executable, __file__, "--role", *each] for each in numbers.items()]
        files = [(folder / name).open("w") for name in roles]
        running = [
            subprocess.Popen(command, stdout=file)
            for command, file in zip(others, files, strict=True)
        ]
        begun = time.time()
        while time.time() - begun < minutes * MINUTE_S:
            time.sleep(min(MINUTE_S, minutes * MINUTE_S / 5))
            gone = [name for name, each in zip(roles, running, strict=True) if each.poll()]
            passed = (time.time() - begun) / MINUTE_S
            print(f"{passed:5.1f} min  {memory_mb(server.pid):6.0f} MB  {gone or ''}", flush=True)
        for each in running:
            each.terminate()
            each.wait()
    lines = [line.split() for name in ("probe", "idle") for line in (folder / name).open()]
    return [(what, float(at), float(took)) for what, at, took in (x for x in lines if len(x) == 3)]


def report_holds(files: list[Path]) -> None:
    """The longest pieces of work of each thread, those at one place once, and what was done."""
    holds = [json.loads(line) for file in files for line in file.open()]
    for thread in ("engine", "loop", "lock"):
        mine = sorted((each for each in holds if each[0] == thread), key=lambda it: -it[1])
        print(f"{thread}: {len(mine)} over {HOLD_S} s CPU")
        shown: set[str] = set()
        for _, cpu, _, _, what in mine:
            if (place := " < ".join((what or ["?"])[0].split(" < ")[:3])) not in shown:
                shown.add(place)
                if len(shown) <= SHOWN_HOLDS:
                    print(f"  {cpu:.3f} s CPU: {(what or ['?'])[0]}")


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
    parser.add_argument("--large", action="store_true", help="ten times as large ones, too")
    parser.add_argument("--role", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--noted", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    roles = ROLES | LARGE_ROLES if arguments.large else ROLES
    if arguments.noted:
        serve_and_note(arguments.noted)
        return
    if arguments.role:
        name, number = arguments.role
        (ROLES | LARGE_ROLES)[name](int(number))
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    report(endure(arguments.minutes, FOLDER, roles))
    report_holds([FOLDER / "holds", FOLDER / "locks"])


if __name__ == "__main__":
    main()
