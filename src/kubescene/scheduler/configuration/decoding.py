"""Strict decoding: from JSON to the same JSON with known fields of the right types only.

A value of the wrong type ends it at once; fields that nobody knows are collected. Null is the same
as nothing, and stays out.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

from kubescene.durations import go_duration, parse_duration
from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.schema import Fields, ListOf, MapOf, Scalar, Shape
from kubescene.types import JsonObject


class Decoder:
    """Decodes one value; ``unknown`` are the paths of fields that were left out.

    ``below`` is where the value itself stands, for the errors.
    """

    def __init__(self, below: str = "") -> None:
        self.unknown: list[str] = []
        self._below = below

    def decode(self, shape: Shape, value: Any, path: str = "") -> Any:
        if isinstance(shape, Fields):
            return self._fields(shape, value, path)
        if isinstance(shape, ListOf):
            return self._list(shape, value, path)
        if isinstance(shape, MapOf):
            given = self._object(value, path)
            return {key: self.decode(shape.value, each, f"{path}.{key}") for key, each in given}
        return self._scalar(shape, value, path)

    def _fields(self, shape: Fields, value: Any, path: str) -> JsonObject:
        decoded: JsonObject = {}
        for key, member in self._object(value, path):
            place = f"{path}.{key}" if path else key
            if key not in shape.members:
                self.unknown.append(place)
            elif member is not None:
                decoded[key] = self.decode(shape.members[key], member, place)
        return decoded

    def _object(self, value: Any, path: str) -> list[tuple[str, Any]]:
        if not isinstance(value, Mapping):
            raise self._wrong(path, value, "an object")
        return list(value.items())

    def _list(self, shape: ListOf, value: Any, path: str) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise self._wrong(path, value, "a list")
        places = [f"{path}[{index}]" for index in range(len(value))]
        # In a list, null is the zero value of what it holds.
        return [
            self.decode(shape.item, _zero(shape.item) if each is None else each, place)
            for each, place in zip(value, places, strict=True)
        ]

    def _scalar(self, shape: Scalar, value: Any, path: str) -> Any:
        try:
            return _READERS[shape](value)
        except (TypeError, ValueError):
            raise self._wrong(path, value, shape.value) from None

    def _wrong(self, path: str, value: Any, wanted: str) -> SchedulerConfigurationError:
        place = ".".join(filter(None, (self._below, path)))
        where = f"{place}: " if place else "the configuration "
        return SchedulerConfigurationError(f"{where}must be {wanted}, not {_shown(value)}", place)


def _zero(shape: Shape) -> Any:
    if isinstance(shape, Fields | MapOf):
        return {}
    return [] if isinstance(shape, ListOf) else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(value: Any, bits: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError
    return value


def _float(value: Any) -> float | int:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError
    return value


def _duration(value: Any) -> str:
    """In Go's own form; unlike other durations of ours it may be negative."""
    text = _text(value)
    length = parse_duration(text.removeprefix("-"))
    return go_duration(-length if text.startswith("-") else length)


def _bytes(value: Any) -> str:
    try:
        b64decode(_text(value), validate=True)
    except binascii.Error:
        raise ValueError from None
    return _text(value)


def _int32(value: Any) -> int:
    return _whole(value, 32)


def _int64(value: Any) -> int:
    return _whole(value, 64)


def _anything(value: Any) -> Any:
    return value


_READERS: Mapping[Scalar, Callable[[Any], Any]] = {
    Scalar.TEXT: _text,
    Scalar.BOOLEAN: _boolean,
    Scalar.INT32: _int32,
    Scalar.INT64: _int64,
    Scalar.FLOAT: _float,
    Scalar.DURATION: _duration,
    Scalar.BYTES: _bytes,
    Scalar.ANYTHING: _anything,
}
