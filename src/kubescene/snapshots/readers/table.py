"""Which readers there are, and which of them a source is for."""

from collections.abc import Iterator, Sequence

from kubescene.errors import ConfigurationError, SnapshotError
from kubescene.installed import offered
from kubescene.snapshots.readers.interface import SnapshotReader
from kubescene.snapshots.readers.kubectl import KubectlReader
from kubescene.snapshots.readers.recordings import FirstStateReader
from kubescene.snapshots.readers.simulators import KwokReader, SimulatorReader
from kubescene.snapshots.readers.trees import ClusterInfoReader, MustGatherReader, VeleroReader
from kubescene.snapshots.sources import SnapshotSource

ENTRY_POINTS = "kubescene.readers"


def readers() -> Sequence[SnapshotReader]:
    """All there are, in the order in which they are asked."""
    own: list[SnapshotReader] = [
        FirstStateReader(),
        SimulatorReader(),
        KwokReader(),
        VeleroReader(),
        MustGatherReader(),
        ClusterInfoReader(),
    ]
    return [*_installed(), *own, KubectlReader()]


def reader_for(source: SnapshotSource, format: str = "") -> SnapshotReader:
    """The reader of that name, or the first that knows the source."""
    known = readers()
    if format:
        for reader in known:
            if reader.name == format:
                return reader
        names = ", ".join(reader.name for reader in known)
        raise ConfigurationError(f"there is no format {format!r}; there are: {names}")
    for reader in known:
        if reader.detects(source):
            return reader
    raise SnapshotError(
        "nobody here knows what this is: a snapshot is what `kubectl get -A -o yaml` writes, "
        "or a form that `kubescene snapshot --formats` lists",
        where=source.where,
    )


def _installed() -> Iterator[SnapshotReader]:
    for point in offered(ENTRY_POINTS):
        made = point.load()()
        if not isinstance(made, SnapshotReader):
            raise ConfigurationError(
                f"{point.value} of {ENTRY_POINTS} is no reader: it needs name, about, detects "
                "and read"
            )
        yield made
