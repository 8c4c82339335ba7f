"""Facts as lines of JSON, and lines as facts.

A line may refer to an earlier one by its position (the first fact is 0), so that an operation of
ten thousand instances and the object behind a placement are written once.

Lines that are written by the thousand are joined from parts, most of which are text already: the
object as it is stored, and whatever the line before has said in the same words.
"""

from functools import cache
from typing import Any, TypeVar

import msgspec
import orjson

from kubescene.actors import Role
from kubescene.clock import ScenarioStep
from kubescene.timeline.facts import Fact, kind_of

DAMAGED = (msgspec.DecodeError, UnicodeDecodeError)
"""What a line with a wrong byte in it raises."""
F = TypeVar("F", bound=Fact)


class LineWriter:
    """Encodes facts in order and remembers which line holds what."""

    def __init__(self) -> None:
        self.position = 0
        self._places: dict[str, tuple[Any, int]] = {}
        self._moment: tuple[ScenarioStep, int, str, Role] | None = None
        self._when = b""
        """What is said of that moment."""
        self._actor: tuple[str, Role] | None = None
        self._who = b""
        """What is said of that actor."""

    def line(self, fact: Fact) -> bytes:
        data = fact.to_line(self)
        self.position += 1
        return data

    def begin(self, fact: Fact) -> list[bytes]:
        """The first parts of a line, for those who join it: its envelope, still open."""
        moment = (fact.step, fact.time, fact.actor, fact.role)
        if moment != self._moment:
            self._come_to(*moment)
        return [_opening(type(fact)), orjson.dumps(fact.id), self._when]

    def _come_to(self, step: ScenarioStep, time: int, actor: str, role: Role) -> None:
        if self._actor != (actor, role):
            self._actor = (actor, role)
            self._who = orjson.dumps({"actor": actor, "role": role})[1:-1]
        self._moment = (step, time, actor, role)
        self._when = f',"step":[{step[0]},{step[1]}],"time":{time},'.encode() + self._who

    def note(self, slot: str, value: Any) -> None:
        """The line being written is now the newest that holds something under this name."""
        self._places[slot] = (value, self.position)

    def forget(self, slot: str) -> None:
        self._places.pop(slot, None)

    def place_of(self, slot: str, value: Any) -> int | None:
        """Where this very value stands, if the newest line with such a value has it."""
        held, position = self._places.get(slot, (None, 0))
        return position if held is value else None


@cache
def _opening(kind: type[Fact]) -> bytes:
    """What stands before the id; there are few kinds."""
    return b'{"fact":%b,"id":' % orjson.dumps(kind.__name__)


class _Kind(msgspec.Struct, frozen=True):
    fact: str


_KIND = msgspec.json.Decoder(_Kind)


def kind_named(line: bytes) -> str:
    """Of which kind the fact of a line is."""
    return _KIND.decode(line).fact


class LineReader:
    """Decodes lines in order. ``facts`` are those of the lines before."""

    def __init__(self, facts: list[Fact]) -> None:
        self._facts = facts

    def read(self, line: bytes) -> Fact:
        """The fact of the next line; raises `msgspec.DecodeError` if it is damaged."""
        return kind_of(kind_named(line)).from_line(line, self)

    def fact(self, position: int, kind: type[F]) -> F:
        """An earlier fact that a line refers to."""
        found = self._facts[position] if 0 <= position < len(self._facts) else None
        if not isinstance(found, kind):
            raise msgspec.ValidationError(
                f"it refers to fact {position}, which is not a {kind.__name__} before it"
            )
        return found
