"""What Kubernetes adds: strings, lists, sets, regular expressions, optional values, formats.

Texts may be held against formats by name: ``format.dns1123Label().validate(text)``.
"""

from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import pairwise

from kubescene.api.quantity import Quantity
from kubescene.api.schemas import formats, patterns
from kubescene.api.schemas.urls import parse_url
from kubescene.api.validation import names
from kubescene.cel.errors import CostExceededError, EvaluationError, no_such_overload
from kubescene.cel.formatting import formatted, quoted
from kubescene.cel.functions import Library
from kubescene.cel.operators import MIN_TIME, add, compare, sorted_by
from kubescene.cel.types import BOOL, DYN, FORMAT, INT, STRING, list_of, optional_of
from kubescene.cel.values import (
    NONE,
    Duration,
    NamedFormat,
    Optional,
    Timestamp,
    Value,
    equal,
    is_list,
)

FORMATS = Library()

Check = Callable[[str], tuple[str, ...]]


def _prefix(rule: names.NameRule, text: str) -> tuple[str, ...]:
    """What a name may begin with: it may end with a dash."""
    return rule(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _of_schema(name: str, complaint: str, text: str) -> tuple[str, ...]:
    return () if formats.satisfies(name, text) else (complaint,)


def _uri(text: str) -> tuple[str, ...]:
    """One complaint for whatever is wrong, where Go has several."""
    return () if parse_url(text) else (f"parse {quoted(text)}: invalid URI for request",)


_CHECKS: Mapping[str, tuple[int, Check]] = {
    "dns1123Label": (30, names.dns_label),
    "dns1123Subdomain": (60, names.dns_subdomain),
    "dns1035Label": (30, names.dns_1035_label),
    "qualifiedName": (60, names.label_key),
    "dns1123LabelPrefix": (30, partial(_prefix, names.dns_label)),
    "dns1123SubdomainPrefix": (60, partial(_prefix, names.dns_subdomain)),
    "dns1035LabelPrefix": (30, partial(_prefix, names.dns_1035_label)),
    "labelValue": (40, names.label_value),
    "uri": (1103, _uri),
    "uuid": (72, partial(_of_schema, "uuid", "does not match the UUID format")),
    "byte": (84, partial(_of_schema, "byte", "invalid base64")),
    "date": (72, partial(_of_schema, "date", "invalid date")),
    "datetime": (72, partial(_of_schema, "datetime", "invalid datetime")),
}
"""The length of the pattern that Kubernetes reckons with, and the complaints about a text."""


@FORMATS.function("format.named", optional_of(FORMAT), (STRING,))
def named(name: Value) -> Optional:
    return Optional((_made(name),)) if name in _CHECKS else NONE


def _made(name: str) -> NamedFormat:
    return NamedFormat(name, _CHECKS[name][0])


for _name in _CHECKS:
    FORMATS.function(f"format.{_name}", FORMAT, ())(partial(_made, _name))


@FORMATS.method("validate", optional_of(list_of(STRING)), (FORMAT, STRING))
def validate(held: Value, text: Value) -> Optional:
    """What is wrong with a text, or none."""
    if not isinstance(held, NamedFormat) or not isinstance(text, str):
        raise no_such_overload()
    complaints = _CHECKS[held.name][1](text)
    return Optional(([*complaints],)) if complaints else NONE


EXTENSIONS = Library()

LIST = list_of()
TEXTS = list_of(STRING)
OPTIONAL = optional_of()
LONGEST_RANGE = 1_000_000
"""Longer lists are not made: nothing could be done with them within the limit of work."""


# -- strings -----------------------------------------------------------------------------------


@EXTENSIONS.method("charAt", STRING, (STRING, INT))
def char_at(text: Value, at: Value) -> str:
    position = _number(at)
    if not 0 <= position <= len(_text(text)):
        raise EvaluationError(f"index out of range: {position}")
    return _text(text)[position : position + 1]


@EXTENSIONS.method("indexOf", INT, (STRING, STRING), (STRING, STRING, INT), (LIST, DYN))
def index_of(value: Value, part: Value, start: Value = 0) -> int:
    if is_list(value):
        return next((at for at, each in enumerate(value) if equal(each, part)), -1)
    text, begin = _text(value), _number(start)
    if begin < 0:
        raise EvaluationError(f"index out of range: {begin}")
    return text.find(_text(part), begin)


@EXTENSIONS.method("lastIndexOf", INT, (STRING, STRING), (STRING, STRING, INT), (LIST, DYN))
def last_index_of(value: Value, part: Value, start: Value = None) -> int:
    if is_list(value):
        found = [at for at, each in enumerate(value) if equal(each, part)]
        return found[-1] if found else -1
    text = _text(value)
    if start is None:
        return text.rfind(_text(part))
    begin = _number(start)
    if begin < 0:
        raise EvaluationError(f"index out of range: {begin}")
    if begin >= len(text) and part:
        return -1
    return text.rfind(_text(part), 0, begin + len(part))


@EXTENSIONS.method("lowerAscii", STRING, (STRING,))
def lower_ascii(text: Value) -> str:
    return "".join(each.lower() if each.isascii() else each for each in _text(text))


@EXTENSIONS.method("upperAscii", STRING, (STRING,))
def upper_ascii(text: Value) -> str:
    return "".join(each.upper() if each.isascii() else each for each in _text(text))


@EXTENSIONS.method("replace", STRING, (STRING, STRING, STRING), (STRING, STRING, STRING, INT))
def replace(text: Value, old: Value, new: Value, count: Value = -1) -> str:
    return _text(text).replace(_text(old), _text(new), max(_number(count), -1))


@EXTENSIONS.method("split", list_of(STRING), (STRING, STRING), (STRING, STRING, INT))
def split(text: Value, separator: Value, limit: Value = -1) -> list[str]:
    most = _number(limit)
    if most == 0:
        return []
    if not _text(separator):
        parts = [*_text(text)]
        return parts if not 0 < most < len(parts) else [*parts[: most - 1], text[most - 1 :]]
    return _text(text).split(separator, most - 1 if most > 0 else -1)


@EXTENSIONS.method("substring", STRING, (STRING, INT), (STRING, INT, INT))
def substring(text: Value, start: Value, end: Value = None) -> str:
    first, last = _number(start), len(_text(text)) if end is None else _number(end)
    if not 0 <= first <= len(text):
        raise EvaluationError(f"index out of range: {first}")
    if not 0 <= last <= len(text):
        raise EvaluationError(f"index out of range: {last}")
    if first > last:
        raise EvaluationError(f"invalid substring range. start: {first}, end: {last}")
    return _text(text)[first:last]


@EXTENSIONS.method("trim", STRING, (STRING,))
def trim(text: Value) -> str:
    return _text(text).strip()


@EXTENSIONS.method("join", STRING, (TEXTS,), (TEXTS, STRING))
def join(parts: Value, separator: Value = "") -> str:
    return _text(separator).join(_text(each) for each in _list(parts))


@EXTENSIONS.method("format", STRING, (STRING, LIST))
def format_text(text: Value, values: Value) -> str:
    return formatted(_text(text), _list(values))


@EXTENSIONS.function("strings.quote", STRING, (STRING,))
def quote(text: Value) -> str:
    return quoted(_text(text))


# -- regular expressions -----------------------------------------------------------------------


@EXTENSIONS.method("find", STRING, (STRING, STRING))
def find(text: Value, pattern: Value) -> str:
    found = find_all(text, pattern, 1)
    return found[0] if found else ""


@EXTENSIONS.method("findAll", list_of(STRING), (STRING, STRING), (STRING, STRING, INT))
def find_all(text: Value, pattern: Value, limit: Value = -1) -> list[str]:
    if problem := patterns.problem(_text(pattern)):
        raise EvaluationError(problem)
    return patterns.occurrences(pattern, _text(text), _number(limit))


# -- lists and sets ----------------------------------------------------------------------------


@EXTENSIONS.method("isSorted", BOOL, (LIST,))
def is_sorted(values: Value) -> bool:
    listed = _list(values)
    return all(compare(left, right) <= 0 for left, right in pairwise(listed))


@EXTENSIONS.method("sum", DYN, (LIST,))
def total(values: Value) -> Value:
    return reduce(add, _list(values)) if _list(values) else 0


@EXTENSIONS.method("min", DYN, (LIST,))
def smallest(values: Value) -> Value:
    return _extreme(values, _smaller, "min")


@EXTENSIONS.method("max", DYN, (LIST,))
def largest(values: Value) -> Value:
    return _extreme(values, _larger, "max")


@EXTENSIONS.method("reverse", LIST, (LIST,))
def reverse(values: Value) -> list[Value]:
    return _list(values)[::-1]


@EXTENSIONS.method("sort", LIST, (LIST,))
def sort(values: Value) -> list[Value]:
    return sorted_by(_list(values), values)


@EXTENSIONS.method("distinct", LIST, (LIST,))
def distinct(values: Value) -> list[Value]:
    found: list[Value] = []
    for each in _list(values):
        if not _holds(found, each):
            found.append(each)
    return found


@EXTENSIONS.method("flatten", LIST, (LIST,), (LIST, INT))
def flatten(values: Value, depth: Value = 1) -> list[Value]:
    if _number(depth) < 0:
        raise EvaluationError("level must be non-negative")
    found = _list(values)
    for _ in range(depth):
        if not any(map(is_list, found)):
            break
        found = [part for each in found for part in (each if is_list(each) else (each,))]
    return found


@EXTENSIONS.method("slice", LIST, (LIST, INT, INT))
def slice_of(values: Value, start: Value, end: Value) -> list[Value]:
    listed, first, last = _list(values), _number(start), _number(end)
    problem = ""
    if first < 0 or last < 0:
        problem = "negative indexes not supported"
    elif first > last:
        problem = "start index must be less than or equal to end index"
    elif last > len(listed):
        problem = f"list is length {len(listed)}"
    if problem:
        raise EvaluationError(f"cannot slice({first}, {last}), {problem}")
    return listed[first:last]


@EXTENSIONS.method("first", OPTIONAL, (LIST,))
def first_of(values: Value) -> Optional:
    return Optional(tuple(_list(values)[:1]))


@EXTENSIONS.method("last", OPTIONAL, (LIST,))
def last_of(values: Value) -> Optional:
    return Optional(tuple(_list(values)[-1:]))


@EXTENSIONS.function("lists.range", list_of(INT), (INT,))
def range_of(count: Value) -> list[int]:
    if _number(count) > LONGEST_RANGE:
        raise CostExceededError
    return [*range(_number(count))]


@EXTENSIONS.method("includes", BOOL, (DYN, DYN))
def includes(value: Value, part: Value) -> bool:
    """Whether an attribute of a device is this, or a list that has it."""
    return _holds(value if is_list(value) else [value], part)


@EXTENSIONS.function("sets.contains", BOOL, (LIST, LIST))
def sets_contains(values: Value, parts: Value) -> bool:
    return all(_holds(values, each) for each in _list(parts))


@EXTENSIONS.function("sets.equivalent", BOOL, (LIST, LIST))
def sets_equivalent(left: Value, right: Value) -> bool:
    return bool(sets_contains(left, right) and sets_contains(right, left))


@EXTENSIONS.function("sets.intersects", BOOL, (LIST, LIST))
def sets_intersects(left: Value, right: Value) -> bool:
    return any(_holds(left, each) for each in _list(right))


def _extreme(values: Value, better: Callable[[Value, Value], Value], name: str) -> Value:
    if not _list(values):
        raise EvaluationError(f"{name} called on empty list")
    return reduce(better, values)


def _smaller(left: Value, right: Value) -> Value:
    return right if compare(right, left) < 0 else left


def _larger(left: Value, right: Value) -> Value:
    return right if compare(right, left) > 0 else left


def _holds(values: Value, value: Value) -> bool:
    return any(equal(value, each) for each in _list(values))


# -- optional values ---------------------------------------------------------------------------


@EXTENSIONS.function("optional.of", optional_of(), (DYN,))
def optional(value: Value) -> Optional:
    return Optional((value,))


@EXTENSIONS.function("optional.none", optional_of(), ())
def none() -> Optional:
    return NONE


@EXTENSIONS.function("optional.ofNonZeroValue", optional_of(), (DYN,))
def of_non_zero(value: Value) -> Optional:
    return NONE if _is_zero(value) else Optional((value,))


def _is_zero(value: Value) -> bool:
    if isinstance(value, Duration | Timestamp):
        return value.nanos == (0 if isinstance(value, Duration) else MIN_TIME)
    return not value and not isinstance(value, Quantity)


@EXTENSIONS.method("hasValue", BOOL, (OPTIONAL,))
def has_value(value: Value) -> bool:
    return bool(_optional(value).values)


@EXTENSIONS.method("value", DYN, (OPTIONAL,))
def value_of(value: Value) -> Value:
    return _optional(value).value


@EXTENSIONS.method("orValue", DYN, (OPTIONAL, DYN))
def or_value(value: Value, otherwise: Value) -> Value:
    held = _optional(value)
    return held.value if held.values else otherwise


@EXTENSIONS.method("or", optional_of(), (OPTIONAL, OPTIONAL))
def or_else(value: Value, otherwise: Value) -> Optional:
    held = _optional(value)
    return held if held.values else _optional(otherwise)


@EXTENSIONS.function("optional.unwrap", LIST, (LIST,))
@EXTENSIONS.method("unwrapOpt", LIST, (LIST,))
def unwrap(values: Value) -> list[Value]:
    """What those of a list have that have anything."""
    return [held for each in _list(values) for held in _optional(each).values]


def _optional(value: Value) -> Optional:
    if isinstance(value, Optional):
        return value
    raise no_such_overload()


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise no_such_overload()


def _number(value: Value) -> int:
    if type(value) is int:
        return value
    raise no_such_overload()


def _list(value: Value) -> list[Value]:
    if is_list(value):
        return value  # type: ignore[no-any-return]
    raise no_such_overload()
