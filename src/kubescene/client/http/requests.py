"""Requests and their answers, one after the other over one kept connection.

What may be asked again is asked again: reads whose connection broke, and whatever the server put
off with 429 and a time. A write whose answer is lost is not repeated: nobody knows whether it was
carried out, and the error says so.
"""

import selectors
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

import orjson

from kubescene.client.http.endpoints import Endpoint
from kubescene.client.http.statuses import error_of_reply
from kubescene.client.http.wire import MalformedResponseError, ResponseParser, WireRequest
from kubescene.clock import SECOND, Clock, Deadline
from kubescene.errors import TooManyRequestsError, UnreachableError
from kubescene.types import JsonObject

MAX_REPLY = 256 * 1024 * 1024
READ_SIZE = 256 * 1024
READ_ATTEMPTS = 3
PUT_OFF_ATTEMPTS = 10
LONGEST_PUT_OFF_S = 60

JSON = "application/json"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def object(self) -> JsonObject:
        """The JSON object in the body."""
        try:
            value = orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise MalformedResponseError(f"its body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise MalformedResponseError("its body is not a JSON object")
        return value


def target(path: str, **query: str) -> str:
    """A path with those parameters that have a value."""
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


class Requests:
    """The requests of one client."""

    def __init__(
        self, endpoint: Endpoint, clock: Clock, *, timeout_s: float, max_reply: int = MAX_REPLY
    ) -> None:
        self.endpoint = endpoint
        self.clock = clock
        self.timeout_s = timeout_s
        self._max_reply = max_reply
        self._kept: socket.socket | None = None
        self._idle = selectors.DefaultSelector()

    def read(self, path: str, read: Callable[[Reply], T], **query: str) -> T:
        """What a GET answers, as ``read`` understands it."""
        return self.ask(WireRequest("GET", target(path, **query)), read)

    def ask(self, request: WireRequest, read: Callable[[Reply], T]) -> T:
        """What is answered, as ``read`` understands it; raises `ApiError`."""
        reply = self.send(request)
        try:
            return read(reply)
        except MalformedResponseError as error:
            raise self.failure(request, f"the answer makes no sense: {error}") from error

    def send(self, request: WireRequest) -> Reply:
        """The answer; raises the `ApiError` it stands for if it is a refusal."""
        for _ in range(PUT_OFF_ATTEMPTS):
            reply = self._exchange(request)
            if reply.status < 300:
                return reply
            error = error_of_reply(reply.status, reply.body)
            wait_s = put_off_s(reply)
            if wait_s is None or error.causes:
                # One with causes (a disruption budget) is about this request: asking again is up
                # to whoever made it.
                break
            self.clock.wait_until(self.clock.now() + wait_s * SECOND)
        raise error

    def close(self) -> None:
        if self._kept is not None:
            self._idle.unregister(self._kept)
            self._kept.close()
            self._kept = None

    def encode(self, request: WireRequest) -> bytes:
        """The request as this server is asked it."""
        return WireRequest(
            request.method,
            self.endpoint.prefix + request.target,
            request.body,
            request.content_type,
        ).encode(self.endpoint.headers())

    def failure(self, request: WireRequest, why: object) -> UnreachableError:
        """The error for a request that has no usable answer."""
        doubt = "" if request.is_safe else "; whether it was carried out is not known"
        path = request.target.partition("?")[0]
        said = (isinstance(why, OSError) and why.strerror) or str(why) or type(why).__name__
        return UnreachableError(
            f"{request.method} {self.endpoint.url}{path}: {said}{doubt}. "
            "Check that the API server runs and that the address is right."
        )

    def _exchange(self, request: WireRequest) -> Reply:
        attempts = READ_ATTEMPTS if request.is_safe else 1
        while True:
            attempts -= 1
            try:
                return self._once(request)
            except (OSError, MalformedResponseError) as error:
                self.close()
                if not attempts or isinstance(error, TimeoutError):
                    raise self.failure(request, error) from error

    def _once(self, request: WireRequest) -> Reply:
        deadline = Deadline(self.clock, int(self.timeout_s * SECOND))
        connection = self._connection(deadline)
        connection.settimeout(max(deadline.left_s, 0.001))
        connection.sendall(self.encode(request))
        parser, body = ResponseParser(), bytearray()
        while not parser.is_complete:
            if deadline.is_over:
                raise TimeoutError(f"no complete answer within {self.timeout_s:g} s")
            connection.settimeout(max(deadline.left_s, 0.001))
            data = connection.recv(READ_SIZE)
            if data:
                parser.feed(data, body)
            else:
                parser.end()
            if len(body) > self._max_reply:
                raise MalformedResponseError(f"it is longer than {self._max_reply} bytes")
        if not parser.keeps_alive:
            self.close()
        return Reply(parser.status, parser.headers, bytes(body))

    def _connection(self, deadline: Deadline) -> socket.socket:
        """The kept connection, unless something came unasked: its end, or what nobody expects."""
        if self._kept is not None and self._idle.select(0):
            self.close()
        if self._kept is None:
            self._kept = self.endpoint.connect(max(deadline.left_s, 0.001))
            self._idle.register(self._kept, selectors.EVENT_READ)
        return self._kept


def put_off_s(reply: Reply) -> int | None:
    """After how long the server wants to be asked again; None if it does not."""
    text = reply.headers.get("retry-after", "")
    if reply.status != TooManyRequestsError.code or not text.isdecimal():
        return None
    return int(text) if int(text) <= LONGEST_PUT_OFF_S else None
