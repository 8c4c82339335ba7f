"""Paths to fields of a schema: ``.spec.rules`` and ``.spec['a name']``."""

import re

from kubescene.types import JsonObject

_STEPS = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLAIN = {"'": "'", "\\": "\\"}


def valid_field_path(
    text: str, schema: JsonObject, *, may_index: bool = True
) -> tuple[str, JsonObject] | None:
    """The field that a path names, in the form of messages, with its schema; None if there is none.

    `ValueError` says what is wrong with the path.
    """
    if not text:
        return None
    steps, at, made = _STEPS.findall(text), 0, ""
    while at < len(steps):
        if steps[at] == "[" and may_index:
            name, at = _quoted(steps, at)
        elif steps[at] == "[":
            raise ValueError("array notation is not allowed")
        elif steps[at] == ".":
            if at + 1 == len(steps):
                raise ValueError("unexpected end of JSON path")
            name, at = steps[at + 1], at + 2
        else:
            raise ValueError(f"expected [ or . but got: {steps[at]}")
        others = schema.get("additionalProperties")
        if properties := schema.get("properties"):
            made += f".{name}" if made else name
            if name not in properties:
                raise ValueError("does not refer to a valid field")
            schema = properties[name]
        elif isinstance(others, dict):
            made, schema = f"{made}[{name}]", others
        else:
            raise ValueError("does not refer to a valid field")
    return made, schema


def _quoted(steps: list[str], at: int) -> tuple[str, int]:
    """The name in a ``['name']`` that begins there, and where it ends."""
    if at + 1 == len(steps):
        raise ValueError("unexpected end of JSON path")
    name = steps[at + 1]
    if len(name) < 2 or name[0] != "'" or name[-1] != "'":
        raise ValueError(f"expected single quoted string but got {name}")
    if at + 2 == len(steps):
        raise ValueError("unexpected end of JSON path")
    if steps[at + 2] != "]":
        raise ValueError(f"expected ] but got {steps[at + 2]}")
    return _ESCAPE.sub(_unescaped, name[1:-1]), at + 3


def _unescaped(found: re.Match[str]) -> str:
    known = {**_ESCAPED, **_PLAIN}
    if found[1] not in known:
        raise ValueError(f"invalid string literal: invalid escape char {found[0]}")
    return known[found[1]]
