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
    UInt,
    Value,
    is_list,
    type_name,
)

_HEX = "only integers, byte buffers, and strings can be formatted as hex"
_DEFAULT_PRECISION = 6
_MOST_DIGITS = 100
_LONGEST_PRECISION = 10
_DIGITS = frozenset("0123456789")
_TAKES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "d": ((int, UInt), "decimal clause can only be used on integers"),
    "f": ((float,), "fixed-point clause can only be used on doubles"),
    "e": ((float,), "scientific clause can only be used on doubles"),
    "b": ((int, UInt, bool), "only integers and bools can be formatted as binary"),
    "o": ((int, UInt), "octal clause can only be used on integers"),
    "x": ((int, UInt, str, bytes), _HEX),
    "X": ((int, UInt, str, bytes), _HEX),
}
"""What may stand for a verb, and what is said if something else does."""

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
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        verb, precision, at = _verb(text, at + 1)
        made.append(_shown(verb, precision, values[used]))
        used += 1
    if used < len(values):
        counts = f"(expected {used}, got {len(values)})"
        raise EvaluationError(f"too many arguments supplied to string.format {counts}")
    return "".join(made)


def _verb(text: str, at: int) -> tuple[str, int, int]:
    precision = _DEFAULT_PRECISION
    if text[at : at + 1] == ".":
        end = at + 1
        while text[end : end + 1] in _DIGITS:
            end += 1
        precision = _precision(text[at + 1 : end])
        at = end
    if at >= len(text):
        raise EvaluationError("unexpected end of string")
    return text[at], precision, at + 1


def _precision(digits: str) -> int:
    if digits and len(digits) < _LONGEST_PRECISION and int(digits) <= _MOST_DIGITS:
        return int(digits)
    problem = f"exceeds {_MOST_DIGITS}" if digits else "has no digits"
    raise EvaluationError(
        f"could not parse formatting clause: error while parsing precision: it {problem}"
    )


def _shown(verb: str, precision: int, value: Value) -> str:
    if verb == "s":
        return shown(value)
    if verb not in _TAKES:
        raise EvaluationError(
            f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
        )
    types, rule = _TAKES[verb]
    if type(value) not in types:
        raise EvaluationError(f"error during formatting: {rule}, was given {type_name(value)}")
    if isinstance(value, float):
        return f"{value:.{precision}{verb}}" if math.isfinite(value) else _double(value)
    if isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    return f"{int(value):{verb}}"


def _double(value: float) -> str:
    """As the specification prints it: what is infinite in a word."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float_text(value)


def shown(value: Value) -> str:
    """A value as people read it."""
    if isinstance(value, str):
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return _double(value)
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
