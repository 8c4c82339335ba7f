"""How much an evaluation does, counted as cel-go and Kubernetes count it.

Where they count what they merely could do (a copy of a list is free to them), more is counted here:
nothing may stop later than it would there. But for ``sortBy`` of lists whose type is known: there
it costs twice the square of the length, as if every pair were compared, which only the estimate
counts here.
"""

from collections.abc import Callable, Mapping, Sequence

from kubescene.cel.errors import CostExceededError
from kubescene.cel.values import NamedFormat, Value, size_of

LIST = 10
"""Making a list."""
NEW_LIST = 1 + LIST
"""Calling what makes a list of its own."""
MAP = 30
MESSAGE = 40
ALL_STEP, EXISTS_STEP = 3, 4
"""What goes round in a loop beside the predicate: is it decided, and what has been found so far."""
ALL_DECIDED, EXISTS_DECIDED = 2, 3
"""Seeing that it is decided, if there is an element left."""
COUNT_STEP, SKIPPED_STEP = 2, 1
APPEND_STEP = 1 + LIST + 1
"""An element is appended as a list of its own to what there is."""
INSERT_STEP, MERGE_STEP = 3, 2
"""An entry, or a map with entries, is put into a map that is being made."""
BIND = LIST
"""Binding a name is a loop over nothing."""

Arguments = Sequence[Value]


class CostMeter:
    """How much an evaluation may still do."""

    __slots__ = ("left",)

    def __init__(self, limit: int) -> None:
        self.left = limit

    def charge(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostExceededError


def of_operation(operator: str, left: Value, right: Value) -> int:
    """What an operator does with two values."""
    if operator == "+":
        both = size_of(left) + size_of(right)
        return tenths(both) if isinstance(left, str | bytes) else 1 + both // 10
    if operator == "in":
        return size_of(right) if isinstance(right, Sequence) else 1
    if operator in _COMPARISONS:
        return tenths(min(size_of(left), size_of(right)))
    return 1


def of_call(name: str, arguments: Arguments) -> int:
    """What a function does with its arguments, before it does it."""
    found = _CALLS.get(name)
    return found(arguments) if found is not None else 1 + sum(map(size_of, arguments)) // 10


def of_result(name: str, made: Value) -> int:
    """What is counted when it is known how much a function has made."""
    if name == "join":
        return fifths(size_of(made))
    return 0 if name in _CALLS else size_of(made) // 10


def tenths(size: int) -> int:
    return -(-size // 10)


def fifths(size: int) -> int:
    return -(-size // 5)


def _nothing(arguments: Arguments) -> int:
    return 0


def _one(arguments: Arguments) -> int:
    return 1


def _first(arguments: Arguments) -> int:
    return tenths(size_of(arguments[0]))


def _first_twice(arguments: Arguments) -> int:
    return fifths(size_of(arguments[0]))


def _converted(arguments: Arguments) -> int:
    """Between texts and bytes; other conversions are one step."""
    return _first(arguments) if isinstance(arguments[0], str | bytes) else 1


def _network(arguments: Arguments) -> int:
    return 1 + (tenths(len(arguments[1])) if isinstance(arguments[1], str) else 0)


def _subnetwork(arguments: Arguments) -> int:
    return 2 + _network(arguments)


def _traversal(arguments: Arguments) -> int:
    """Going through all there is, and through every text in it."""
    return _through(arguments[0])


def _through(value: Value) -> int:
    if isinstance(value, str | bytes):
        return len(value.encode() if isinstance(value, str) else value) // 10
    if isinstance(value, Mapping):
        return sum(_through(key) + _through(each) for key, each in value.items())
    return sum(map(_through, value)) if isinstance(value, Sequence) else 1


def _search(arguments: Arguments) -> int:
    return tenths(size_of(arguments[0])) * tenths(size_of(arguments[1]))


def _pattern(arguments: Arguments) -> int:
    return tenths(1 + size_of(arguments[0])) * -(-size_of(arguments[1]) // 4)


def _format(arguments: Arguments) -> int:
    """As if it were a pattern, which it is not always."""
    held = arguments[0]
    length = held.length if isinstance(held, NamedFormat) else 0
    return tenths(1 + size_of(arguments[1])) * -(-length // 4)


def _elements(arguments: Arguments) -> int:
    return 1 + size_of(arguments[0])


def _pairs(arguments: Arguments) -> int:
    return 1 + size_of(arguments[0]) * size_of(arguments[-1])


def _sorted(arguments: Arguments) -> int:
    """Each is held against each, twice."""
    held = arguments[0]
    pairs = len(held) ** 2 if isinstance(held, Sequence) else 0
    of_texts = pairs > 0 and isinstance(held[0], str | bytes)
    return NEW_LIST + 2 * pairs + (tenths(pairs) if of_texts else 0)


def _whole(value: Value) -> int:
    """A number; anything else is refused by who is asked to work with it."""
    return value if type(value) is int else 0


def _copied(arguments: Arguments) -> int:
    return NEW_LIST + size_of(arguments[0])


def _cut(arguments: Arguments) -> int:
    return NEW_LIST + max(0, _whole(arguments[2]) - _whole(arguments[1]))


def _counted(arguments: Arguments) -> int:
    return NEW_LIST + max(0, _whole(arguments[0]))


def _flattened(arguments: Arguments) -> int:
    depth = max(1, _whole(arguments[1])) if len(arguments) > 1 else 1
    return NEW_LIST + depth * size_of(arguments[0])


def _both_ways(arguments: Arguments) -> int:
    return 1 + 2 * size_of(arguments[0]) * size_of(arguments[1])


_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_CALLS: Mapping[str, Callable[[Arguments], int]] = {
    "join": _nothing,
    **dict.fromkeys(
        (
            *("dyn", "size", "type", "sign", "asInteger", "isInteger", "asApproximateFloat"),
            *("add", "sub"),
            *("isGreaterThan", "isLessThan", "compareTo", "major", "minor", "patch"),
            *("masked", "prefixLength", "family", "isUnspecified", "isLoopback"),
            *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
            *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
            *("hasValue", "value", "orValue", "or", "optional.of", "optional.none"),
            "format.named",
        ),
        _one,
    ),
    **dict.fromkeys(
        (
            *("startsWith", "endsWith", "format", "strings.quote", "url", "isURL"),
            *("lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip"),
            *("quantity", "isQuantity", "semver", "isSemver"),
        ),
        _first,
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    **dict.fromkeys(("string", "bytes"), _converted),
    "contains": _search,
    **dict.fromkeys(("matches", "find", "findAll"), _pattern),
    "validate": _format,
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"), _traversal),
    "includes": _elements,
    "flatten": _flattened,
    "reverse": _copied,
    "slice": _cut,
    "lists.range": _counted,
    **dict.fromkeys(("sort", "distinct"), _sorted),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _pairs),
    "sets.equivalent": _both_ways,
    "containsIP": _network,
    "containsCIDR": _subnetwork,
}
