"""Request bodies: JSON, YAML or protobuf to a plain object, without trusting any of it.

Their size is bounded by whoever receives them, the rest by the readers. Others are answered while a
large one is read.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from kubescene.api.text.reading import Bounds, Document, ReadingError, read_json
from kubescene.api.text.yaml_text import read_yaml
from kubescene.apiserver.kubernetes import protobuf
from kubescene.apiserver.requests import Request
from kubescene.errors import BadRequestError, UnsupportedMediaTypeError
from kubescene.types import JsonValue

BOUNDS = Bounds(any_keys=True)
LARGE = 100_000
"""Bytes: about two milliseconds on the event loop."""
T = TypeVar("T")

JSON_TYPES = ("", "application/json")
YAML_TYPES = ("application/yaml", "application/x-yaml")


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, and the fields it gives more than once."""

    value: JsonValue
    duplicates: tuple[str, ...] = ()


async def aside(read: Callable[[bytes], T], data: bytes) -> T:
    """What ``read`` makes of a body: of a large one on another thread."""
    return await asyncio.to_thread(read, data) if len(data) > LARGE else read(data)


async def read_body(request: Request, limit: int, option: str = "") -> Body:
    """The body of a request, of any type that is understood."""
    data, content_type = await request.body(limit, option), request.header(b"content-type")
    return await aside(lambda data: decode_body(data, content_type), data)


async def read_command(request: Request, limit: int) -> Body:
    """The body of a command, which guards itself: its type must be one that no page sends unasked.

    415 unless it is JSON or YAML by name.
    """
    check_type(request)
    return await read_body(request, limit)


async def read_manifests(request: Request, limit: int) -> JsonValue:
    """Objects as people have them, as one List: a List, one object, or several YAML documents."""
    check_type(request)
    data = await request.body(limit)
    is_yaml = media_type(request.header(b"content-type")) in YAML_TYPES
    return await aside(manifests_in if is_yaml else lambda given: decode_json(given).value, data)


def manifests_in(data: bytes) -> JsonValue:
    if data.lstrip()[:1] in (b"{", b"["):
        with suppress(ReadingError):
            return as_list(read_json(data).value)
    try:
        values = [each.value for each in read_yaml(data, BOUNDS) if each.value is not None]
    except ReadingError as error:
        raise BadRequestError(f"the import is not valid YAML: {error}") from None
    if len(values) > 1:
        return joined(values)
    return as_list(values[0]) if values else None


def as_list(value: JsonValue) -> JsonValue:
    """One object as a List; whatever is no object stays for others to refuse."""
    is_one = isinstance(value, dict) and "kind" in value and "items" not in value
    return joined([value]) if is_one else value


def joined(values: list[JsonValue]) -> JsonValue:
    """What is in all of them; Lists among them are taken apart."""
    items: list[JsonValue] = []
    for each in values:
        inside = each.get("items") if isinstance(each, dict) else None
        items.extend(inside if isinstance(inside, list) else [each])
    return {"apiVersion": "v1", "kind": "List", "items": items}


def check_type(request: Request) -> None:
    accepted = (*JSON_TYPES[1:], *YAML_TYPES)
    if media_type(request.header(b"content-type")) not in accepted:
        raise unsupported(*accepted)


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
        document = read_json(data)
    except ReadingError as error:
        raise BadRequestError(f"couldn't get version/kind; json parse error: {error}") from None
    return _body(document)


def decode_yaml(data: bytes) -> Body:
    """A YAML body. Most are JSON in truth, as those that kubectl applies, and are read as such."""
    if data.lstrip()[:1] in (b"{", b"["):
        with suppress(ReadingError):
            return _body(read_json(data))
    try:
        documents = read_yaml(data, BOUNDS)
    except ReadingError as error:
        raise BadRequestError(
            f"error converting YAML to JSON: yaml: {error}; couldn't get version/kind"
        ) from None
    if len(documents) > 1:
        raise BadRequestError("the body holds more than one YAML document")
    return _body(documents[0]) if documents else Body(None)


def _body(document: Document) -> Body:
    return Body(document.value, tuple(duplicate.key for duplicate in document.duplicates))
