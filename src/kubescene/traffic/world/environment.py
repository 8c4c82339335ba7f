"""The environment: time, and movements in one strict order.

One movement happens after the other, and time stands still while it does. Two rules differ between
the modes of a run, and both are in the schedule that the environment is given:

- `OrderedSchedule` (fixed): what is to happen at one instant happens in the order in which it was
  scheduled, and now is not the past: zero delays are legal.
- `ShiftingSchedule` (faithful): one movement per nanosecond. Where the instant is taken, the
  movement is put off by a nanosecond until it is not (its notes are lost), even past the end.
  Now is the past.

An environment is an `EventSource`, so that it can run beside others on one clock.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.movements import IgnoredReason, Movement, MovementKind, MovementLog
from kubescene.traffic.world.stocks import Stock

_SEQUENCE_BITS = 40


class StoppedError(Exception):
    """Somebody wants the run to end before its time."""


def go_on() -> bool:
    """Whether a run that nobody stops is to be stopped."""
    return False


class MovementSchedule(Protocol):
    """What is to happen, in order."""

    earliest: int
    """How long after now something may happen at the earliest, in nanoseconds."""

    def push(self, movement: Movement) -> None: ...

    def peek(self) -> int | None: ...

    def pop(self) -> Movement: ...

    def cancel(self, movement: Movement) -> None: ...


class OrderedSchedule:
    """By instant, then by who came first."""

    earliest = 0

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._waiting: dict[int, Movement] = {}
        self._sequence = 0

    def push(self, movement: Movement) -> None:
        self._sequence += 1
        key = movement.key = (movement.occurs_at << _SEQUENCE_BITS) + self._sequence
        self._waiting[key] = movement
        heappush(self._heap, key)

    def peek(self) -> int | None:
        heap = self._heap
        while heap and heap[0] not in self._waiting:
            heappop(heap)
        return heap[0] >> _SEQUENCE_BITS if heap else None

    def pop(self) -> Movement:
        self.peek()
        return self._waiting.pop(heappop(self._heap))

    def cancel(self, movement: Movement) -> None:
        """Take it back; what is not there any more stays so."""
        self._waiting.pop(movement.key, None)


class ShiftingSchedule:
    """One movement for each nanosecond."""

    earliest = 1

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._waiting: dict[int, Movement] = {}

    def push(self, movement: Movement) -> None:
        instant = movement.occurs_at
        if instant in self._waiting:
            while instant in self._waiting:
                instant += 1
            movement = movement.at(instant)
        self._waiting[instant] = movement
        heappush(self._heap, instant)

    def peek(self) -> int | None:
        return self._heap[0] if self._heap else None

    def pop(self) -> Movement:
        return self._waiting.pop(heappop(self._heap))

    def cancel(self, movement: Movement) -> None:
        raise NotImplementedError("nothing is ever taken back in faithful mode")


class Environment:
    """Plays movements from ``start`` to ``halt`` and writes them down."""

    def __init__(
        self, start: int, run_for: int, schedule: MovementSchedule, log: MovementLog
    ) -> None:
        self.now = start
        self.start = start
        self.halt = start + run_for
        self.log = log
        self.halted = False
        self.stopped: Callable[[], bool] = go_on
        """Asked with every movement: `StoppedError` if it says so."""
        self._schedule = schedule
        self._add_start_and_halt()

    def add_to_schedule(self, movement: Movement) -> bool:
        """Whether the movement will be tried. One in the past or at the end is written down."""
        self.check()
        if movement.occurs_at < self.now + self._schedule.earliest:
            self.log.refused(movement, IgnoredReason.IN_PAST)
            return False
        if movement.occurs_at >= self.halt:
            self.log.refused(movement, IgnoredReason.AFTER_HALT)
            return False
        self._schedule.push(movement)
        return True

    def cancel(self, movement: Movement) -> None:
        self._schedule.cancel(movement)

    def peek(self) -> int | None:
        return self._schedule.peek()

    def run_until(self, instant: int) -> int:
        """Play all that is due up to and including ``instant``; returns how many movements."""
        played = 0
        while (due := self._schedule.peek()) is not None and due <= instant:
            self.step()
            played += 1
        return played

    def step(self) -> None:
        """Play the next movement."""
        self.check()
        movement = self._schedule.pop()
        self.now = movement.occurs_at
        moved = movement.source.remove(movement.entity)
        if moved is None:
            self.log.refused(movement, IgnoredReason.FROM_STOCK_EMPTY)
            return
        movement.target.add(moved)
        self.log.completed(movement, moved)

    def check(self) -> None:
        """Raise `StoppedError` if the run is to end now."""
        if self.stopped():
            raise StoppedError

    def _add_start_and_halt(self) -> None:
        scenario = Entity(EntityKind.SCENARIO)
        before: Stock[Entity] = Stock("BeforeScenario", EntityKind.SCENARIO)
        running: Stock[Entity] = Stock("RunningScenario", EntityKind.SCENARIO)
        before.add(scenario)
        start, halt = MovementKind.START_TO_RUNNING, MovementKind.RUNNING_TO_HALTED
        # Both stand on the borders, where nobody else is admitted.
        for movement in (
            Movement(start, self.start, before, running, scenario, ("Start scenario",)),
            Movement(halt, self.halt, running, HaltedStock(self), scenario, ("Halt scenario",)),
        ):
            self._schedule.push(movement)


class HaltedStock(Stock[Entity]):
    """Whoever arrives here has ended the run."""

    __slots__ = ("_environment",)

    def __init__(self, environment: Environment) -> None:
        super().__init__("HaltedScenario", EntityKind.SCENARIO)
        self._environment = environment

    def add(self, entity: Entity) -> None:
        super().add(entity)
        self._environment.halted = True
