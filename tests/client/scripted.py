"""A server that says what it was told to say, byte for byte."""

import socket
import ssl
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson


@dataclass(frozen=True)
class Answer:
    """Pieces that are sent one by one. Afterwards the connection is closed, held or kept."""

    pieces: tuple[bytes, ...]
    then: str = "keep"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


def answer(body: Any, status: int = 200, *, then: str = "keep", **headers: str) -> Answer:
    """A complete response with a length."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Answer(("\r\n".join([*lines, "", ""]).encode() + data,), then)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


WATCH_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
LATER_S = 0.4


def event(kind: str, obj: Any) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def watch(*events: bytes, then: str = "hold") -> Answer:
    """A watch with one chunk for each event; ``then`` may be ``end``: in good order, or ``later``:
    in good order as well, but after `LATER_S`.
    """
    pieces = [WATCH_HEAD, *map(chunk, events)]
    if then == "end":
        return Answer((*pieces, LAST_CHUNK))
    return Answer(tuple(pieces), then)


@dataclass
class Script:
    """What is answered to which path. The last answer of a path is given for ever."""

    answers: dict[str, deque[Answer]] = field(default_factory=dict)

    def add(self, path: str, *answers: Answer) -> None:
        self.answers.setdefault(path, deque()).extend(answers)

    def next(self, key: str) -> Answer:
        waiting = self.answers.get(key)
        if not waiting:
            return answer({"kind": "Status", "code": 404, "reason": "NotFound"}, 404)
        return waiting.popleft() if len(waiting) > 1 else waiting[0]


class ScriptedServer:
    """Listens on a free port until it is closed."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.script = Script()
        self.asked: list[Asked] = []
        self.dropped = threading.Event()
        self._tls = tls
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    def add(self, path: str, *answers: Answer) -> None:
        """``path`` may begin with a method; watches are found under ``WATCH path``."""
        self.script.add(path if " " in path else f"GET {path}", *answers)

    def requests(self, method: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method]

    def close(self) -> None:
        self._over.set()
        for each in (self._listener, *self._connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._connections.append(connection)
            while (asked := self._read(connection)) is not None:
                if not self._say(connection, asked):
                    break
        except OSError:
            pass
        finally:
            connection.close()
            self.dropped.set()

    def _say(self, connection: socket.socket, asked: Asked) -> bool:
        """Whether the connection is kept."""
        self.asked.append(asked)
        verb = "WATCH" if asked.query.get("watch") else asked.method
        said = self.script.next(f"{verb} {asked.path}")
        for piece in said.pieces:
            connection.sendall(piece)
        if said.then == "hold":
            self._over.wait()
        if said.then == "later":
            self._over.wait(LATER_S)
            connection.sendall(LAST_CHUNK)
        return said.then in ("keep", "later")

    def _read(self, connection: socket.socket) -> Asked | None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return None
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (it.partition(": ") for it in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
        method, target, _ = first.split(" ")
        parts = urlsplit(target)
        return Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


def config_map(name: str, revision: int, uid: str = "", **data: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(revision),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def listed(items: Iterable[dict[str, Any]], revision: int, token: str = "") -> Answer:
    """A list as kube-apiserver sends it: its items name neither apiVersion nor kind."""
    bare = [{k: v for k, v in it.items() if k not in ("apiVersion", "kind")} for it in items]
    metadata = {"resourceVersion": str(revision), **({"continue": token} if token else {})}
    return answer(
        {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": bare}
    )


CORE = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {
            "name": "configmaps",
            "namespaced": True,
            "kind": "ConfigMap",
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        },
        {"name": "configmaps/odd", "namespaced": True, "kind": "Odd", "verbs": ["get"]},
    ],
}
