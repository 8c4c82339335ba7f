"""``kubescene record``: a cluster followed until somebody says that it is enough."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.cli.files import complain
from kubescene.client.http import read_kubeconfig
from kubescene.clock import WallClock, parse_duration
from kubescene.clock.randomness import unguessable
from kubescene.errors import ConfigurationError
from kubescene.histories.recordings import RecordingWriter
from kubescene.snapshots.live import cluster_role
from kubescene.snapshots.recorder import ClusterRecorder

KEY_BYTES = 32
"""Of the key of new names, which nobody keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOrder:
    """What the command line says."""

    out: Path
    length: str
    kubeconfig: Path | None
    context: str
    anonymize: bool
    keep_values: bool


def record_cluster(asked: RecordingOrder) -> int:
    """Follow a cluster, and tell what came of it; returns the exit code."""
    clock = WallClock()
    until = None
    if asked.length:
        try:
            until = clock.now() + parse_duration(asked.length)
        except ValueError as error:
            raise ConfigurationError(f"--for: {error}") from error
    endpoint = read_kubeconfig(asked.kubeconfig, context=asked.context)
    recorder = ClusterRecorder(
        endpoint,
        RecordingWriter(asked.out),
        clock,
        key=unguessable(KEY_BYTES) if asked.anonymize else None,
        redact=not asked.keep_values,
    )
    complain([f"{endpoint.url} is recorded into {asked.out}; Ctrl-C ends it"], "kubescene: ")
    with noting_signals() as stopped:
        recorded = recorder.record(until, lambda: bool(stopped))
    complain(recorded.remarks, "kubescene: ")
    size = asked.out.stat().st_size
    sys.stdout.write(
        f"{recorded.objects:,} objects, then {recorded.changes:,} changes, "
        f"in {asked.out} ({size:,} bytes)\n"
    )
    return 0


@contextmanager
def noting_signals() -> Iterator[list[int]]:
    """Signals that ask for the end are noted: what is being written is written to its end."""
    noted: list[int] = []
    handled = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda sent, _: noted.append(sent)) for number in handled]
    try:
        yield noted
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)


def print_cluster_role() -> int:
    sys.stdout.write(dump_yaml(cluster_role("kubescene-record", ("list", "watch"))))
    return 0
