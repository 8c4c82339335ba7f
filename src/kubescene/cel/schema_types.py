"""Structural schemas as types of expressions: what a rule may ask ``self``, and how large it is.

Kubernetes' figures: where a schema bounds nothing, the size of a request does. Parts that have no
type (``x-kubernetes-preserve-unknown-fields`` alone) cannot be asked for.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kubescene.cel.lexing import RESERVED
from kubescene.cel.sizes import Path
from kubescene.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    as_keyword,
    list_of,
    map_of,
    object_of,
)
from kubescene.types import JsonObject

REQUEST_BYTES = 3 * 1024 * 1024
"""The largest request: nothing in an object can be more than it."""
LONGEST_TEXT = REQUEST_BYTES - 2
BYTES_OF_A_CHARACTER = 4
TEXT_BYTES, OBJECT_BYTES, BOOL_BYTES = 2, 2, 4
DATE_BYTES, SHORTEST_TIME, LONGEST_TIME, SHORTEST_DURATION = 12, 21, 32, 3
TEXT: JsonObject = {"type": "string"}
METADATA: JsonObject = {"type": "object", "properties": {"name": TEXT, "generateName": TEXT}}
RESOURCE_PROPERTIES: JsonObject = {"kind": TEXT, "apiVersion": TEXT, "metadata": METADATA}
"""What rules see of every resource, whatever its schema says of it."""

_ESCAPED = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_FIELD = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", re.ASCII)
_WORDS = RESERVED | {"true", "false", "null", "in"}


@dataclass(frozen=True, slots=True)
class Declared:
    """The type of a part of an object, its most elements, and its fewest bytes in JSON."""

    type: Type
    most: int = 0
    least: int = 1
    elements: "Declared | None" = None
    keys: "Declared | None" = None
    fields: Mapping[str, "Declared"] = field(default_factory=dict)

    def size_at(self, path: Path) -> int | None:
        """How large a part can be; the path begins with a variable that is of this type."""
        at: Declared | None = self
        for step in path[1:]:
            if at is None:
                break
            if step in ("@items", "@values"):
                at = at.elements
            else:
                at = (
                    at.keys
                    if step == "@keys"
                    else at.fields.get(step) or at.fields.get(as_keyword(step))
                )
        return None if at is None else at.most

    @property
    def most_in_a_request(self) -> int:
        """How often it can be in one object."""
        return REQUEST_BYTES // (self.least + 1)


_KEY = Declared(STRING, least=TEXT_BYTES)
_SCALARS = {
    "boolean": Declared(BOOL, least=BOOL_BYTES),
    "number": Declared(DOUBLE),
    "integer": Declared(INT),
}


def escaped(name: str) -> str | None:
    """The name by which an expression selects a field; None if it cannot."""
    if name in _WORDS:
        return f"__{name}__"
    if not _FIELD.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def as_resource(schema: JsonObject) -> JsonObject:
    """The schema of an object that has a kind and metadata; one that says all of it stays."""
    known = schema.get("properties") or {}
    metadata = known.get("metadata") or {}
    names = metadata.get("properties") or {}
    says_metadata = metadata.get("type") == "object" and all(
        (names.get(name) or {}).get("type") == "string" for name in ("name", "generateName")
    )
    if says_metadata and all(
        (known.get(name) or {}).get("type") == "string" for name in ("kind", "apiVersion")
    ):
        return schema
    properties = {**(schema.get("properties") or {}), **RESOURCE_PROPERTIES}
    return {**schema, "properties": properties}


def declared(schema: JsonObject, name: str, *, is_resource: bool = False) -> Declared | None:
    """The type that a schema stands for; None if it has none.

    Objects in it are named after their place, the outermost one ``name``.
    """
    if schema.get("x-kubernetes-int-or-string"):
        most = schema.get("maxLength")
        return Declared(DYN, LONGEST_TEXT if most is None else _characters(most))
    if is_resource:
        schema = as_resource(schema)
    kind = schema.get("type")
    if kind == "array":
        return _list(schema, name)
    if kind == "object":
        others = schema.get("additionalProperties")
        return _map(schema, others, name) if isinstance(others, dict) else _object(schema, name)
    if kind == "string":
        return _text(schema)
    return _SCALARS.get(kind or "")


def below(schema: JsonObject, name: str) -> Declared | None:
    return declared(schema, name, is_resource=bool(schema.get("x-kubernetes-embedded-resource")))


def _list(schema: JsonObject, name: str) -> Declared | None:
    items = schema.get("items")
    element = below(items, f"{name}.@idx") if isinstance(items, dict) else None
    if element is None:
        return None
    most = schema.get("maxItems")
    bound = LONGEST_TEXT // (element.least + 1) if most is None else max(0, most)
    return Declared(list_of(element.type), bound, OBJECT_BYTES, element)


def _map(schema: JsonObject, others: JsonObject, name: str) -> Declared | None:
    value = below(others, f"{name}.@elem")
    if value is None:
        return None
    most = schema.get("maxProperties")
    # A key has two characters, with its quotes, a colon and a comma.
    bound = LONGEST_TEXT // (value.least + 6) if most is None else max(0, most)
    return Declared(map_of(STRING, value.type), bound, OBJECT_BYTES, value, _KEY)


def _object(schema: JsonObject, name: str) -> Declared:
    fields: dict[str, Declared] = {}
    least, required = OBJECT_BYTES, set(schema.get("required") or ())
    for each, part in (schema.get("properties") or {}).items():
        selected = escaped(each)
        found = below(part, f"{name}.{selected}")
        if found is None:
            continue
        if selected is not None:
            fields[selected] = found
        if each in required and part.get("default") is None:
            least += len(each.encode()) + found.least + 4
    made = object_of(name, {each: found.type for each, found in fields.items()})
    return Declared(made, 0, least, fields=fields)


def _text(schema: JsonObject) -> Declared:
    form, most = schema.get("format"), schema.get("maxLength")
    if form == "byte":
        return Declared(BYTES, LONGEST_TEXT if most is None else max(0, most), TEXT_BYTES)
    if form == "duration":
        return Declared(DURATION, LONGEST_TIME, SHORTEST_DURATION)
    if form == "date":
        return Declared(TIMESTAMP, DATE_BYTES, DATE_BYTES)
    if form == "date-time":
        return Declared(TIMESTAMP, LONGEST_TIME, SHORTEST_TIME)
    if most is not None:
        return Declared(STRING, _characters(most), TEXT_BYTES)
    choices = schema.get("enum")
    if choices:
        longest = max(len(each.encode()) if isinstance(each, str) else 0 for each in choices)
        return Declared(STRING, longest, TEXT_BYTES)
    return Declared(STRING, LONGEST_TEXT, TEXT_BYTES)


def _characters(most: int) -> int:
    return max(0, most) * BYTES_OF_A_CHARACTER
