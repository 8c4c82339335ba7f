"""The journal of a world on disk: a thread that writes what the engine thread hands over.

The engine thread pays for a reference to each change. A thread of its own makes bytes of them,
writes all that has come meanwhile as one batch and syncs it, then tells those who wait: the more
wait, the more share a sync. Where a write would not fit on the disk any more it is refused before
anything has happened; where writing fails all the same, whoever waits is told that nobody knows,
and nothing more is taken until what was handed over is on disk.

When the changes have become much more than what they lead to, a snapshot of the world is written
beside them, and they go.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Condition, Thread
from typing import NamedTuple, TypeAlias

from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.records.parts import whole_size
from kubescene.errors import InternalError
from kubescene.store.disk import entries, files
from kubescene.store.disk.entries import Entry, EntryWriter
from kubescene.store.disk.files import CHANGES, SNAPSHOT, BatchFile, FolderLock, path_of
from kubescene.store.journals import Acknowledge

RESERVED = 16 * 1024 * 1024
"""Room is taken in such pieces."""
ENTRY_OVERHEAD = 1024
"""More than names, labels and numbers of an entry take."""
MOST_WAITING = 20_000
"""Changes that are not written yet: beyond them whoever writes waits, too."""
LEAST_COMPACTED = 32 * 1024 * 1024
"""Changes of fewer bytes stay, however small the world is."""
RECORDS_A_BATCH = 2_000
RETRIED_EVERY_S = 0.5
WRITTEN_UNASKED = 500
"""So many changes are written though nobody waits for them."""

_log = logging.getLogger(__name__)


class Note(NamedTuple):
    """A text that is no object."""

    name: str
    text: bytes
    revision: int


class Sizes(NamedTuple):
    """Bytes on disk, without the file that is written now."""

    snapshot: int
    changes: int

    @property
    def is_to_be_compacted(self) -> bool:
        """Whether the changes are much more than what they lead to."""
        return self.changes > max(LEAST_COMPACTED, 2 * self.snapshot)


class SnapshotContents(NamedTuple):
    """All that a snapshot holds."""

    records: list[Record]
    notes: Mapping[str, bytes]
    revision: int


Item: TypeAlias = Change | Note | SnapshotContents


class DiskJournal:
    """Keeps a world in a folder. Made by `kubescene.store.disk.opening`.

    ``world`` gives all that there is, on the thread that writes. ``sizes`` are those of the files
    that were read.
    """

    def __init__(
        self,
        folder: Path,
        lock: FolderLock,
        number: int,
        revision: int,
        world: Callable[[], SnapshotContents],
        sizes: "Sizes",
    ) -> None:
        self.folder = folder
        self._lock = lock
        self._number = number
        self._file = new_file(folder, number)
        self._world = world
        self._writer = EntryWriter()
        self._items: deque[tuple[Item, int]] = deque()
        self._waiting: deque[tuple[int, Acknowledge]] = deque()
        self._taken = self._written = 0
        """Items that were handed over, and that are on disk."""
        self._promised = self._settled = 0
        """Bytes that these take at most."""
        self._durable = self._revision = revision
        self._failure: OSError | None = None
        self._sizes = sizes
        self._wants_snapshot = sizes.is_to_be_compacted
        self._changed = Condition()
        self._is_closing = False
        self._thread = Thread(target=self._run, name="kubescene-journal", daemon=True)
        self._snapshots: Thread | None = None
        self._thread.start()

    # -- on the thread that writes -----------------------------------------------------------

    @property
    def durable(self) -> int:
        return self._durable

    def admit(self, size: int) -> None:
        if self._failure is not None:
            raise self._refusal()
        if self._taken - self._written > MOST_WAITING:
            self.flush()
        needed = self._promised - self._settled + size + ENTRY_OVERHEAD
        if needed <= self._file.free:
            return
        with self._changed:  # the file may be replaced meanwhile
            try:
                self._file.reserve(max(RESERVED, 2 * needed))
            except OSError as error:
                raise self._refusal(error) from error

    def append(self, change: Change) -> None:
        if self._wants_snapshot:
            # The change is not made yet: this is the world before it.
            self._wants_snapshot = False
            self._hand_over(self._world(), 0)
        self._revision = change.revision
        self._hand_over(change, whole_size(change.record.payload) + ENTRY_OVERHEAD)

    def note(self, name: str, text: bytes) -> None:
        self._hand_over(Note(name, text, self._revision), len(text) + ENTRY_OVERHEAD)

    def when_durable(self, acknowledge: Acknowledge) -> None:
        with self._changed:
            if self._written < self._taken:
                self._waiting.append((self._taken, acknowledge))
                self._changed.notify_all()
                return
        acknowledge(None)

    def flush(self) -> None:
        done: Future[None] = Future()

        def acknowledge(error: Exception | None) -> None:
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self.when_durable(acknowledge)
        done.result()

    def compact(self) -> None:
        """Write a snapshot; returns when it is there. Not while anything else is written."""
        self._hand_over(self._world(), 0)
        self.flush()
        if self._snapshots is not None:
            self._snapshots.join()

    def close(self) -> None:
        """Write what is left and let go of the folder; raises if it cannot be written."""
        if self._is_closing:
            return
        try:
            if self._failure is None:
                self.flush()
        finally:
            with self._changed:
                self._is_closing = True
                self._changed.notify_all()
            self._thread.join()
            if self._snapshots is not None:
                self._snapshots.join()
            self._file.close()
            self._lock.release()
        if self._failure is not None:
            raise self._refusal()

    def _hand_over(self, item: Item, size: int) -> None:
        self._items.append((item, size))
        self._promised += size
        self._taken += 1
        if not self._taken % WRITTEN_UNASKED:
            with self._changed:
                self._changed.notify_all()

    def _refusal(self, error: OSError | None = None) -> InternalError:
        error = error or self._failure
        why = "" if error is None else f": {error.strerror or error}"
        return InternalError(f"the world cannot be kept in {self.folder}{why}; nothing was changed")

    # -- on the thread of the journal ----------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_wanted():
                    self._changed.wait()
                if not self._items:
                    return
            try:
                self._write(len(self._items))
            except Exception:
                _log.exception("the journal ends: nothing more can be kept")
                self._fail(OSError("the journal has ended, the server's log says why"))
                return

    def _is_wanted(self) -> bool:
        backlog = self._taken - self._written
        return bool(self._waiting) or self._is_closing or backlog >= WRITTEN_UNASKED

    def _write(self, count: int) -> None:
        """Put so many items on disk, and tell those who wait for them."""
        told: list[Entry] = []
        settled = 0
        for _ in range(count):
            item, size = self._items.popleft()
            settled += size
            if isinstance(item, SnapshotContents):
                self._put(told)
                told = []
                self._begin_snapshot(item)
            elif isinstance(item, Note):
                told.append(self._writer.note(*item))
            else:
                told.append(self._writer.change(item))
        self._put(told)
        with self._changed:
            self._written += count
            self._settled += settled
            ready = []
            while self._waiting and self._waiting[0][0] <= self._written:
                ready.append(self._waiting.popleft()[1])
        for acknowledge in ready:
            acknowledge(None)

    def _put(self, told: list[Entry]) -> None:
        if not told:
            return
        payload = entries.encode(told)
        while True:
            try:
                self._file.add(payload)
                break
            except OSError as error:
                self._fail(error)
                with self._changed:
                    self._changed.wait(RETRIED_EVERY_S)
                    if self._is_closing:
                        raise
        self._failure = None
        self._durable = told[-1].revision
        is_writing = self._snapshots is not None and self._snapshots.is_alive()
        sizes = self._sizes._replace(changes=self._sizes.changes + self._file.end)
        if sizes.is_to_be_compacted and not is_writing:
            self._wants_snapshot = True

    def _fail(self, error: OSError) -> None:
        """Nobody who waits can be told that it is on disk, nor that it never will be."""
        if self._failure is None:
            _log.error("the world cannot be kept in %s: %s", self.folder, error)
        self._failure = error
        told = InternalError(
            f"the world cannot be kept in {self.folder}: {error.strerror or error}; whether this "
            "write outlives the server is not known"
        )
        with self._changed:
            waiting = [acknowledge for _, acknowledge in self._waiting]
            self._waiting.clear()
        for acknowledge in waiting:
            acknowledge(told)

    def _begin_snapshot(self, world: SnapshotContents) -> None:
        """From now on changes go into a new file; those before go when the snapshot is there."""
        self._number += 1
        file = new_file(self.folder, self._number)
        with self._changed:
            before, self._file = self._file, file
        before.close()
        self._writer = EntryWriter()
        self._sizes = self._sizes._replace(changes=self._sizes.changes + before.end)
        self._snapshots = Thread(
            target=self._snapshot,
            args=(world, self._number),
            name="kubescene-snapshot",
            daemon=True,
        )
        self._snapshots.start()

    def _snapshot(self, world: SnapshotContents, number: int) -> None:
        try:
            size = write_snapshot(self.folder, world, number)
            forget_before(self.folder, number)
            self._sizes = Sizes(size, 0)
        except OSError as error:
            _log.error("no snapshot of the world could be written, its changes stay: %s", error)
        except Exception:
            _log.exception("no snapshot of the world could be written, its changes stay")


def new_file(folder: Path, number: int) -> BatchFile:
    """Where changes go from now on."""
    file = BatchFile(path_of(folder, CHANGES, number))
    files.sync_folder(folder)
    return file


def write_snapshot(folder: Path, world: SnapshotContents, number: int) -> int:
    """Write all of a world; returns how many bytes it takes. On any thread."""
    path = path_of(folder, SNAPSHOT, number)
    files.unfinished(path).unlink(missing_ok=True)
    file = BatchFile(files.unfinished(path))
    try:
        for batch in snapshot_batches(world):
            file.add(entries.encode(batch))
    finally:
        file.close()
    files.publish(path)
    return file.end


def snapshot_batches(world: SnapshotContents) -> Iterable[list[Entry]]:
    """Notes, the first of which has the revision, and records; last an empty batch: it is all."""
    writer = EntryWriter()
    notes = {"": b"", **world.notes}
    yield [writer.note(name, text, world.revision) for name, text in notes.items()]
    for start in range(0, len(world.records), RECORDS_A_BATCH):
        yield [writer.record(each) for each in world.records[start : start + RECORDS_A_BATCH]]
    yield []


def forget_before(folder: Path, number: int) -> None:
    """Take away what a snapshot has made superfluous."""
    for kind in (SNAPSHOT, CHANGES):
        for file in files.numbered(folder, kind):
            if file.number < number:
                file.path.unlink()
