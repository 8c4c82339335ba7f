"""The values that expressions work on, as Python objects.

int64 is ``int``, uint64 is `UInt`, double is ``float``; bool, string, bytes, null, list and map are
their Python counterparts. Values are never changed. What has no counterpart is defined here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any, TypeAlias

from kubescene.api.quantity import Quantity
from kubescene.api.schemas.urls import Url
from kubescene.cel.errors import EvaluationError

MAX_INT = 2**63 - 1
MIN_INT = -(2**63)
MAX_UINT = 2**64 - 1
NANOS = 1_000_000_000

Value: TypeAlias = Any


class UInt(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: nanoseconds since 1970 in UTC."""

    nanos: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what ``type(x)`` gives."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing: ``optional.of(x)`` and ``optional.none()``."""

    values: tuple[Value, ...] = ()

    @property
    def value(self) -> Value:
        if not self.values:
            raise EvaluationError("optional.none() dereference")
        return self.values[0]


NONE = Optional()


class TypedMap(Mapping[Any, Value]):
    """A map with bools among its keys: true and 1, one key to a dict, are two.

    ``entries`` have keys that say of each whether it is a bool.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[tuple[bool, Any], Value]) -> None:
        self._entries = entries

    def __getitem__(self, key: Any) -> Value:
        return self._entries[type(key) is bool, key]

    def __iter__(self) -> Iterator[Any]:
        return (key for _, key in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"TypedMap({self._entries!r})"


class Compared:
    """A value that says itself what it equals."""

    __slots__ = ()

    def equals(self, other: Value) -> bool:
        raise NotImplementedError


class Merged(Compared):
    """A list that says itself what is added to it."""

    __slots__ = ()

    def plus(self, other: Sequence[Value]) -> Value:
        raise NotImplementedError


def has_key(mapping: Mapping[Any, Value], key: Value) -> bool:
    """Whether a map has a key; in maps that are no `TypedMap` no key is a bool."""
    if type(key) is bool and not isinstance(mapping, TypedMap):
        return False
    return isinstance(key, str | int | float) and key in mapping


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version, ordered by precedence; build metadata does not count."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Versions are ordered as these are."""
        marks = tuple((0, each, "") if isinstance(each, int) else (1, 0, each) for each in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, marks)


Address: TypeAlias = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address and how many of its bits are those of the network."""

    address: Address
    length: int

    @property
    def network(self) -> IPv4Network | IPv6Network:
        return ip_network((self.address, self.length), strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format that texts may be held against; ``length`` is that of its pattern."""

    name: str
    length: int


_TYPE_NAMES: Mapping[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    IPv4Address: "net.IP",
    IPv6Address: "net.IP",
    Cidr: "net.CIDR",
    Url: "kubernetes.URL",
    NamedFormat: "kubernetes.NamedFormat",
}


def type_name(value: Value) -> str:
    """The name of a value's type, as ``type(x)`` prints it."""
    found = _TYPE_NAMES.get(type(value))
    if found is not None:
        return found
    return (
        "list" if is_list(value) else "map" if isinstance(value, Mapping) else type(value).__name__
    )


def is_list(value: Value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_number(value: Value) -> bool:
    return isinstance(value, int | float) and type(value) is not bool


def as_double(number: int | float) -> float:
    """As doubles hold it; objects may have numbers that none can hold."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def equal(left: Value, right: Value) -> bool:
    """Equality of any two values: numbers by what they are worth, others only within a type."""
    if type(left) is bool or type(right) is bool:
        return left is right
    if is_number(left):
        if isinstance(left, float) or isinstance(right, float):
            # What a double cannot tell apart is equal.
            return is_number(right) and as_double(left) == as_double(right)
        return is_number(right) and bool(left == right)
    if isinstance(left, Compared):
        return left.equals(right)
    if is_list(left):
        return is_list(right) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping):
        return isinstance(right, Mapping) and _equal_maps(left, right)
    if isinstance(left, Optional):
        return isinstance(right, Optional) and equal(left.values, right.values)
    return type(left) is type(right) and bool(left == right)


def _equal_maps(left: Mapping[Any, Value], right: Mapping[Any, Value]) -> bool:
    if len(left) != len(right):
        return False
    return all(has_key(right, key) and equal(value, right[key]) for key, value in left.items())


def size_of(value: Value) -> int:
    """How much there is of a value: what working through it costs."""
    return len(value) if isinstance(value, str | bytes | Sequence | Mapping) else 1
