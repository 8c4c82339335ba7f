"""What a plugin remembers from one extension point to the next, within one attempt at one pod."""

from typing import Any, TypeVar, cast

T = TypeVar("T")


class CycleState:
    """A bag keyed by plugin. Plugins themselves stay free of per-pod state."""

    __slots__ = ("_entries", "filter_errors", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()
        self.filter_errors = False

    def write(self, key: str, value: object) -> None:
        self._entries[key] = value

    def read(self, key: str, expected: type[T]) -> T:
        """What was written under ``key``; raises KeyError if nothing was."""
        del expected
        return cast("T", self._entries[key])

    def find(self, key: str) -> Any:
        return self._entries.get(key)
