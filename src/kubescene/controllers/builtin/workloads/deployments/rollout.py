"""One Deployment with its ReplicaSets: what a pass looks at."""

from collections.abc import Iterable, Sequence

import msgspec

from kubescene.controllers.builtin.workloads.deployments.rolling import Limits, limits_of
from kubescene.controllers.builtin.workloads.deployments.sets import (
    OwnedSet,
    by_age,
    differs_in_status,
    owned_set,
    restated,
)
from kubescene.controllers.builtin.workloads.deployments.templates import identical, same_template
from kubescene.types import JsonObject


class Rollout(msgspec.Struct, frozen=True):
    """``new`` has the Deployment's template, ``olds`` have others; oldest first."""

    deployment: JsonObject
    limits: Limits
    new: OwnedSet | None
    olds: tuple[OwnedSet, ...]

    def __deepcopy__(self, memo: object) -> "Rollout":
        return self  # nothing of it ever changes

    @property
    def sets(self) -> tuple[OwnedSet, ...]:
        """All of them, the new one last."""
        return self.olds if self.new is None else (*self.olds, self.new)

    @property
    def active_olds(self) -> list[OwnedSet]:
        return [old for old in self.olds if old.is_active]

    @property
    def total(self) -> int:
        """The pods that all sets together should have."""
        return sum([it.size for it in self.sets])

    @property
    def status(self) -> JsonObject:
        """The Deployment's status as it is stored."""
        return self.deployment.get("status") or {}

    @property
    def is_paused(self) -> bool:
        return bool(self.deployment["spec"].get("paused"))

    @property
    def is_scaled(self) -> bool:
        """Whether the Deployment was scaled since it last resized one of its active sets."""
        wanted = self.limits.replicas
        for it in self.sets:
            if it.size > 0 and it.desired is not None and it.desired != wanted:
                return True
        return False


def rollout_of(deployment: JsonObject, owned: Iterable[JsonObject]) -> Rollout:
    sets = [owned_set(obj) for obj in by_age(owned)]
    new = find_new(sets, deployment["spec"]["template"])
    olds = tuple(it for it in sets if it is not new)
    return Rollout(deployment, limits_of(deployment), new, olds)


class Standing(msgspec.Struct, frozen=True):
    """A rollout whose sets need nothing but their pods: claimed, numbered, sized as they should be.

    While nothing changes but statuses, that stays so, and sets stay new or old.
    """

    rollout: Rollout
    owned: Sequence[JsonObject]

    def __deepcopy__(self, memo: object) -> "Standing":
        return self  # nothing of it ever changes

    def renewed(self, deployment: JsonObject, owned: Sequence[JsonObject]) -> Rollout | None:
        """The rollout with the statuses of now; None if more may have changed."""
        before = self.rollout
        if len(owned) != len(self.owned) or not differs_in_status(deployment, before.deployment):
            return None
        for it, was in zip(owned, self.owned, strict=True):
            if not differs_in_status(it, was):
                return None
        if before.new is not None and not before.olds:
            return Rollout(deployment, before.limits, restated(before.new, owned[0]), ())
        now = {it["metadata"]["name"]: it for it in owned}
        new = None if before.new is None else restated(before.new, now[before.new.name])
        olds = tuple([restated(old, now[old.name]) for old in before.olds])
        return Rollout(deployment, before.limits, new, olds)


def find_new(sets: Sequence[OwnedSet], template: JsonObject) -> OwnedSet | None:
    """The oldest set with this template. Templates written alike are the rule, and cheap to see."""
    for same in (identical, same_template):
        for it in sets:
            if same(it.obj["spec"]["template"], template):
                return it
    return None
