"""Protobuf request bodies of the built-in kinds, decoded to plain JSON objects.

kubectl (from 1.32) and most client-go programs send typed writes as protobuf and do not fall
back to JSON. A body is four magic bytes and a ``runtime.Unknown``: apiVersion, kind, and the
bytes of the object itself. The result is what kube-apiserver would print for it as JSON:
inlined messages flattened, zero values dropped where Go's encoder drops them.

Each message type becomes, once, a dict from wire tag (field number and wire type together) to
a ``Field``, so that one look-up both finds the field and proves its wire type. The types come
from ``data/protobuf.json.z``, whose layout `tools/protobuf/build.py` describes; it is read on
the first protobuf request. Names ``buffer, at, end`` always mean the bytes of one message
inside the whole body, and ``depth`` the levels of nesting still allowed. Nothing is copied
until a value is taken out.
"""

import binascii
import math
import struct
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache, cached_property
from importlib.resources import files
from typing import Final, NamedTuple, TypeAlias

import orjson

from kubescene.errors import BadRequestError
from kubescene.types import JsonObject, JsonValue

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
MAX_DEPTH: Final = 100

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types. The two group types are obsolete and unknown to Kubernetes: refused."""

KEEP, OMIT_EMPTY, APPEND, PACKED, MAP, MESSAGE, INLINE = range(7)
"""What becomes of a value once it is read."""

SHAPES: Final = {"": KEEP, "?": OMIT_EMPTY, "[]": APPEND, "{}": MAP, "^": INLINE}

EPOCH: Final = datetime(1970, 1, 1)
ZERO_TIME: Final = datetime(1, 1, 1)
"""Go's zero time, which has no JSON form but null."""

Reader: TypeAlias = Callable[[bytes, int, int, int], JsonValue]
"""``(buffer, at, end, depth)`` to a value."""

Rows: TypeAlias = list[tuple[int, str, int | str, str]]


class MalformedError(Exception):
    """The bytes are not what the message type says. Never leaves this module."""


def is_protobuf(content_type: str) -> bool:
    """Whether a Content-Type names the Kubernetes protobuf encoding; parameters are ignored."""
    return content_type.partition(";")[0].strip().lower() == CONTENT_TYPE


def decode(body: bytes, *, max_depth: int = MAX_DEPTH) -> JsonObject:
    """The object in a protobuf body, with ``apiVersion`` and ``kind`` first.

    Raises `BadRequestError` for anything that is not a well-formed message of a built-in kind,
    or that nests deeper than ``max_depth`` messages. The size of ``body`` is the caller's to
    bound; work and memory are linear in it.
    """
    try:
        return read_envelope(body, max_depth)
    except MalformedError as error:
        reason = str(error)
    except IndexError:
        reason = "unexpected end of message"
    except UnicodeDecodeError:
        reason = "a string is not valid UTF-8"
    except orjson.JSONDecodeError as error:
        reason = f"embedded JSON is invalid: {error}"
    raise BadRequestError(f"unable to decode the protobuf body: {reason}")


def read_envelope(body: bytes, depth: int) -> JsonObject:
    """Unwrap ``runtime.Unknown``; it may occur again where an object embeds another."""
    if not body.startswith(MAGIC):
        raise MalformedError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    envelope: JsonObject = {}
    read_fields(body, len(MAGIC), len(body), ENVELOPE, envelope, depth)
    type_meta = envelope.get("typeMeta", {})
    api_version, kind = type_meta.get("apiVersion", ""), type_meta.get("kind", "")
    out: JsonObject = {"apiVersion": api_version, "kind": kind}
    raw = envelope.get("raw", b"")
    read_fields(raw, 0, len(raw), find_kind(api_version, kind), out, depth - 1)
    return out


def find_kind(api_version: str, kind: str) -> "Message":
    """The message of a kind. Options such as DeleteOptions exist in every group version."""
    if not kind or not api_version:
        missing = "apiVersion" if kind else "Kind"
        raise MalformedError(f"Object '{missing}' is missing in the envelope")
    types = load_types()
    index = types.kinds.get(api_version, {}).get(kind, types.kinds["*"].get(kind))
    if index is None:
        raise MalformedError(f'no kind "{kind}" is registered for version "{api_version}"')
    return types.messages[index]


# --- message types


class WireField(NamedTuple):
    """Where a value goes and how it is read: a varint by ``convert``, bytes by ``read``."""

    store: int
    name: str
    read: Reader
    convert: Callable[[int], JsonValue] = bool
    message: "Message | None" = None


class Message:
    """One message type: rows of the table, compiled to fields when first met."""

    def __init__(self, adapter: str, rows: Rows) -> None:
        self.adapter = adapter
        self.rows = rows

    @cached_property
    def fields(self) -> dict[int, WireField]:
        """By wire tag."""
        return dict(pair for row in self.rows for pair in compile_row(*row))

    @cached_property
    def read(self) -> Reader:
        """Reads the message as a value of its own: list item, map value or adapted type."""
        return adapt(self, ADAPTERS[self.adapter]) if self.adapter else self.read_object

    def read_object(self, buffer: bytes, at: int, end: int, depth: int) -> JsonObject:
        out: JsonObject = {}
        read_fields(buffer, at, end, self, out, depth)
        return out


class Types(NamedTuple):
    """The whole table; kinds by apiVersion name an index into the messages."""

    kinds: dict[str, dict[str, int]]
    messages: list[Message]


@cache
def load_types() -> Types:
    packed = files("kubescene.apiserver.kubernetes").joinpath("data/protobuf.json.z").read_bytes()
    table = orjson.loads(zlib.decompress(packed))
    return Types(table["kinds"], [Message(*message) for message in table["messages"]])


def compile_row(number: int, name: str, kind: int | str, shape: str) -> list[tuple[int, WireField]]:
    """The wire tags under which a field may arrive, each with its field."""
    store = SHAPES[shape]
    if isinstance(kind, int):
        return [(number << 3 | LENGTH, message_field(store, name, load_types().messages[kind]))]
    read = READERS.get(kind, read_raw)
    if store == MAP:
        return [(number << 3 | LENGTH, WireField(MAP, name, map_entry(read)))]
    if kind not in CONVERTERS:
        return [
            (number << 3 | (FIXED64 if kind == "double" else LENGTH), WireField(store, name, read))
        ]
    field = WireField(store, name, read, CONVERTERS[kind])
    tags = [(number << 3 | VARINT, field)]
    if store == APPEND:  # numbers may come one by one or packed
        tags.append((number << 3 | LENGTH, field._replace(store=PACKED)))
    return tags


def message_field(store: int, name: str, message: Message) -> WireField:
    if store == MAP:
        return WireField(MAP, name, map_entry(message.read))
    if store == KEEP and not message.adapter:
        store = MESSAGE
    return WireField(store, name, message.read, message=message)


# --- the wire


def read_fields(
    buffer: bytes, at: int, end: int, message: Message, out: JsonObject, depth: int
) -> None:
    """Read one message into ``out``. A field that comes twice is merged or replaced."""
    if depth <= 0:
        raise MalformedError("messages are nested too deeply")
    fields = message.fields
    while at < end:
        tag = buffer[at]
        at += 1
        if tag > 127:
            tag, at = read_varint(buffer, at - 1)
        field = fields.get(tag)
        if field is None:
            at = skip_field(buffer, at, tag, message)
            continue
        if tag & 7 != LENGTH:
            at = read_number_field(buffer, at, tag, field, out)
            continue
        stop = at + 1 + buffer[at]
        at += 1
        if stop - at > 127:
            stop, at = bound(buffer, at - 1, end, tag)
        if stop > end:
            raise MalformedError("unexpected end of message")
        if field.read is read_string and stop > at and field.store < APPEND:
            out[field.name] = buffer[at:stop].decode()  # most fields: worth the short cut
        else:
            read_bytes_field(buffer, at, stop, field, out, depth - 1)
        at = stop
    if at != end:
        raise MalformedError("unexpected end of message")


def read_number_field(buffer: bytes, at: int, tag: int, field: WireField, out: JsonObject) -> int:
    """Read a field that is a varint or of fixed size; returns where it ended."""
    if tag & 7 == VARINT:
        number, at = read_varint(buffer, at)
        put(out, field.store, field.name, field.convert(number))
        return at
    stop, at = bound(buffer, at, len(buffer), tag)
    put(out, field.store, field.name, field.read(buffer, at, stop, 0))
    return stop


def read_bytes_field(
    buffer: bytes, at: int, end: int, field: WireField, out: JsonObject, depth: int
) -> None:
    store, name, read, convert, message = field
    if store in (MESSAGE, INLINE):
        assert message is not None
        target = out if store == INLINE else out.setdefault(name, {})
        read_fields(buffer, at, end, message, target, depth)
    elif store == MAP:
        key, value = read(buffer, at, end, depth)
        out.setdefault(name, {})[key] = value
    elif store == PACKED:
        read_packed(buffer, at, end, out.setdefault(name, []), convert)
    else:
        put(out, store, name, read(buffer, at, end, depth))


def put(out: JsonObject, store: int, name: str, value: JsonValue) -> None:
    """Set, append or leave out, as Go's JSON encoder would."""
    if store == APPEND:
        out.setdefault(name, []).append(value)
    elif value or (store == KEEP and value is not None):
        out[name] = value
    else:
        out.pop(name, None)


def read_packed(
    buffer: bytes, at: int, end: int, out: list[JsonValue], convert: Callable[[int], JsonValue]
) -> None:
    while at < end:
        number, at = read_varint(buffer, at)
        out.append(convert(number))
    if at != end:
        raise MalformedError("unexpected end of message")


def read_varint(buffer: bytes, at: int) -> tuple[int, int]:
    """An unsigned 64-bit number, and where it ended. Bits beyond the 64th are cut off."""
    byte = buffer[at]
    if byte < 128:
        return byte, at + 1
    number = byte & 127
    for shift in range(7, 70, 7):
        at += 1
        byte = buffer[at]
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at + 1
    raise MalformedError("integer overflow")


def bound(buffer: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Where the bytes of a field that is no varint stop and start."""
    wire = tag & 7
    if wire == LENGTH:
        length, at = read_varint(buffer, at)
    elif wire in FIXED_SIZES:
        length = FIXED_SIZES[wire]
    else:
        raise MalformedError(f"illegal wireType {wire}")
    if at + length > end:
        raise MalformedError("unexpected end of message")
    return at + length, at


def skip_field(buffer: bytes, at: int, tag: int, message: Message | None) -> int:
    """Pass over a field that is newer than our table; one we know has the wrong wire type."""
    number, wire = tag >> 3, tag & 7
    if number == 0:
        raise MalformedError(f"illegal tag 0 (wire type {wire})")
    for row in message.rows if message else ():
        if row[0] == number:
            raise MalformedError(f"wrong wireType = {wire} for field {row[1] or number}")
    if wire == VARINT:
        return read_varint(buffer, at)[1]
    return bound(buffer, at, len(buffer), tag)[0]


# --- values


def read_string(buffer: bytes, at: int, end: int, _depth: int) -> str:
    return buffer[at:end].decode()


def read_raw(buffer: bytes, at: int, end: int, _depth: int) -> bytes:
    return buffer[at:end]


def read_base64(buffer: bytes, at: int, end: int, _depth: int) -> str:
    return binascii.b2a_base64(buffer[at:end], newline=False).decode()


def read_double(buffer: bytes, at: int, _end: int, _depth: int) -> float | int:
    """Go prints whole numbers without a fraction."""
    number: float = DOUBLE.unpack_from(buffer, at)[0]
    if not math.isfinite(number):
        raise MalformedError(f"unsupported value: {number}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def map_entry(read: Reader) -> Reader:
    """Reads an entry with a string key to ``(key, value)``; what is absent is zero."""

    def read_entry(buffer: bytes, at: int, end: int, depth: int) -> tuple[str, JsonValue]:
        key, value = "", None
        while at < end:
            tag, at = read_varint(buffer, at)
            if tag not in (MAP_KEY, MAP_VALUE):
                at = skip_field(buffer, at, tag, None)
                continue
            stop, at = bound(buffer, at, end, tag)
            if tag == MAP_KEY:
                key = read_string(buffer, at, stop, depth)
            else:
                value = (read(buffer, at, stop, depth),)
            at = stop
        if at != end:
            raise MalformedError("unexpected end of message")
        return key, value[0] if value else read(b"", 0, 0, depth)

    return read_entry


def to_int32(number: int) -> int:
    number &= 0xFFFF_FFFF
    return number - (1 << 32) if number >> 31 else number


def to_int64(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


MAP_KEY, MAP_VALUE = 1 << 3 | LENGTH, 2 << 3 | LENGTH
DOUBLE: Final = struct.Struct("<d")
FIXED_SIZES: Final = {FIXED64: 8, FIXED32: 4}
CONVERTERS: Final[dict[str, Callable[[int], JsonValue]]] = {
    "bool": bool,
    "int32": to_int32,
    "int64": to_int64,
}
READERS: Final[dict[str, Reader]] = {
    "string": read_string,
    "raw": read_raw,
    "bytes": read_base64,
    "double": read_double,
}


# --- types that write themselves as JSON

Adapter: TypeAlias = Callable[[JsonObject, int], JsonValue]
"""From the message's own fields, and the depth left, to the JSON form; None leaves it out."""


def adapt(message: Message, adapter: Adapter) -> Reader:
    def read(buffer: bytes, at: int, end: int, depth: int) -> JsonValue:
        fields: JsonObject = {}
        read_fields(buffer, at, end, message, fields, depth)
        return adapter(fields, depth)

    return read


def to_quantity(fields: JsonObject, _depth: int) -> str:
    quantity: str = fields.get("string", "0")
    return quantity


def to_int_or_string(fields: JsonObject, _depth: int) -> int | str:
    kind = fields.get("type", 0)
    if kind not in (0, 1):
        raise MalformedError(f"impossible IntOrString.Type {kind}")
    value: int | str = fields.get("strval", "") if kind else fields.get("intval", 0)
    return value


def to_time(fields: JsonObject, _depth: int) -> str | None:
    """Whole seconds only: Kubernetes ignores the nanoseconds of a Time on the wire."""
    moment = to_datetime(fields, microseconds=0)
    return None if moment == ZERO_TIME else moment.isoformat() + "Z"


def to_micro_time(fields: JsonObject, _depth: int) -> str | None:
    moment = to_datetime(fields, microseconds=int(fields.get("nanos", 0) / 1000))
    return None if moment == ZERO_TIME else moment.isoformat(timespec="microseconds") + "Z"


def to_datetime(fields: JsonObject, *, microseconds: int) -> datetime:
    if not fields:
        return ZERO_TIME
    try:
        return EPOCH + timedelta(seconds=fields.get("seconds", 0), microseconds=microseconds)
    except OverflowError:
        raise MalformedError("a time lies outside of the years 1 to 9999") from None


def to_embedded(fields: JsonObject, depth: int) -> JsonValue:
    """JSON as it stands, or another object in its own envelope."""
    raw = fields.get("raw")
    if not raw:
        return None
    return read_envelope(raw, depth) if raw.startswith(MAGIC) else orjson.loads(raw)


def to_items(fields: JsonObject, _depth: int) -> list[JsonValue]:
    items: list[JsonValue] = fields.get("items", [])
    return items


def to_schema_or_list(fields: JsonObject, _depth: int) -> JsonValue:
    return fields.get("items") or fields.get("schema")


def to_schema_or_bool(fields: JsonObject, _depth: int) -> JsonValue:
    return fields.get("schema", fields.get("allows", False))


ADAPTERS: Final[dict[str, Adapter]] = {
    "quantity": to_quantity,
    "int-or-string": to_int_or_string,
    "time": to_time,
    "micro-time": to_micro_time,
    "json": to_embedded,
    "items": to_items,
    "schema-or-list": to_schema_or_list,
    "schema-or-bool": to_schema_or_bool,
}

TYPE_META: Final = Message("", [(1, "apiVersion", "string", ""), (2, "kind", "string", "")])
ENVELOPE: Final = Message("", [(2, "raw", "raw", "")])
ENVELOPE.fields[1 << 3 | LENGTH] = message_field(KEEP, "typeMeta", TYPE_META)
