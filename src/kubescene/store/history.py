"""The newest changes, so that a watch can start in the past and a list can look back.

Changes older than the window are forgotten; asking for them is answered with 410 Expired, as a
real API server does after compaction.
"""

from collections import deque
from itertools import islice
from typing import Generic, Protocol, TypeVar

from kubescene.errors import ExpiredError

DEFAULT_WINDOW = 10_000
DEFAULT_BYTES = 256 * 1024 * 1024
"""Beyond this the oldest changes go, however few there are: large objects change often too."""


class Revisioned(Protocol):
    @property
    def revision(self) -> int: ...

    @property
    def size(self) -> int:
        """Roughly how many bytes are kept alive by it."""
        ...


C = TypeVar("C", bound=Revisioned)


class History(Generic[C]):
    """Changes in order of revision. Every revision is one change, so positions are arithmetic."""

    def __init__(self, window: int, most_bytes: int = DEFAULT_BYTES) -> None:
        self._changes: deque[C] = deque()
        self._window = window
        self._most_bytes = most_bytes
        self._bytes = 0
        self._newest = 0

    @property
    def compacted(self) -> int:
        """The newest revision that is forgotten; watches may start at it or later."""
        return self._newest - len(self._changes)

    def append(self, change: C) -> None:
        changes = self._changes
        changes.append(change)
        self._newest = change.revision
        self._bytes += change.size
        while len(changes) > self._window or (self._bytes > self._most_bytes and len(changes) > 1):
            self._bytes -= changes.popleft().size

    def since(self, revision: int) -> list[C]:
        """Changes after ``revision``, oldest first."""
        if revision < self.compacted:
            raise ExpiredError(f"too old resource version: {revision} ({self.compacted + 1})")
        changes = self._changes
        skip = len(changes) - (self._newest - revision)
        return list(islice(changes, max(skip, 0), None))
