"""Where two JSON values differ: paths, and what stands there."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.api.text.encoding import encode
from kubescene.types import JsonObject

ABSENT = "absent"
LONGEST = 80


class JsonDifference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """``what`` differs: it is ``a`` in run A and ``b`` in run B, in words.

    ``plugin`` is the scheduler plugin that it concerns, if it is one.
    """

    what: str
    a: str
    b: str
    plugin: str = ""


class _Absent:
    """Stands for what is not there, which is not the same as null."""


_ABSENT = _Absent()


def differences(a: Any, b: Any, path: str) -> Iterator[JsonDifference]:
    """The smallest parts that differ, in order of A; lists are compared place by place."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in dict.fromkeys((*a, *b)):
            yield from differences(a.get(name, _ABSENT), b.get(name, _ABSENT), f"{path}.{name}")
    elif isinstance(a, list) and isinstance(b, list):
        for place in range(max(len(a), len(b))):
            yield from differences(_at(a, place), _at(b, place), f"{path}[{place}]")
    elif a is not b and a != b:
        yield JsonDifference(path.removeprefix("."), shown(a), shown(b))


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else _ABSENT


def shown(value: Any) -> str:
    """A value as people write it, not too long."""
    if isinstance(value, _Absent):
        return ABSENT
    text = value if isinstance(value, str) and value else encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def members(value: Any) -> JsonObject:
    """An object, or what stands for one that is not there."""
    return value if isinstance(value, dict) else {}
