"""Text that others wrote, read within bounds: the one way in for files, bodies and patches.

Whatever cannot become JSON is refused with a `ReadingError` that says what and, where it can be
known, the line: nothing gets in that could not be written out again. JSON is read here, YAML in
`kubescene.api.text.yaml_text`, which is imported only where there is some.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from kubescene.api.text import pieces
from kubescene.types import JsonValue

MAX_DEPTH = 200
"""Levels of nesting. No API type comes near, and recursion stays safe."""

QUICKLY_READ = 2_000_000
"""Values up to which a quick look is worth while, and safe for whoever shares objects a lot."""


class ReadingError(ValueError):
    """A text that cannot be read. ``line`` and ``column`` count from one; 0 is unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        self.column = column


class Bounds(Struct, frozen=True):
    """How much a text may become.

    ``aliased`` is how many values the aliases of a YAML text may stand for; what is written out is
    bounded by the size of the text. With ``any_keys``, numbers and booleans may be keys and become
    text, as in kubectl; without, their author has to put them in quotes.
    """

    depth: int = MAX_DEPTH
    aliased: int = 100_000
    any_keys: bool = False


class Duplicate(NamedTuple):
    """A key that an object gives again: its path in JSON, its name and place in YAML."""

    key: str
    line: int = 0
    column: int = 0


class Document(NamedTuple):
    """One document and the keys it gives more than once; the last value of each has won."""

    value: Any
    duplicates: tuple[Duplicate, ...] = ()


def read_json(text: str | bytes, bounds: Bounds | None = None) -> Document:
    """The value of a JSON text. Numbers beyond 64 bits are floats, as Go reads them."""
    try:
        value = pieces.loads(text) if isinstance(text, bytes) else orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ReadingError(str(error)) from None
    depth = MAX_DEPTH if bounds is None else bounds.depth
    if not _is_surely_shallow(text, depth):
        check_depth(value, depth)
    return Document(value, _duplicates(text))


def check_depth(value: JsonValue, limit: int = MAX_DEPTH) -> None:
    """Refuse a value with more levels than ``limit``. Only for values without aliases."""
    level = [value]
    for _ in range(limit):
        level = [child for each in level for child in _containers(each)]
        if not level:
            return
    raise ReadingError(f"nested deeper than {limit} levels")


def _is_surely_shallow(text: str | bytes, limit: int) -> bool:
    """Few opening brackets leave no room for depth; most texts have few."""
    brackets: tuple[Any, Any] = ("{", "[") if isinstance(text, str) else (b"{", b"[")
    return text.count(brackets[0]) + text.count(brackets[1]) <= limit


def _containers(value: JsonValue) -> "Iterator[JsonValue] | tuple[()]":
    if type(value) is dict:
        return (child for child in value.values() if type(child) in (dict, list))
    if type(value) is list:
        return (child for child in value if type(child) in (dict, list))
    return ()


# Members that a JSON text gives twice


class _DuplicateFoundError(Exception):
    pass


class _Pairs(list[tuple[str, Any]]):
    """The members of an object in their order, duplicates among them."""


def _duplicates(text: str | bytes) -> tuple[Duplicate, ...]:
    """Found by a second parse, cheap beside a write; their paths are only worked out if needed."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except _DuplicateFoundError:
        pairs = json.loads(text, object_pairs_hook=_Pairs, parse_int=float)
        return tuple(map(Duplicate, _duplicate_paths(pairs, "")))
    return ()


def _unique(pairs: list[tuple[str, Any]]) -> None:
    """Nothing is kept: to let go of all of a large text at once would take long, too."""
    if len(dict(pairs)) != len(pairs):
        raise _DuplicateFoundError


def _duplicate_paths(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, member in value:
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _duplicate_paths(member, here)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _duplicate_paths(member, f"{path}[{index}]")


# Objects that were never text


class _Extent(NamedTuple):
    """How many values a value holds, itself included, and how many levels."""

    values: int
    levels: int


_SCALAR = _Extent(1, 0)


class JsonCheck:
    """Whether Python objects are JSON. Walks each once, however often it is shared."""

    def __init__(self, bounds: Bounds, *, values: int) -> None:
        self._bounds = bounds
        self._values = values
        self._known: dict[int, _Extent] = {}

    def check(self, document: Any) -> None:
        """Raise `ReadingError` for what JSON cannot hold, or for too much of it."""
        at_a_glance = min(self._values, QUICKLY_READ)
        if is_plain(document, depth=self._bounds.depth, values=at_a_glance):
            return
        if (found := self._extent(document, "", 1).values) > self._values:
            raise ReadingError(f"it holds {found} values, more than {self._values}")

    def _extent(self, value: Any, path: str, level: int) -> _Extent:
        if isinstance(value, dict | list):
            return self._container(value, path, level)
        if problem := scalar_problem(value):
            raise ReadingError(f"{path} {problem}")
        return _SCALAR

    def _container(self, value: Any, path: str, level: int) -> _Extent:
        extent = self._known.get(id(value))
        if level + (extent.levels - 1 if extent else 0) > self._bounds.depth:
            raise ReadingError(f"nested deeper than {self._bounds.depth} levels at {path}")
        if extent is None:
            parts = [self._extent(*member, level + 1) for member in _members(value, path)]
            levels = max((part.levels for part in parts), default=0) + 1
            extent = _Extent(1 + sum(part.values for part in parts), levels)
            self._known[id(value)] = extent
        return extent


def is_plain(document: Any, *, depth: int, values: int) -> bool:
    """Whether a quick look finds nothing that could be wrong.

    It looks at each value as often as it occurs, level by level, and knows no paths; whatever is
    unusual, if only a letter beyond ASCII, is left to a closer look.
    """
    level, found = [document], 1
    keys: set[str] = set()
    for _ in range(depth):
        below: list[Any] = []
        for each in level:
            if type(each) is dict:
                # Most objects have the keys of others.
                if not keys.issuperset(each):
                    if not all(map(_is_plain_key, each)):
                        return False
                    keys.update(each)
                plain = _are_plain(each.values(), below)
            else:
                plain = type(each) is list and _are_plain(each, below)
            found += len(each) if plain else 0
            if not plain or found > values:
                return False
        if not below:
            return True
        level = below
    return False


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and key.isascii()


def _are_plain(members: Iterable[Any], below: list[Any]) -> bool:
    """Whether each is a scalar that JSON can hold; dicts and lists are put ``below``."""
    for member in members:
        kind = type(member)
        if kind is str:
            if not member.isascii():
                return False
        elif kind is dict or kind is list:
            below.append(member)
        elif scalar_problem(member):
            return False
    return True


def _members(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, list):
        yield from ((member, f"{path}[{index}]") for index, member in enumerate(value))
        return
    for key, member in value.items():
        if not isinstance(key, str):
            raise ReadingError(
                f"the key {key!r} under {path or 'the top'} is not text: put it in quotes"
            )
        if problem := scalar_problem(key):
            raise ReadingError(f"a key under {path or 'the top'} {problem}")
        yield member, f"{path}.{key}" if path else key


def scalar_problem(value: Any) -> str:
    """What keeps a scalar from being JSON; empty if nothing does."""
    if isinstance(value, str):
        return "" if value.isascii() or is_unicode(value) else "is not valid Unicode"
    if isinstance(value, bool | None):
        return ""
    if isinstance(value, int):
        return "" if -(1 << 63) <= value < 1 << 64 else "is too large a number"
    if isinstance(value, float):
        return "" if math.isfinite(value) else "is not a finite number"
    return f"is a {type(value).__name__}, which JSON cannot hold"


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
