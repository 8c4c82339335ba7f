"""The file that audit events are appended to: a line each, old files beside it."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import orjson

from kubescene.clock import WallClock, format_micro_time
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

MEGABYTE = 1024 * 1024


class AuditLog:
    """Appends to a file, or to standard output for ``-``.

    A file that would become larger than so many megabytes is put aside under the time of day, and
    of those that were put aside so many are kept (0: all), as kube-apiserver does it.
    """

    def __init__(self, path: str, megabytes: int = 100, backups: int = 0) -> None:
        """Raises `ConfigurationError` if the file cannot be written."""
        self._path = None if path == "-" else Path(path)
        self._most = megabytes * MEGABYTE
        self._backups = backups
        self._clock = WallClock()
        self._size = 0
        self._file: BinaryIO = sys.stdout.buffer
        if self._path is not None:
            try:
                self._open(self._path)
            except OSError as error:
                raise ConfigurationError(
                    f"the audit log cannot be written: {path}: {error.strerror}"
                ) from None

    def write(self, event: JsonObject) -> None:
        """One line, out of this process when it returns."""
        line = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
        if self._path is not None and self._size and self._size + len(line) > self._most:
            self._put_aside(self._path)
        self._file.write(line)
        self._file.flush()
        self._size += len(line)

    def close(self) -> None:
        if self._path is not None:
            self._file.close()

    def _open(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._size = self._file.tell()

    def _put_aside(self, path: Path) -> None:
        self._file.close()
        told = format_micro_time(self._clock.now()).translate({ord(":"): "-", ord("Z"): None})
        path.rename(path.with_name(f"{path.stem}-{told}{path.suffix}"))
        self._open(path)
        if self._backups:
            aside = sorted(path.parent.glob(f"{path.stem}-*T*{path.suffix}"))
            for old in aside[: -self._backups]:
                with suppress(FileNotFoundError):
                    old.unlink()
