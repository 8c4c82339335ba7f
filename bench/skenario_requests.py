"""The three recorded Skenario requests through ``POST /run``, beside its own measured figures.

Usage: python bench/skenario_requests.py FOLDER [PORT], where FOLDER has form-ramp.json and the
others. With PORT, a Skenario that listens there does the short run in turns with Kubescene: that
compares the two on one machine in the same minutes, whatever those are like.

The server is a process of its own; the client reads the whole reply and keeps none of it. Wall
seconds are from connecting to the last byte received, the client's reading included; CPU seconds
are the server's, and those alone.

Requests that load code do not count. The short run is repeated in rounds, each the mean of many
requests; the median round is what counts, the best one stands beside it. Skenario's figures are
single ones: only those that were taken under load say so, and whether its first request is among
them is not known.
"""

import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import NamedTuple

SKENARIO = {
    "form-ramp": (0.22, 0.20),
    "step-100rps-2h": (65.8, 69.6),
    "ramp-1000rps": (297.0, 108.6),
}
"""Wall and CPU seconds of Skenario on two cores; the last one's wall time was under load."""
WARM_UP = 10
ROUNDS, REPEATS = 10, 20
"""Of the short run; the others are run once."""
IN_TURNS = 3
"""Requests of a round to Skenario: it gets slower from one to the next."""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Cost(NamedTuple):
    """Of one request."""

    wall: float
    cpu: float
    size: int


def measured(process: int, port: int, body: bytes, repeats: int) -> Cost:
    """The mean over some requests, one after the other."""
    begun, used = time.perf_counter(), cpu_seconds(process)
    for _ in range(repeats):
        size = posted(port, body)
    took, used = time.perf_counter() - begun, cpu_seconds(process) - used
    return Cost(took / repeats, used / repeats, size)


def posted(port: int, body: bytes) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/run", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200, response.read(1000)
    size = 0
    while piece := response.read(1 << 20):
        size += len(piece)
    connection.close()
    return size


def show(name: str, cost: Cost, wall: float, cpu: float) -> None:
    print(
        f"{name:15} {cost.wall:7.4f}  {cost.cpu:7.4f}  {cost.size / 1e6:8.1f}"
        f"   {wall / cost.wall:18.1f}  {cpu / cost.cpu:4.1f}"
    )


def seconds(port: int, body: bytes, repeats: int) -> float:
    """Wall seconds of one request, in the mean."""
    begun = time.perf_counter()
    for _ in range(repeats):
        posted(port, body)
    return (time.perf_counter() - begun) / repeats


def in_turns(port: int, skenario: int, body: bytes) -> None:
    """Both in the same minutes."""
    posted(skenario, body)
    ratios = []
    for _ in range(ROUNDS):
        its, ours = seconds(skenario, body, IN_TURNS), seconds(port, body, REPEATS)
        ratios.append(its / ours)
        print(f"in turns        {ours:7.4f}  Skenario {its:7.4f}   {its / ours:18.1f}")
    print(f"  median round                              {median(ratios):18.1f}")


def main(folder: Path, skenario: int | None) -> None:
    command = [sys.executable, "-m", "kubescene", "serve", "--port", "0", "--no-controllers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        for _ in range(WARM_UP):
            posted(port, (folder / "form-ramp.json").read_bytes())
        print("run              wall s    CPU s  reply MB   times faster: wall   CPU")
        for name, (wall, cpu) in SKENARIO.items():
            body = (folder / f"{name}.json").read_bytes()
            rounds, repeats = (ROUNDS, REPEATS) if name == "form-ramp" else (1, 1)
            costs = sorted(measured(server.pid, port, body, repeats) for _ in range(rounds))
            show(name, costs[rounds // 2], wall, cpu)
            if rounds > 1:
                show("  best round", costs[0], wall, cpu)
            if rounds > 1 and skenario is not None:
                in_turns(port, skenario, body)
        server.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
