"""Parts of objects as values of expressions, as their schema says what they are.

Views, made when an expression looks at them. What a schema does not mention cannot be asked for,
yet counts when objects are compared. Lists that have keys, or are sets, are compared whatever their
order, and added as they are merged. A value that its schema does not allow is an
`EvaluationError` for who asks for it: objects that were stored under an older schema may have some.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubescene.cel.errors import EvaluationError, no_such_overload
from kubescene.cel.schema_types import as_resource, escaped
from kubescene.cel.standard import to_timestamp
from kubescene.cel.values import (
    Compared,
    Duration,
    Merged,
    Timestamp,
    Value,
    equal,
    is_list,
)
from kubescene.durations import parse_signed_duration
from kubescene.types import JsonObject, JsonValue

_PARTS_OF_DURATION = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_UNITS = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), 1_000_000_000),
    (("m", "min"), 60 * 1_000_000_000),
    (("h", "hr", "hour"), 3_600 * 1_000_000_000),
    (("d", "day"), 86_400 * 1_000_000_000),
    (("w", "wk", "week"), 7 * 86_400 * 1_000_000_000),
)
_UNESCAPED = re.compile(r"__([^_]+)__")
_ESCAPES = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


def value_of(part: JsonValue, schema: JsonObject) -> Value:
    """The value that a part of an object is to an expression."""
    if part is None:
        if schema.get("nullable"):
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")
    if schema.get("x-kubernetes-int-or-string"):
        return _int_or_string(part)
    kind = schema.get("type")
    read = _READ.get(kind or "")
    if read is not None:
        return read(part, schema)
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return Untyped(part)
    raise EvaluationError(f"invalid type, got {kind}")


def _int_or_string(part: JsonValue) -> Value:
    if type(part) in (str, int):
        return part
    wanted = "expected XIntOrString value to be either a string or integer"
    raise EvaluationError(f"invalid data, {wanted}")


def _object(part: JsonValue, schema: JsonObject) -> Value:
    if type(part) is not dict:
        raise EvaluationError(
            "invalid data, expected a map for the provided schema with type=object"
        )
    if schema.get("x-kubernetes-embedded-resource"):
        return FieldsView(part, as_resource(schema))
    others = schema.get("additionalProperties")
    if not schema.get("properties") and isinstance(others, dict):
        return MapView(part, others)
    return FieldsView(part, schema)


def _list(part: JsonValue, schema: JsonObject) -> Value:
    if type(part) is not list:
        raise EvaluationError(
            "invalid data, expected an array for the provided schema with type=array"
        )
    items, kind = schema.get("items") or {}, schema.get("x-kubernetes-list-type")
    if kind == "map":
        return KeyedView(part, items, tuple(schema.get("x-kubernetes-list-map-keys") or ()))
    return SetView(part, items) if kind == "set" else ListView(part, items)


def _text(part: JsonValue, schema: JsonObject) -> Value:
    if not isinstance(part, str):
        raise EvaluationError(f"invalid data, expected string, got {type(part).__name__}")
    form = schema.get("format")
    if form == "duration":
        return _duration(part)
    if form == "date":
        return _moment(f"{part}T00:00:00Z", part, form)
    if form == "date-time":
        return _moment(part, part, form) if part else Timestamp(0)
    if form == "byte":
        try:
            return base64.b64decode(part, validate=True)
        except (ValueError, binascii.Error) as error:
            raise EvaluationError(f"Invalid byte formatted string {part}: {error}") from None
    return part


def _moment(text: str, told: str, form: str) -> Value:
    try:
        return to_timestamp(text)
    except EvaluationError as error:
        raise EvaluationError(f"Invalid {form} formatted string {told}: {error}") from None


def _duration(text: str) -> Duration:
    """As Go reads it, or with the words that schemas take: ``3 weeks``."""
    try:
        return Duration(parse_signed_duration(text))
    except ValueError as error:
        total, known = 0, False
        for number, unit in _PARTS_OF_DURATION.findall(text):
            for names, nanos in _UNITS:
                if unit.lower() in names or unit.lower().startswith(names[-1]):
                    total, known = total + int(number) * nanos, True
        if known:
            return Duration(total)
        raise EvaluationError(f"Invalid duration {text}: {error}") from None


def _number(part: JsonValue, schema: JsonObject) -> Value:
    if type(part) in (int, float):
        return float(part)
    raise EvaluationError(f"invalid data, expected float, got {type(part).__name__}")


def _integer(part: JsonValue, schema: JsonObject) -> Value:
    if type(part) is int:
        return part
    raise EvaluationError(f"invalid data, expected int, got {type(part).__name__}")


def _boolean(part: JsonValue, schema: JsonObject) -> Value:
    if type(part) is bool:
        return part
    raise EvaluationError(f"invalid data, expected bool, got {type(part).__name__}")


_READ = {
    "object": _object,
    "array": _list,
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
}


class Untyped(Compared):
    """What is kept without a type; it can be compared as a part of something else."""

    __slots__ = ("part",)

    def __init__(self, part: JsonValue) -> None:
        self.part = part

    def equals(self, other: Value) -> bool:
        return isinstance(other, Untyped) and equal(self.part, other.part)


class MapView(Mapping[str, Value]):
    """A map: keys are its own."""

    __slots__ = ("_schema", "part")

    def __init__(self, part: JsonObject, schema: JsonObject) -> None:
        self.part = part
        self._schema = schema

    def __getitem__(self, key: str) -> Value:
        return value_of(self.part[key], self._schema)

    def __contains__(self, key: object) -> bool:
        return key in self.part and _is_read(self.part[key], self._schema)

    def __iter__(self) -> Iterator[str]:
        return iter(self.part)

    def __len__(self) -> int:
        return len(self.part)


class FieldsView(Mapping[str, Value], Compared):
    """An object: fields are those of its schema, by their escaped names. Null is none."""

    __slots__ = ("_properties", "part")

    def __init__(self, part: JsonObject, schema: JsonObject) -> None:
        self.part = part
        self._properties: JsonObject = schema.get("properties") or {}

    def __getitem__(self, key: str) -> Value:
        name = unescaped(key)
        return value_of(self.part[name], self._properties[name])

    def __contains__(self, key: object) -> bool:
        name = unescaped(key) if isinstance(key, str) else ""
        part, schema = self.part.get(name), self._properties.get(name)
        return part is not None and schema is not None and _is_read(part, schema)

    def __iter__(self) -> Iterator[str]:
        names = (each for each in self.part if each in self._properties)
        return iter([escaped(each) or each for each in names])

    def __len__(self) -> int:
        return len(self.part)

    def equals(self, other: Value) -> bool:
        """As there: unknown members are compared if both sides have them."""
        if not isinstance(other, FieldsView):
            raise no_such_overload()
        if len(self.part) != len(other.part):
            return False
        for name, one in self.part.items():
            schema, another = self._properties.get(name), other.part.get(name)
            if schema is None:
                if name in other.part and not equal(one, another):
                    return False
            elif not _are_equal(one, another, schema):
                return False
        return True


def _is_read(part: JsonValue, schema: JsonObject) -> bool:
    """That there is a value; one that is not allowed fails whoever asks."""
    value_of(part, schema)
    return True


def _are_equal(one: JsonValue, other: JsonValue, schema: JsonObject) -> bool:
    if one is None or other is None:
        return one is other
    return equal(value_of(one, schema), value_of(other, schema))


class ListView(Sequence[Value]):
    """A list."""

    __slots__ = ("_schema", "part")

    def __init__(self, part: list[Any], schema: JsonObject) -> None:
        self.part = part
        self._schema = schema

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [value_of(each, self._schema) for each in self.part[position]]
        return value_of(self.part[position], self._schema)

    def __len__(self) -> int:
        return len(self.part)


class SetView(ListView, Merged):
    """A list in which nothing is twice, whose order does not count."""

    __slots__ = ()

    def equals(self, other: Value) -> bool:
        if not is_list(other):
            raise no_such_overload()
        return len(self) == len(other) and all(map(self._has, other))

    def _has(self, wanted: Value) -> bool:
        return any(equal(each, wanted) for each in self)

    def plus(self, other: Sequence[Value]) -> Value:
        """Both together, each element once."""
        mine = _parts_of(self)
        return SetView(mine + [each for each in _parts_of(other) if each not in mine], self._schema)


class KeyedView(ListView, Merged):
    """A list of objects that are told apart by some of their fields."""

    __slots__ = ("_keys",)

    def __init__(self, part: list[Any], schema: JsonObject, keys: tuple[str, ...]) -> None:
        super().__init__(part, schema)
        self._keys = keys

    def _by_key(self, parts: Sequence[Any]) -> dict[tuple[Any, ...], JsonObject]:
        return {tuple(map(part.get, self._keys)): part for part in parts if type(part) is dict}

    def equals(self, other: Value) -> bool:
        if not is_list(other):
            raise no_such_overload()
        mine, others = self._by_key(self.part), self._by_key(_parts_of(other))
        if len(self) != len(other) or mine.keys() != others.keys():
            return False
        return all(
            equal(value_of(each, self._schema), value_of(others[key], self._schema))
            for key, each in mine.items()
        )

    def plus(self, other: Sequence[Value]) -> Value:
        """The other side's objects take the place of those with their keys; new ones follow."""
        merged = {**self._by_key(self.part), **self._by_key(_parts_of(other))}
        return KeyedView([*merged.values()], self._schema, self._keys)


def _parts_of(value: Value) -> list[Any]:
    if isinstance(value, ListView):
        return [*value.part]
    return [
        each.part if isinstance(each, FieldsView | MapView | ListView) else each for each in value
    ]


def unescaped(name: str) -> str:
    """The field that an escaped name stands for."""
    return _UNESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), name)
