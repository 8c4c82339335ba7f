"""HTTP/1.1 as a client needs it, without a socket: bytes of a request out, bytes of a response in.

A response is fed as it arrives, in whatever pieces, so that a watch can be read without waiting;
that is what the standard library's own client cannot do. Every length is bounded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

MAX_HEAD = 64 * 1024
MAX_LINE = 1024
"""Bytes of one chunk's size or trailer, extensions included."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?", re.ASCII)
_HEX = re.compile(rb"[0-9a-fA-F]{1,15}", re.ASCII)
_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_BODILESS = (204, 304)


class MalformedResponseError(Exception):
    """What arrived is not an HTTP response, or not a whole one."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What is asked. ``target`` is the path with its query, quoted."""

    method: str
    target: str
    body: bytes = b""
    content_type: str = ""

    @property
    def is_safe(self) -> bool:
        """Whether asking twice does no harm."""
        return self.method == "GET"

    def encode(self, headers: Mapping[str, str]) -> bytes:
        """The request as it goes over the wire."""
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if self.content_type:
            lines.append(f"Content-Type: {self.content_type}")
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join((*lines, "", "")).encode("latin-1") + self.body


class _ResponsePart(Enum):
    """What comes next in a response."""

    HEAD = auto()
    SIZED = auto()
    UNTIL_CLOSE = auto()
    CHUNK_SIZE = auto()
    CHUNK = auto()
    CHUNK_END = auto()
    TRAILER = auto()
    NOTHING = auto()


class ResponseParser:
    """Reads one response."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.keeps_alive = False
        self._buffer = bytearray()
        self._part = _ResponsePart.HEAD
        self._left = 0

    @property
    def is_complete(self) -> bool:
        return self._part is _ResponsePart.NOTHING

    def feed(self, data: bytes, body: bytearray) -> None:
        """Take what has arrived, and add to ``body`` what it says; all that precedes an error."""
        self._buffer += data
        while self._buffer and self._advance(body):
            pass
        if self.is_complete and self._buffer:
            raise MalformedResponseError("more bytes follow than the response announced")

    def end(self) -> None:
        """The server closed the connection; raises if something is missing."""
        if self._part is _ResponsePart.UNTIL_CLOSE:
            self._part = _ResponsePart.NOTHING
        elif not self.is_complete:
            raise MalformedResponseError("the server closed the connection in mid-response")

    def _advance(self, body: bytearray) -> bool:
        """Read one part as far as it is there; whether it was there as a whole."""
        match self._part:
            case _ResponsePart.HEAD:
                return self._read_head()
            case _ResponsePart.SIZED:
                return self._take(body, then=_ResponsePart.NOTHING)
            case _ResponsePart.CHUNK:
                return self._take(body, then=_ResponsePart.CHUNK_END)
            case _ResponsePart.CHUNK_SIZE:
                return self._read_chunk_size()
            case _ResponsePart.CHUNK_END:
                return self._read_chunk_end()
            case _ResponsePart.TRAILER:
                return self._read_trailer()
            case _ResponsePart.UNTIL_CLOSE:
                body += self._buffer
                self._buffer.clear()
        return False

    def _take(self, body: bytearray, then: _ResponsePart) -> bool:
        taken = min(self._left, len(self._buffer))
        body += self._buffer[:taken]
        del self._buffer[:taken]
        self._left -= taken
        if self._left:
            return False
        self._part = then
        return True

    def _line(self, end: bytes, limit: int) -> bytes | None:
        at = self._buffer.find(end, 0, limit)
        if at < 0:
            if len(self._buffer) >= limit:
                raise MalformedResponseError(f"a line or head is longer than {limit} bytes")
            return None
        line = bytes(self._buffer[:at])
        del self._buffer[: at + len(end)]
        return line

    def _read_head(self) -> bool:
        head = self._line(_HEAD_END, MAX_HEAD)
        if head is None:
            return False
        status_line, *lines = head.split(_LINE_END)
        matched = _STATUS.fullmatch(status_line)
        if matched is None:
            raise MalformedResponseError(f"it begins with {bytes(status_line[:60])!r}")
        status = int(matched[2])
        if status >= 200:  # others announce another head
            self.status = status
            self.headers = _parse_headers(lines)
            self._part = self._framing(is_current=matched[1] == b"1")
        return True

    def _framing(self, *, is_current: bool) -> _ResponsePart:
        """How the end of the body is told."""
        coding = self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length", "")
        closes = "close" in self.headers.get("connection", "").lower()
        self.keeps_alive = is_current and not closes
        if self.status in _BODILESS:
            return _ResponsePart.NOTHING
        if coding == "chunked":
            return _ResponsePart.CHUNK_SIZE
        if coding:
            raise MalformedResponseError(f"its transfer coding {coding!r} is unknown")
        if not length:
            self.keeps_alive = False
            return _ResponsePart.UNTIL_CLOSE
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            raise MalformedResponseError(f"its length is {length[:60]!r}")
        self._left = int(length)
        return _ResponsePart.SIZED if self._left else _ResponsePart.NOTHING

    def _read_chunk_size(self) -> bool:
        line = self._line(_LINE_END, MAX_LINE)
        if line is None:
            return False
        size = line.partition(b";")[0].strip()
        if not _HEX.fullmatch(size):
            raise MalformedResponseError(f"a chunk has the size {size[:60]!r}")
        self._left = int(size, 16)
        self._part = _ResponsePart.CHUNK if self._left else _ResponsePart.TRAILER
        return True

    def _read_chunk_end(self) -> bool:
        if len(self._buffer) < len(_LINE_END):
            return False
        if self._buffer[:2] != _LINE_END:
            raise MalformedResponseError("a chunk is longer than it says")
        del self._buffer[:2]
        self._part = _ResponsePart.CHUNK_SIZE
        return True

    def _read_trailer(self) -> bool:
        line = self._line(_LINE_END, MAX_LINE)
        if line == b"":
            self._part = _ResponsePart.NOTHING
        return line is not None


def _parse_headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or name != name.strip() or not name:
            raise MalformedResponseError(f"a header line is {line[:60]!r}")
        key, text = name.lower(), value.strip()
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
