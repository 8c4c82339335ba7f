"""Large JSON texts, read and put together piece by piece: other threads run in between.

Whoever reads forty megabytes at one go keeps Python's lock for a second. To find out where the
members of an object end takes a sixtieth of that, so a large text is taken apart first.
"""

from collections.abc import Iterable
from io import BytesIO
from typing import Any, TypeAlias

import msgspec
import orjson
from msgspec import Raw

PIECE = 1_000_000
"""Bytes that are read, or written, at one go: some twenty milliseconds."""
DEEPEST = 12
"""Levels that are taken apart, each of which is one more look at the whole text."""
Text: TypeAlias = bytes | Raw


def loads(text: bytes) -> Any:
    """What `orjson.loads` makes of a text: the same values, the same errors."""
    if len(text) <= PIECE:
        return orjson.loads(text)
    try:
        return _read(text, 0)
    except (msgspec.DecodeError, UnicodeError, RecursionError, orjson.JSONDecodeError):
        return orjson.loads(text)  # it says where in the whole text


def members(text: Text) -> dict[str, Raw]:
    """The members of a JSON object, each still to be read. Fails if it is none."""
    return msgspec.json.decode(text, type=dict[str, Raw])


def _read(text: Text, level: int) -> Any:
    shown = memoryview(text)
    if len(shown) <= PIECE or level == DEEPEST:
        return orjson.loads(shown)
    match bytes(shown[:PIECE]).lstrip(b" \t\r\n")[:1]:
        case b"{":
            return {name: _read(part, level + 1) for name, part in members(text).items()}
        case b"[":
            parts = msgspec.json.decode(text, type=list[Raw])
            return [_read(part, level + 1) for part in parts]
        case _:
            return orjson.loads(shown)


def joined(parts: Iterable[bytes]) -> bytes:
    """``b"".join(parts)``: long parts are written bit by bit."""
    text = BytesIO()
    for part in parts:
        add(text, part)
    return text.getvalue()  # not a copy


def add(text: BytesIO, part: bytes) -> None:
    """Write one more part."""
    if len(part) <= PIECE:
        text.write(part)
        return
    shown = memoryview(part)
    for begin in range(0, len(part), PIECE):
        text.write(shown[begin : begin + PIECE])
