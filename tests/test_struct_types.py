"""Struct types are looked at before threads meet them."""

import subprocess
import sys

CHILDREN = 40

TWO_THREADS = """
import os, signal, sys, threading
import numpy, msgspec, orjson
import kubescene.api.text.reading, kubescene.clock.batches

def convert(start):
    from kubescene.traffic.spec.loading import run_of
    from kubescene.traffic.skenario.requests import read_request, run_requested
    start.wait()
    run_requested(read_request({}))

def child():
    sys.setswitchinterval(1e-6)
    start = threading.Barrier(2)
    threads = [threading.Thread(target=convert, args=(start,)) for _ in range(2)]
    for each in threads: each.start()
    for each in threads: each.join()

ends = []
for _ in range(CHILDREN):
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    ends.append(os.waitpid(pid, 0)[1])
print([end for end in ends if end])
"""

LATE = """
import json, sys, threading, urllib.request
import msgspec._utils
from kubescene.apiserver.server import Server

looked = msgspec._utils.get_class_annotations.__code__
late = []

def note(frame, event, argument):
    if event != "call" or frame.f_code is not looked:
        return
    kind, seen = frame.f_locals["obj"], frame
    if frame.f_back.f_code.co_filename.endswith(("inspect.py", "structs.py")):
        return  # These only read, and keep nothing.
    while seen is not None:
        if seen.f_code.co_name == "<module>" and seen.f_globals["__name__"] == kind.__module__:
            return  # While its own module is imported, nobody else can have it.
        seen = seen.f_back
    late.append(kind.__qualname__)

threading.setprofile(note)

def ask(path, document=None):
    body = None if document is None else json.dumps(document).encode()
    asked = urllib.request.Request(server.url + path, body, {"content-type": "application/json"})
    return urllib.request.urlopen(asked).read()

with Server(port=0) as server:
    server.engine.call(late.clear)
    ask("/run", {})
    ask("/run", {"mode": "faithful"})
    for page in ("", "/1", "/1/series"):
        ask("/runs" + page)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    steps = [
        {"id": "1", "step": 1, "createOperation": {"object": pod}},
        {"id": "2", "step": 2, "doneOperation": {}},
    ]
    group = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1"
    made = {"metadata": {"name": "s"}, "spec": {"operations": steps}}
    ask(group + "/scenarios", made)
    while json.loads(ask(group + "/scenarios/s"))["status"].get("phase") != "Succeeded":
        pass
    for page in ("progress", "summary", "result", "timeline", "explanations", "explain?pod=p"):
        ask("/simulator/v1/scenarios/s/" + page)
    ask("/simulator/v1/export")
print(late)
"""


def output(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_two_threads_may_be_the_first_to_read_a_traffic_run() -> None:
    """msgspec 0.22 ends the process where both look at a type for the first time."""
    assert output(f"CHILDREN = {CHILDREN}\n{TWO_THREADS}") == "[]"


def test_no_type_is_looked_at_for_the_first_time_once_a_server_listens() -> None:
    assert output(LATE) == "[]"
