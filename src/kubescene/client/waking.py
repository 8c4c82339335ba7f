"""Handlers after which somebody gets a turn."""

from collections.abc import Callable

from kubescene.api.kinds import BOOKKEEPING
from kubescene.api.records.changes import Change
from kubescene.client.interfaces import EventHandler


class Waking:
    """A handler after which the controller that watches gets a turn."""

    __slots__ = ("_handler", "_wake")

    def __init__(self, handler: EventHandler, wake: Callable[[], None]) -> None:
        self._handler = handler
        self._wake = wake

    def __call__(self, change: Change) -> None:
        self._handler(change)
        self._wake()

    def unless_bookkeeping(self, change: Change) -> None:
        """For those who follow everything: an Event or a step of the scenario means no work."""
        self._handler(change)
        if change.record.resource not in BOOKKEEPING:
            self._wake()


def waking(handler: EventHandler, wake: Callable[[], None] | None) -> EventHandler:
    """The handler of one kind, after which ``wake`` is called; itself if nobody is to be woken."""
    return handler if wake is None else Waking(handler, wake)


def waking_for_all(handler: EventHandler, wake: Callable[[], None] | None) -> EventHandler:
    """The same for a handler of all kinds."""
    return handler if wake is None else Waking(handler, wake).unless_bookkeeping
