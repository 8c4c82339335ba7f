"""Frames that several watches send: encoded once, kept while the others are likely to want them.

Fifty clients that watch pods see the same changes within milliseconds. What is kept is bounded and
thrown away as a whole: whoever comes later encodes again. For the event loop only.
"""

from collections.abc import Callable

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType

MOST_BYTES = 4 * 1024 * 1024


class SharedFrames:
    """The newest frames of one kind in one version, by the record that they show."""

    __slots__ = ("_frames", "_size", "readers")

    def __init__(self) -> None:
        self._frames: dict[int, tuple[Record, ChangeType, bytes]] = {}
        self._size = 0
        self.readers = 0
        """How many watches are open: for a single one nothing is kept."""

    def of(self, change: Change, make: Callable[[Change], bytes]) -> bytes:
        record = change.record
        known = self._frames.get(id(record))
        # The record is kept beside its frame, so that its identity is nobody else's.
        if known is not None and known[0] is record and known[1] is change.type:
            return known[2]
        frame = make(change)
        if self.readers > 1:
            self._keep(record, change.type, frame)
        return frame

    def leave(self) -> None:
        """A watch has ended."""
        self.readers -= 1
        if self.readers <= 1:
            self._frames.clear()
            self._size = 0

    def _keep(self, record: Record, change_type: ChangeType, frame: bytes) -> None:
        if self._size > MOST_BYTES:
            self._frames.clear()
            self._size = 0
        self._frames[id(record)] = (record, change_type, frame)
        self._size += len(frame)
