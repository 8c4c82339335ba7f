"""The three recorded Skenario requests through ``POST /run``, beside its own measured figures.

Usage: python bench/skenario_requests.py FOLDER, where FOLDER has form-ramp.json and the others.
The server is a process of its own; the client reads the whole reply and keeps none of it. Wall
seconds are from the first byte sent to the last one received; CPU seconds are the server's.
"""

import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

SKENARIO = {
    "form-ramp": (0.22, 0.20),
    "step-100rps-2h": (65.8, 69.6),
    "ramp-1000rps": (297.0, 108.6),
}
"""Wall and CPU seconds of Skenario on two cores; the last one's wall time was under load."""
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


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


def main(folder: Path) -> None:
    command = [sys.executable, "-m", "kubescene", "serve", "--port", "0", "--no-controllers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        posted(port, (folder / "form-ramp.json").read_bytes())  # the first one loads the code
        print("run              wall s    CPU s  reply MB   times faster: wall   CPU")
        for name, (wall, cpu) in SKENARIO.items():
            body = (folder / f"{name}.json").read_bytes()
            repeats = 20 if name == "form-ramp" else 1
            begun, used = time.perf_counter(), cpu_seconds(server.pid)
            for _ in range(repeats):
                size = posted(port, body)
            took = (time.perf_counter() - begun) / repeats
            used = (cpu_seconds(server.pid) - used) / repeats
            print(
                f"{name:15} {took:7.3f}  {used:7.3f}  {size / 1e6:8.1f}"
                f"   {wall / took:18.1f}  {cpu / used:4.1f}"
            )
        server.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
