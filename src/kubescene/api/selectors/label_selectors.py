"""Label selectors: compiled once, matched often.

A selector is written in two ways: as a text in a URL (``app=web,tier in (a,b),!canary``) and as
an object in a spec (``matchLabels`` and ``matchExpressions``). Both become a `LabelSelector`,
a tuple of requirements that must hold together, sorted by key.

The text is cut into words first; a small recursive descent then reads one requirement after
the other. ``in`` and ``notin`` are operators only where an operator is due, so they may also be
keys and values.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any

from kubescene.api.selectors.requirements import (
    Operator,
    Requirement,
    SelectorError,
    aggregate,
    key_refusals,
    refusals,
)
from kubescene.errors import BadRequestError

_WORD = re.compile(r"[ \t\r\n]*+(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)|[ \t\r\n]++")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END = ""
_MEMBERS = ("matchLabels", "matchExpressions")
_MOST_SHOWN = 40

_BINARY = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_BINARY_NAMES = ", ".join(operator.value for operator in _BINARY.values())

_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all hold. Without any it matches everything, or nothing at all."""

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False
    _exact: tuple[tuple[str, str], ...] = field(init=False, compare=False, repr=False)
    _others: tuple[Requirement, ...] = field(init=False, compare=False, repr=False)

    def __deepcopy__(self, memo: object) -> "LabelSelector":
        return self  # nothing of it ever changes

    def __post_init__(self) -> None:
        exact = ((each.key, each.exact()) for each in self.requirements)
        others = (each for each in self.requirements if each.exact() is None)
        object.__setattr__(self, "_exact", tuple(pair for pair in exact if pair[1] is not None))
        object.__setattr__(self, "_others", tuple(others))

    @property
    def is_everything(self) -> bool:
        return not (self.requirements or self.is_nothing)

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.is_nothing:
            return False
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        return all(each.matches(labels) for each in self._others)

    def exact(self, key: str) -> str | None:
        """The only value that label ``key`` may have, so that an index can be asked for it."""
        return next((value for at, value in self._exact if at == key), None)

    def adding(self, *requirements: Requirement) -> "LabelSelector":
        """This selector, narrowed further. What matches nothing stays so."""
        return self if self.is_nothing else _selector((*self.requirements, *requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(is_nothing=True)


def from_labels(labels: Mapping[str, str] | None) -> LabelSelector:
    """Match objects that carry all these labels, as ``nodeSelector`` does; none match everything.

    Keys and values are not checked: they stand in objects that passed validation.
    """
    pairs = (labels or {}).items()
    return _selector(Requirement(key, Operator.EQUALS, (value,)) for key, value in pairs)


def from_label_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Compile ``matchLabels`` and ``matchExpressions``.

    An absent selector matches nothing, an empty one everything. Raises `SelectorError`, in the
    words of the API server, for one that makes no sense.
    """
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    requirements = [_checked(key, Operator.EQUALS, (value,)) for key, value in labels.items()]
    requirements += map(_from_expression, selector.get("matchExpressions") or ())
    return _selector(requirements)


def read_label_selector(given: Any) -> LabelSelector:
    """The same from where nobody has looked at types; raises `SelectorError`, which says where."""
    if not isinstance(given, Mapping):
        raise SelectorError("must be an object with matchLabels or matchExpressions")
    for name in given:
        if name not in _MEMBERS:
            raise SelectorError(f"unknown field {name}; known are: {', '.join(_MEMBERS)}")
    labels = _member(given, "matchLabels", Mapping, "an object of labels")
    for key, value in labels.items():
        _check_text(f"matchLabels.{key}", value)
    for number, each in enumerate(_member(given, "matchExpressions", list, "a list")):
        where = f"matchExpressions[{number}]"
        if not isinstance(each, Mapping):
            raise SelectorError(f"{where}: must be an object with key, operator and values")
        for name in ("key", "operator"):
            _check_text(f"{where}.{name}", each.get(name, ""))
        for value in _member(each, "values", list, "a list of texts", f"{where}."):
            _check_text(f"{where}.values", value)
    return from_label_selector(given)


def _member(given: Mapping[str, Any], name: str, kind: type, words: str, where: str = "") -> Any:
    value = given.get(name)
    if value is None:
        return kind() if kind is list else {}
    if not isinstance(value, kind):
        raise SelectorError(f"{where}{name}: must be {words}")
    return value


def _check_text(where: str, value: Any) -> None:
    if not isinstance(value, str):
        raise SelectorError(f"{where}: must be text, in quotes if need be, not {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


@lru_cache(maxsize=4096)
def parse_labels(text: str) -> LabelSelector:
    """Compile the ``labelSelector`` of a URL; raise `BadRequestError` if it cannot be read."""
    try:
        return _selector(_SelectorReader(text).read())
    except SelectorError as error:
        raise BadRequestError(str(error)) from None


def _selector(requirements: Iterable[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=attrgetter("key"))))


def _from_expression(expression: Mapping[str, Any]) -> Requirement:
    written = expression.get("operator", "")
    operator = _OBJECT_OPERATORS.get(written)
    if operator is None:
        raise SelectorError(f'"{written}" is not a valid label selector operator')
    return _checked(expression.get("key", ""), operator, tuple(expression.get("values") or ()))


def _checked(key: str, operator: Operator, values: tuple[str, ...]) -> Requirement:
    if faults := refusals(key, operator, values or None):
        raise SelectorError(aggregate(faults))
    return Requirement(key, operator, values)


class _SelectorReader:
    """Reads the words of a selector text from left to right."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = [*filter(None, _WORD.findall(text)), _END]
        self._position = 0

    def read(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while self._next != _END:
            if not (self._at_name or self._next == "!"):
                raise _unexpected(self._next, "!, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            self._separator()
        return requirements

    @property
    def _next(self) -> str:
        return self._words[self._position]

    @property
    def _at_name(self) -> bool:
        return self._next != _END and self._next not in _SYMBOLS

    def _take(self) -> str:
        self._position += 1
        return self._words[self._position - 1]

    def _separator(self) -> None:
        if self._next == _END:
            return
        if (word := self._take()) != ",":
            raise _unexpected(word, "',' or 'end of string'")
        if not (self._at_name or self._next == "!"):
            raise _unexpected(self._next, "identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._next == "!"
        if absent:
            self._take()
        key = self._key()
        if absent:
            return _checked(key, Operator.DOES_NOT_EXIST, ())
        if self._next in (_END, ","):
            return _checked(key, Operator.EXISTS, ())
        operator = self._operator()
        listed = operator in (Operator.IN, Operator.NOT_IN)
        return _checked(key, operator, self._values() if listed else (self._value(),))

    def _key(self) -> str:
        key = self._name()
        # Upstream has no path for a key that it meets while reading, and says so.
        if faults := key_refusals(key, path="<nil>"):
            raise SelectorError(aggregate(faults))
        return key

    def _name(self) -> str:
        if not self._at_name:
            raise _unexpected(self._next, "identifier")
        return self._take()

    def _operator(self) -> Operator:
        operator = _BINARY.get(word := self._take())
        if operator is None:
            raise _unexpected(word, _BINARY_NAMES)
        return operator

    def _value(self) -> str:
        return "" if self._next in (_END, ",") else self._name()

    def _values(self) -> tuple[str, ...]:
        if (word := self._take()) != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        if not (self._at_name or self._next in (",", ")")):
            raise _unexpected(self._next, "',', ')' or identifier")
        values = {self._listed_value()}
        while self._next == ",":
            self._take()
            values.add(self._listed_value())
        if self._next != ")":
            raise _unexpected(self._next, "',' or ')'")
        self._take()
        return tuple(sorted(values))

    def _listed_value(self) -> str:
        if self._next in (",", ")"):
            return ""
        if not self._at_name:
            raise _unexpected(self._next, "',', or identifier")
        return self._take()


def _unexpected(word: str, expected: str) -> SelectorError:
    return SelectorError(f"found '{word}', expected: {expected}")
