"""One watch of a program outside: it sees what it is given, when it is given.

The engine thread decides what is sent; the event loop sends it and says how far it has come. So
what a program knows at the beginning of its turn does not depend on how fast anybody reads.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource


class Source(Protocol):
    """Changes of a resource since the watch began, in order (`kubescene.store.Watch`)."""

    def drain(self) -> list[Change]: ...


class WatchFeed:
    """What one watch is sent. ``mark`` tells the event loop that there is something to send."""

    def __init__(
        self,
        resource: GroupResource,
        mark: Callable[[], None],
        heard: Callable[[], None],
        product: str = "",
    ) -> None:
        """``product``: the program that watches, as it calls itself."""
        self.resource = resource
        self.product = product
        self._mark = mark
        self._heard = heard
        self._source: Source | None = None
        self._outbox: deque[Change] = deque()
        self._released = 0
        self._sent = 0
        self.is_open = True
        self.has_begun = False
        """Whether all that existed when the watch began was sent."""

    # -- on the engine thread --------------------------------------------------------------------

    def follow(self, source: Source) -> None:
        self._source = source
        if self.is_open:
            self.release(self.pull())

    def wake(self) -> None:
        """Something has changed."""
        if self.is_open:
            self.release(self.pull())
        self._heard()

    def pull(self) -> list[Change]:
        """All changes that were not looked at yet."""
        return [] if self._source is None else self._source.drain()

    def release(self, changes: Iterable[Change]) -> None:
        """Let these be sent."""
        released = list(changes)
        self._outbox.extend(released)
        self._released += len(released)
        self._mark()

    @property
    def is_sent(self) -> bool:
        """Whether all that was released has gone out."""
        return self.has_begun and self._sent >= self._released

    # -- on the event loop -----------------------------------------------------------------------

    def take(self) -> list[Change]:
        """What is to be sent now."""
        taken = []
        while self._outbox:
            taken.append(self._outbox.popleft())
        return taken

    def note_sent(self, count: int) -> None:
        self._sent += count
