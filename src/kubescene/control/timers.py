"""The event queue as one controller sees it: what falls due wakes the controller."""

from collections.abc import Callable
from typing import Any

from kubescene.clock import EventQueue, Scheduled
from kubescene.clock.event_queue import Action, EventSource


class Timers:
    """`at` and `after` of the world's event queue, on behalf of one controller."""

    __slots__ = ("_queue", "_sources", "_wake")

    def __init__(self, queue: EventQueue, wake: Callable[[], None]) -> None:
        self._queue = queue
        self._wake = wake
        self._sources: list[EventSource] = []

    def now(self) -> int:
        """The instant at which the world stands."""
        return self._queue.clock.now()

    def at(self, instant: int, action: Action, *arguments: Any, name: str = "") -> Scheduled:
        """Call ``action(*arguments)`` at ``instant`` and then give the controller a turn."""
        return self._queue.at(instant, self._fire, action, arguments, name=name)

    def after(self, delay: int, action: Action, *arguments: Any, name: str = "") -> Scheduled:
        """The same once ``delay`` nanoseconds have passed."""
        return self._queue.after(delay, self._fire, action, arguments, name=name)

    def attach(self, source: EventSource) -> None:
        """Let a simulation with a kernel of its own have its turns on the world's clock.

        It is let go with the controllers, when a new scenario begins.
        """
        self._queue.attach(source)
        self._sources.append(source)

    def detach(self, source: EventSource) -> None:
        """Let a source go; it gets no further turn."""
        self._queue.detach(source)
        self._sources = [known for known in self._sources if known is not source]

    def withdraw(self) -> None:
        """Take back all that waits, and let its sources go: the controller is gone."""
        self._queue.withdraw(self._fire)
        for source in self._sources:
            self._queue.detach(source)
        self._sources = []

    def _fire(self, action: Action, arguments: tuple[Any, ...]) -> None:
        try:
            action(*arguments)
        finally:
            self._wake()
