"""Mixes of machines that satisfy what is needed in sum, the cheapest first.

A need is a row: what a machine of each group gives towards it, and how much it takes. Sums are
necessary, not sufficient: whether a mix holds is seen by playing it. Whole mixes come in the order
of their costs since a part of a mix is never rated higher than the cheapest whole it can become:
what is still needed is covered by fractions of machines, for each row alone.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from kubescene.sizing.groups import Mix

Rating: TypeAlias = tuple[int, ...]
ENOUGH = 200_000
"""So many parts of mixes are looked at, no more."""


class Need(NamedTuple):
    """``amount`` is needed; a machine of each group gives so much of it."""

    gives: tuple[int, ...]
    amount: int
    words: str = ""


class TooManyMixesError(Exception):
    """There may be cheaper mixes than all that were looked at."""


class CheapestMixes:
    """Iterates over whole mixes, with their costs never falling.

    ``costs`` are vectors, the first of which counts most. Raises `TooManyMixesError` when it has
    looked at `ENOUGH`.
    """

    def __init__(
        self,
        bounds: Sequence[tuple[int, int]],
        costs: Sequence[Sequence[int]],
        needs: Sequence[Need],
    ) -> None:
        self._bounds = bounds
        self._costs = costs
        self._needs = [each for each in needs if each.amount > 0]
        self._orders = [[self._by_price(need, vector) for need in self._needs] for vector in costs]

    def _by_price(self, need: Need, costs: Sequence[int]) -> list[int]:
        """The groups that give towards a need, the cheapest for what it gives first."""
        useful = [at for at, gives in enumerate(need.gives) if gives]
        return sorted(useful, key=lambda at: costs[at] / need.gives[at])

    def within(self, most: Rating | None) -> Iterator[tuple[Rating, Mix]]:
        """Those that cost less than ``most``, if that is said."""
        heap: list[tuple[Rating, int, Mix]] = []
        self._push(heap, (), most)
        looked = 0
        while heap:
            rating, _, mix = heappop(heap)
            if len(mix) == len(self._bounds):
                yield rating, mix
                continue
            looked += 1
            if looked > ENOUGH or len(heap) > ENOUGH:
                raise TooManyMixesError
            least, limit = self._bounds[len(mix)]
            for count in range(least, limit + 1):
                if not self._push(heap, (*mix, count), most) and self._is_dear(mix, count, most):
                    break

    def _push(self, heap: list[tuple[Rating, int, Mix]], mix: Mix, most: Rating | None) -> bool:
        rating = self.rating(mix)
        if rating is None or (most is not None and rating >= most):
            return False
        heappush(heap, (rating, -len(mix), mix))
        return True

    def _is_dear(self, mix: Mix, count: int, most: Rating | None) -> bool:
        """Whether the part alone costs as much as is allowed, so that more of it is hopeless."""
        if most is None:
            return False
        part = (*mix, count)
        spent = tuple(
            sum(a * b for a, b in zip(vector, part, strict=False)) for vector in self._costs
        )
        return spent >= most and self._costs[0][len(mix)] > 0

    def rating(self, part: Mix) -> Rating | None:
        """No whole mix that begins so costs less; None if none satisfies the needs."""
        rated = []
        for vector, orders in zip(self._costs, self._orders, strict=True):
            mix = [*part, *(least for least, _ in self._bounds[len(part) :])]
            spent = sum(a * b for a, b in zip(vector, mix, strict=True))
            dearest = 0
            for need, order in zip(self._needs, orders, strict=True):
                missing = need.amount - sum(a * b for a, b in zip(need.gives, mix, strict=True))
                more = self._cover(missing, need, order, vector, len(part))
                if more is None:
                    return None
                dearest = max(dearest, more)
            rated.append(spent + dearest)
        return tuple(rated)

    def _cover(
        self, missing: int, need: Need, order: Sequence[int], costs: Sequence[int], decided: int
    ) -> int | None:
        """What it costs at least to give so much more, with fractions of machines."""
        spent = 0
        for at in order:
            if missing <= 0:
                break
            least, most = self._bounds[at]
            if at < decided or most == least:
                continue
            gives = need.gives[at]
            if gives * (most - least) >= missing:
                return spent - (-missing * costs[at] // gives)
            spent += costs[at] * (most - least)
            missing -= gives * (most - least)
        return spent if missing <= 0 else None
