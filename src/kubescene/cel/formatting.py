"""``"...".format([...])``, and strings as they are written in expressions."""

import math
from collections.abc import Mapping, Sequence

from kubescene.api.quantity import Quantity
from kubescene.cel.errors import EvaluationError
from kubescene.cel.standard import duration_text, float_text, timestamp_text
from kubescene.cel.values import (
    Duration,
    Timestamp,
    TypeValue,
    Value,
    is_list,
    is_number,
    type_name,
)

_DEFAULT_PRECISION = 6
_MOST_DIGITS = 100
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    return f'"{"".join(_ESCAPES.get(each, each) for each in text)}"'


def formatted(text: str, values: Sequence[Value]) -> str:
    """The text with its verbs (``%s``, ``%d``, ``%.2f``, ...) replaced by values."""
    made: list[str] = []
    at = used = 0
    while at < len(text):
        if text[at] != "%":
            made.append(text[at])
            at += 1
            continue
        if text[at + 1 : at + 2] == "%":
            made.append("%")
            at += 2
            continue
        verb, precision, at = _verb(text, at + 1)
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        made.append(_shown(verb, precision, values[used]))
        used += 1
    if used < len(values):
        raise EvaluationError(f"too many arguments supplied to format string (expected {used})")
    return "".join(made)


def _verb(text: str, at: int) -> tuple[str, int, int]:
    precision = _DEFAULT_PRECISION
    if text[at : at + 1] == ".":
        end = at + 1
        while text[end : end + 1].isdecimal():
            end += 1
        precision = min(int(text[at + 1 : end] or "0"), _MOST_DIGITS)
        at = end
    if at >= len(text):
        raise EvaluationError("unexpected end of string")
    return text[at], precision, at + 1


def _shown(verb: str, precision: int, value: Value) -> str:
    if verb == "s":
        return shown(value)
    if verb == "d" and is_number(value) and not isinstance(value, float):
        return str(int(value))
    if verb in "fe" and isinstance(value, float):
        return f"{value:.{precision}{verb}}" if math.isfinite(value) else float_text(value)
    if verb == "b" and isinstance(value, int):
        return f"{int(value):b}"
    if verb == "o" and is_number(value) and isinstance(value, int):
        return f"{int(value):o}"
    if verb in "xX":
        return _hexadecimal(verb, value)
    raise EvaluationError(
        f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
    )


def _hexadecimal(verb: str, value: Value) -> str:
    if isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    if is_number(value) and isinstance(value, int):
        return f"{int(value):{verb}}"
    raise EvaluationError("only integers, byte buffers, and strings can be formatted as hex")


def shown(value: Value) -> str:
    """A value as people read it."""
    if isinstance(value, str):
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    return _composite(value)


def _composite(value: Value) -> str:
    if is_list(value):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, Mapping):
        pairs = sorted(f"{shown(key)}: {shown(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Quantity):
        return str(value)
    raise EvaluationError(f"no formatting function for {type_name(value)}")
