"""OpenAPI v2 as protobuf: the message ``openapi.v2.Document`` of gnostic, which client-go reads.

A *writer* makes of a field's number and a JSON value the bytes of that field. Messages are tables
from the keys of JSON to numbers and writers; a key that no table has is a mistake of ours and
raised. Values of any shape (extensions, enumerations) are carried as text of YAML, hence as JSON.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, TypeAlias

import orjson

from kubescene.types import JsonObject

Writer: TypeAlias = Callable[[int, Any], bytes]
Rows: TypeAlias = Mapping[str, tuple[int, Writer]]

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_MASK = (1 << 64) - 1
_EXTENSION = "x-"


def encode(document: JsonObject) -> bytes:
    """The bytes of a whole v2 document."""
    return _fields(_DOCUMENT, 16, document)


# -- values --------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _framed(number: int, content: bytes) -> bytes:
    return _tag(number, _LENGTH) + _varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _framed(number, value.encode())


def _flag(number: int, value: bool) -> bytes:
    return _tag(number, _VARINT) + (b"\1" if value else b"\0")


def _integer(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value & _MASK)


def _double(number: int, value: float) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    return _framed(number, _framed(2, orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)))


# -- writers made of writers ---------------------------------------------------------------------


def _each(write: Writer) -> Writer:
    """A repeated field."""
    return lambda number, values: b"".join(write(number, value) for value in values)


def _inside(inner: int, write: Writer) -> Writer:
    """A message of one field."""
    return lambda number, value: _framed(number, write(inner, value))


def _named(write: Writer) -> Writer:
    """An object as a repeated message of name and value."""
    return lambda number, values: b"".join(
        _framed(number, _text(1, name) + write(2, value)) for name, value in values.items()
    )


def _message(rows: Rows, extensions: int) -> Writer:
    return lambda number, value: _framed(number, _fields(rows, extensions, value))


def _fields(rows: Rows, extensions: int, value: JsonObject) -> bytes:
    """In order of their numbers, as protobuf's own encoders write them."""
    out = []
    for key, part in value.items():
        if key.startswith(_EXTENSION):
            out.append((extensions, _EXTENSIONS(extensions, {key: part})))
        else:
            number, write = rows[key]
            out.append((number, write(number, part)))
    out.sort(key=itemgetter(0))
    return b"".join(content for _, content in out)


# -- messages ------------------------------------------------------------------------------------


def _schema(number: int, value: JsonObject) -> bytes:
    return _framed(number, _fields(SCHEMA, 31, value))


def _values_of_object(number: int, value: JsonObject | bool) -> bytes:
    """``additionalProperties``."""
    content = _flag(2, value) if isinstance(value, bool) else _schema(1, value)
    return _framed(number, content)


def _parameter(number: int, value: JsonObject) -> bytes:
    field, write = _PLACES[value["in"]]
    return _framed(number, write(field, value))


def _parameter_or_reference(number: int, value: JsonObject) -> bytes:
    if "$ref" in value:
        return _framed(number, _framed(2, _text(1, value["$ref"])))
    return _framed(number, _parameter(1, value))


_EXTENSIONS = _named(_any)

SCHEMA: Rows = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _flag),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _flag),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _flag),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _each(_text)),
    "enum": (20, _each(_any)),
    "additionalProperties": (21, _values_of_object),
    "type": (22, _inside(1, _text)),
    "items": (23, _inside(1, _schema)),
    "properties": (25, _inside(1, _named(_schema))),
    "example": (30, _any),
}
"""Also all that v2 can say of a value, extensions excepted."""

_EVERY_PARAMETER: Rows = {
    "required": (1, _flag),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
}
_BODY: Rows = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _flag),
    "schema": (5, _schema),
}
_IN_QUERY: Rows = {**_EVERY_PARAMETER, "type": (6, _text), "uniqueItems": (20, _flag)}
_IN_PATH: Rows = {**_EVERY_PARAMETER, "type": (5, _text), "uniqueItems": (19, _flag)}
_PLACES: Rows = {
    "body": (1, _message(_BODY, 6)),
    "query": (2, _inside(3, _message(_IN_QUERY, 23))),
    "path": (2, _inside(4, _message(_IN_PATH, 22))),
}
_RESPONSE: Rows = {"description": (1, _text), "schema": (2, _inside(1, _schema))}
_PARAMETERS = _each(_parameter_or_reference)
_OPERATION: Rows = {
    "tags": (1, _each(_text)),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _each(_text)),
    "consumes": (7, _each(_text)),
    "parameters": (8, _PARAMETERS),
    "responses": (9, _inside(1, _named(_inside(1, _message(_RESPONSE, 5))))),
}
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_PATH_ITEM: Rows = {
    **{method: (number, _message(_OPERATION, 13)) for method, number in _METHODS.items()},
    "parameters": (9, _PARAMETERS),
}
_API_KEY: Rows = {
    "type": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "description": (4, _text),
}
_DOCUMENT: Rows = {
    "swagger": (1, _text),
    "info": (2, _message({"title": (1, _text), "version": (2, _text)}, 7)),
    "paths": (8, _inside(2, _named(_message(_PATH_ITEM, 10)))),
    "definitions": (9, _inside(1, _named(_schema))),
    "parameters": (10, _inside(1, _named(_parameter))),
    "security": (12, _each(_inside(1, _named(_inside(1, _each(_text)))))),
    "securityDefinitions": (13, _inside(1, _named(_inside(2, _message(_API_KEY, 5))))),
}
