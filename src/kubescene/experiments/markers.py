"""What is left on disk of finished runs, so that a matrix that was stopped goes on.

A marker is a small file of a run that succeeded, named by the digest of all that its result depends
on. It appears whole or not at all; one that does not hold what it says is not believed.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from kubescene.errors import ConfigurationError

FOLDER = "runs"
Outcome = TypeVar("Outcome", bound=msgspec.Struct)


class Marker(
    msgspec.Struct, Generic[Outcome], frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """``run`` says for people which run it is; ``check`` is a digest of key and outcome."""

    key: str
    run: dict[str, Any]
    outcome: Outcome
    check: str


class Markers(Generic[Outcome]):
    """The markers of runs that succeeded. Without a directory nothing is kept."""

    def __init__(self, out: Path | None, kind: type[Outcome]) -> None:
        """``kind`` is what is kept of a run."""
        self._decoder = msgspec.json.Decoder(Marker[kind])  # type: ignore[valid-type]  # as it is
        self._folder = None if out is None else out / FOLDER
        self.damaged: list[Path] = []
        if self._folder is not None:
            self._prepare(self._folder)

    def _prepare(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def find(self, key: str) -> Outcome | None:
        """What is kept of a run; a damaged marker is noted and counts as none."""
        if self._folder is None:
            return None
        path = self._path(self._folder, key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            data = b""
        found = self._believed(data, key)
        if found is None:
            self.damaged.append(path)
        return found

    def keep(self, key: str, run: dict[str, Any], outcome: Outcome) -> None:
        """Leave a marker, in one move: other processes and Ctrl-C see all of it or nothing."""
        if self._folder is None:
            return
        marker = Marker(key=key, run=run, outcome=outcome, check=_check(key, outcome))
        path = self._path(self._folder, key)
        # Two commands that use the same directory do not write into each other's file.
        beginning = path.with_suffix(f".{os.getpid()}")
        try:
            beginning.write_bytes(msgspec.json.encode(marker) + b"\n")
            beginning.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from error

    def _believed(self, data: bytes, key: str) -> Outcome | None:
        try:
            marker: Marker[Outcome] = self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        sound = marker.key == key and marker.check == _check(key, marker.outcome)
        return marker.outcome if sound else None

    def _path(self, folder: Path, key: str) -> Path:
        return folder / f"{key[:32]}.json"


def _check(key: str, outcome: msgspec.Struct) -> str:
    return hashlib.sha256(key.encode() + msgspec.json.encode(outcome)).hexdigest()


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cannot write {path}: {error.strerror}; choose another --out")
