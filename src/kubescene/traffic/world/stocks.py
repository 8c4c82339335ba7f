"""Stocks: where entities are, between movements.

A stock holds entities of one kind, in order of arrival. What happens when something comes or goes
is what a subclass adds. `Ticktock` stocks hold one entity that always leaves and comes back: a
movement from such a stock to itself is a point in time at which something is done.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kubescene.traffic.world.entities import Entity, EntityKind

E = TypeVar("E", bound=Entity)


class StockError(ValueError):
    """An entity that does not belong into a stock."""


class Stock(Generic[E]):
    """Entities in order; the oldest leaves first."""

    __slots__ = ("entities", "kind", "name", "number")

    def __init__(self, name: str, kind: EntityKind) -> None:
        self.name = name
        self.kind = kind
        self.entities: list[E] = []
        self.number = -1
        """Its number in the log of movements, given there."""

    @property
    def count(self) -> int:
        return len(self.entities)

    def add(self, entity: E) -> None:
        """Take an entity in; raises `StockError` for one of another kind."""
        self.check(entity)
        self.entities.append(entity)

    def remove(self, entity: E | None = None) -> E | None:
        """Let this entity go, or the oldest if none is named; None if it is not here."""
        held = self.entities
        if entity is None:
            return held.pop(0) if held else None
        for position, each in enumerate(held):
            if each is entity:
                self.take_out(position)
                return each
        return None

    def take_out(self, position: int) -> None:
        del self.entities[position]

    def check(self, entity: E | None) -> None:
        if entity is None or entity.kind is not self.kind:
            what = "nothing" if entity is None else f"a {entity.kind}"
            raise StockError(f"{self.name} holds entities of kind {self.kind}, not {what}")

    def __repr__(self) -> str:
        return f"<{self.name}: {self.count}>"


class ArrayStock(Stock[E]):
    """As Skenario's: where one is taken from the middle, the last one takes its place."""

    __slots__ = ()

    def take_out(self, position: int) -> None:
        last = self.entities.pop()
        if position < len(self.entities):
            self.entities[position] = last


class WatchedStock(Stock[E]):
    """Tells bound methods what came and what went."""

    __slots__ = ("_added", "_removed")

    def __init__(
        self,
        name: str,
        kind: EntityKind,
        *,
        added: Callable[[E], object] | None = None,
        removed: Callable[[E], object] | None = None,
    ) -> None:
        super().__init__(name, kind)
        self._added = added
        self._removed = removed

    def add(self, entity: E) -> None:
        super().add(entity)
        if self._added is not None:
            self._added(entity)

    def remove(self, entity: E | None = None) -> E | None:
        removed = super().remove(entity)
        if removed is not None and self._removed is not None:
            self._removed(removed)
        return removed


class Ticktock(Stock[E]):
    """Holds one entity for ever."""

    __slots__ = ("_ticked", "entity")

    def __init__(self, name: str, entity: E, ticked: Callable[[E], object]) -> None:
        super().__init__(name, entity.kind)
        self.entity = entity
        self.entities.append(entity)
        self._ticked = ticked

    def add(self, entity: E) -> None:
        if entity is not self.entity:
            raise StockError(f"{self.name} holds {self.entity.name} and nothing else")
        self._ticked(entity)

    def remove(self, entity: E | None = None) -> E | None:
        del entity
        return self.entity
