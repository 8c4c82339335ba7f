"""Sets of completion indexes, written as a status has them: ``0-2,5``."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

Run = tuple[int, int]
"""The first and the last of indexes that follow each other."""


class Indexes(Struct, frozen=True):
    """Kept in ascending runs, as they are written: a wide Job has many indexes and few runs."""

    runs: tuple[Run, ...] = ()

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.runs)

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self.runs, index, key=_first) - 1
        return at >= 0 and index <= self.runs[at][1]

    def __or__(self, other: "Indexes") -> "Indexes":
        return joined((*self.runs, *other.runs))

    def added(self, indexes: Iterable[int]) -> "Indexes":
        """With some more."""
        return self | joined((index, index) for index in indexes)

    def common(self, other: "Indexes") -> int:
        """How many are in both."""
        return len(self) + len(other) - len(self | other)

    def free(self, completions: int) -> Iterator[int]:
        """Those below ``completions`` that are not among them, in ascending order."""
        begin = 0
        for first, last in self.runs:
            yield from range(begin, min(first, completions))
            begin = last + 1
        yield from range(begin, completions)

    def __str__(self) -> str:
        """Runs of two are written apart, longer ones as an interval."""
        return ",".join(map(_text, self.runs))


def _first(run: Run) -> int:
    return run[0]


def _text(run: Run) -> str:
    first, last = run
    if last > first + 1:
        return f"{first}-{last}"
    return str(first) if first == last else f"{first},{last}"


def joined(runs: Iterable[Run]) -> Indexes:
    """All indexes of some runs, which may overlap."""
    found: list[Run] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return Indexes(tuple(found))


def parse_indexes(text: str, completions: int) -> Indexes:
    """The indexes below ``completions``; what cannot be read is left out."""
    runs: list[Run] = []
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            begin, end = int(first), min(int(last or first), completions - 1)
            if begin <= end:
                runs.append((begin, end))
    return joined(runs)


def first_free(taken: Indexes, busy: Collection[int], count: int, completions: int) -> list[int]:
    """The lowest indexes that are neither taken nor busy."""
    free: list[int] = []
    for index in taken.free(completions) if count else ():
        if index not in busy:
            free.append(index)
            if len(free) == count:
                break
    return free
