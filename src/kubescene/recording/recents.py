"""A memory of bounded size that forgets what was not asked for longest."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

MAX_ENTRIES = 4096

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recents(Generic[K, V]):
    """The entries used last."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._most = most
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
