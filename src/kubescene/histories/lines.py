"""Lines of a file, packed by gzip or not: one after the other, each of bearable length."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from kubescene.api.text.reading import ReadingError, read_json
from kubescene.errors import SnapshotError

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line. etcd keeps no object of more than a tenth of it."""
GZIP = b"\x1f\x8b"
HEAD_BYTES = 64 * 1024


class NumberedLine(NamedTuple):
    """A line that is not blank, and where it stands: file and number."""

    text: bytes
    place: str


def head_of(path: Path) -> bytes:
    """How a file begins, unpacked."""
    with opened(path) as file:
        return _read(file, HEAD_BYTES, str(path))


def opened(path: Path) -> IO[bytes]:
    """The file, unpacked while it is read; raises `SnapshotError`."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise SnapshotError("there is no such file", where=str(path)) from None
    except OSError as error:
        raise SnapshotError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if file.peek(len(GZIP)).startswith(GZIP):
        return cast("IO[bytes]", _Unpacked(file))
    return file


class _Unpacked(gzip.GzipFile):
    """Closes what it reads from."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__(fileobj=packed)
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()


def lines_of(path: Path, first: int = 1) -> Iterator[NumberedLine]:
    """All lines that are not blank; raises `SnapshotError` with the line where the file is damaged.

    ``first`` is what the first line is called.
    """
    with opened(path) as file:
        number = first - 1
        while True:
            number += 1
            place = f"{path}:{number}"
            text = _readline(file, place)
            if not text:
                return
            if len(text) > MAX_LINE:
                raise SnapshotError(f"the line is longer than {MAX_LINE} bytes", where=place)
            if text.strip():
                yield NumberedLine(text, place)


def value_of(line: NumberedLine) -> Any:
    """What a line of JSON says; raises `SnapshotError`."""
    try:
        return read_json(line.text).value
    except ReadingError as error:
        cut = "" if line.text.endswith(b"\n") else ", the last line of the file: was it cut off?"
        raise SnapshotError(f"not valid JSON: {error}{cut}", where=line.place) from error


def _readline(file: IO[bytes], place: str) -> bytes:
    try:
        return file.readline(MAX_LINE + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(error, place) from error
    except OSError as error:
        raise SnapshotError(f"cannot be read: {error}", where=place) from error


def _read(file: IO[bytes], size: int, place: str) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(error, place) from error
    except OSError as error:
        raise SnapshotError(f"cannot be read: {error}", where=place) from error


def damaged(error: Exception, place: str) -> SnapshotError:
    return SnapshotError(f"it cannot be unpacked further: {error}: copy it again", where=place)
