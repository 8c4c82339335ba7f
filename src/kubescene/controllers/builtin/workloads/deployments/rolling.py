"""Rolling updates: the next sizes of the new set and of the old ones, and of all when scaled.

`Limits` are how many pods a Deployment may have at once, and how many it must not fall below. Up as
far as the surge allows, down as far as availability allows, in turns. Both ask the sets' own status
for availability, so a set that has not caught up with its size holds things up.
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from kubescene.controllers.builtin.workloads.deployments.sets import OwnedSet
from kubescene.types import JsonObject


class Limits(msgspec.Struct, frozen=True, gc=False):
    """``surge`` and ``unavailable`` as counts. A Recreate strategy has neither."""

    replicas: int
    surge: int = 0
    unavailable: int = 0
    rolling: bool = True

    def __deepcopy__(self, memo: object) -> "Limits":
        return self  # nothing of it ever changes

    @property
    def most(self) -> int:
        """Pods of all sets together, at most."""
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """Pods that have to be available."""
        return self.replicas - self.unavailable


def limits_of(deployment: JsonObject) -> Limits:
    spec = deployment["spec"]
    replicas = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return Limits(replicas, rolling=False)
    pace = strategy.get("rollingUpdate") or {}
    surge, unavailable = resolve(pace.get("maxSurge"), pace.get("maxUnavailable"), replicas)
    return Limits(replicas, surge, min(unavailable, replicas))


def resolve(
    max_surge: int | str | None, max_unavailable: int | str | None, replicas: int
) -> tuple[int, int]:
    """Both as counts: surge rounded up, unavailable rounded down.

    If both come to nothing one pod may be unavailable, since otherwise nothing could ever move.
    """
    surge = share(max_surge, replicas, rounded_up=True)
    unavailable = share(max_unavailable, replicas)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def share(value: int | str | None, of: int, *, rounded_up: bool = False) -> int:
    """A count as it is, or that percentage ``of`` a number."""
    if not isinstance(value, str):
        return value or 0
    hundredths = int(value.removesuffix("%")) * of
    return -(-hundredths // 100) if rounded_up else hundredths // 100


Sizes: TypeAlias = dict[str, int]
"""New sizes by name of set."""


def new_size(size: int, total: int, limits: Limits) -> int:
    """How large the new set should be, when all sets together have ``total`` pods."""
    if size >= limits.replicas:
        return limits.replicas
    room = max(limits.most - total, 0)
    return min(size + room, limits.replicas)


def old_sizes(new: OwnedSet, olds: Sequence[OwnedSet], limits: Limits) -> tuple[Sizes, Sizes]:
    """How large the old sets should be, oldest first: without unhealthy pods, and in the end.

    Pods of the new set that are not available yet count against what may go, so that a template
    that never becomes ready stops the rollout instead of eating up the old pods.
    """
    active = [old for old in olds if old.is_active]
    total = new.size + sum(old.size for old in active)
    spare = total - limits.least - (new.size - new.available)
    if spare <= 0:
        return {}, {}
    sizes = {old.name: old.size for old in active}
    has_caught_up = remove_unhealthy(sizes, active, spare)
    healthy = dict(sizes)
    if has_caught_up:
        available = new.available + sum(old.available for old in active)
        remove(sizes, available - limits.least)
    return healthy, sizes


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


def proportional_sizes(sets: Sequence[OwnedSet], limits: Limits, running: int) -> Sizes:
    """New sizes of all active sets, given oldest first, so that they fill what is allowed.

    Scaled in the middle of a rollout, every set keeps its share: if only the new set grew with the
    Deployment, or only the old ones shrank, scaling would hasten the rollout and with it the damage
    that a bad template does.

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
