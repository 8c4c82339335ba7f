"""Programs whose every request the test sends itself, in whatever name it likes."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from socket import SHUT_RDWR
from typing import ClassVar, NamedTuple

from kubescene.outside.programs import OutsideProgram
from kubescene.types import JsonObject, JsonValue
from outside_runs import Played, Stage, config_map, scenario

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PARK = "/simulator/v1/park"
EVENTS = "/api/v1/namespaces/default/events"
LEASE: JsonObject = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "leader"},
}
EVENT: JsonObject = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "told"},
    "involvedObject": {"namespace": "default"},
}
GO: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "expression": "objects.exists(o, o.metadata.name == 'go')",
    "message": "there is no go",
}
HOLDER: JsonObject = {"name": "holder", "timeout": "100s", "waiter": {"conditions": [GO]}}
"""One that keeps its turn until there is a ConfigMap ``go``."""


PATIENCE_S = 120.0


class Answer(NamedTuple):
    code: int
    body: JsonValue

    @property
    def message(self) -> str:
        assert isinstance(self.body, dict)
        return str(self.body.get("message", ""))


class Puppet:
    """One program."""

    made: ClassVar[list["Puppet"]] = []

    def __init__(self, made: Stage, name: str, product: str = "puppet") -> None:
        self.name = name
        self._port = made.server.port
        self._product = product
        self._pool = ThreadPoolExecutor(64)
        self._open: list[HTTPConnection] = []
        self._streams: list[HTTPResponse] = []
        self.made.append(self)

    def watch(self, path: str = CONFIG_MAPS) -> None:
        self._streams.append(self._send("GET", f"{path}?watch=true").getresponse())

    def next_event(self, stream: int = 0) -> JsonObject:
        """The next that it hears by one of its watches."""
        event: JsonObject = json.loads(self.next_line(stream))
        return event

    def next_line(self, stream: int = 0) -> bytes:
        """The same as it comes; empty if the watch has ended."""
        return self._streams[stream].readline()

    def ask(self, method: str, path: str, body: JsonValue = None) -> Answer:
        response = self._send(method, path, body).getresponse()
        return Answer(response.status, json.loads(response.read()))

    def later(self, method: str, path: str, body: JsonValue = None) -> "Future[Answer]":
        return self._pool.submit(self.ask, method, path, body)

    def create(self, name: str) -> "Future[Answer]":
        return self.later("POST", CONFIG_MAPS, config_map(name))

    def loop(self) -> "Future[int]":
        """Loop without end and do nothing, parking after each, until no scenario runs."""
        return self._pool.submit(self._loop)

    def _loop(self) -> int:
        loops = 1
        while self.park()["scenario"]:
            loops += 1
        return loops

    def park(self) -> JsonObject:
        answer = self.ask("POST", PARK, {"name": self.name}).body
        assert isinstance(answer, dict)
        return answer

    def hang_up(self) -> None:
        """Close every connection, whatever is going on there."""
        for connection in self._open:
            if connection.sock is not None:
                with suppress(OSError):  # the server may have been first
                    connection.sock.shutdown(SHUT_RDWR)
        for stream in self._streams:
            stream.close()

    def close(self) -> None:
        self.hang_up()
        self._pool.shutdown()
        for connection in self._open:
            connection.close()

    def _send(self, method: str, path: str, body: JsonValue = None) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        self._open.append(connection)
        data = None if body is None else json.dumps(body).encode()
        form = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"User-Agent": f"{self._product}/v1", "Content-Type": form}
        connection.request(method, f"/as/{self.name}{path}", data, headers)
        return connection


class Play:
    """A scenario under way."""

    def __init__(self, made: Stage, document: JsonObject, pool: ThreadPoolExecutor) -> None:
        self._made = made
        self._end = pool.submit(made.play, document)

    def end(self) -> Played:
        return self._end.result()

    def failure(self) -> BaseException | None:
        """Why it has no end that one could look at: its object or its server has gone."""
        return self._end.exception()

    def program(self, name: str) -> OutsideProgram:
        stage = self._made.server.stage
        return self._made.server.engine.call(lambda: stage.program(name))

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something that is to happen before the end."""
        until(lambda: self._end.done() or is_so())
        assert not self._end.done(), self._end.result().message

    def until_held(self, name: str, count: int = 1) -> None:
        self.until(lambda: len(self.program(name).held) >= count)

    def until_in_turns(self, name: str) -> None:
        self.until(lambda: not self.program(name).is_open)


@contextmanager
def playing(made: Stage, document: JsonObject) -> Iterator[Play]:
    with ThreadPoolExecutor(1) as pool:
        yield Play(made, document, pool)


def until(is_so: Callable[[], bool]) -> None:
    pause, each_s = threading.Event(), 0.005
    for _ in range(int(PATIENCE_S / each_s)):
        if is_so():
            return
        pause.wait(each_s)
    raise AssertionError("what the test waits for never comes")


def plays_on(made: Stage, name: str = "next") -> bool:
    """Whether the server plays another scenario, without anybody outside."""
    story = [
        {"step": 1, "createOperation": {"object": config_map("a")}},
        {"step": 2, "doneOperation": {}},
    ]
    return made.play(scenario(story, name=name)).phase == "Succeeded"
