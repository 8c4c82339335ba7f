"""Rolling updates: the next sizes of the new set and of the old ones.

Up as far as the surge allows, down as far as availability allows, in turns. Both ask the sets' own
status for availability, so a set that has not caught up with its size holds things up.
"""

from collections.abc import Sequence
from typing import TypeAlias

from kubescene.controllers.builtin.rollouts.limits import Limits
from kubescene.controllers.builtin.rollouts.sets import OwnedSet

Sizes: TypeAlias = dict[str, int]
"""New sizes by name of set; sets that stay as they are are left out."""


def new_size(size: int, total: int, limits: Limits) -> int:
    """How large the new set should be, when all sets together have ``total`` pods."""
    if size >= limits.replicas:
        return limits.replicas
    room = max(limits.most - total, 0)
    return min(size + room, limits.replicas)


def old_sizes(new: OwnedSet, olds: Sequence[OwnedSet], limits: Limits) -> Sizes:
    """How large the old sets should be, oldest first.

    Pods of the new set that are not available yet count against what may go, so that a template
    that never becomes ready stops the rollout instead of eating up the old pods.
    """
    active = [old for old in olds if old.is_active]
    total = new.size + sum(old.size for old in active)
    spare = total - limits.least - (new.size - new.available)
    if spare <= 0:
        return {}
    sizes = {old.name: old.size for old in active}
    if remove_unhealthy(sizes, active, spare):
        available = new.available + sum(old.available for old in active)
        remove(sizes, available - limits.least)
    return {old.name: sizes[old.name] for old in active if sizes[old.name] != old.size}


def remove_unhealthy(sizes: Sizes, olds: Sequence[OwnedSet], spare: int) -> bool:
    """Take away what is not available anyway; False if a set has not caught up with its size.

    A set with more available pods than it should have is still shrinking: its figures mean nothing
    yet, and everything else waits.
    """
    for old in olds:
        if spare <= 0:
            break
        unhealthy = old.size - old.available
        if unhealthy < 0:
            return False
        removed = min(spare, unhealthy)
        sizes[old.name] -= removed
        spare -= removed
    return True


def remove(sizes: Sizes, surplus: int) -> None:
    """Take ``surplus`` pods away, oldest set first."""
    for name, size in sizes.items():
        removed = min(size, max(surplus, 0))
        sizes[name] = size - removed
        surplus -= removed
