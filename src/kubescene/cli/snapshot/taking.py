"""``kubescene snapshot``: a file of a cluster, and what is in it and what is not."""

import sys
from dataclasses import dataclass
from pathlib import Path

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.cli.files import complain
from kubescene.cli.terminals import aligned
from kubescene.client.http import read_kubeconfig
from kubescene.clock import format_time
from kubescene.clock.randomness import unguessable
from kubescene.errors import ConfigurationError
from kubescene.snapshots.anonymizing import anonymized
from kubescene.snapshots.live import cluster_role, found_in
from kubescene.snapshots.readers.table import readers
from kubescene.snapshots.snapshot import Snapshot, read_snapshot, snapshot_of

KEY_BYTES = 32
"""Of the key of new names, which nobody keeps: it is no part of any result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says."""

    sources: tuple[Path, ...]
    out: Path | None
    kubeconfig: Path | None
    context: str
    namespace: str
    selector: str
    anonymize: bool
    keep_values: bool
    finished: bool
    format: str


def take(asked: Asked) -> int:
    """Read or ask, write, and tell; returns the exit code."""
    if asked.out is not None and asked.out.exists():
        raise ConfigurationError(f"{asked.out} exists: choose another --out, or remove it")
    snapshot = taken(asked)
    if asked.anonymize:
        snapshot = anonymized(snapshot, unguessable(KEY_BYTES))
    tell(snapshot)
    if asked.out is None:
        complain(["nothing is written: name a file by --out"], "kubescene: ")
    else:
        snapshot.write(asked.out)
        size = asked.out.stat().st_size
        complain([f"the snapshot is in {asked.out} ({size:,} bytes)"], "kubescene: ")
    return 0


def taken(asked: Asked) -> Snapshot:
    redact = not asked.keep_values
    if asked.sources:
        if asked.kubeconfig is not None or asked.context:
            raise ConfigurationError("files are read, or a cluster is asked: not both at once")
        if asked.namespace or asked.selector:
            raise ConfigurationError("--namespace and --selector are for a cluster that is asked")
        return read_snapshot(
            *asked.sources, format=asked.format, redact=redact, finished=asked.finished
        )
    endpoint = read_kubeconfig(asked.kubeconfig, context=asked.context)
    found = found_in(endpoint, namespace=asked.namespace, selector=asked.selector)
    return snapshot_of([found], redact=redact, finished=asked.finished)


def tell(snapshot: Snapshot) -> None:
    """First what cannot be known from it, then what is in it and what was left out."""
    complain(snapshot.unknowns, "kubescene: ")
    complain(snapshot.told_left_out, "kubescene: ")
    if snapshot.taken_at is not None:
        sys.stdout.write(f"taken at {format_time(snapshot.taken_at)}\n")
    rows = [["KIND", "OBJECTS"], *([kind, f"{n:,}"] for kind, n in snapshot.counts().items())]
    sys.stdout.write(aligned(rows, left=(0,)))


def print_formats() -> int:
    rows = [["FORMAT", "FROM"], *([reader.name, reader.about] for reader in readers())]
    sys.stdout.write(aligned(rows, left=(0, 1)))
    return 0


def print_cluster_role() -> int:
    sys.stdout.write(dump_yaml(cluster_role()))
    return 0
