"""Many readers beside a busy writer: nobody misses a change, sees one twice or keeps the server.

What was written, in which order, is known from the writer alone: one thread makes all changes.
"""

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from threading import Event, Thread, current_thread
from typing import Any, TypeAlias

import pytest

from apiserver.http import CONFIG_MAPS, Http, config_map
from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver import bodies
from kubescene.apiserver.engine_thread import EngineStoppedError, EngineThread
from kubescene.apiserver.kubernetes import watches as streaming
from kubescene.apiserver.kubernetes.discovery import DiscoveryDocuments
from kubescene.apiserver.kubernetes.field_validation import FieldValidation
from kubescene.apiserver.server import Server
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import WallClock
from kubescene.cluster import ClusterWorld
from stopping import Retire

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
LAST = "the-last-one"
PATIENCE_S = 120.0
Seen: TypeAlias = tuple[str, str, str]
"""Type, name and value of one event."""


class Writer:
    """Makes changes on the engine thread and remembers them."""

    def __init__(self, server: Server, padding: int = 0) -> None:
        self._engine = server.engine
        self._store = server.cluster.store
        self._client = server.cluster.client(Actor("writer"))
        self._padding = "x" * padding
        self.made: list[Seen] = []
        self.alive: dict[str, str] = {}
        self.presence: dict[int, frozenset[str]] = {}

    def turn(self, changes: int, names: int) -> None:
        """Some changes in one command: create, modify and delete objects by turns."""

        def command() -> None:
            for _ in range(changes):
                number = len(self.made)
                name = f"m-{number * 7 % names}"
                if name not in self.alive:
                    self._put("ADDED", name, str(number))
                elif number % 5 == 0:
                    self._drop(name)
                else:
                    self._put("MODIFIED", name, str(number))

        self._engine.call(command)

    def put(self, name: str, value: str) -> None:
        self.put_all([(name, value)])

    def put_all(self, pairs: list[tuple[str, str]]) -> None:
        """Several in one command."""

        def command() -> None:
            for name, value in pairs:
                self._put("MODIFIED" if name in self.alive else "ADDED", name, value)

        self._engine.call(command)

    def drop(self, name: str) -> None:
        self._engine.call(lambda: self._drop(name))

    def _put(self, kind: str, name: str, value: str) -> None:
        obj = config_map(name, value=value, padding=self._padding)
        obj["metadata"]["namespace"] = "default"
        if kind == "ADDED":
            self._client.create(obj)
        else:
            self._client.update(obj)
        self.alive[name] = value
        self._note(kind, name, value)

    def _drop(self, name: str) -> None:
        self._client.delete(ObjectRef(CONFIG_MAP, name, "default"))
        self._note("DELETED", name, self.alive.pop(name))

    def _note(self, kind: str, name: str, value: str) -> None:
        self.made.append((kind, name, value))
        self.presence[self._store.revision] = frozenset(self.alive)


@contextmanager
def restless() -> Iterator[None]:
    """Let threads take turns a thousand times as often as usual, so that all orders are seen."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


@contextmanager
def threads(*targets: Callable[[], None], done: Event | None = None) -> Iterator[None]:
    """Run all beside the block, which ``done`` tells; the failure of one fails the test."""
    failures: list[BaseException] = []

    def guarded(target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as failure:
            failures.append(failure)

    running = [Thread(target=guarded, args=(target,), daemon=True) for target in targets]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        if done is not None:
            done.set()
        for thread in running:
            thread.join(PATIENCE_S)
    assert not failures, failures
    assert not any(thread.is_alive() for thread in running), "somebody still waits"


def seen(event: dict[str, Any]) -> Seen:
    obj = event["object"]
    return event["type"], obj["metadata"]["name"], obj["data"]["value"]


def open_socket(server: Server, path: str, receive_buffer: int = 0) -> socket.socket:
    opened = socket.socket()
    opened.settimeout(PATIENCE_S)
    if receive_buffer:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    opened.connect((server.host, server.port))
    opened.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
    return opened


def frames(opened: socket.socket, pause_s: float = 0) -> Iterator[dict[str, Any]]:
    """Events of a raw watch, until the server ends it properly."""
    stream = opened.makefile("rb", buffering=4096)
    assert b" 200 " in stream.readline()
    while stream.readline().strip():
        pass
    rest = b""
    while size := int(stream.readline(), 16):
        *lines, rest = (rest + stream.read(size)).split(b"\n")
        stream.readline()
        pause(pause_s)
        yield from map(json.loads, lines)
    assert rest == b""


def watchers(server: Server) -> int:
    """How many subscribers the store has, as the engine thread sees it."""
    return server.engine.call(lambda: len(server.cluster.store._subscriptions))


def eventually(condition: Callable[[], bool]) -> bool:
    return any(condition() or pause(0.01) for _ in range(int(PATIENCE_S / 0.01)))


def pause(seconds: float) -> bool:
    return Event().wait(seconds)


class TestWatching:
    def test_slow_readers_see_every_change_once_and_in_order(self, server: Server) -> None:
        writer = Writer(server, padding=3000)
        # Accepted sockets inherit it: so the server has to wait for its clients again and again.
        server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        open_ = [open_socket(server, f"{CONFIG_MAPS}?watch=1", 4096) for _ in range(6)]
        assert eventually(lambda: watchers(server) >= len(open_))
        found: dict[int, list[Seen]] = {}

        def read(number: int) -> None:
            mine = found.setdefault(number, [])
            for event in frames(open_[number], pause_s=number / 1000):
                mine.append(seen(event))
                if mine[-1][1] == LAST:
                    return

        with threads(*(partial(read, number) for number in range(len(open_)))):
            for burst in range(40):
                for _ in range(4):
                    writer.turn(10, names=40)
                    pause(burst % 3 / 1000)
                # All catch up and fall asleep: one whose wake-up was lost would never do so.
                made = len(writer.made)
                assert eventually(lambda: all(len(it) == made for it in found.values()))  # noqa: B023
            writer.put(LAST, "")
        for opened in open_:
            opened.close()
        assert [found[number] == writer.made for number in range(len(open_))] == [True] * 6

    def test_watch_from_the_version_of_a_list_misses_nothing(self, server: Server) -> None:
        writer = Writer(server)

        def follow() -> None:
            finished = False
            http = Http(server.host, server.port)
            while not finished:
                listed = http.get(CONFIG_MAPS).json
                state = {it["metadata"]["name"]: it["data"]["value"] for it in listed["items"]}
                finished = LAST in state or replayed(http, listed["metadata"], state)
            http.close()
            assert state == writer.alive

        def replayed(http: Http, metadata: dict[str, str], state: dict[str, str]) -> bool:
            """Follow 100 changes; whether the last one was among them."""
            at = int(metadata["resourceVersion"])
            with http.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={at}") as events:
                for _ in range(100):
                    event = events.next()
                    version = int(event["object"]["metadata"]["resourceVersion"])
                    kind, name, value = seen(event)
                    assert version > at
                    assert (kind == "ADDED") == (name not in state), (event, state)
                    at = version
                    state[name] = value
                    if kind == "DELETED":
                        del state[name]
                    if name == LAST:
                        return True
            return False

        with threads(*[follow] * 6):
            for _ in range(200):
                writer.turn(8, names=60)
                pause(0.001)
            writer.put(LAST, "")

    def test_bookmarks_never_go_back(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streaming, "BOOKMARK_EVERY_S", 0.002)
        writer, done = Writer(server), Event()

        def write() -> None:
            while not done.is_set():
                writer.turn(2, names=5)

        newest, bookmarks = server.cluster.store.revision, 0
        query = f"watch=1&allowWatchBookmarks=1&timeoutSeconds=1&resourceVersion={newest}"
        opened = open_socket(server, f"{CONFIG_MAPS}?{query}")
        with threads(write, write, done=done):
            for event in frames(opened):
                version = int(event["object"]["metadata"]["resourceVersion"])
                assert version >= newest
                newest = version
                bookmarks += event["type"] == "BOOKMARK"
        opened.close()
        assert bookmarks > 5

    def test_reset_is_seen_as_the_end_of_every_object(self, server: Server) -> None:
        writer = Writer(server)
        writer.turn(100, names=100)
        http = Http(server.host, server.port)
        with http.watch(f"{CONFIG_MAPS}?watch=1") as events:
            existing = events.take(100)
            assert http.put("/simulator/v1/reset", None).status == 200
            assert sorted(events.take(100)) == [("DELETED", name) for _, name in existing]
            http.post(CONFIG_MAPS, config_map("a"))
            assert events.take(1) == [("ADDED", "a")]
        http.close()


class TestReading:
    @pytest.mark.parametrize("query", ["", "?limit=400"], ids=["at once", "by pages"])
    def test_lists_show_one_state(self, server: Server, query: str) -> None:
        """The first object is always counted up before the last, so it is never behind it."""
        writer, done = Writer(server), Event()
        writer.turn(1500, names=1500)

        def count() -> None:
            for value in range(100_000):
                if done.is_set():
                    return
                writer.put_all([("a", str(value)), ("z", str(value))])

        writer.put_all([("a", "0"), ("z", "0")])
        http = Http(server.host, server.port)
        with restless(), threads(count, done=done):
            for _ in range(40 if not query else 8):
                items = listed(http, query)
                first, last = (int(item["data"]["value"]) for item in (items[0], items[-1]))
                assert len(items) == 1502
                assert last <= first <= last + 1
        http.close()

    def test_list_of_one_name_says_when_it_was_gone(self, server: Server) -> None:
        writer, done = Writer(server), Event()
        writer.put("other", "")

        def flicker() -> None:
            while not done.is_set():
                writer.put("a", "")
                writer.drop("a")

        http, found = Http(server.host, server.port), []
        with threads(flicker, done=done):
            for _ in range(400):
                reply = http.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Da").json
                present = bool(reply["items"])
                found.append((int(reply["metadata"]["resourceVersion"]), present))
        http.close()
        known = [(at, present) for at, present in found if at in writer.presence]
        assert known == [(at, "a" in writer.presence[at]) for at, _ in known]
        assert {present for _, present in known} == {True, False}

    def test_discovery_stands_while_kinds_come_and_go(self) -> None:
        scheme, done = builtin_scheme(), Event()
        discovery = DiscoveryDocuments(scheme)
        gvk = GroupVersionKind("example.com", "v1", "Widget")
        widget = ResourceType(gvk, "widgets", namespaced=True, custom=True)

        def flicker() -> None:
            while not done.is_set():
                scheme.register(widget)
                scheme.unregister(gvk)

        with restless(), threads(flicker, done=done):
            for _ in range(100):
                assert discovery.document("/apis") is not None
                discovery.document("/apis/example.com")


def listed(http: Http, query: str) -> list[dict[str, Any]]:
    """All items, page by page if the server says so."""
    page = http.get(CONFIG_MAPS + query).json
    items: list[dict[str, Any]] = page["items"]
    while token := page["metadata"].get("continue"):
        page = http.get(f"{CONFIG_MAPS}{query}&continue={token}").json
        items += page["items"]
    return items


class TestLeaving:
    def test_clients_that_vanish_leave_nothing_behind(self, server: Server) -> None:
        writer, done = Writer(server, padding=20_000), Event()
        before = watchers(server)

        def write() -> None:
            while not done.is_set():
                writer.turn(2, names=20)
                pause(0.002)

        with threads(write, done=done):
            for number in range(120):
                opened = open_socket(server, f"{CONFIG_MAPS}?watch=1", 4096)
                if number % 3:
                    opened.recv(1 + number * 50)
                if number % 2:
                    reset = struct.pack("ii", 1, 0)
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                opened.close()
        assert eventually(lambda: watchers(server) == before)
        assert not server.app.streams._sleepers

    def test_request_that_is_cancelled_while_it_registers_leaves_no_watch(
        self, server: Server
    ) -> None:
        before, sent = watchers(server), asyncio.run(abandoned_watch(server, cancel=True))
        assert (watchers(server), sent) == (before, [])

    def test_watch_that_comes_as_the_server_ends_is_answered_and_ended(
        self, server: Server
    ) -> None:
        sent = asyncio.run(abandoned_watch(server, cancel=False))
        assert sent[0]["status"] == 200
        assert not sent[-1]["more_body"]

    def test_stop_ends_watches_properly_and_runs_what_was_submitted(self, retire: Retire) -> None:
        server = Server(port=0, controllers=False)
        server.start()
        writer = Writer(server)
        writer.turn(20, names=20)
        open_ = [open_socket(server, f"{CONFIG_MAPS}?watch=1") for _ in range(20)]
        assert eventually(lambda: watchers(server) >= len(open_))
        ran: list[int] = []
        for number in range(500):
            server.engine.post(partial(ran.append, number))
        server.stop()
        assert ran == list(range(500))
        assert [len(list(frames(opened))) for opened in open_] == [20] * 20
        for opened in open_:
            opened.close()
        with pytest.raises(EngineStoppedError):
            server.engine.call(lambda: None)

    def test_callers_are_answered_however_close_the_end_is(self) -> None:
        with restless():
            for _ in range(15):
                engine = EngineThread(ClusterWorld(clock=WallClock()), controllers=False)
                engine.start()
                with threads(*[partial(call_until_the_end, engine)] * 4):
                    engine.stop()

    def test_a_command_that_runs_out_of_items_fails_as_others_do(self, server: Server) -> None:
        async def ask() -> None:
            command: Callable[[], int] = lambda: next(iter(()))  # noqa: E731
            await asyncio.wait_for(server.engine.submit(command), PATIENCE_S)

        with pytest.raises(RuntimeError, match="StopIteration"):
            asyncio.run(ask())

    def test_watch_with_a_bad_option_is_refused_before_it_begins(self, server: Server) -> None:
        Writer(server).put("a", "")
        connection = HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        connection.request("GET", f"{CONFIG_MAPS}?watch=1&includeObject=All", headers=table)
        assert connection.getresponse().status == 400
        connection.close()


def call_until_the_end(engine: EngineThread) -> None:
    try:
        while True:
            engine.call(lambda: None)
    except EngineStoppedError:
        return


async def abandoned_watch(server: Server, *, cancel: bool) -> list[dict[str, Any]]:
    """A watch whose request, or server, ends while the engine is busy; what it was sent."""
    sent: list[dict[str, Any]] = []
    busy = Event()

    def hold() -> None:
        busy.wait(PATIENCE_S)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(PATIENCE_S)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": CONFIG_MAPS,
        "raw_path": CONFIG_MAPS.encode(),
        "query_string": b"watch=1",
        "headers": [(b"host", b"127.0.0.1")],
    }
    server.engine.post(hold)
    task = asyncio.ensure_future(server.app(scope, receive, send))
    while server.engine._commands.empty():  # until the watch waits for the engine
        await asyncio.sleep(0)
    if cancel:
        task.cancel()
    else:
        server.app.streams._is_closed = True
    busy.set()
    await asyncio.gather(task, return_exceptions=True)
    return sent


def test_a_large_body_is_read_beside_the_event_loop(
    server: Server, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are answered meanwhile; a small one is not worth another thread."""
    readers: dict[str, str] = {}
    check = FieldValidation.check

    def noted(self: FieldValidation, obj: Any, *arguments: Any) -> None:
        readers[obj["metadata"]["name"]] = current_thread().name
        check(self, obj, *arguments)

    monkeypatch.setattr(FieldValidation, "check", noted)
    path = "/api/v1/namespaces/default/configmaps"
    for name, size in (("small", 10), ("large", bodies.LARGE)):
        document = {"metadata": {"name": name}, "data": {"a": "b" * size}}
        assert http.post(path, document).status == 201
    assert readers["small"] == "kubescene-http"
    assert readers["large"] != "kubescene-http"
