"""Where a snapshot is read from: a file, a folder, or a tar archive, all within bounds.

Nothing outside a folder is read, no link is followed, nothing is unpacked to disk. What a source
holds in all is bounded before and after it is unpacked, so neither a bomb nor a pipe without end
takes more memory than a large cluster would.
"""

import gzip
import io
import stat
import tarfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Protocol, cast

from kubescene.errors import SnapshotError

MAX_BYTES = 1536 * 1024 * 1024
"""Of text in all, packed or not: some 10,000 nodes with 200,000 pods as JSON."""
MAX_FILES = 1_000_000
HEAD_BYTES = 64 * 1024
NAMES_LOOKED_AT = 2_000
READ_BYTES = 1024 * 1024
GZIP, ZIP, TAR_MAGIC, TAR_MAGIC_AT = b"\x1f\x8b", b"PK\x03\x04", b"ustar", 257
READ = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
"""Files of a folder or archive that may hold objects; logs and the rest are never opened."""


class Bytes(Protocol):
    """What is read from."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class NamedText(NamedTuple):
    """A file of a folder or archive by its path inside, and what it holds."""

    name: str
    text: bytes


class SnapshotSource:
    """Something at a path; raises `SnapshotError` for what cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def where(self) -> str:
        return str(self.path)

    @cached_property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    @cached_property
    def is_archive(self) -> bool:
        return not self.is_folder and (
            self.head[TAR_MAGIC_AT : TAR_MAGIC_AT + len(TAR_MAGIC)] == TAR_MAGIC
        )

    @property
    def has_files(self) -> bool:
        """Whether it holds files (`files`), or is one text (`text`)."""
        return self.is_folder or self.is_archive

    @cached_property
    def head(self) -> bytes:
        """How its text begins, unpacked; nothing for a folder."""
        if self.is_folder:
            return b""
        with self._unpacked() as stream:
            head = stream.read(HEAD_BYTES)
        if head.startswith(ZIP):
            raise SnapshotError("it is a zip archive: unpack it into a folder", where=self.where)
        return head

    @cached_property
    def text(self) -> bytes:
        """All of its text, unpacked."""
        with self._unpacked() as stream:
            return stream.read_all()

    @cached_property
    def names(self) -> list[str]:
        """The paths of the first files inside, also of those that are not read."""
        if self.is_folder:
            return [name for name, _ in islice(self._walk(), NAMES_LOOKED_AT)]
        if not self.is_archive:
            return []
        with self._unpacked() as stream:
            return [name for name, _ in islice(self._members(stream), NAMES_LOOKED_AT)]

    def files(self) -> Iterator[NamedText]:
        """What may hold objects, a folder's in the order of the names, an archive's as they come.

        An archive's files are read while one iterates.
        """
        budget = MAX_BYTES
        if self.is_folder:
            for name, path in self._walk():
                if name.endswith(READ):
                    text = SnapshotSource(path).text
                    budget -= len(text)
                    self._check(budget >= 0)
                    yield NamedText(name, text)
            return
        with self._unpacked() as stream:
            for name, member in self._members(stream):
                if name.endswith(READ):
                    text = member.read(MAX_BYTES + 1)
                    yield NamedText(name, self._inner(name, text))

    # -- inside --------------------------------------------------------------------------------

    def _inner(self, name: str, text: bytes) -> bytes:
        if not name.endswith(".gz"):
            return text
        with BoundedStream(gzip.GzipFile(fileobj=io.BytesIO(text)), f"{self.where}:{name}") as it:
            return it.read_all()

    def _check(self, fits: bool) -> None:
        if not fits:
            raise SnapshotError(f"it holds more than {MAX_BYTES} bytes", where=self.where)

    def _walk(self) -> Iterator[tuple[str, Path]]:
        """Regular files below the folder by their relative paths, in order; no link is followed."""
        pending, seen = [self.path], 0
        while pending:
            folder = pending.pop()
            below = []
            for each in sorted(folder.iterdir(), key=lambda path: path.name):
                mode = each.lstat().st_mode
                if stat.S_ISDIR(mode):
                    below.append(each)
                elif stat.S_ISREG(mode):
                    seen += 1
                    if seen > MAX_FILES:
                        raise SnapshotError(f"more than {MAX_FILES} files", where=self.where)
                    yield each.relative_to(self.path).as_posix(), each
            pending += reversed(below)

    def _members(self, stream: "BoundedStream") -> Iterator[tuple[str, "BoundedStream"]]:
        try:
            with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as archive:
                for number, member in enumerate(archive):
                    if number >= MAX_FILES:
                        raise SnapshotError(f"more than {MAX_FILES} files", where=self.where)
                    name = member.name.removeprefix("./")
                    if member.size > MAX_BYTES:  # to skip it would take as long as it claims
                        raise SnapshotError(
                            f"it holds more than {MAX_BYTES} bytes: {name} claims {member.size}",
                            where=self.where,
                        )
                    path = PurePosixPath(name)
                    if not member.isreg() or path.is_absolute() or ".." in path.parts:
                        continue  # folders, links, devices, and what would lie elsewhere
                    opened = archive.extractfile(member)
                    if opened is not None:
                        yield name, BoundedStream(opened, f"{self.where}:{name}")
        except tarfile.TarError as error:
            raise SnapshotError(f"the archive is damaged: {error}", where=self.where) from error

    def _unpacked(self) -> "BoundedStream":
        try:
            opened = self.path.open("rb")
        except FileNotFoundError:
            raise SnapshotError("there is no such file", where=self.where) from None
        except OSError as error:
            raise SnapshotError(f"cannot be read: {error.strerror}", where=self.where) from error
        packed = BoundedStream(opened, self.where)
        if not opened.peek(len(GZIP)).startswith(GZIP):
            return packed
        unpacked = gzip.GzipFile(fileobj=cast("IO[bytes]", packed))
        return BoundedStream(unpacked, self.where, packed)


class BoundedStream(io.RawIOBase):
    """Bytes of a file, no more than `MAX_BYTES`; damage is a `SnapshotError`."""

    def __init__(self, inner: "Bytes", where: str, below: "Bytes | None" = None) -> None:
        """``below`` is closed with it."""
        self._inner = inner
        self._below = below
        self._where = where
        self._left = MAX_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        wanted = READ_BYTES if size < 0 else size
        try:
            data: bytes = self._inner.read(wanted)
        except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
            raise SnapshotError(
                f"it cannot be unpacked: {error}: copy it again", where=self._where
            ) from error
        except OSError as error:
            raise SnapshotError(f"cannot be read: {error}", where=self._where) from error
        self._left -= len(data)
        if self._left < 0:
            raise SnapshotError(f"it holds more than {MAX_BYTES} bytes", where=self._where)
        return data

    def read_all(self) -> bytes:
        return b"".join(iter(lambda: self.read(READ_BYTES), b""))

    def close(self) -> None:
        self._inner.close()
        if self._below is not None:
            self._below.close()
        super().close()
