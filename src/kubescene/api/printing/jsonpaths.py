"""The JSONPath that printer columns of custom resources are written in.

A path is a chain of steps; each takes the values found so far to those below them. Understood
are ``.name``, ``.na\\.me``, ``['name']``, ``[0]``, ``[-1]``, ``[0:2]``, ``[*]``, ``.*`` and filters
such as ``[?(@.type=="Ready")]``; ``..`` and unions are not. What is absent yields nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from operator import eq, ge, gt, le, lt, ne
from typing import TypeAlias

from kubescene.types import JsonValue

Step: TypeAlias = Callable[[JsonValue], Iterable[JsonValue]]

_TOKEN = re.compile(
    r"""
      \.(?P<name>(?:[^.\[\]\\*'"\s{}@$]|\\.)+)
    | \.?(?P<all>\*|\[\*\])
    | \[\s*(?P<index>-?\d+)\s*\]
    | \[\s*(?P<start>-?\d*)\s*:\s*(?P<end>-?\d*)\s*\]
    | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
    | \[\?\(\s*(?P<filter>(?:[^()"']|"[^"]*"|'[^']*')+?)\s*\)\]
    """,
    re.VERBOSE,
)
_FILTER = re.compile(r"@(?P<path>[^=!<>\s]*)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+))?")
_LITERALS: dict[str, JsonValue] = {"true": True, "false": False, "null": None}
_OPERATORS = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class JsonPathError(ValueError):
    """A path that cannot be understood."""


class JsonPath:
    """A compiled path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = tuple(_compile(text))

    def find(self, value: JsonValue) -> list[JsonValue]:
        """All values that the path leads to, in order."""
        found = [value]
        for step in self._steps:
            found = [below for each in found for below in step(each)]
        return found


def compile_path(text: str) -> JsonPath:
    """Compile ``.spec.x`` or ``{.spec.x}``; raise `JsonPathError` if that is no path."""
    return JsonPath(text.strip().removeprefix("{").removesuffix("}").removeprefix("$"))


def _compile(text: str) -> Iterator[Step]:
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise JsonPathError(f"unrecognized JSONPath {text!r} at {text[position:]!r}")
        yield _step(token)
        position = token.end()


def _step(token: re.Match[str]) -> Step:
    for quoted in ("name", "single", "double"):
        if token[quoted] is not None:
            return _field(re.sub(r"\\(.)", r"\1", token[quoted]))
    if token["all"]:
        return _everything
    if token["index"] is not None:
        return _item(int(token["index"]))
    if token["filter"] is not None:
        return _filtered(token["filter"])
    return _slice(token["start"], token["end"])


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _item(index: int) -> Step:
    def step(value: JsonValue) -> list[JsonValue]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            return [value[index]]
        return []

    return step


def _slice(start: str, end: str) -> Step:
    bounds = slice(int(start) if start else None, int(end) if end else None)
    return lambda value: value[bounds] if isinstance(value, list) else []


def _everything(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else []


def _filtered(text: str) -> Step:
    parts = _FILTER.fullmatch(text)
    if parts is None:
        raise JsonPathError(f"unrecognized filter {text!r}: write @.field or @.field==value")
    path = compile_path(parts["path"])
    if parts["operator"] is None:
        return lambda value: [item for item in _everything(value) if path.find(item)]
    compare, literal = _OPERATORS[parts["operator"]], _literal(parts["value"].strip())

    def step(value: JsonValue) -> list[JsonValue]:
        return [item for item in _everything(value) if _holds(compare, path.find(item), literal)]

    return step


def _holds(compare: Callable[..., bool], found: list[JsonValue], literal: JsonValue) -> bool:
    try:
        return bool(found) and compare(found[0], literal)
    except TypeError:
        return False


def _literal(text: str) -> JsonValue:
    if text[0] in "\"'" and text[-1] == text[0] and len(text) > 1:
        return text[1:-1]
    if text in _LITERALS:
        return _LITERALS[text]
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        raise JsonPathError(f"unrecognized value {text!r} in a filter") from None
