"""A server that can be told from a dead one, and that ends when it is told to."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from threading import Event

import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, config_map, pod
from apiserver.scenarios import play
from kubescene.apiserver import server as serving
from kubescene.apiserver.server import Server, SlowClients
from kubescene.clock import MILLISECOND
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.scheduler import Scheduler
from kubescene.testing.builders import make_node, make_pod

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

STUCK = """
from kubescene.apiserver.server import Server
server = Server(port=0)
print(server.port, flush=True)
def stick():
    print("stuck", flush=True)
    {how}
server.engine.post(stick)
server.run()
"""


@pytest.fixture
def stuck(server: Server) -> Iterator[Callable[[], None]]:
    """The engine sits in a command until it is let go."""
    free = Event()
    server.app.health.limit_s = 0.05
    server.engine.post(partial(wait_for, free))
    yield free.set
    free.set()


def wait_for(event: Event) -> None:
    event.wait()


def test_a_server_outlives_the_definitions_of_its_controllers(live: Http) -> None:
    """Controllers are made anew after a scenario: what they stand on is there again."""
    named = [each["metadata"]["name"] for each in live.get(DEFINITIONS).json["items"]]
    for name in named:
        if not name.startswith("scenarios."):
            assert live.delete(f"{DEFINITIONS}/{name}").status == 200
    scenario = ScenarioBuilder("s").create(make_pod("p")).done()
    assert play(live, scenario)["phase"] == "Succeeded"
    assert live.post(CONFIG_MAPS, config_map("c")).status == 201
    assert live.get("/healthz").status == 200
    assert named == [each["metadata"]["name"] for each in live.get(DEFINITIONS).json["items"]]


@pytest.mark.parametrize("path", ["healthz", "livez", "readyz"])
def test_health_tells_of_a_stuck_engine(http: Http, stuck: Callable[[], None], path: str) -> None:
    reply = http.get(f"/{path}")
    assert (reply.status, reply.body) == (
        500,
        f"[-]engine failed: it has not run a command for 0.05 s\n{path} check failed\n".encode(),
    )


def test_health_comes_back_with_the_engine(
    server: Server, http: Http, stuck: Callable[[], None]
) -> None:
    assert http.get("/healthz").status == 500
    server.app.health.limit_s = 120
    stuck()
    server.engine.call(bool)
    assert http.get("/healthz").body == b"ok"


def test_probes_of_a_stuck_engine_do_not_pile_up(
    server: Server, http: Http, stuck: Callable[[], None]
) -> None:
    waiting = [(http.get("/livez"), server.engine._commands.qsize())[1] for _ in range(3)]
    assert waiting == [1, 1, 1]


def test_health_is_only_read(http: Http) -> None:
    assert http.post("/healthz", {}).status == 405


def test_a_rejected_pod_is_tried_again_and_the_server_goes_on() -> None:
    with Server(port=0) as server:
        http = Http(server.host, server.port)
        queue = server.engine.call(lambda: impatient_queue(server))
        assert http.post("/api/v1/nodes", make_node("n").build()).status == 201
        http.post(PODS, pod("rejected", nodeSelector={"is": "nowhere"}))
        while queue.cycle < 3:
            assert http.get("/healthz").status == 200
        assert http.post(CONFIG_MAPS, config_map("written")).status == 201
        http.close()


def impatient_queue(server: Server) -> SchedulingQueue:
    """The scheduler's queue, told to try pods that nothing helps ten times a second."""
    found = [slot.controller for slot in server.cluster.slots]
    [scheduler] = [each for each in found if isinstance(each, Scheduler)]
    scheduler.queue.unschedulable_limit = 100 * MILLISECOND
    scheduler.queue.leftover_period = 50 * MILLISECOND
    return scheduler.queue


@pytest.mark.parametrize("how", ["while True: pass", "__import__('threading').Event().wait()"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_whose_engine_is_stuck(number: int, how: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(how=how)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    http = Http("127.0.0.1", int(process.stdout.readline()))
    assert process.stdout.readline() == "stuck\n"
    assert http.get(PODS).status == 200, "reading needs no engine"
    http.close()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "the engine is stuck" in said


def test_who_waits_when_a_server_waits_no_longer_is_told_so() -> None:
    how = "__import__('threading').Event().wait()"
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(how=how)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())
    with socket.create_connection(("127.0.0.1", port)) as asking:
        asking.sendall(HALF + b" " * 98 + b"}")
        http = Http("127.0.0.1", port)
        assert http.get(PODS).status == 200, "it has read what was sent before"
        http.close()
        process.send_signal(signal.SIGTERM)
        answer = asking.makefile("rb").read()
    _, said = process.communicate(timeout=60)
    assert b"application/json" in answer
    assert b'"message":"the server is shutting down: what this request was about was not' in answer
    assert "Traceback" not in said


BEGUN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF = (
    b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WATCH = b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CUT_OFF = {
    "who says nothing": b"",
    "who never ends the headers": BEGUN,
    "who never ends the body": HALF,
    "who never ends the headers of a second request": WHOLE + BEGUN,
    "who is answered before the body ends": HALF.replace(b"application/json", b"text/none"),
}
KEPT = {"who waits between requests": WHOLE, "who watches": WATCH}


@pytest.mark.parametrize("said", (CUT_OFF | KEPT).values(), ids=CUT_OFF | KEPT)
def test_clients_that_never_finish_a_request_are_cut_off(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then does not help; here time goes by the looks of the server."""
    looks = count()
    monkeypatch.setattr(serving, "QUIET_S", 0.01)
    look = SlowClients.look
    monkeypatch.setattr(SlowClients, "look", lambda self, now: look(self, float(next(looks))))
    with (
        Server(port=0, request_timeout_s=40) as server,
        socket.create_connection(("127.0.0.1", server.port), 60) as client,
    ):
        if said == WHOLE + BEGUN:
            client.sendall(WHOLE)
            assert client.recv(65536)
        client.sendall(said.removeprefix(WHOLE) if said != WHOLE else said)
        client.settimeout(0.02)
        begun = next(looks)
        while next(looks) < begun + 150 and not has_ended(client, slow=said in (BEGUN, HALF)):
            pass
        assert has_ended(client) == (said in CUT_OFF.values())


def has_ended(client: socket.socket, *, slow: bool = False) -> bool:
    try:
        if slow:
            client.sendall(b" ")
        return client.recv(65536) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_one_pod_too_many_is_refused(live: Http, live_server: Server) -> None:
    live_server.cluster.registry.most_pods = 3
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 2**31 - 1, "selector": {"matchLabels": {"app": "web"}}}
    replicas = {"metadata": {"name": "web"}, "spec": {**spec, "template": template}}
    path = "/apis/apps/v1/namespaces/default/replicasets"
    assert live.post(path, replicas).status == 201
    pods = "/api/v1/namespaces/default/pods"
    with live.watch(f"{path}?watch=true&resourceVersion=0") as events:
        while events.next()["object"].get("status", {}).get("replicas") != 3:
            pass
    assert len(live.get(pods).json["items"]) == 3
    reply = live.post(pods, make_pod("more").build())
    assert reply.status == 403
    assert reply.message == (
        'pods "more" is forbidden: this server holds at most 3 pods (kubescene serve --max-pods)'
    )
    assert live.post(CONFIG_MAPS, config_map("a")).status == 201
