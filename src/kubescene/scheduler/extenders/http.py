"""Extenders over HTTP: one POST per question, answered within its time or not at all.

Whatever an extender does (refuse, stall, drip, send without end, send nonsense), the call comes
back with an answer that says so; the time is that of the machine, since the extender is outside the
rehearsal. Connections are kept and used again.
"""

import io
import socket
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Lock
from typing import Any
from urllib.parse import SplitResult, urlsplit

from kubescene.clock import Deadline, WallClock
from kubescene.scheduler.extenders.extenders import (
    ExtenderAddress,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderTls,
    Origin,
    PendingCall,
)
from kubescene.scheduler.extenders.tls import tls_context
from kubescene.scheduler.extenders.wire import TOO_LATE, no_answer, read_answer, request_body

MAX_ANSWER = 128 * 1024 * 1024
_CHUNK = 1 << 16
_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
_PORTS = {"http": 80, "https": 443}


class HttpExtenderCaller:
    """Calls extenders and waits for them. Any number of threads may do so at once."""

    def __init__(self, max_answer: int = MAX_ANSWER) -> None:
        self._max_answer = max_answer
        self._clock = WallClock()
        self._lock = Lock()
        self._idle: dict[Origin, list[PunctualConnection]] = {}
        self._contexts: dict[ExtenderTls | None, Any] = {}

    def __reduce__(self) -> tuple[type, tuple[int]]:
        """Another process makes its own connections."""
        return HttpExtenderCaller, (self._max_answer,)

    def __deepcopy__(self, memo: dict[int, Any]) -> "HttpExtenderCaller":
        return self

    def __del__(self) -> None:
        for waiting in self._idle.values():
            for connection in waiting:
                connection.punctual.shut()

    def call(self, pending: PendingCall) -> None:
        pending.answer(self.ask(pending.call))

    def ask(self, call: ExtenderCall) -> ExtenderAnswer:
        """What the extender says, or why it says nothing."""
        extender = call.extender
        if extender.address is None:
            return ExtenderAnswer(error=f"extender {extender.name} has no address")
        url = extender.address.url_for(call.verb)
        try:
            status, body = self._exchange(extender.address, url, request_body(call))
        except (OSError, HTTPException, ValueError) as error:
            return no_answer(call, _told(error))
        return read_answer(call, status, body)

    # -- one exchange --------------------------------------------------------------------------

    def _exchange(self, address: ExtenderAddress, url: str, body: bytes) -> tuple[int, bytes]:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f'unsupported protocol scheme "{parts.scheme}"')
        deadline = Deadline(self._clock, address.timeout)
        kept = self._take(address)
        if kept is not None:
            try:
                return self._post(address, kept, deadline, parts, body)
            except (ConnectionError, HTTPException):
                pass  # It was closed while it lay idle: another one will do.
        fresh = self._connect(address, parts, deadline)
        return self._post(address, fresh, deadline, parts, body)

    def _connect(
        self, address: ExtenderAddress, parts: SplitResult, deadline: Deadline
    ) -> "PunctualConnection":
        assert parts.hostname is not None
        port = parts.port or _PORTS[parts.scheme]
        raw = socket.create_connection((parts.hostname, port), timeout=seconds_left(deadline))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if parts.scheme == "https":
                raw.settimeout(seconds_left(deadline))
                name = (address.tls and address.tls.server_name) or parts.hostname
                raw = self._context(address).wrap_socket(raw, server_hostname=name)
        except BaseException:
            raw.close()
            raise
        return PunctualConnection(parts.hostname, port, PunctualSocket(raw))

    def _context(self, address: ExtenderAddress) -> Any:
        with self._lock:
            if address.tls not in self._contexts:
                self._contexts[address.tls] = tls_context(address.tls)
            return self._contexts[address.tls]

    def _post(
        self,
        address: ExtenderAddress,
        connection: "PunctualConnection",
        deadline: Deadline,
        parts: SplitResult,
        body: bytes,
    ) -> tuple[int, bytes]:
        whole = False
        try:
            connection.punctual.deadline = deadline
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, _HEADERS)
            response = connection.getresponse()
            answer = self._read(response)
            whole = not response.will_close
            return response.status, answer
        finally:
            if whole:
                self._give_back(address, connection)
            else:
                connection.punctual.shut()

    def _read(self, response: HTTPResponse) -> bytes:
        """The body, as far as it is bearable."""
        parts, size = [], 0
        while chunk := response.read(_CHUNK):
            size += len(chunk)
            if size > self._max_answer:
                raise ValueError(f"the answer has more than {self._max_answer} bytes")
            parts.append(chunk)
        return b"".join(parts)

    # -- connections that wait -----------------------------------------------------------------

    def _take(self, address: ExtenderAddress) -> "PunctualConnection | None":
        with self._lock:
            waiting = self._idle.get(address.origin)
            return waiting.pop() if waiting else None

    def _give_back(self, address: ExtenderAddress, connection: "PunctualConnection") -> None:
        with self._lock:
            self._idle.setdefault(address.origin, []).append(connection)


class PunctualSocket:
    """A socket whose every wait ends at the deadline, however often something trickles in."""

    def __init__(self, raw: socket.socket) -> None:
        self._raw = raw
        self.deadline: Deadline | None = None

    def sendall(self, data: Any) -> None:
        self.wait_at_most()
        self._raw.sendall(data)

    def makefile(self, mode: str, *arguments: Any) -> io.BufferedReader:
        del mode, arguments
        return io.BufferedReader(_ReplyBody(self._raw, self.wait_at_most))

    def wait_at_most(self) -> None:
        if self.deadline is not None:
            self._raw.settimeout(seconds_left(self.deadline))

    def close(self) -> None:
        """Nothing yet: http.client closes before the answer has been read."""

    def shut(self) -> None:
        self._raw.close()


class PunctualConnection(HTTPConnection):
    """A connection over such a socket, which is open already."""

    def __init__(self, host: str, port: int, punctual: PunctualSocket) -> None:
        super().__init__(host, port)
        self.punctual = punctual
        self.sock: Any = punctual


class _ReplyBody(io.RawIOBase):
    def __init__(self, raw: socket.socket, before: Callable[[], None]) -> None:
        self._raw = raw
        self._before = before

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._before()
        return self._raw.recv_into(buffer)


def seconds_left(deadline: Deadline) -> float:
    """Raises TimeoutError if there are none."""
    left = deadline.left_s
    if not left:
        raise TimeoutError
    return left


def _told(error: Exception) -> str:
    """What went wrong with a connection, for those who have to find out why."""
    if isinstance(error, TimeoutError):
        return TOO_LATE
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
