"""Facts as lines of JSON, and lines as facts.

A line may refer to an earlier one by its position (the first fact is 0), so that an operation of
ten thousand instances and the object behind a placement are written once.
"""

from typing import Any, TypeVar

import msgspec

from kubescene.timeline.facts import Fact, kind_of

DAMAGED = (msgspec.DecodeError, UnicodeDecodeError)
"""What a line with a wrong byte in it raises."""
F = TypeVar("F", bound=Fact)


class LineWriter:
    """Encodes facts in order and remembers which line holds what."""

    def __init__(self) -> None:
        self.position = 0
        self._places: dict[str, tuple[Any, int]] = {}

    def line(self, fact: Fact) -> bytes:
        data = fact.to_line(self)
        self.position += 1
        return data

    def note(self, slot: str, value: Any) -> None:
        """The line being written is now the newest that holds something under this name."""
        self._places[slot] = (value, self.position)

    def forget(self, slot: str) -> None:
        self._places.pop(slot, None)

    def place_of(self, slot: str, value: Any) -> int | None:
        """Where this very value stands, if the newest line with such a value has it."""
        held, position = self._places.get(slot, (None, 0))
        return position if held is value else None


class _Kind(msgspec.Struct, frozen=True):
    fact: str


_KIND = msgspec.json.Decoder(_Kind)


class LineReader:
    """Decodes lines in order. ``facts`` are those of the lines before."""

    def __init__(self, facts: list[Fact]) -> None:
        self._facts = facts

    def read(self, line: bytes) -> Fact:
        """The fact of the next line; raises `msgspec.DecodeError` if it is damaged."""
        return kind_of(_KIND.decode(line).fact).from_line(line, self)

    def fact(self, position: int, kind: type[F]) -> F:
        """An earlier fact that a line refers to."""
        found = self._facts[position] if 0 <= position < len(self._facts) else None
        if not isinstance(found, kind):
            raise msgspec.ValidationError(
                f"it refers to fact {position}, which is not a {kind.__name__} before it"
            )
        return found
