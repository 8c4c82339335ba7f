"""One open watch: whole lines as they arrive, never waited for."""

import socket
import ssl
from typing import TypeAlias

from kubescene.client.http.requests import READ_SIZE, Requests
from kubescene.client.http.statuses import error_of_reply
from kubescene.client.http.wire import MalformedResponseError, ResponseParser, WireRequest

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one event. etcd keeps no object of more than a tenth of it."""
MAX_REFUSAL = 1024 * 1024
READS_PER_TURN = 16

Lines: TypeAlias = list[bytes]


class WatchConnection:
    """A connection on which a watch was asked for. When it has ended, ``error`` says why."""

    def __init__(self, requests: Requests, request: WireRequest) -> None:
        self._socket = requests.endpoint.connect(requests.timeout_s)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._socket.sendall(requests.encode(request))
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise
        self._parser = ResponseParser()
        self._rest = bytearray()
        self.has_ended = False
        self.error: Exception | None = None

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def has_more(self) -> bool:
        """Whether something has arrived that a selector cannot see."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def close(self) -> None:
        self.has_ended = True
        self._socket.close()

    def receive(self) -> Lines:
        """The whole lines that have arrived. A last one that was cut off is dropped."""
        lines: Lines = []
        try:
            for _ in range(READS_PER_TURN):
                if self.has_ended or not self._read(lines):
                    break
        except (OSError, MalformedResponseError) as error:
            self.error = error
            self.has_ended = True
        return lines

    def _read(self, lines: Lines) -> bool:
        """Read once; whether there was anything."""
        try:
            data = self._socket.recv(READ_SIZE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        if data:
            self._feed(data, lines)
        else:
            self._parser.end()
        if self._parser.is_complete:
            self._finish()
        return True

    def _feed(self, data: bytes, lines: Lines) -> None:
        body = bytearray()
        try:
            self._parser.feed(data, body)
        finally:
            self._take(bytes(body), lines)

    def _take(self, body: bytes, lines: Lines) -> None:
        first, *others = body.split(b"\n")
        self._rest += first
        if others and self.is_granted:
            lines.append(bytes(self._rest))
            lines += others[:-1]
            self._rest = bytearray(others[-1])
        limit = MAX_LINE if self.is_granted else MAX_REFUSAL
        if len(self._rest) > limit:
            raise MalformedResponseError(f"a line of the watch is longer than {limit} bytes")

    @property
    def is_granted(self) -> bool:
        """Whether the server has said that it watches."""
        return self._parser.status == 200

    def _finish(self) -> None:
        self.has_ended = True
        if not self.is_granted:
            self.error = error_of_reply(self._parser.status, bytes(self._rest))
