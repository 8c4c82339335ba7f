"""Finding a volume for a claim: by class, by what the nodes can reach, and by size.

Free volumes of a class stand in groups of equal node affinity, each sorted by size. For claims that
ask for the same (`VolumeShape`) it is kept, group by group, whether one of them would do, and
summed up per row; only groups in which a volume came or went are looked at again.
"""

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from kubescene.api.volumes.matching import (
    ClaimName,
    Volume,
    VolumeShape,
    fits,
    holds_promise,
    read_volume,
)
from kubescene.scheduler.state.change_log import ChangeLog, LogReader
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.volumes.reach import Reach, Stamp
from kubescene.types import ReadOnlyObject


class _Class:
    """The volumes of one storage class."""

    __slots__ = (
        "_narrow",
        "_stamp",
        "_unsorted",
        "_wide",
        "by_claim",
        "groups",
        "log",
        "volumes",
    )

    def __init__(self) -> None:
        self.volumes: dict[str, Volume] = {}
        self.by_claim: dict[tuple[str, str], dict[str, None]] = {}
        self.groups: dict[bytes, list[tuple[int, str]]] = {}
        self.log: ChangeLog[bytes] = ChangeLog()
        self._stamp: Stamp | None = None
        self._unsorted: dict[bytes, None] = {}
        self._wide: dict[bytes, None] = {}
        self._narrow: dict[int, dict[bytes, None]] = {}

    def add(self, volume: Volume) -> None:
        self.volumes[volume.name] = volume
        if volume.claim is not None:
            key = (volume.claim.namespace, volume.claim.name)
            self.by_claim.setdefault(key, {})[volume.name] = None
        if volume.is_free:
            if volume.affinity not in self.groups:
                self.groups[volume.affinity] = []
                self._unsorted[volume.affinity] = None
            insort(self.groups[volume.affinity], (volume.size, volume.name))
            self.log.add(volume.affinity)

    def remove(self, volume: Volume) -> None:
        del self.volumes[volume.name]
        if volume.claim is not None:
            key = (volume.claim.namespace, volume.claim.name)
            del self.by_claim[key][volume.name]
            if not self.by_claim[key]:
                del self.by_claim[key]
        if volume.is_free:
            entries = self.groups[volume.affinity]
            del entries[bisect_left(entries, (volume.size, volume.name))]
            if not entries:
                del self.groups[volume.affinity]
            self.log.add(volume.affinity)

    def reachable(self, row: int, reach: Reach) -> Iterable[bytes]:
        """The groups that a node reaches."""
        if self._stamp != reach.stamp:
            self._stamp = reach.stamp
            self._wide, self._narrow = {}, {}
            self._unsorted = dict.fromkeys(self.groups)
        self._sort_groups(reach)
        for affinity in self._wide:
            mask = reach.affinity(affinity)
            if mask is None or mask[row]:
                yield affinity
        yield from self._narrow.get(row, ())

    def _sort_groups(self, reach: Reach) -> None:
        for affinity in self._unsorted:
            mask = reach.affinity(affinity)
            rows = None if mask is None else mask.nonzero()[0]
            if rows is None or rows.size > POLICY.few_reaching_nodes:
                self._wide[affinity] = None
            else:
                for row in rows.tolist():
                    self._narrow.setdefault(row, {})[affinity] = None
        self._unsorted = {}

    def best(self, shape: VolumeShape, affinity: bytes, taken: Container[str]) -> Volume | None:
        """The smallest volume of a group that will do."""
        entries = self.groups.get(affinity, ())
        for at in range(bisect_left(entries, (shape.size, "")), len(entries)):
            volume = self.volumes[entries[at][1]]
            if volume.name not in taken and fits(volume, shape):
                return volume
        return None


class _Reached:
    """For one shape and every row, how many groups of volumes have one that will do."""

    __slots__ = ("_good", "_reader", "_stamp", "counts")

    def __init__(self, volumes: _Class) -> None:
        self.counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._good: set[bytes] = set()
        self._stamp: Stamp | None = None
        self._reader: LogReader[bytes] = LogReader(volumes.log)

    def update(self, shape: VolumeShape, volumes: _Class, reach: Reach, rows: int) -> None:
        changed: Sequence[bytes] | None = self._reader.read()
        if self._stamp != reach.stamp or changed is None:
            self._stamp = reach.stamp
            self._good.clear()
            self.counts = np.zeros(rows, dtype=np.int64)
            changed = [*volumes.groups]
        for affinity in dict.fromkeys(changed):
            good = volumes.best(shape, affinity, ()) is not None
            if good is not (affinity in self._good):
                self._flip(affinity, reach, 1 if good else -1)

    def _flip(self, affinity: bytes, reach: Reach, change: int) -> None:
        (self._good.add if change > 0 else self._good.discard)(affinity)
        mask = reach.affinity(affinity)
        if mask is None:
            self.counts += change
        else:
            self.counts[mask] += change


class VolumeIndex:
    """All volumes, for those who look for one."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._volumes: dict[str, Volume] = {}
        self._classes: dict[str, _Class] = {}
        self._reached: dict[VolumeShape, _Reached] = {}

    def put(self, name: str, obj: ReadOnlyObject | None) -> None:
        """A volume came, changed or went."""
        old = self._volumes.pop(name, None)
        if old is not None:
            self._classes[old.storage_class].remove(old)
        if obj is not None:
            volume = self._volumes[name] = read_volume(obj)
            self._class(volume.storage_class).add(volume)

    def names(self) -> list[str]:
        return [*self._volumes]

    def reached(self, shape: VolumeShape, rows: int) -> NDArray[np.int64]:
        """For every row, whether (more than 0) some free volume that fits can be reached."""
        volumes = self._class(shape.storage_class)
        found = self._reached.get(shape)
        if found is None:
            if len(self._reached) >= POLICY.volume_shapes_kept:
                self._reached.clear()
            found = self._reached[shape] = _Reached(volumes)
        found.update(shape, volumes, self._reach, rows)
        return found.counts

    def promised(
        self, shape: VolumeShape, claim: ClaimName, taken: Container[str]
    ) -> Volume | None:
        """The volume that names this claim already, if it will do."""
        volumes = self._class(shape.storage_class)
        for name in sorted(volumes.by_claim.get((claim.namespace, claim.name), ())):
            volume = volumes.volumes[name]
            if name not in taken and volume.names(claim) and holds_promise(volume, shape):
                return volume
        return None

    def choose(
        self, shape: VolumeShape, claim: ClaimName, row: int, taken: Container[str]
    ) -> Volume | None:
        """The volume that a claim gets on a node: one that names it, or the smallest (F-20)."""
        promised = self.promised(shape, claim, taken)
        if promised is not None:
            mask = self._reach.affinity(promised.affinity)
            return promised if mask is None or mask[row] else None
        volumes = self._class(shape.storage_class)
        best: Volume | None = None
        for affinity in volumes.reachable(row, self._reach):
            found = volumes.best(shape, affinity, taken)
            if found is not None and (best is None or found[:2][::-1] < best[:2][::-1]):
                best = found
        return best

    def _class(self, name: str) -> _Class:
        return self._classes.setdefault(name, _Class())
