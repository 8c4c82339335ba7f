"""Node indexes that stand next to each other, but for a few.

A search examines nodes one after the other, from where the last one ended, and most of them pass.
So an explanation needs to hold no more than where that was and which of them did not.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, overload

_NO_GAPS = array("i")


class Stretch(Sequence[int]):
    """``size`` of ``total`` indexes from ``start`` on, the last followed by 0.

    Those that stand at ``gaps`` (counted from ``start``, ascending) are left out. Immutable.
    """

    __slots__ = ("_gaps", "_size", "_start", "_total")

    def __init__(self, start: int, size: int, total: int, gaps: Sequence[int] = ()) -> None:
        self._start = start
        self._size = size
        self._total = total
        self._gaps = array("i", gaps) if gaps else _NO_GAPS

    def without(self, gaps: Sequence[int]) -> "Stretch":
        """The same with these gaps."""
        return Stretch(self._start, self._size, self._total, gaps)

    def head(self, count: int) -> list[int]:
        """The first indexes, not more than ``count``."""
        start, total, gaps = self._start, self._total, self._gaps
        if not gaps or gaps[0] >= count:
            end = start + min(count, self._size)
            if end <= total:
                return list(range(start, end))
            return [*range(start, total), *range(end - total)]
        held = set(gaps)
        places = range(min(self._size, count + len(held)))
        return [(start + place) % total for place in places if place not in held][:count]

    def tolist(self) -> list[int]:
        """All of them."""
        return self.head(self._size)

    def place_of(self, index: int) -> int | None:
        """Where an index stands among them; None if it does not."""
        place, gaps = (index - self._start) % self._total, self._gaps
        before = bisect_left(gaps, place)
        is_gap = before < len(gaps) and gaps[before] == place
        return None if is_gap or place >= self._size else place - before

    def runs(self) -> list[int | list[int]]:
        """Each run of neighbours as a pair of the first and the last, or as its only index."""
        found: list[int | list[int]] = []
        start, total = self._start, self._total
        begin = start
        for gap in (*self._gaps, self._size):
            end = start + gap
            if begin < total < end:
                found.append(_run(begin, total))
                begin = total
            if begin < end:
                turn = total if begin >= total else 0
                found.append(_run(begin - turn, end - turn))
            begin = end + 1
        return found

    def __len__(self) -> int:
        return self._size - len(self._gaps)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> list[int]: ...
    def __getitem__(self, at: int | slice) -> int | list[int]:
        return self.tolist()[at]

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Stretch":
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.runs()}>"


def _run(first: int, end: int) -> int | list[int]:
    return first if first == end - 1 else [first, end - 1]
