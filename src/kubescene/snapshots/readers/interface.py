"""What a reader is, and what it hands out."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from kubescene.snapshots.sources import SnapshotSource
from kubescene.types import JsonObject


@dataclass(slots=True)
class FoundObjects:
    """What a source holds.

    ``objects`` may be read while one iterates: what else is said is known only when it ends.
    ``remarks`` are sentences about what the form cannot hold, or what was not read.
    """

    objects: Iterator[Any]
    remarks: list[str] = field(default_factory=list)
    scheduler_config: JsonObject | None = None
    taken_at: str = ""
    """When it was taken, where the form says so; otherwise the objects tell."""


@runtime_checkable
class SnapshotReader(Protocol):
    """One form."""

    name: str
    """What ``--format`` calls it."""
    about: str
    """Where people get it from, in a few words."""

    def detects(self, source: SnapshotSource) -> bool:
        """Whether a source looks like it, by its beginning and the names of its files."""
        ...

    def read(self, source: SnapshotSource) -> FoundObjects:
        """Its objects; raises `SnapshotError` that says where it is damaged."""
        ...
