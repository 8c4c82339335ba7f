"""Which images the nodes hold, and on how many nodes each was when a node was last looked at.

The number of nodes that hold an image is part of kube-scheduler's copy of a node, and that copy is
renewed at the start of a cycle only if something happened to the node since. So the number grows
stale for nodes where nothing happens (N-7). Here nothing is copied: numbers that change are
remembered by *epoch*, and before the first change after a cycle all nodes that were copied up to
that cycle are noted with the epoch they were copied in. Between changes this costs nothing.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubescene.types import ReadOnlyObject

_CURRENT = -1
_NONE: frozenset[str] = frozenset()


class _Image:
    """``size`` is that of the first node that reported it; ``counts`` begin at ``epochs``."""

    __slots__ = ("counts", "epochs", "holders", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders: dict[str, None] = {}
        self.epochs: list[int] = []
        self.counts: list[int] = []

    def note(self, epoch: int, *, remember: bool) -> None:
        """The number of holders has changed."""
        if not remember:
            self.epochs.clear()
            self.counts.clear()
        elif self.epochs and self.epochs[-1] == epoch:
            self.counts[-1] = len(self.holders)
            return
        self.epochs.append(epoch)
        self.counts.append(len(self.holders))

    def count_at(self, epoch: int) -> int:
        return self.counts[max(0, bisect_right(self.epochs, epoch) - 1)]


class ImageStates:
    """The images of all nodes. Rows and their versions are those of the `NodeTable`."""

    def __init__(self) -> None:
        self.version = 0
        """Grows whenever a node gets or loses an image."""
        self.known: dict[str, _Image] = {}
        """The images that some node holds, by name."""
        self._held: dict[str, frozenset[str]] = {}
        self._reported: dict[str, Sequence[ReadOnlyObject]] = {}
        self._left: set[str] = set()
        """Images of which one holder was left when another went: theirs may be the other's size."""
        self._seen: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._settled = -1
        self._snapshot = -1
        self._renewed: set[int] = set()
        self._unsettled = False
        self._any_stale = False
        self._overlooked: dict[int, tuple[int, int]] = {}
        """Rows that something happened to which does not count: the version that they would have
        without it, and the one that they have while nothing else happens."""

    def __contains__(self, name: str) -> bool:
        return name in self.known

    def held_by(self, node: str) -> frozenset[str]:
        return self._held.get(node, _NONE)

    def holders(self, name: str) -> Iterable[str]:
        image = self.known.get(name)
        return () if image is None else image.holders

    def size(self, name: str) -> int:
        return self.known[name].size

    def nodes_with(self, name: str, row: int, version: int) -> int:
        """How many nodes held an image when the node in this row was last looked at."""
        image = self.known[name]
        version = self._counted(row, version)
        if not self._any_stale or version > self._settled or row >= self._seen.size:
            return len(image.holders)
        seen = int(self._seen[row])
        return len(image.holders) if seen == _CURRENT else image.count_at(seen)

    # -- what happens ----------------------------------------------------------------------

    def set_images(
        self, node: str, images: Sequence[ReadOnlyObject], versions: NDArray[np.int64]
    ) -> Sequence[int]:
        """A node came, or reported its images anew.

        Returns the rows that changed since the last cycle without having a new version: they need
        one now.
        """
        if self._reported.get(node, ()) == images:
            return self._told_again(node, images, versions) if self._left else ()
        renewed = self._settle(versions)
        before, sizes = self._held.get(node, _NONE), _sizes(images)
        # As upstream, all go and come again: what nobody else holds takes the newly told size.
        self._drop(node, [name for name in before if name not in sizes])
        for name, size in sizes.items():
            self._hold(node, name, size)
        self._held[node], self._reported[node] = frozenset(sizes), images
        return renewed

    def _told_again(
        self, node: str, images: Sequence[ReadOnlyObject], versions: NDArray[np.int64]
    ) -> Sequence[int]:
        """All go and come again also if nothing is new: what is held alone has this size. [N-7]"""
        left = [name for name in self._held.get(node, _NONE) if name in self._left]
        alone = [name for name in left if len(self.known[name].holders) == 1]
        self._left.difference_update(left)
        sizes = _sizes(images) if alone else {}
        if all(self.known[name].size == sizes[name] for name in alone):
            return ()
        renewed = self._settle(versions)
        for name in alone:
            self.known[name].size = sizes[name]
        return renewed

    def remove_node(self, node: str, versions: NDArray[np.int64]) -> Sequence[int]:
        """A node is gone. Returns rows as `set_images` does."""
        held = self._held.pop(node, _NONE)
        self._reported.pop(node, None)
        if not held:
            return ()
        renewed = self._settle(versions)
        self._drop(node, held)
        return renewed

    def looked_at(self, version: int) -> None:
        """A cycle begins: all nodes that changed are looked at."""
        self._snapshot = version
        self._unsettled = True
        self._renewed.clear()

    def overlook(self, row: int, before: int, after: int) -> None:
        """A row has got another version, and is no younger for that."""
        if self.known:
            self._overlooked[row] = (self._counted(row, before), after)

    def _counted(self, row: int, version: int) -> int:
        counted, overlooked = self._overlooked.get(row, (version, version))
        return counted if version == overlooked else version

    def renew(self, row: int, version: int) -> bool:
        """Something happened to a node that changes no number; True if it had grown stale."""
        self._overlooked.pop(row, None)
        if self._any_stale and version <= self._settled and self._seen[row] != _CURRENT:
            return True
        self._renewed.add(row)
        return False

    def move(self, moves: NDArray[np.intp]) -> None:
        """Rows have moved, see `NodeTable.moved_from`."""
        self._renewed.clear()
        if self._overlooked:
            rows = {old: row for row, old in enumerate(moves.tolist())}
            kept = self._overlooked.items()
            self._overlooked = {rows[row]: pair for row, pair in kept if row in rows}
        if self._any_stale:
            known = (moves >= 0).nonzero()[0]
            seen = np.full(moves.size, _CURRENT, dtype=np.int64)
            seen[known] = self._seen.take(moves.take(known))
            self._seen = seen

    # -- inside ----------------------------------------------------------------------------

    def _settle(self, versions: NDArray[np.int64]) -> Sequence[int]:
        """Note the present epoch for all nodes that were looked at in it."""
        if self._unsettled:
            if self._seen.size != versions.size:
                self._seen = np.full(versions.size, _CURRENT, dtype=np.int64)
            versions = self._as_counted(versions)
            fresh = (versions > self._settled) | (self._seen == _CURRENT)
            self._seen[fresh] = self.version
            self._seen[versions > self._snapshot] = _CURRENT
            self._settled = self._snapshot
            self._unsettled = False
            self._any_stale = bool((self._seen != _CURRENT).any())
        self.version += 1
        renewed = sorted(self._renewed)
        self._renewed.clear()
        return renewed

    def _as_counted(self, versions: NDArray[np.int64]) -> NDArray[np.int64]:
        counted = versions.copy() if self._overlooked else versions
        for row in self._overlooked:
            counted[row] = self._counted(row, int(versions[row]))
        return counted

    def _hold(self, node: str, name: str, size: int) -> None:
        image = self.known.get(name)
        if image is None:
            image = self.known[name] = _Image(size)
        elif node in image.holders:
            if len(image.holders) == 1:
                image.size = size
            return
        image.holders[node] = None
        image.note(self.version, remember=self._any_stale)

    def _drop(self, node: str, names: Iterable[str]) -> None:
        for name in names:
            image = self.known[name]
            del image.holders[node]
            if image.holders:
                image.note(self.version, remember=self._any_stale)
                self._left.add(name)
            else:
                del self.known[name]
                self._left.discard(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ImageStates":
        copy: ImageStates = object.__new__(ImageStates)
        memo[id(self)] = copy
        vars(copy).update(vars(self))
        copy.known = {name: _copied(image) for name, image in self.known.items()}
        copy._held = self._held.copy()
        copy._reported = self._reported.copy()
        copy._left = self._left.copy()
        copy._seen = self._seen.copy()
        copy._renewed = self._renewed.copy()
        copy._overlooked = self._overlooked.copy()
        return copy


def _sizes(images: Sequence[ReadOnlyObject]) -> Mapping[str, int]:
    """The names of images; one that is told twice has the first size."""
    sizes: dict[str, int] = {}
    for image in images:
        for name in image.get("names") or ():
            sizes.setdefault(name, image.get("sizeBytes") or 0)
    return sizes


def _copied(image: _Image) -> _Image:
    copy = _Image(image.size)
    copy.holders = image.holders.copy()
    copy.epochs = image.epochs.copy()
    copy.counts = image.counts.copy()
    return copy
