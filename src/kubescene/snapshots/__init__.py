"""Snapshots: clusters as they were at one instant, read from what people have.

A snapshot is state, not operations: what it holds is restored as it was, owners, uids, bound
volumes and bound pods included, and nobody decides anew about what has been decided.

::

    sources     files, folders and archives, read within bounds
    readers     one module for each form that clusters are written down in; plugins may add more
    gathering   objects of a source made fit to be restored: what is left out, put right and told
    redaction   what a simulation does not need and others should not see
    anonymizing the same with every name replaced
    completeness  what is not there, and so cannot be known
    snapshot    a `Snapshot`, and its file
    restoring   into a world
    live        from an API server, by GET alone
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.snapshots.restoring import restore
    from kubescene.snapshots.snapshot import Snapshot, read_snapshot

__all__ = ["Snapshot", "read_snapshot", "restore"]

_HOMES = {"Snapshot": "snapshot", "read_snapshot": "snapshot", "restore": "restoring"}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
