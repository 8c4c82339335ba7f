"""Movements: one entity goes from one stock to another at one instant. And the log of them.

Names are those of Skenario, so that what is written about it can be read here.
"""

from array import array
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from kubescene.traffic.world.entities import KINDS, Entity, EntityKind, entity_name, parse_name
from kubescene.traffic.world.stocks import Stock


class MovementKind(StrEnum):
    START_TO_RUNNING = "start_to_running"
    RUNNING_TO_HALTED = "running_to_halted"
    START_INITIAL_REPLICA = "start_initial_replica"
    AUTOSCALER_TICK = "autoscaler_tick"
    INCREASE_DESIRED = "increase_desired"
    REDUCE_DESIRED = "reduce_desired"
    BEGIN_LAUNCH = "begin_launch"
    FINISH_LAUNCHING = "finish_launching"
    TERMINATE_LAUNCH = "terminate_launch"
    TERMINATE_ACTIVE = "terminate_active"
    FINISH_TERMINATING = "finish_terminating"
    CREATE_UPDATED_REPLICA = "create_updated_replica"
    EVICT_REPLICA = "evict_replica"
    METRICS_TICK = "metrics_tick"
    SEND_METRICS_TO_PIPELINE = "send_metrics_to_pipeline"
    SEND_METRICS_TO_SINK = "send_metrics_to_sink"
    ARRIVE_AT_ROUTING_STOCK = "arrive_at_routing_stock"
    SEND_TO_REPLICA = "send_to_replica"
    REQUEST_FAILED = "request_failed"
    COMPLETE_REQUEST = "complete_request"
    RESTART_REPLICA = "restart_replica"
    """Ours: Skenario's replicas never fail."""


MOVEMENT_KINDS = tuple(MovementKind)
_NUMBERS = {kind: number for number, kind in enumerate(MOVEMENT_KINDS)}
_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


class IgnoredReason(StrEnum):
    """Why a movement did not take place."""

    IN_PAST = "ScheduledToOccurInPast"
    AFTER_HALT = "ScheduledToOccurAfterHalt"
    FROM_STOCK_EMPTY = "FromStockEmptyAtMovementTime"


class Movement:
    """What is to move, when, from where to where. Without an entity: the oldest that is there."""

    __slots__ = ("entity", "key", "kind", "notes", "occurs_at", "source", "target")

    def __init__(
        self,
        kind: MovementKind,
        occurs_at: int,
        source: Stock[Any],
        target: Stock[Any],
        entity: Entity | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.occurs_at = occurs_at
        self.source = source
        self.target = target
        self.entity = entity
        self.notes = notes
        self.key = -1
        """Its place in a schedule, given there."""

    def at(self, instant: int) -> "Movement":
        """The same at another instant; notes stay behind."""
        return Movement(self.kind, instant, self.source, self.target, self.entity)

    def __repr__(self) -> str:
        way = f"{self.source.name} -> {self.target.name}"
        return f"<{self.kind} at {self.occurs_at}: {way}>"


class CompletedMovement(NamedTuple):
    """A movement that took place, by names."""

    occurs_at: int
    kind: str
    moved: str
    from_stock: str
    to_stock: str


class IgnoredMovement(NamedTuple):
    """A movement that did not, and why."""

    occurs_at: int
    kind: str
    from_stock: str
    to_stock: str
    reason: str


class MovementLog:
    """What moved, in columns (18 bytes each), and what did not.

    Stocks of one name are one in the log, as they are for whoever reads it.
    """

    def __init__(self) -> None:
        self.occurs_at = array("q")
        self.kinds = array("B")
        self.moved_kinds = array("B")
        self.moved = array("i")
        self.sources = array("h")
        self.targets = array("h")
        self.ignored: list[IgnoredMovement] = []
        self.stocks: list[str] = []
        self._numbers: dict[str, int] = {}

    def completed(self, movement: Movement, entity: Entity) -> None:
        self.occurs_at.append(movement.occurs_at)
        self.kinds.append(_NUMBERS[movement.kind])
        self.moved_kinds.append(_KIND_NUMBERS[entity.kind])
        self.moved.append(entity.number)
        self.sources.append(self._number(movement.source))
        self.targets.append(self._number(movement.target))

    def refused(self, movement: Movement, reason: IgnoredReason) -> None:
        self.ignored.append(
            IgnoredMovement(
                movement.occurs_at,
                movement.kind.value,
                movement.source.name,
                movement.target.name,
                reason.value,
            )
        )

    def _number(self, stock: Stock[Any]) -> int:
        if stock.number < 0:
            stock.number = self._number_of(stock.name)
        return stock.number

    def _number_of(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self.stocks))
        if number == len(self.stocks):
            self.stocks.append(name)
        return number

    def __len__(self) -> int:
        return len(self.occurs_at)

    def __getitem__(self, index: int) -> CompletedMovement:
        return CompletedMovement(
            self.occurs_at[index],
            MOVEMENT_KINDS[self.kinds[index]].value,
            entity_name(KINDS[self.moved_kinds[index]], self.moved[index]),
            self.stocks[self.sources[index]],
            self.stocks[self.targets[index]],
        )

    def __iter__(self) -> Iterator[CompletedMovement]:
        return map(self.__getitem__, range(len(self)))

    def without_requests(self) -> Iterator[CompletedMovement]:
        request = _KIND_NUMBERS[EntityKind.REQUEST]
        for index, kind in enumerate(self.moved_kinds):
            if kind != request:
                yield self[index]

    @classmethod
    def of(
        cls, completed: Iterable[CompletedMovement], ignored: Iterable[IgnoredMovement]
    ) -> "MovementLog":
        """A log of what was written down."""
        log = cls()
        for each in completed:
            kind, number = parse_name(each.moved)
            log.occurs_at.append(each.occurs_at)
            log.kinds.append(_NUMBERS[MovementKind(each.kind)])
            log.moved_kinds.append(_KIND_NUMBERS[kind])
            log.moved.append(number)
            log.sources.append(log._number_of(each.from_stock))
            log.targets.append(log._number_of(each.to_stock))
        log.ignored = list(ignored)
        return log
