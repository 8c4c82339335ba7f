"""What a Deployment looks at in a ReplicaSet that it owns."""

from collections.abc import Iterable
from typing import Any

import msgspec

from kubescene.types import JsonObject

DESIRED_ANNOTATION = "deployment.kubernetes.io/desired-replicas"
MAX_ANNOTATION = "deployment.kubernetes.io/max-replicas"
MAX_INT32 = (1 << 31) - 1


class OwnedSet(msgspec.Struct, frozen=True):
    """A ReplicaSet, or one that is about to be created.

    ``size`` is how many pods it should have, ``available`` how many it says are available.
    ``desired`` and ``most`` are what the Deployment asked for, without and with surge, when it last
    resized the set.
    """

    name: str
    size: int
    available: int = 0
    desired: int | None = None
    most: int | None = None
    obj: JsonObject = {}

    def __deepcopy__(self, memo: object) -> "OwnedSet":
        return self  # nothing of it ever changes

    @property
    def is_active(self) -> bool:
        return self.size > 0

    @property
    def annotations(self) -> dict[str, str]:
        return annotations_of(self.obj)

    def counted(self, field_name: str) -> int:
        """One of the counts in its status."""
        return int((self.obj.get("status") or {}).get(field_name) or 0)


def owned_set(obj: JsonObject) -> OwnedSet:
    annotations = annotations_of(obj)
    return OwnedSet(
        name=obj["metadata"]["name"],
        size=int(obj["spec"].get("replicas", 1)),
        available=available_in(obj),
        desired=count_in(annotations.get(DESIRED_ANNOTATION)),
        most=count_in(annotations.get(MAX_ANNOTATION)),
        obj=obj,
    )


def restated(it: OwnedSet, obj: JsonObject) -> OwnedSet:
    """The set with another status, and nothing else that is different."""
    return OwnedSet(it.name, it.size, available_in(obj), it.desired, it.most, obj)


def available_in(obj: JsonObject) -> int:
    return int((obj.get("status") or {}).get("availableReplicas") or 0)


def differs_in_status(one: JsonObject, other: JsonObject) -> bool:
    """Whether two versions of an object differ in nothing but the status; it may not know.

    Decoded objects are read-only: what is the very same has not changed. Of metadata, only what a
    rollout looks at.
    """
    if one is other:
        return True
    new, old = one["metadata"], other["metadata"]
    return (
        one["spec"] is other["spec"]
        and new.get("annotations") is old.get("annotations")
        and new.get("labels") is old.get("labels")
        and new["uid"] == old["uid"]
    )


def annotations_of(obj: JsonObject) -> dict[str, str]:
    found: dict[str, str] = (obj.get("metadata") or {}).get("annotations") or {}
    return found


def count_in(text: str | None) -> int | None:
    """The count that an annotation holds, or None if somebody has tampered with it."""
    if not text or not (text.isascii() and text.isdecimal()):
        return None
    count = int(text)
    return count if count <= MAX_INT32 else None


def by_age(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Oldest first; of the same second, in the order given, which is that of creation.

    kube-controller-manager goes by name there. In virtual time many sets share a second, and a
    name that ends in a hash says nothing about age.
    """
    return sorted(objects, key=created)


def created(obj: JsonObject) -> Any:
    return obj["metadata"].get("creationTimestamp") or ""
