"""Node indexes that stand next to each other, but for a few.

A search examines nodes one after the other, from where the last one ended, and most of them pass.
So an explanation needs to hold no more than where stretches of such nodes begin and end.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, cast, overload


class Stretches(Sequence[int]):
    """Indexes in their order, by the first and the last of each stretch of ascending neighbours.

    Stretches do not touch, unless the search came to the last index and went on with 0. Immutable.
    """

    __slots__ = ("_bounds", "_size")

    def __init__(self, bounds: Iterable[int], size: int | None = None) -> None:
        """``bounds`` are first, last, first, last; ``size`` their number, if it is known."""
        self._bounds = array("i", bounds)
        self._size = size

    @classmethod
    def around(cls, start: int, size: int, total: int) -> Self:
        """``size`` of ``total`` indexes from ``start`` on, the last followed by 0."""
        end = start + size
        if end <= total:
            return cls((start, end - 1), size)
        return cls((start, total - 1, 0, end - total - 1), size)

    def runs(self) -> list[int | list[int]]:
        """Each stretch as a pair of the first and the last, or as its only index."""
        pairs = self._pairs()
        return [first if first == last else [first, last] for first, last in pairs]

    def _pairs(self) -> Iterator[tuple[int, int]]:
        bounds = iter(self._bounds)
        return zip(bounds, bounds, strict=True)

    def head(self, count: int) -> list[int]:
        """The first indexes, not more than ``count``."""
        found: list[int] = []
        for first, last in self._pairs():
            found += range(first, min(last + 1, first + count - len(found)))
            if len(found) == count:
                break
        return found

    def tolist(self) -> list[int]:
        """All of them."""
        return self.head(len(self))

    def place_of(self, index: int) -> int | None:
        """Where an index stands among them; None if it does not."""
        before = 0
        for first, last in self._pairs():
            if first <= index <= last:
                return before + index - first
            before += last + 1 - first
        return None

    def __contains__(self, index: object) -> bool:
        bounds, wanted = self._bounds, cast("int", index)
        if bounds and bounds[0] > bounds[-1]:  # The search went on with 0.
            return self.place_of(wanted) is not None
        at = bisect_left(bounds, wanted)
        # Inside a stretch the next bound is its last; a first one is found itself.
        return bool(at % 2) or (at < len(bounds) and bounds[at] == wanted)

    def __len__(self) -> int:
        if self._size is None:
            bounds = self._bounds
            self._size = sum(bounds[1::2]) - sum(bounds[::2]) + len(bounds) // 2
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        return self.tolist()[at]

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Stretches":
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.runs()}>"
