"""Files that are packed by gzip, read no further than they may be: a small one can hold a lot."""

import gzip
import zlib
from collections.abc import Iterator
from typing import IO

SUFFIX = ".gz"
MOST_BYTES = 1 << 31
"""Rows are read one by one, so this bounds time, not memory."""
LONGEST_LINE = 1 << 20


class PackedError(ValueError):
    """It is damaged, or holds too much."""


def unpacked_lines(packed: IO[bytes], most: int = MOST_BYTES) -> Iterator[str]:
    """The lines of a packed text in UTF-8, one after the other."""
    encoding, left = "utf-8-sig", most
    try:
        with gzip.GzipFile(fileobj=packed) as opened:
            while line := opened.readline(LONGEST_LINE):
                left -= len(line)
                if left < 0:
                    raise PackedError(f"it holds more than {most} bytes")
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    raise PackedError(f"it has a line of more than {LONGEST_LINE} bytes")
                yield line.decode(encoding)
                encoding = "utf-8"
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise PackedError(f"it cannot be unpacked: {error}: copy it again") from error
