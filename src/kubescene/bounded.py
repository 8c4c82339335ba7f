"""A dict that does not grow without end, for what can be made again."""

from collections import OrderedDict
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

KEPT = 1024
"""So many entries are kept where nothing speaks for another number: more classes, templates and
forms than any workload of ``bench`` has at a time. Results never depend on it."""


class BoundedDict(OrderedDict[K, V]):
    """At most so many entries: the oldest goes first.

    Whoever calls `move_to_end` for an entry that was asked for keeps those longest that are.
    """

    def __init__(self, most: int = KEPT) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        OrderedDict.__setitem__(self, key, value)  # by `super()` a fifth more
        if len(self) > self._most:
            self.popitem(last=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._most,), None, None, iter(self.items())
