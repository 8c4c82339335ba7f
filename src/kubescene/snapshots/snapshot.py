"""A snapshot, and its file: a ``List`` that kubectl can read, with what is to be known of it first.

::

    apiVersion: v1
    kind: List
    items:
    - apiVersion: kubescene.dev/v1alpha1
      kind: SnapshotInfo
      metadata: {name: snapshot}
      takenAt: "2026-11-10T10:05:00Z"
      ...
    - apiVersion: v1
      kind: Node
      ...
"""

import gzip
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kubescene.api.own_kinds import GROUP, VERSION
from kubescene.clock import format_time, parse_time
from kubescene.errors import SnapshotError
from kubescene.snapshots.completeness import missing
from kubescene.snapshots.gathering import INFO, gathered
from kubescene.snapshots.owners import counts
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.snapshots.readers.table import reader_for
from kubescene.snapshots.redaction import redacted
from kubescene.snapshots.sources import SnapshotSource
from kubescene.types import JsonObject
from kubescene.version import __version__

if TYPE_CHECKING:
    from kubescene.what_if.asking import WhatIf

API_VERSION = f"{GROUP}/{VERSION}"
COMPRESSION = 6


@dataclass(slots=True)
class Snapshot:
    """A cluster at one instant. Its objects are not to be changed.

    ``remarks`` are sentences about what was put right and what the source's form cannot hold;
    ``left_out`` says how many objects of which kind are not here, and why.
    """

    objects: list[JsonObject]
    taken_at: int | None = None
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    scheduler_config: JsonObject | None = None
    redacted: bool = True
    anonymized: bool = False

    @property
    def missing(self) -> list[str]:
        """What it does not hold, and so cannot be known."""
        return missing(self.objects)

    @property
    def unknowns(self) -> list[str]:
        """All that has to be said before an answer: what is missing, what was put right."""
        return [*self.missing, *self.remarks]

    @property
    def told_left_out(self) -> list[str]:
        """How many objects of which kind are not in it, and why."""
        return [
            f"left out: {times} x {kind} ({why})"
            for (kind, why), times in sorted(self.left_out.items())
        ]

    def __deepcopy__(self, memo: object) -> "Snapshot":
        return self

    def counts(self) -> dict[str, int]:
        """How many objects there are of each kind, by name of the kind."""
        return dict(sorted(counts(self.objects).items()))

    @property
    def what_if(self) -> "WhatIf":
        """Questions to it, each answered in a copy of the restored cluster."""
        from kubescene.what_if.asking import WhatIf

        return WhatIf(self)

    def info(self) -> JsonObject:
        """What its file says first."""
        left_out = [
            {"kind": kind, "why": why, "count": times}
            for (kind, why), times in sorted(self.left_out.items())
        ]
        info: JsonObject = {
            "apiVersion": API_VERSION,
            "kind": INFO,
            "metadata": {"name": "snapshot"},
            "tool": f"kubescene {__version__}",
            "redacted": self.redacted,
            "anonymized": self.anonymized,
            "leftOut": left_out,
            "remarks": self.remarks,
        }
        if self.taken_at is not None:
            info["takenAt"] = format_time(self.taken_at)
        if self.scheduler_config is not None:
            info["schedulerConfig"] = self.scheduler_config
        return info

    def encoded(self) -> bytes:
        """The file's text; the same snapshot gives the same bytes."""
        items = [self.info(), *self.objects]
        lines = b",\n".join(map(orjson.dumps, items))
        return b'{"apiVersion":"v1","kind":"List","items":[\n%s\n]}\n' % lines

    def write(self, path: Path) -> None:
        """Write it to a new file, packed if its name ends with ``.gz``."""
        data = self.encoded()
        if path.suffix == ".gz":
            data = gzip.compress(data, COMPRESSION, mtime=0)
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            raise SnapshotError(
                "it exists: choose another --out, or remove it", where=str(path)
            ) from None
        except OSError as error:
            raise SnapshotError(f"cannot be written: {error.strerror}", where=str(path)) from error


def read_snapshot(
    *paths: str | Path,
    format: str = "",
    redact: bool = True,
    finished: bool = True,
) -> Snapshot:
    """The snapshot in files, folders or archives, which together are one cluster.

    ``format`` is the name of a reader; without it each source says what it is. What is
    confidential is taken out unless ``redact`` is false. Pods that have ended come along unless
    ``finished`` is false. Raises `SnapshotError` that says where a source is damaged.
    """
    if not paths:
        raise SnapshotError("no file is named")
    found = []
    for path in paths:
        source = SnapshotSource(Path(path))
        found.append(reader_for(source, format).read(source))
    snapshot = snapshot_of(found, redact=redact, finished=finished)
    if not snapshot.objects:
        raise SnapshotError(
            "there is no object in it that a snapshot holds", where=", ".join(map(str, paths))
        )
    return snapshot


def snapshot_of(
    found: Iterable[FoundObjects], *, redact: bool = True, finished: bool = True
) -> Snapshot:
    """The snapshot of what readers have found."""
    sources = list(found)
    parts = gathered(
        (_redacted(obj, redact=redact) for each in sources for obj in each.objects),
        custom=not redact,
        finished=finished,
    )
    remarks = [each for source in sources for each in source.remarks]
    configs = [each.scheduler_config for each in sources if each.scheduler_config is not None]
    snapshot = Snapshot(
        objects=parts.objects,
        taken_at=_instant(
            max([*(each.taken_at for each in sources if each.taken_at)], default=parts.newest)
        ),
        left_out=parts.left_out,
        remarks=[*remarks, *parts.remarks],
        scheduler_config=configs[0] if configs else None,
        redacted=redact,
    )
    return _as_it_was(snapshot, parts.info) if parts.info else snapshot


def _redacted(obj: Any, *, redact: bool) -> Any:
    return redacted(obj) if redact and isinstance(obj, dict) else obj


def _instant(told: str) -> int | None:
    try:
        return parse_time(told) if told else None
    except ValueError:
        return None


def _as_it_was(snapshot: Snapshot, info: JsonObject) -> Snapshot:
    """With what an earlier snapshot says of itself, as far as it can be understood."""
    taken, config = info.get("takenAt"), info.get("schedulerConfig")
    if isinstance(taken, str):
        try:
            snapshot.taken_at = parse_time(taken)
        except ValueError as error:
            raise SnapshotError(f"takenAt: {error}", where=INFO) from error
    if isinstance(config, dict):
        snapshot.scheduler_config = config
    snapshot.anonymized = info.get("anonymized") is True
    snapshot.redacted = snapshot.redacted or info.get("redacted") is True
    for each in info.get("leftOut") or ():
        if isinstance(each, dict) and isinstance(each.get("count"), int):
            snapshot.left_out[str(each.get("kind")), str(each.get("why"))] += each["count"]
    remarks = [each for each in info.get("remarks") or () if isinstance(each, str)]
    snapshot.remarks = [*remarks, *(each for each in snapshot.remarks if each not in remarks)]
    return snapshot
