"""Sets of completion indexes, written as a status has them: ``0-2,5``."""

from collections.abc import Iterable, Iterator


def parse_indexes(text: str, completions: int) -> frozenset[int]:
    """The indexes below ``completions``; what cannot be read is left out."""
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(each for each in found if each < completions)


def indexes_text(indexes: Iterable[int]) -> str:
    """Runs of two are written apart, longer ones as an interval."""
    return ",".join(_runs(sorted(indexes)))


def _runs(ordered: list[int]) -> Iterator[str]:
    at = 0
    while at < len(ordered):
        end = at
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[at], ordered[end]
        if last > first + 1:
            yield f"{first}-{last}"
        else:
            yield from map(str, range(first, last + 1))
        at = end + 1


def first_free(taken: frozenset[int], count: int, completions: int) -> list[int]:
    """The lowest indexes that are not taken."""
    free: list[int] = []
    for index in range(completions):
        if len(free) == count:
            break
        if index not in taken:
            free.append(index)
    return free
