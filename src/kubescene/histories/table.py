"""Which forms of histories there are, and which of them a file is of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kubescene.errors import ConfigurationError, SnapshotError
from kubescene.histories.audit import AuditReader
from kubescene.histories.history import RecordedHistory
from kubescene.histories.kwok import KwokRecordReader
from kubescene.histories.lines import head_of
from kubescene.histories.recordings import RecordingReader, SimulatorRecordReader
from kubescene.histories.simkube import SimKubeReader


class HistoryReader(Protocol):
    """One form."""

    name: str
    about: str
    """Where people get it from, in a few words."""

    def detects(self, head: bytes) -> bool:
        """Whether a file that begins so looks like it."""
        ...

    def open(self, path: Path) -> RecordedHistory:
        """Begin to read it; raises `SnapshotError` with the place where it is damaged."""
        ...


def readers() -> Sequence[HistoryReader]:
    """All there are, in the order in which they are asked."""
    return [
        RecordingReader(),
        SimulatorRecordReader(),
        AuditReader(),
        SimKubeReader(),
        KwokRecordReader(),
    ]


def reader_of(path: Path) -> HistoryReader | None:
    """The first that knows the file."""
    head = head_of(path)
    return next((reader for reader in readers() if reader.detects(head)), None)


def history_at(path: Path, form: str = "") -> RecordedHistory:
    """The history in a file; ``form`` settles what it is, otherwise it says so itself."""
    known = readers()
    if form:
        for reader in known:
            if reader.name == form:
                return reader.open(path)
        names = ", ".join(reader.name for reader in known)
        raise ConfigurationError(f"there is no format {form!r} of histories; there are: {names}")
    found = reader_of(path)
    if found is None:
        names = ", ".join(reader.name for reader in known)
        raise SnapshotError(
            f"nobody here knows what this is: a history is one of {names}", where=str(path)
        )
    return found.open(path)
