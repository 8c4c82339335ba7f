"""Scaling in the middle of a rollout: every set keeps its share.

If only the new set grew with the Deployment, or only the old ones shrank, scaling would
hasten the rollout and with it the damage that a bad template does.
"""

from collections.abc import Sequence

from kubescene.controllers.builtin.rollouts.limits import Limits
from kubescene.controllers.builtin.rollouts.rolling import Sizes
from kubescene.controllers.builtin.rollouts.sets import OwnedSet


def proportional_sizes(sets: Sequence[OwnedSet], limits: Limits, running: int) -> Sizes:
    """New sizes of all active sets, given oldest first, so that they fill what is allowed.

    The share of a set is its size against what was allowed when it was last resized, or against
    the ``running`` pods if that is not known. The largest set takes what rounding leaves over.
    """
    allowed = limits.most if limits.replicas else 0
    missing = allowed - sum(it.size for it in sets)
    sizes: Sizes = {}
    left = missing
    ranked = by_size(sets, newest_first=missing > 0)
    for it in ranked:
        change = within(left, fraction(it, limits, running))
        sizes[it.name] = it.size + change
        left -= change
    if ranked:
        largest = ranked[0].name
        sizes[largest] = max(sizes[largest] + left, 0)
    return sizes


def by_size(sets: Sequence[OwnedSet], *, newest_first: bool) -> list[OwnedSet]:
    """The largest first; of the same size the newest, or the oldest."""
    ordered = reversed(sets) if newest_first else sets
    return sorted(ordered, key=lambda it: -it.size)


def fraction(it: OwnedSet, limits: Limits, running: int) -> int:
    """How many pods a set would gain or lose if it went along exactly, rounded half up."""
    if not limits.replicas:
        return -it.size
    before = it.most or running
    if not before:
        return 0
    return (2 * it.size * limits.most + before) // (2 * before) - it.size


def within(left: int, change: int) -> int:
    """Never more than what is left to add or to take away."""
    if left == 0:
        return 0
    return min(change, left) if left > 0 else max(change, left)
