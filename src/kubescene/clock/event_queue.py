"""What happens later, in one order.

A heap of ``(instant, priority, sequence)``: earlier first, then lower priority value, then who
came first. That triple is the only ordering rule; ties never depend on anything else. The control
surface is `peek`, `step` and `run`, so pausing and single-stepping cost nothing.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from kubescene.clock.clocks import Clock

Action = Callable[..., object]
"""A function or bound method; what it needs to know is passed along, never closed over."""


class Scheduled:
    """One entry of the queue, and the handle to cancel it."""

    __slots__ = ("action", "arguments", "instant", "name")

    def __init__(self, instant: int, action: Action, arguments: tuple[Any, ...], name: str) -> None:
        self.instant = instant
        self.action: Action | None = action
        self.arguments = arguments
        self.name = name

    def cancel(self) -> None:
        """Take it back. Cancelling twice, or after it ran, does nothing."""
        self.action = None

    @property
    def pending(self) -> bool:
        return self.action is not None

    def __repr__(self) -> str:
        state = "" if self.pending else " (not pending)"
        return f"<Scheduled {self.name} at {self.instant}{state}>"


class EventQueue:
    """Everything that is due later. Actions run on the caller's thread, one at a time.

    An action that raises stops the run: in a simulator a swallowed error is a wrong result.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[tuple[int, int, int, Scheduled]] = []
        self._sequence = count()

    def at(
        self, instant: int, action: Action, *arguments: Any, name: str = "", priority: int = 0
    ) -> Scheduled:
        """Call ``action(*arguments)`` at ``instant``; an instant that has passed means now."""
        entry = Scheduled(max(instant, self.clock.now()), action, arguments, name)
        heappush(self._heap, (entry.instant, priority, next(self._sequence), entry))
        return entry

    def after(
        self, delay: int, action: Action, *arguments: Any, name: str = "", priority: int = 0
    ) -> Scheduled:
        """Call ``action(*arguments)`` once ``delay`` nanoseconds have passed."""
        return self.at(self.clock.now() + delay, action, *arguments, name=name, priority=priority)

    def peek(self) -> int | None:
        """The instant of the next pending entry, or None if nothing is due ever."""
        heap = self._heap
        while heap and not heap[0][3].pending:
            heappop(heap)
        return heap[0][0] if heap else None

    def step(self) -> Scheduled | None:
        """Wait for the next entry and run it; None if the queue is empty."""
        if self.peek() is None:
            return None
        _, _, _, entry = heappop(self._heap)
        self.clock.wait_until(entry.instant)
        action, entry.action = entry.action, None
        assert action is not None
        action(*entry.arguments)
        return entry

    def run_due(self) -> int:
        """Run what is due now, in order, and what it makes due now; returns how many ran."""
        ran = 0
        while (instant := self.peek()) is not None and instant <= self.clock.now():
            self.step()
            ran += 1
        return ran

    def run(self, until: int) -> None:
        """Run everything due up to ``until``, then let it become ``until``."""
        while (instant := self.peek()) is not None and instant <= until:
            self.step()
        self.clock.wait_until(until)

    def clear(self) -> None:
        self._heap.clear()

    def __len__(self) -> int:
        return sum(entry.pending for _, _, _, entry in self._heap)
