"""Which node wins: the one with the highest total, and among equals that of kube-scheduler's heap.

That is the first in *pre-order* of the binary tree that a heap lays over the list of nodes.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kubescene.clock import Stream
from kubescene.scheduler.framework.interfaces import Scores
from kubescene.scheduler.framework.normalization import highest

Totals = TypeVar("Totals", int, Scores)

_LEVELS = 32
_KEY_BITS = 39
SMALL = 1 << 63 - _KEY_BITS - 1


def pick(totals: Scores) -> int:
    """The position of the winner, ties broken as kube-scheduler's heap does. [C-14]"""
    best = (totals == highest(totals)).nonzero()[0]
    if best.size == 1:
        return int(best[0])
    return int(best[pre_order(totals.size).take(best).argmin()])


def pick_small(totals: Scores) -> int:
    """The same for totals that are at least 0 and less than `SMALL`, faster."""
    return pick_ranked(ranked(totals))


def ranked(totals: Totals) -> Totals:
    """Totals, or one, in the form that `pick_ranked` wants: with room for what breaks ties."""
    return totals << _KEY_BITS


def unranked(totals: Scores) -> Scores:
    """The totals that were `ranked`; a copy."""
    return totals >> _KEY_BITS


def pick_ranked(totals: Scores) -> int:
    """The same for those who keep their totals `ranked`."""
    return int((totals - pre_order(totals.size)[: totals.size]).argmax())


def pick_any(totals: Scores, rated: NDArray[np.bool_], random: Stream) -> int:
    """One of those with the highest total that an extender rated, as chance has it (C-15).

    If it rated none of them, the heap decides.
    """
    best = ((totals == totals.max()) & rated).nonzero()[0]
    if not best.size:
        return pick(totals)
    if best.size > 1:
        best = best[pre_order(totals.size).take(best).argsort()]
    return int(best[random.below(best.size)] if best.size > 1 else best[0])


_pre_order: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def pre_order(count: int) -> NDArray[np.int64]:
    """For positions 0..count-1 of a heap, keys that sort as pre-order does.

    The path to position i is spelled by the bits of i+1 behind the leading one; pre-order compares
    paths like words, a shorter word first.
    """
    global _pre_order  # noqa: PLW0603 - a cache of a pure function
    if _pre_order.size < count:
        depths = [(position + 1).bit_length() for position in range(2 * count)]
        keys = [
            ((position + 1) << (_LEVELS - depth)) * _LEVELS * 2 + depth
            for position, depth in enumerate(depths)
        ]
        _pre_order = np.array(keys, dtype=np.int64)
    return _pre_order
