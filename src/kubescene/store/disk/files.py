"""The files of a world on disk, as batches of bytes with lengths and checksums.

::

    DIR/lock                held by the process that has the world
    DIR/snapshot-00000007   the world before the changes of the same number
    DIR/changes-00000007    what has happened then
    DIR/changes-00000008    and after the next start

A batch is written and synced as a whole, and none before the one ahead of it is on disk. So a batch
that is damaged and is the last one was never acknowledged: it is cut off. One that a whole one
follows was: nobody may pretend that it never was there, and opening the world is refused.

Room is taken ahead of the writing (`BatchFile.reserve`): a full disk is noticed before anything has
happened. What is reserved and not written reads as zeros, where no batch begins.
"""

import errno
import fcntl
import os
import zlib
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import NamedTuple

from kubescene.errors import ConfigurationError, DamagedWorldError

MAGIC = b"\xabKSB"
HEADING = b"kubescene world, form 1\n"
_FRAME = Struct("<4sII")
SNAPSHOT, CHANGES = "snapshot", "changes"
_UNFINISHED = ".new"
NO_ROOM_AHEAD = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""What a file system says that cannot take room ahead."""


class Numbered(NamedTuple):
    """A file of a world."""

    path: Path
    number: int


class StoredBatch(NamedTuple):
    """A batch, and where the next one begins."""

    payload: bytes
    end: int


class BatchFile:
    """A new file that batches are added to, by one thread; another one may reserve room."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A write returns when it is on disk: one call in place of two, each of which would wait
        # for Python's lock afterwards.
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL | os.O_DSYNC
        self._file = os.open(path, flags, 0o600)
        self._room = self.end = 0
        self._counting = Lock()
        self._write(HEADING)

    @property
    def free(self) -> int:
        """How much room is reserved."""
        return self._room - self.end

    def reserve(self, size: int) -> None:
        """Take room for so many bytes more; raises `OSError` if there is none."""
        with self._counting:
            try:
                os.posix_fallocate(self._file, self._room, size)
            except OSError as error:
                if error.errno not in NO_ROOM_AHEAD:
                    raise
            self._room += size

    def add(self, payload: bytes) -> None:
        """Write a batch, and return when it is on disk. If it raises it may be tried again."""
        self._write(_FRAME.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload)

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, data[written:], self.end + written)
        with self._counting:
            self.end += written
            self._room = max(self._room, self.end)

    def close(self) -> None:
        """Give back what was reserved."""
        try:
            os.ftruncate(self._file, self.end)
        finally:
            os.close(self._file)


class FolderLock:
    """Says that this process has the world of a folder."""

    def __init__(self, folder: Path) -> None:
        """Raises `ConfigurationError` if another one has it."""
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 32).decode(errors="replace").strip()
            os.close(self._file)
            whose = f"process {holder}" if holder else "another process"
            raise ConfigurationError(
                f"the world in {folder} is in use by {whose}: stop that server first, or name "
                "another directory"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        os.close(self._file)


def numbered(folder: Path, kind: str) -> list[Numbered]:
    """The files of a kind, in order."""
    found = []
    for path in folder.glob(f"{kind}-*"):
        number = path.name.removeprefix(f"{kind}-")
        if number.isdecimal():
            found.append(Numbered(path, int(number)))
    return sorted(found, key=lambda each: each.number)


def path_of(folder: Path, kind: str, number: int) -> Path:
    return folder / f"{kind}-{number:08d}"


def unfinished(path: Path) -> Path:
    """Where a file is written that is to have this name when it is whole."""
    return path.with_name(path.name + _UNFINISHED)


def publish(path: Path) -> None:
    """Give a file that is whole its name, for good."""
    unfinished(path).replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Which names there are is on disk."""
    file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def cut(path: Path, end: int) -> None:
    """Take away what stands behind the last whole batch of a file."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(file, end)
        os.fsync(file)
    finally:
        os.close(file)


def clear_unfinished(folder: Path) -> None:
    """Take away what a process had begun that is gone."""
    for path in folder.glob(f"*{_UNFINISHED}"):
        path.unlink()


def batches(path: Path, *, may_be_torn: bool) -> Iterator[StoredBatch]:
    """The batches of a file from the first on.

    ``may_be_torn``: the last one may be damaged, and is left out then. Anything else that is not as
    it was written raises `DamagedWorldError`.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = mmap(file.fileno(), 0, access=ACCESS_READ) if size else b""
    at = len(HEADING)
    heading = data[:at]
    if heading != HEADING:
        if may_be_torn and HEADING.startswith(heading.rstrip(b"\0")):
            return
        raise DamagedWorldError(f"{path} is no file of a world, or one of another version")
    while at < len(data):
        batch = batch_at(data, at)
        if batch is not None:
            yield batch
            at = batch.end
            continue
        if not data[at:].strip(b"\0"):
            return
        if may_be_torn and not is_followed(data, at):
            return
        raise DamagedWorldError(
            f"{path} is damaged at byte {at:,} of {len(data):,}: what stands there was "
            "acknowledged and cannot be read; take the folder back from a copy, or export what "
            "came before with `kubescene data export --until-damage`"
        )


def batch_at(data: bytes | mmap, at: int) -> StoredBatch | None:
    """The batch that begins there, if a whole one does."""
    begin = at + _FRAME.size
    if begin > len(data):
        return None
    magic, length, checksum = _FRAME.unpack_from(data, at)
    payload = data[begin : begin + length]
    if magic != MAGIC or len(payload) != length or zlib.crc32(payload) != checksum:
        return None
    return StoredBatch(payload, begin + length)


def is_followed(data: bytes | mmap, at: int) -> bool:
    """Whether a whole batch begins somewhere behind."""
    while (at := data.find(MAGIC, at + 1)) >= 0:
        if batch_at(data, at) is not None:
            return True
    return False
