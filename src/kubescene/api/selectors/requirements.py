"""One requirement on labels: a key, an operator, values. The atom of every selector.

Label selectors of URLs, label selectors of objects and node selector terms differ in how they
are written; all of them come down to requirements that must hold together. `refusals` checks
one by the rules of the API server and words each fault as it does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class SelectorError(ValueError):
    """A selector that stands in an object and cannot be understood."""


class Operator(Enum):
    """How a label must relate to the values. The value is the operator's name upstream."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_ANY_OF = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_EXACTLY_ONE = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS})
_SETS = frozenset({Operator.IN, Operator.NOT_IN})
_NUMERIC = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})
_UNARY = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_AMONG = _ANY_OF | {Operator.DOES_NOT_EXIST}
# What the label of a unary operator is compared with: the value that an absent label has.
_ABSENT = (None,)
_WRITTEN = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label must be. ``number`` is the bound of ``Gt`` and ``Lt``, if it is an int64."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    number: int | None = field(init=False, compare=False, repr=False)
    _members: frozenset[str | None] = field(init=False, compare=False, repr=False)
    _wanted: bool = field(init=False, compare=False, repr=False)
    _numeric: bool = field(init=False, compare=False, repr=False)

    def __deepcopy__(self, memo: object) -> "Requirement":
        return self  # nothing of it ever changes

    def __post_init__(self) -> None:
        numeric = self.operator in _NUMERIC
        bound = int64(self.values[0]) if numeric and len(self.values) == 1 else None
        object.__setattr__(self, "number", bound)
        members = _ABSENT if self.operator in _UNARY else self.values
        object.__setattr__(self, "_members", frozenset(members))
        object.__setattr__(self, "_wanted", self.operator in _AMONG)
        object.__setattr__(self, "_numeric", numeric)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil this: a set lookup for all operators but ``Gt`` and ``Lt``."""
        value = labels.get(self.key)
        if self._numeric:
            return value is not None and self._compares(int64(value))
        return (value in self._members) is self._wanted

    def _compares(self, actual: int | None) -> bool:
        if actual is None or self.number is None:
            return False
        if self.operator is Operator.GREATER_THAN:
            return actual > self.number
        return actual < self.number

    def exact(self) -> str | None:
        """The only value this requirement allows, if there is just one."""
        return self.values[0] if self.operator in _ANY_OF and len(self.values) == 1 else None

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in _SETS:
            return f"{self.key} {self.operator.value} ({values})"
        return f"{self.key}{_WRITTEN.get(self.operator, self.operator.value)}{values}"


def int64(text: str) -> int | None:
    """The integer a text stands for by Go's rules; None if it is none or too large."""
    if not _INTEGER.fullmatch(text) or len(text) > 100:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def refusals(
    key: str, operator: Operator, given: Sequence[str] | None, *, path: str = ""
) -> tuple[str, ...]:
    """What the API server holds against this requirement, each text once; nothing if it is fine.

    ``given`` are its values: none at all (None) are told apart from an empty list. ``path`` is
    where the requirement stands, such as ``nodeSelectorTerms[0].matchExpressions[1]``.
    """
    below, values = f"{path}." if path else "", given or ()
    faults = list(key_refusals(key, path=f"{below}key"))
    if wrong_count := _count_refusal(operator, values):
        told = None if given is None else list(given)
        faults.append(_invalid(f"{below}values", told, wrong_count))
    for index, value in enumerate(values):
        if operator in _NUMERIC and int64(value) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            faults.append(_invalid(f"{below}values[{index}]", value, detail))
    for index, value in enumerate(values):
        faults.extend(_value_refusals(value, path=f"{below}values[{index}][{key}]"))
    return tuple(dict.fromkeys(faults))


def key_refusals(key: str, *, path: str) -> tuple[str, ...]:
    """What the API server holds against a label key."""
    # Imported late: the validation package itself stands on selectors.
    from kubescene.api.validation.names import label_key

    complaints = label_key(key)
    return (_invalid(path, key, "; ".join(complaints)),) if complaints else ()


def aggregate(errors: Sequence[str]) -> str:
    """Several error texts as one, in the way of the API server: ``[first, second]``."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _value_refusals(value: str, *, path: str) -> tuple[str, ...]:
    # Imported late: the validation package itself stands on selectors.
    from kubescene.api.validation.names import label_value

    complaints = label_value(value)
    return (_invalid(path, value, "; ".join(complaints)),) if complaints else ()


def _count_refusal(operator: Operator, values: Sequence[str]) -> str:
    if operator in _SETS:
        return "" if values else "for 'in', 'notin' operators, values set can't be empty"
    if operator in _EXACTLY_ONE:
        return "" if len(values) == 1 else "exact-match compatibility requires one single value"
    if operator in _NUMERIC:
        one = len(values) == 1
        return "" if one else "for 'Gt', 'Lt' operators, exactly one value is required"
    return "values set must be empty for exists and does not exist" if values else ""


def _invalid(path: str, value: str | list[str] | None, detail: str) -> str:
    # Imported late: the validation package itself stands on selectors.
    from kubescene.api.validation.field_errors import ErrorType, FieldError

    return FieldError(ErrorType.INVALID, path, value, detail).message
