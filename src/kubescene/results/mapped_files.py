"""Files searched without reading them: for a few lines among millions."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from kubescene.errors import ConfigurationError

Mapped: TypeAlias = mmap.mmap | bytes


@contextmanager
def mapped(path: Path) -> Iterator[Mapped]:
    """The bytes of a file; an empty one cannot be mapped and is ``b""``."""
    try:
        with path.open("rb") as file:
            empty = file.seek(0, 2) == 0
            data = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}; name the --out directory of a run"
        ) from error
    try:
        yield data
    finally:
        if isinstance(data, mmap.mmap):
            data.close()


def occurrences(data: Mapped, text: bytes) -> Iterator[int]:
    """Where a text stands, from the first to the last."""
    start = data.find(text)
    while start >= 0:
        yield start
        start = data.find(text, start + 1)


def line_at(data: Mapped, start: int) -> bytes:
    """The line that begins at a position, without its end; nothing if it is beyond the file."""
    if start >= len(data):
        return b""
    return data[start : max(data.find(b"\n", start), start)]


def line_number(data: Mapped, position: int) -> int:
    """The line that a position is in, counted from 1."""
    return data[:position].count(b"\n") + 1
