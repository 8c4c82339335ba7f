"""Lines as facts, one after the other, without keeping them all.

A line refers to the newest one that holds its operation or its object, or to the attempt before at
the same pod: only those are remembered.
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from kubescene.timeline.facts import Fact
from kubescene.timeline.lines import LineReader
from kubescene.timeline.object_facts import ObjectFact, ObjectStored
from kubescene.timeline.pod_facts import PodAttempt, PodFact

F = TypeVar("F", bound=Fact)
Place = tuple[int, Fact]


class StreamReader(LineReader):
    """Decodes lines in order and forgets what no later line can refer to."""

    def __init__(self) -> None:
        super().__init__([])
        self._position = 0
        self._operation: tuple[int, ObjectFact] | None = None
        self._object: tuple[int, ObjectStored | PodFact] | None = None
        self._attempts: dict[str, tuple[int, PodAttempt]] = {}

    def read(self, line: bytes) -> Fact:
        fact = super().read(line)
        self._remember(fact)
        self._position += 1
        return fact

    def fact(self, position: int, kind: type[F]) -> F:
        for place in self._places():
            if place[0] == position and isinstance(place[1], kind):
                return place[1]
        raise msgspec.ValidationError(
            f"it refers to fact {position}, which is not a {kind.__name__} shortly before it"
        )

    def _places(self) -> Iterator[Place]:
        if self._operation is not None:
            yield self._operation
        if self._object is not None:
            yield self._object
        yield from self._attempts.values()

    def _remember(self, fact: Fact) -> None:
        if isinstance(fact, ObjectFact) and fact.origin is not None:
            held = self._operation[1].origin if self._operation is not None else None
            if held is None or fact.origin.operation is not held.operation:
                self._operation = self._position, fact
        if isinstance(fact, ObjectStored | PodFact) and (
            self._object is None or fact.record is not self._object[1].record
        ):
            self._object = self._position, fact
        if isinstance(fact, PodAttempt):
            if fact.ends_waiting:
                self._attempts.pop(fact.uid, None)
            else:
                self._attempts[fact.uid] = self._position, fact
