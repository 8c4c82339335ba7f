"""Request bodies: JSON, YAML or protobuf to a plain object, without trusting any of it.

Size is bounded before, nesting and the number of values here: YAML aliases share, so a small text
can mean an enormous tree. Duplicate members are found by a second parse, whose price is small
against that of a write; where they are is only worked out when there are any.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from kubescene.api.yaml_text import MAX_DEPTH, parse_documents
from kubescene.apiserver import protobuf
from kubescene.errors import BadRequestError, UnsupportedMediaTypeError
from kubescene.types import JsonObject, JsonValue

MAX_VALUES = 2_000_000

JSON_TYPES = ("", "application/json")
YAML_TYPES = ("application/yaml", "application/x-yaml")


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, and the fields it gives more than once."""

    value: JsonValue
    duplicates: tuple[str, ...] = ()


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def decode_body(data: bytes, content_type: str) -> Body:
    """The object in a body of create, update or delete; 415 for other media types."""
    kind = media_type(content_type)
    if kind in JSON_TYPES:
        return decode_json(data)
    if kind in YAML_TYPES:
        return decode_yaml(data)
    if protobuf.is_protobuf(content_type):
        return Body(protobuf.decode(data))
    raise unsupported(*JSON_TYPES[1:], YAML_TYPES[0], protobuf.CONTENT_TYPE)


def unsupported(*accepted: str) -> UnsupportedMediaTypeError:
    return UnsupportedMediaTypeError(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )


def decode_json(data: bytes) -> Body:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"couldn't get version/kind; json parse error: {error}") from None
    check_bounds(value)
    return Body(value, _duplicates(data))


def decode_yaml(data: bytes) -> Body:
    try:
        documents = parse_documents(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise BadRequestError(
            f"error converting YAML to JSON: yaml: {reason}; couldn't get version/kind"
        ) from None
    if len(documents) > 1:
        raise BadRequestError("the body holds more than one YAML document")
    value, duplicates = documents[0] if documents else (None, ())
    check_bounds(value)
    return Body(_json_compatible(value), tuple(duplicate.key for duplicate in duplicates))


def check_bounds(value: JsonValue) -> None:
    """400 if the value nests too deeply or is too large once its aliases are followed."""
    level, depth, count = [value], 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise BadRequestError(f"the body nests deeper than {MAX_DEPTH} levels")
        level = [child for each in level for child in _children(each)]
        count += len(level)
        if count > MAX_VALUES:
            raise BadRequestError(f"the body holds more than {MAX_VALUES} values")


def _children(value: JsonValue) -> "Iterator[JsonValue] | tuple[()]":
    if type(value) is dict:
        return (child for child in value.values() if type(child) in (dict, list))
    if type(value) is list:
        return (child for child in value if type(child) in (dict, list))
    return ()


def _json_compatible(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {_text_key(key): _json_compatible(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_json_compatible(member) for member in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    raise BadRequestError(f"the body holds a YAML {type(value).__name__}, which JSON cannot")


def _text_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    raise BadRequestError(f"the body has the key {key!r}, which JSON cannot hold")


class _DuplicateFoundError(Exception):
    pass


def _duplicates(data: bytes) -> tuple[str, ...]:
    try:
        json.loads(data, object_pairs_hook=_unique)
    except _DuplicateFoundError:
        return tuple(_duplicate_paths(json.loads(data, object_pairs_hook=_Pairs), ""))
    except (ValueError, RecursionError):
        # orjson, which is stricter, has accepted it; what remains is Python's limit on integers.
        return ()
    return ()


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateFoundError
    return members


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in their order, duplicates among them."""


def _duplicate_paths(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, member in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _duplicate_paths(member, here)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _duplicate_paths(member, f"{path}[{index}]")
