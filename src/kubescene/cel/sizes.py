"""Sizes that values may have, and what functions do with values of such sizes at most.

The figures are those of cel-go and of Kubernetes' library.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kubescene.cel.nodes import FunctionCall, Literal
from kubescene.cel.types import BYTES, INT, STRING, Type

MOST = 2**64 - 1

Path: TypeAlias = tuple[str, ...]
SizeAt: TypeAlias = Callable[[Path], int | None]


class SizeEstimate(NamedTuple):
    low: int
    high: int

    def union(self, other: "SizeEstimate") -> "SizeEstimate":
        return SizeEstimate(min(self.low, other.low), max(self.high, other.high))

    def plus(self, other: "SizeEstimate") -> "SizeEstimate":
        return SizeEstimate(bounded(self.low + other.low), bounded(self.high + other.high))

    def times(self, other: "SizeEstimate") -> "SizeEstimate":
        return SizeEstimate(bounded(self.low * other.low), bounded(self.high * other.high))


ANY_SIZE = SizeEstimate(0, MOST)
ONE = SizeEstimate(1, 1)


class Guess(NamedTuple):
    """What is known of a part: its worst cost, its size, its elements', and where it comes from."""

    cost: int
    type: Type
    size: SizeEstimate | None = None
    elements: SizeEstimate | None = None
    keys: SizeEstimate | None = None
    path: Path = ()

    @property
    def sized(self) -> SizeEstimate:
        return ANY_SIZE if self.size is None else self.size


def bounded(number: int) -> int:
    return min(number, MOST)


def share(size: int, factor: float) -> int:
    """The work of going through a text, which is a tenth or so of its length."""
    return bounded(math.ceil(size * factor)) if size < MOST else bounded(int(MOST * factor))


def tenths(size: int) -> int:
    return share(size, 0.1)


def union_of(sizes: Sequence[SizeEstimate]) -> SizeEstimate:
    found = sizes[0] if sizes else SizeEstimate(0, 0)
    for each in sizes[1:]:
        found = found.union(each)
    return found


def of_call(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    """What a function does with arguments of these sizes, and the size of what it gives."""
    if node.name in _IN_PROPORTION and given:
        factor, keeps = _IN_PROPORTION[node.name]
        subject = given[0]
        return share(subject.sized.high, factor), subject.sized if keeps else None
    rule = (_METHODS if node.is_method else _FUNCTIONS).get(node.name)
    return (1, None) if rule is None else rule(node, given, size_at)


def _elements_of(target: Guess, size_at: SizeAt) -> SizeEstimate:
    most = size_at((*target.path, "@items")) if target.path else None
    return ANY_SIZE if most is None else SizeEstimate(0, most)


def _compared(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    target = given[0]
    if not target.type.parts:
        return tenths(target.sized.high), None
    each = 1
    if target.type.parts[0] in (STRING, BYTES):
        each += tenths(_elements_of(target, size_at).high)
    return bounded(target.sized.high * each), None


def _replaced(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    text, old, new = (each.sized for each in given[:3])
    count, retained = 0, text.high
    if old.low == 0:
        count = min(text.high + 1, MOST)
    elif new.high > old.low:
        count, retained = math.ceil(text.high / old.low), 0
    size = SizeEstimate(0, bounded(bounded(count * new.high) + retained))
    return share(text.high, 0.2), size


def _split(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    text, most = given[0].sized, given[0].sized.high
    limit = node.arguments[2] if len(given) > 2 else None
    if isinstance(limit, Literal) and type(limit.value) is int:
        most = limit.value % 2**64
    return share(text.high, 0.2), SizeEstimate(0, most)


def _joined(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    count, size = given[0].sized, SizeEstimate(0, 0)
    if given[0].type.parts:
        size = count.times(_elements_of(given[0], size_at))
    if len(given) > 1:
        gaps = SizeEstimate(max(0, count.low - 1), max(0, count.high - 1))
        size = size.plus(given[1].sized.times(gaps))
    return tenths(size.high), size


def _searched(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    text = tenths(bounded(given[0].sized.high + 1))
    cost = bounded(text * share(given[1].sized.high, 0.25))
    return cost, None if node.name == "matches" else SizeEstimate(0, given[0].sized.high)


def _validated(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    return bounded(tenths(given[1].sized.high) * 32), None


def _contained(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    return bounded(tenths(given[0].sized.high) * tenths(given[1].sized.high)), None


def _prefix(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    return tenths(given[1].sized.high), None


def _to_bytes(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    if given[0].type == BYTES:
        return 1, None
    size = given[0].sized
    return tenths(size.high), SizeEstimate(size.low, size.high * 4 % 2**64)


def _to_string(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    if given[0].type != BYTES and not given[0].type.is_open:
        return 1, None
    size = given[0].sized
    return max(1, tenths(size.high)), SizeEstimate(size.low // 4, size.high)


def _quoted(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    size = given[0].sized
    # As upstream: it goes round beyond 64 bits.
    return tenths(size.high), SizeEstimate(size.low + 2, (size.high * 2 + 2) % 2**64)


def _in_network(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    cost = tenths(32) + (tenths(16) + 1 if node.name == "containsCIDR" else 0)
    read = tenths(given[1].sized.high) if given[1].type == STRING else 0
    return bounded(cost + read), None


def _sets(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    pairs = bounded(given[0].sized.high * given[1].sized.high)
    both = 2 if node.name == "sets.equivalent" else 1
    return bounded(1 + pairs * both), None


NEW_LIST = 11
"""Calling what makes a list of its own."""


def sorted_size(size: SizeEstimate, element: Type) -> tuple[int, SizeEstimate]:
    """The work of holding each against each; upstream takes the square for the size as well."""
    pairs = size.times(size)
    of_texts = element in (STRING, BYTES) or element.is_open
    return bounded(NEW_LIST + share(pairs.high, 2.1 if of_texts else 2.0)), pairs


def _ordered(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    element = given[0].type.parts[0] if given[0].type.parts else INT
    return sorted_size(given[0].sized, element if node.name == "sort" else INT)


def _allocated(size: SizeEstimate, depth: int = 1) -> tuple[int, SizeEstimate]:
    return bounded(NEW_LIST + bounded(size.high * depth)), size


def _copied(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    return _allocated(given[0].sized)


def _cut(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    start, end = _written(node, 1, 0), _written(node, 2, given[0].sized.high)
    length = (end - start) % 2**64  # as upstream: it goes round
    return _allocated(SizeEstimate(length, length))


def _flattened(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    return _allocated(given[0].sized, _written(node, 1, MOST) if len(given) > 1 else 1)


def _counted(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    length = _written(node, 0, MOST)
    return _allocated(SizeEstimate(length, length))


def _written(node: FunctionCall, at: int, default: int) -> int:
    """A number that is written out; anything else can be as large as it gets."""
    argument = node.arguments[at]
    if isinstance(argument, Literal) and type(argument.value) is int:
        return max(0, argument.value)
    return default


_IN_PROPORTION: Mapping[str, tuple[float, bool]] = {
    "url": (0.1, True),
    "lowerAscii": (0.1, True),
    "upperAscii": (0.1, True),
    "substring": (0.1, True),
    "trim": (0.1, True),
    "cidr": (0.1, False),
    "isIP": (0.1, False),
    "isCIDR": (0.1, False),
    "ip.isCanonical": (0.2, False),
    "quantity": (0.1, False),
    "isQuantity": (0.1, False),
    "semver": (0.1, False),
    "isSemver": (0.1, False),
    "format": (0.1, False),
}
"""Functions that go through their first argument, and whether what they give is as long."""

_Rule: TypeAlias = Callable[
    [FunctionCall, Sequence[Guess], SizeAt], tuple[int, SizeEstimate | None]
]
_METHODS: Mapping[str, _Rule] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compared),
    **dict.fromkeys(("sort", "distinct"), _ordered),
    "reverse": _copied,
    "slice": _cut,
    "flatten": _flattened,
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "find": _searched,
    "findAll": _searched,
    "matches": _searched,
    "contains": _contained,
    "validate": _validated,
    "startsWith": _prefix,
    "endsWith": _prefix,
    "containsIP": _in_network,
    "containsCIDR": _in_network,
}


def _of_text(
    node: FunctionCall, given: Sequence[Guess], size_at: SizeAt
) -> tuple[int, SizeEstimate | None]:
    return tenths(given[0].sized.high), None


_FUNCTIONS: Mapping[str, _Rule] = {
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quoted,
    "ip": _of_text,
    "lists.range": _counted,
    "sets.contains": _sets,
    "sets.equivalent": _sets,
    "sets.intersects": _sets,
}
