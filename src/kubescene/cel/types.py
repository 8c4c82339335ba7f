"""Types as far as they are known before an expression runs."""

from collections.abc import Mapping
from typing import NamedTuple


class Type(NamedTuple):
    """A type; ``parts`` are those of its elements, ``fields`` those of an object."""

    name: str
    parts: tuple["Type", ...] = ()
    fields: tuple[tuple[str, "Type"], ...] | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing is known about values of this type."""
        return self.name in ("dyn", "any")

    def field(self, name: str) -> "Type | None":
        """The type of a field; one that is named like a word of the language needs no escape."""
        known = dict(self.fields or ())
        return known.get(name) or known.get(as_keyword(name))

    def __hash__(self) -> int:
        return hash((self.name, self.parts))  # fields may be many, and have names of their own

    def __str__(self) -> str:
        if not self.parts:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parts))})"


def as_keyword(name: str) -> str:
    """The name of a field that is a word of the language, as types know it."""
    return f"__{name}__"


DYN = Type("dyn")
ANY = Type("any")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null")
DURATION = Type("google.protobuf.Duration")
TIMESTAMP = Type("google.protobuf.Timestamp")
TYPE = Type("type")
QUANTITY = Type("kubernetes.Quantity")
SEMVER = Type("kubernetes.Semver")
IP = Type("net.IP")
CIDR = Type("net.CIDR")
URL = Type("kubernetes.URL")
FORMAT = Type("kubernetes.NamedFormat")

TYPE_NAMES = (
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
    "optional_type",
    "net.IP",
    "net.CIDR",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
)
"""Names that stand for a type where no variable has them."""


def list_of(element: Type = DYN) -> Type:
    return Type("list", (element,))


def map_of(key: Type = DYN, value: Type = DYN) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type = DYN) -> Type:
    return Type("optional_type", (value,))


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    return Type(name, (), tuple(fields.items()))


def fits(left: Type, right: Type) -> bool:
    """Whether values of both types can meet in one place (be compared, be in one list)."""
    if left.is_open or right.is_open or NULL in (left, right):
        return True
    if left.name != right.name:
        return False
    return all(map(fits, left.parts, right.parts))


def alike(left: Type, right: Type) -> bool:
    """Whether values of both types may be elements of one list where types must not mix."""
    return left.name == right.name and all(map(fits, left.parts, right.parts))


def joined(types: list[Type]) -> Type:
    """The one type of several values, if they have one."""
    if not types:
        return DYN
    first = types[0]
    return first if all(each == first for each in types) else DYN
