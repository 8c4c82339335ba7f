"""Replies: encoded JSON with the right headers, and errors as Kubernetes ``Status`` objects.

Large ones are packed for clients that can unpack them, as kube-apiserver does; what takes less than
`SMALLEST` bytes is sent as it is: packing it would cost more than it saves.
"""

import asyncio
import gzip
from dataclasses import dataclass, replace

import orjson

from kubescene.apiserver.negotiation import JSON
from kubescene.apiserver.requests import Send
from kubescene.errors import ApiError
from kubescene.types import JsonObject

_CACHE_CONTROL = (b"cache-control", b"no-cache, private")
_JSON_TYPE = (b"content-type", b"application/json")
TEXT = "text/plain; charset=utf-8"
SMALLEST = 128 * 1024
LEVEL = 1
LAID_OUT = 2 * 1024 * 1024
"""Bytes of a reply beyond which it is not laid out for people: none reads that much, and meanwhile
nobody is answered."""
PIECE = 4 * 1024 * 1024
"""Bytes of a large reply that are handed on at once: a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Response:
    """A complete reply."""

    body: bytes
    status: int = 200
    media_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send, warnings: list[str] | None = None) -> None:
        """Write it out, with a ``Warning`` header for each thing the client should know."""
        kind = (
            _JSON_TYPE if self.media_type is JSON else (b"content-type", self.media_type.encode())
        )
        headers = [kind, (b"content-length", str(len(self.body)).encode()), *self.headers]
        if not any(name == b"cache-control" for name, _ in self.headers):
            headers.append(_CACHE_CONTROL)
        if warnings:
            headers += [(b"warning", warning_header(text)) for text in warnings]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await self._send_body(send)

    async def _send_body(self, send: Send) -> None:
        """A large body piece by piece, others in between: to copy all of it takes a while."""
        body = memoryview(self.body)
        for begin in range(0, len(body) - PIECE, PIECE):
            piece = bytes(body[begin : begin + PIECE])
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
        rest = self.body if len(body) <= PIECE else bytes(body[(len(body) - 1) // PIECE * PIECE :])
        await send({"type": "http.response.body", "body": rest})


def warning_header(text: str) -> bytes:
    """``299 - "text"``, quoted; what HTTP headers cannot hold is replaced."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("latin-1", "replace")


def json_response(document: JsonObject, status: int = 200) -> Response:
    return Response(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE), status)


def text_response(text: str, status: int = 200) -> Response:
    return Response(text.encode(), status, TEXT)


def not_found_page() -> Response:
    """What kube-apiserver says to a path that it does not know."""
    return Response(b"404 page not found\n", 404, TEXT, ((b"x-content-type-options", b"nosniff"),))


def error_response(error: ApiError) -> Response:
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if error.retry_after_s:
        headers = ((b"retry-after", str(error.retry_after_s).encode()),)
    body = orjson.dumps(error.to_status(), option=orjson.OPT_APPEND_NEWLINE)
    return Response(body, error.code, JSON, headers)


def indented(response: Response) -> Response:
    """The reply laid out for people; only JSON is, unless it is very long."""
    if len(response.body) > LAID_OUT:
        return response
    packed = any(name == b"content-encoding" for name, _ in response.headers)
    if response.media_type != JSON or packed or not response.body:
        return response
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return replace(response, body=orjson.dumps(orjson.loads(response.body), option=options))


def success_status(name: str, group: str, resource: str, uid: str = "") -> JsonObject:
    """The ``Status`` of something that was done and leaves no object to show."""
    details = {"name": name, "group": group, "kind": resource, "uid": uid}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def revalidated(response: Response, etag: str, if_none_match: str) -> Response:
    """304 if the client holds the same document already."""
    if etag and etag in if_none_match:
        return Response(b"", 304, response.media_type, response.headers)
    return response


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an ``Accept-Encoding`` header names gzip and does not refuse it."""
    for part in accept_encoding.split(","):
        coding, *parameters = (piece.strip() for piece in part.lower().split(";"))
        if coding == "gzip":
            return not any(is_zero(each) for each in parameters)
    return False


def is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip() in ("0", "0.0", "0.00", "0.000")


async def packed(response: Response, accept_encoding: str) -> Response:
    """The same large reply, packed if the client wants that."""
    if not accepts_gzip(accept_encoding):
        return response
    if any(name == b"content-encoding" for name, _ in response.headers):
        return response
    body = await asyncio.to_thread(gzip.compress, response.body, LEVEL, mtime=0)
    headers = (
        *response.headers,
        (b"content-encoding", b"gzip"),
        (b"vary", b"Accept-Encoding"),
    )
    return replace(response, body=body, headers=headers)
