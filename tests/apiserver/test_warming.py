"""What simulates traffic is loaded while nobody asks for anything, and not before."""

import asyncio
import subprocess
import sys
from threading import Event

import pytest

from kubescene.apiserver import server as warming
from kubescene.apiserver.server import Warming

SERVED = """
import sys, time
from kubescene.apiserver import server as warming
from kubescene.apiserver.server import Server
warming.QUIET_S = 0.01
with Server(port=0, controllers=False, warm={warm}) as server:
    while {warm} and "kubescene.autoscalers.horizontal.plugin" not in sys.modules:
        time.sleep(0.01)
import threading
assert threading.enumerate() == [threading.main_thread()]
print("kubescene.traffic.skenario.replies" in sys.modules, server.app.traffic._runs)
"""

ASKED = """
import sys, threading
from http.client import HTTPConnection
from kubescene.apiserver.server import Server
loading = set()

def note(event, arguments):
    if event == "import" and arguments[0].startswith("kubescene.traffic"):
        loading.add(threading.current_thread().name)

with Server(port=0, controllers=False) as server:
    sys.addaudithook(note)
    client = HTTPConnection(server.host, server.port)
    client.request("POST", "/run", b"{}", {"Content-Type": "application/json"})
    print(client.getresponse().status, bool(loading), "kubescene-http" in loading)
"""

LOADED = """
import sys
from kubescene.apiserver.traffic.runs import rehearse
from kubescene.traffic import run
from kubescene.traffic.spec.fields import Mode, TrafficSpec
before = {*sys.modules}
rehearse()
for mode in Mode:
    run(TrafficSpec(mode=mode))
print([each for each in sys.modules if each.startswith("kubescene") and each not in before])
"""


@pytest.mark.parametrize("warm", [True, False])
def test_a_server_loads_what_simulates_traffic_only_if_it_is_told_to(warm: bool) -> None:
    code = SERVED.format(warm=warm)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{warm} None\n"


def test_the_event_loop_does_not_load_it_for_the_first_run() -> None:
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "200 True False\n"


def test_runs_that_begin_at_once_have_nothing_left_to_load() -> None:
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_nothing_is_loaded_while_requests_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "QUIET_S", 0.0)
    counted, loaded = iter([0, 3, 5, 5]), Event()

    async def look() -> Warming:
        watched = Warming(loaded.set, counted.__next__)
        watched.watch()
        while not loaded.is_set():
            await asyncio.sleep(0)
        return watched

    asyncio.run(look()).join()
    assert next(counted, None) is None
