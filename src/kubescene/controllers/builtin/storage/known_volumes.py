"""What the volume controller remembers of volumes and claims, so that it need not look at all.

Free volumes stand by class in order of size; claims that wait stand by class as well.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable

from kubescene.api.volumes.claims import is_bound, volume_of
from kubescene.api.volumes.matching import (
    ClaimName,
    Volume,
    VolumeShape,
    fits,
    holds_promise,
    name_of,
    read_shape,
    read_volume,
)
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import ReadOnlyObject


class KnownVolumes:
    """All volumes."""

    def __init__(self) -> None:
        self._volumes: dict[str, Volume] = {}
        self._free: dict[str, list[tuple[int, str]]] = {}
        self._by_claim: dict[tuple[str, str], dict[str, None]] = {}

    def put(self, name: str, obj: ReadOnlyObject | None) -> Volume | None:
        """A volume came, changed or went; returns what is known of it now."""
        old = self._volumes.pop(name, None)
        if old is not None:
            self._forget(old)
        if obj is None:
            return None
        volume = self._volumes[name] = read_volume(obj)
        if volume.claim is not None:
            self._by_claim.setdefault(volume.claim[:2], {})[name] = None
        elif volume.is_free:
            insort(self._free.setdefault(volume.storage_class, []), (volume.size, name))
        return volume

    def match(self, claim: ReadOnlyObject, *, delayed: bool) -> str:
        """The volume for a claim: one that names it, or the smallest free one; empty if none.

        Where binding is delayed, the scheduler chooses among the free ones.
        """
        shape, name = read_shape(claim), name_of(claim)
        for each in sorted(self._by_claim.get(name[:2], ())):
            volume = self._volumes[each]
            if volume.names(name) and holds_promise(volume, shape):
                return each
        return "" if delayed else self._smallest(shape)

    def _smallest(self, shape: VolumeShape) -> str:
        free = self._free.get(shape.storage_class, [])
        for at in range(bisect_left(free, (shape.size, "")), len(free)):
            if fits(self._volumes[free[at][1]], shape):
                return free[at][1]
        return ""

    def _forget(self, volume: Volume) -> None:
        if volume.claim is not None:
            del self._by_claim[volume.claim[:2]][volume.name]
        elif volume.is_free:
            free = self._free[volume.storage_class]
            del free[bisect_left(free, (volume.size, volume.name))]


class KnownClaims:
    """All claims: which volume each has, or what it waits for."""

    def __init__(self) -> None:
        self._bound: dict[tuple[str, str], tuple[str, str]] = {}
        self._waiting: dict[str, dict[tuple[str, str], VolumeShape]] = {}
        self._class: dict[tuple[str, str], str] = {}

    def put(self, key: tuple[str, str], claim: ReadOnlyObject | None) -> None:
        """A claim came, changed or went."""
        self._bound.pop(key, None)
        old = self._class.pop(key, None)
        if old is not None:
            del self._waiting[old][key]
        if claim is None:
            return
        if is_bound(claim):
            self._bound[key] = (volume_of(claim), claim["metadata"].get("uid") or "")
            return
        shape = read_shape(claim)
        self._class[key] = shape.storage_class
        self._waiting.setdefault(shape.storage_class, {})[key] = shape

    def has(self, claim: ClaimName, volume: str) -> bool:
        """Whether a claim is bound to a volume."""
        return self._bound.get(claim[:2]) == (volume, claim.uid)

    def of_class(self, storage_class: str) -> Iterable[ObjectKey]:
        """The claims of a class that wait."""
        return [ObjectKey(*key) for key in self._waiting.get(storage_class, ())]

    def wanting(self, volume: Volume) -> Iterable[ObjectKey]:
        """The claims that wait and could have a volume that is free."""
        waiting = self._waiting.get(volume.storage_class, {})
        return [
            ObjectKey(*key)
            for key, shape in waiting.items()
            if shape.size <= volume.size and fits(volume, shape)
        ]
