"""A world on disk is opened: its newest snapshot, and what has happened since.

What is restored is what was acknowledged, perhaps a little more. Revisions go on with a gap, since
an onlooker may have seen writes that were never acknowledged: a watch from a revision inside of the
gap is told to list again (`History.lose`). Changes since the snapshot are history, so a watch goes
on where it was.
"""

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from kubescene.api.records import Record
from kubescene.api.records.changes import DELETED, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.errors import ConfigurationError, DamagedWorldError
from kubescene.store.disk import files
from kubescene.store.disk.entries import NOTE, Entry, EntryReader, decode
from kubescene.store.disk.files import CHANGES, SNAPSHOT, FolderLock
from kubescene.store.disk.journal import DiskJournal, Sizes, SnapshotContents
from kubescene.store.store import Store

LOST = 100_000
"""More writes than can ever wait for the disk (`journal.MOST_WAITING`, and a batch)."""
LIVES = "lives"
"""The note that says how often the world was opened."""

_log = logging.getLogger(__name__)


class Cut(NamedTuple):
    """The end of a file behind its last whole batch."""

    path: Path
    end: int
    size: int

    @property
    def is_more_than_room(self) -> bool:
        """Whether something stands there, and not only room that was reserved."""
        with self.path.open("rb") as file:
            file.seek(self.end or len(files.HEADING))
            return bool(file.read().strip(b"\0"))


class StoredWorld:
    """What the files of a world say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: dict[str, bytes] = {}
        self.revision = 0
        self.snapshot_revision = 0
        self.records: dict[GroupResource, dict[tuple[str, str], Record]] = defaultdict(dict)
        self.changes = 0
        self.sizes = Sizes(0, 0)
        self.number = 0
        """Of the newest file."""
        self.cut: Cut | None = None

    def read(self, *, until_damage: bool = False) -> Iterator[tuple[ChangeType, Record] | None]:
        """All changes since the newest snapshot, after None for the snapshot itself.

        ``until_damage``: end where something cannot be read, instead of raising.
        """
        try:
            snapshots = files.numbered(self.folder, SNAPSHOT)
            first = snapshots[-1].number if snapshots else 0
            if snapshots:
                self._read_snapshot(snapshots[-1].path)
            yield None
            changes = files.numbered(self.folder, CHANGES)
            self.number = max([first, *(each.number for each in changes)])
            following = [each for each in changes if each.number >= first]
            for at, file in enumerate(following):
                yield from self._read_changes(file.path, is_last=at == len(following) - 1)
        except DamagedWorldError as error:
            if not until_damage:
                raise
            _log.warning("%s", error)

    def _read_snapshot(self, path: Path) -> None:
        reader, batch = EntryReader(), None
        for batch in files.batches(path, may_be_torn=False):
            told = decoded(path, batch.payload)
            for entry in told:
                if entry.type == NOTE:
                    self._note(entry)
                else:
                    record = reader.record(entry, None)
                    self.records[record.resource][record.key] = record
        if batch is None or told:
            raise DamagedWorldError(f"{path} ends before its end")
        self.snapshot_revision = self.revision
        self.sizes = self.sizes._replace(snapshot=path.stat().st_size)

    def _read_changes(self, path: Path, *, is_last: bool) -> Iterator[tuple[ChangeType, Record]]:
        reader, end = EntryReader(), 0
        for batch in files.batches(path, may_be_torn=is_last):
            end = batch.end
            for entry in decoded(path, batch.payload):
                if entry.type == NOTE:
                    self._note(entry)
                else:
                    yield self._change(reader, entry)
        size = path.stat().st_size
        self.sizes = self.sizes._replace(changes=self.sizes.changes + end)
        if is_last and size > end:
            self.cut = Cut(path, end, size)

    def _change(self, reader: EntryReader, entry: Entry) -> tuple[ChangeType, Record]:
        held = self.records[reader.resource(entry)]
        key = entry.namespace, entry.name
        record, kind = reader.record(entry, held.get(key)), reader.type(entry)
        if kind is DELETED:
            del held[key]
        else:
            held[key] = record
        self.revision = record.revision
        self.changes += 1
        return kind, record

    def _note(self, entry: Entry) -> None:
        self.revision = max(self.revision, entry.revision)
        text = entry.parts[0]
        if entry.name and isinstance(text, bytes):
            self.notes[entry.name] = text


def decoded(path: Path, payload: bytes) -> list[Entry]:
    try:
        return decode(payload)
    except msgspec.DecodeError as error:
        raise DamagedWorldError(f"{path} has a batch that is no list of entries: {error}") from None


def open_store(folder: Path) -> Store:
    """The store that a folder keeps, empty in a new folder; it has a journal from now on.

    Raises `ConfigurationError` if another process has it or it cannot be written, and
    `DamagedWorldError`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(folder)
    except OSError as error:
        raise ConfigurationError(
            f"a world cannot be kept in {folder}: {error.strerror or error}"
        ) from error
    try:
        files.clear_unfinished(folder)
        store, contents = restored(folder)
        tell_cut(contents)
        journal = DiskJournal(
            folder,
            lock,
            contents.number + 1,
            store.revision,
            lambda: SnapshotContents(store.all_records(), dict(store.notes), store.revision),
            contents.sizes,
        )
        store.keep(journal)
        store.note(LIVES, b"%d" % (store.lives + 1))
        # Whatever comes of it, nobody begins at this revision again.
        store.flush()
    except OSError as error:
        lock.release()
        raise ConfigurationError(
            f"a world cannot be kept in {folder}: {error.strerror or error}"
        ) from error
    except BaseException:
        lock.release()
        raise
    return store


def compacted(folder: Path) -> tuple[int, int]:
    """Write a snapshot in place of all changes; the bytes before and after."""
    store = open_store(folder)
    try:
        before = sum(each.stat().st_size for each in folder.iterdir())
        store.compact()
    finally:
        store.close()
    return before, sum(each.stat().st_size for each in folder.iterdir())


def restored(folder: Path, *, until_damage: bool = False) -> tuple[Store, StoredWorld]:
    """The store as the files have it, without a journal."""
    store, contents = Store(), StoredWorld(folder)
    changes = contents.read(until_damage=until_damage)
    next(changes)
    held = contents.records.values()
    store.restore([it for each in held for it in each.values()], contents.snapshot_revision)
    for told in changes:
        if told is not None:
            store.recall(*told)
    store.notes = contents.notes
    with suppress(ValueError):
        store.lives = int(contents.notes.get(LIVES, b"0"))
    if store.lives:
        store.lose(contents.revision - store.revision + LOST)
    return store, contents


def tell_cut(contents: StoredWorld) -> None:
    """Take away what was not whole at the end, and say so."""
    cut = contents.cut
    if cut is None:
        return
    if cut.is_more_than_room:
        _log.warning(
            "%s ended in a write that was cut short, and that nobody was told had succeeded: %d "
            "bytes after revision %d are left out",
            cut.path,
            cut.size - cut.end,
            contents.revision,
        )
    if cut.end:
        files.cut(cut.path, cut.end)
    else:
        cut.path.unlink()
