"""A log that is read from a position on, and kept only so far back."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from kubescene.scheduler.state.row_policy import POLICY

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """The newest entries, by position."""

    __slots__ = ("_entries", "_first", "_kept")

    def __init__(self, kept: int = POLICY.entries_followed) -> None:
        self._kept = kept
        self._entries: list[T] = []
        self._first = 0

    @property
    def end(self) -> int:
        return self._first + len(self._entries)

    def add(self, entry: T) -> None:
        self._entries.append(entry)
        if len(self._entries) >= 2 * self._kept:
            del self._entries[: self._kept]
            self._first += self._kept

    def since(self, position: int) -> Sequence[T] | None:
        """The entries from a position on; None if the first of them are forgotten."""
        if position < self._first:
            return None
        return self._entries[position - self._first :] if position < self.end else ()


class LogReader(Generic[T]):
    """One who reads a log, and how far he has come."""

    __slots__ = ("_log", "_position")

    def __init__(self, log: ChangeLog[T]) -> None:
        self._log = log
        self._position = -1

    def read(self) -> Sequence[T] | None:
        """What was added since the last call; None the first time and if it is too long ago."""
        position, self._position = self._position, self._log.end
        return self._log.since(position)
