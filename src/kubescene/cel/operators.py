"""Operators: arithmetic with the limits of 64 bits, comparison, membership."""

import math
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address

from kubescene.api.quantity import Quantity
from kubescene.api.schemas.urls import Url
from kubescene.cel.errors import EvaluationError, no_such_overload
from kubescene.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    Cidr,
    Duration,
    Merged,
    NamedFormat,
    Semver,
    Timestamp,
    UInt,
    Value,
    as_double,
    equal,
    has_key,
    is_list,
    is_number,
    type_name,
)

MIN_TIME = -62135596800 * 1_000_000_000
MAX_TIME = 253402300800 * 1_000_000_000 - 1
_OPAQUE = (Quantity, Semver, IPv4Address, IPv6Address, Cidr, Url, NamedFormat)
_ORDERED = (str, bytes, Duration, Timestamp)


def signed(number: int) -> int:
    """A result of integer arithmetic; beyond 64 bits it is an error."""
    if MIN_INT <= number <= MAX_INT:
        return number
    raise EvaluationError("integer overflow")


def unsigned(number: int) -> UInt:
    if 0 <= number <= MAX_UINT:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def span(nanos: int) -> Duration:
    if MIN_INT <= nanos <= MAX_INT:
        return Duration(nanos)
    raise EvaluationError("integer overflow")


def moment(nanos: int) -> Timestamp:
    if MIN_TIME <= nanos <= MAX_TIME:
        return Timestamp(nanos)
    raise EvaluationError("timestamp overflow")


def add(left: Value, right: Value) -> Value:
    if is_number(left) or isinstance(left, str | bytes):
        if type(left) is not type(right):
            raise no_such_overload()
        return left + right if isinstance(left, float | str | bytes) else _whole(left, left + right)
    if is_list(left) and is_list(right):
        return left.plus(right) if isinstance(left, Merged) else [*left, *right]
    if isinstance(left, Duration) and isinstance(right, Duration):
        return span(left.nanos + right.nanos)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return moment(left.nanos + right.nanos)
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        return moment(left.nanos + right.nanos)
    raise no_such_overload()


def subtract(left: Value, right: Value) -> Value:
    if is_number(left) and type(left) is type(right):
        return left - right if isinstance(left, float) else _whole(left, left - right)
    if isinstance(left, Duration) and isinstance(right, Duration):
        return span(left.nanos - right.nanos)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return moment(left.nanos - right.nanos)
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return span(left.nanos - right.nanos)
    raise no_such_overload()


def multiply(left: Value, right: Value) -> Value:
    _require_alike(left, right)
    return left * right if isinstance(left, float) else _whole(left, left * right)


def divide(left: Value, right: Value) -> Value:
    """Integers are divided toward zero."""
    _require_alike(left, right)
    if isinstance(left, float):
        return _divided(left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return _whole(left, quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: Value, right: Value) -> Value:
    """The remainder has the sign of the left side."""
    _require_alike(left, right)
    if isinstance(left, float):
        raise no_such_overload()
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    return _whole(left, -rest if left < 0 else rest)


def negate(value: Value) -> Value:
    if isinstance(value, float):
        return -value
    if type(value) is int:
        return signed(-value)
    if isinstance(value, Duration):
        return span(-value.nanos)
    raise no_such_overload()


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1. Numbers of all types compare with each other; NaN is after nothing."""
    numbers = is_number(left) and is_number(right)
    alike = type(left) is type(right) and isinstance(left, (*_ORDERED, bool))
    if not numbers and not alike:
        raise no_such_overload()
    if isinstance(left, str):
        left, right = left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    if isinstance(left, float) or isinstance(right, float):
        left, right = as_double(left), as_double(right)  # what a double cannot tell apart is equal
    return int(left > right) - int(left < right)


def less(left: Value, right: Value) -> bool:
    return not _has_nan(left, right) and compare(left, right) < 0


def less_or_equal(left: Value, right: Value) -> bool:
    return not _has_nan(left, right) and compare(left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return not _has_nan(left, right) and compare(left, right) > 0


def greater_or_equal(left: Value, right: Value) -> bool:
    return not _has_nan(left, right) and compare(left, right) >= 0


def equals(left: Value, right: Value) -> bool:
    """``left == right``; a quantity, a version and the like can only be held against their own."""
    if isinstance(left, _OPAQUE) and right is not None and type_name(left) != type_name(right):
        raise no_such_overload()
    return equal(left, right)


def not_equal(left: Value, right: Value) -> bool:
    return not equals(left, right)


def sorted_by(values: list[Value], keys: list[Value]) -> list[Value]:
    """The values in the order of their keys, which must be of one type that has an order."""
    if len({type_name(each) for each in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    try:
        order = sorted(range(len(keys)), key=lambda at: _Ordered(keys[at]))
    except EvaluationError:
        raise EvaluationError("list elements must be comparable") from None
    return [values[at] for at in order]


class _Ordered:
    """A key of a sort."""

    __slots__ = ("_key",)

    def __init__(self, key: Value) -> None:
        self._key = key

    def __lt__(self, other: "_Ordered") -> bool:
        return compare(self._key, other._key) < 0


def member(value: Value, container: Value) -> bool:
    """``value in container``: an element of a list, a key of a map."""
    if isinstance(container, Mapping):
        return has_key(container, value)
    if is_list(container):
        return any(equal(value, each) for each in container)
    raise no_such_overload()


def _require_alike(left: Value, right: Value) -> None:
    if not is_number(left) or type(left) is not type(right):
        raise no_such_overload()


def _whole(like: int, number: int) -> int:
    return unsigned(number) if type(like) is UInt else signed(number)


def _divided(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def _has_nan(left: Value, right: Value) -> bool:
    if not (is_number(left) and is_number(right)):
        return False
    return any(isinstance(each, float) and math.isnan(each) for each in (left, right))


OPERATORS: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "<": less,
    "<=": less_or_equal,
    ">": greater,
    ">=": greater_or_equal,
    "==": equals,
    "!=": not_equal,
    "in": member,
}
