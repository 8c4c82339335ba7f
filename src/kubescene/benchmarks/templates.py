"""Template files: YAML with the few actions of Go's text/template that scheduler_perf uses.

``{{.Index}}`` is the number of the object within its operation, ``{{.Count}}`` how many there are;
both can go through the arithmetic functions, as in ``{{Mod (AddInt .Index 1) 10}}``. Anything else
between braces is an error: what is not understood is not passed on.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kubescene.api.text.reading import ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.errors import WorkloadError
from kubescene.types import JsonObject

Number: TypeAlias = int | float

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_TOKEN = re.compile(r"\s*(\(|\)|\.[A-Za-z]+|[A-Za-z]+|-?\d+(?:\.\d+)?)")


def _divide_int(one: Number, other: Number) -> int:
    """As Go does: toward zero."""
    quotient = abs(int(one)) // abs(int(other))
    return quotient if (one < 0) == (other < 0) else -quotient


def _mod(one: Number, other: Number) -> int:
    """As Go does: with the sign of the dividend."""
    return int(one) - int(other) * _divide_int(one, other)


FUNCTIONS: Mapping[str, Callable[[Number, Number], Number]] = {
    "AddInt": lambda one, other: int(one) + int(other),
    "AddFloat": lambda one, other: float(one) + float(other),
    "SubtractInt": lambda one, other: int(one) - int(other),
    "SubtractFloat": lambda one, other: float(one) - float(other),
    "MultiplyInt": lambda one, other: int(one) * int(other),
    "MultiplyFloat": lambda one, other: float(one) * float(other),
    "DivideInt": _divide_int,
    "DivideFloat": lambda one, other: float(one) / float(other),
    "Mod": _mod,
}


class ObjectTemplate:
    """One template file. ``varies`` tells whether its objects differ in more than their names."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self.varies = _ACTION.search(text) is not None
        self._plain = None if self.varies else self._parsed(text)

    @classmethod
    def load(cls, path: Path) -> "ObjectTemplate":
        try:
            return cls(path.read_text(), str(path))
        except OSError as error:
            raise WorkloadError(f"the template {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise WorkloadError(f"the template {path} is not text") from error

    def fill(self, index: int = 0, count: int = 1) -> JsonObject:
        """The object of one number; the caller must not change it."""
        if self._plain is not None:
            return self._plain
        values = {".Index": index, ".Count": count}
        return self._parsed(_ACTION.sub(lambda each: self._value(each[1], values), self._text))

    def _value(self, action: str, values: Mapping[str, Number]) -> str:
        try:
            found = _evaluated(_tokens(action), values)
        except (ValueError, ZeroDivisionError) as error:
            raise WorkloadError(
                f"the template {self._source} has the action {{{{{action}}}}}: {error}"
            ) from error
        return _shown(found)

    def _parsed(self, text: str) -> JsonObject:
        try:
            documents = [each.value for each in read_yaml(text) if each.value is not None]
        except ReadingError as error:
            raise WorkloadError(
                f"the template {self._source}:{error.line} is not valid YAML: {error.problem}"
            ) from error
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise WorkloadError(f"the template {self._source} is expected to hold one object")
        return documents[0]


def _tokens(action: str) -> list[str]:
    found, at = [], 0
    while at < len(action):
        token = _TOKEN.match(action, at)
        if token is None:
            raise ValueError(f"{action[at:]!r} is not understood")
        found.append(token[1])
        at = token.end()
        at += len(action[at:]) - len(action[at:].lstrip())
    return found


def _evaluated(tokens: list[str], values: Mapping[str, Number]) -> Number:
    found = _expression(tokens, values)
    if tokens:
        raise ValueError(f"nothing is expected before {tokens[0]!r}")
    return found


def _expression(tokens: list[str], values: Mapping[str, Number]) -> Number:
    """A function with two operands, or one operand."""
    if tokens and tokens[0] in FUNCTIONS:
        function = FUNCTIONS[tokens.pop(0)]
        return function(_operand(tokens, values), _operand(tokens, values))
    return _operand(tokens, values)


def _operand(tokens: list[str], values: Mapping[str, Number]) -> Number:
    if not tokens:
        raise ValueError("an operand is missing")
    token = tokens.pop(0)
    if token == "(":
        found = _expression(tokens, values)
        if not tokens or tokens.pop(0) != ")":
            raise ValueError("a bracket is not closed")
        return found
    if token in values:
        return values[token]
    try:
        return float(token) if "." in token.lstrip("-") else int(token)
    except ValueError:
        known = ", ".join((*values, *FUNCTIONS))
        raise ValueError(f"{token!r} is not known; known are {known}") from None


def _shown(value: Any) -> str:
    """As Go prints numbers: a whole float has no fraction."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
