"""Trees with a file for each object or kind: of cluster-info dump, Velero, must-gather."""

import re
from collections.abc import Iterator
from typing import Any

from kubescene.snapshots.readers.documents import LOGS_BEGIN, objects_of_text, without_logs
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.snapshots.sources import SnapshotSource

DUMPED = re.compile(
    r"(?:.*/)?(?:nodes|events|replication-controllers|services|daemonsets|deployments|replicasets"
    r"|pods)\.(?:json|yaml)"
)
"""The files of ``kubectl cluster-info dump --output-directory``."""
BACKED_UP = re.compile(r"(?:.*/)?resources/[^/]+/(?:namespaces/[^/]+/[^/]+|cluster/[^/]+)\.json")
"""Of a Velero backup; objects in other API versions lie one folder deeper, and are not read."""
GATHERED = re.compile(
    r"(?:.*/)?(?:cluster-scoped-resources/[^/]+/[^/]+(?:/[^/]+)?"
    r"|namespaces/[^/]+/(?:[^/]+/[^/]+|pods/[^/]+/[^/]+))\.(?:yaml|json)"
)


class TreeReader:
    """Reads the files whose paths say what they are."""

    def __init__(self, wanted: "re.Pattern[str]", remarks: tuple[str, ...] = ()) -> None:
        self._wanted = wanted
        self._remarks = remarks

    def read(self, source: SnapshotSource) -> FoundObjects:
        return FoundObjects(self._objects(source), [*self._remarks])

    def _objects(self, source: SnapshotSource) -> Iterator[Any]:
        for name, text in source.files():
            if self._wanted.fullmatch(name):
                yield from objects_of_text(text, f"{source.where}/{name}")


class ClusterInfoReader(TreeReader):
    name = "cluster-info-dump"
    about = "kubectl cluster-info dump -A, to a folder or to a file"

    def __init__(self) -> None:
        super().__init__(
            DUMPED,
            (
                "a cluster-info dump holds no StatefulSets, Jobs, claims, volumes, budgets, "
                "classes or custom resources",
            ),
        )

    def detects(self, source: SnapshotSource) -> bool:
        if not source.has_files:
            return source.head.lstrip().startswith(b"{") and LOGS_BEGIN in source.text
        names = source.names
        return any(name.endswith("nodes.json") for name in names) and any(
            name.endswith("/replication-controllers.json") for name in names
        )

    def _objects(self, source: SnapshotSource) -> Iterator[Any]:
        if source.has_files:
            yield from super()._objects(source)
        else:
            yield from objects_of_text(without_logs(source.text), source.where)


class VeleroReader(TreeReader):
    name = "velero"
    about = "the archive of a Velero backup, or its folder"

    def __init__(self) -> None:
        super().__init__(BACKED_UP)

    def detects(self, source: SnapshotSource) -> bool:
        return any(name.endswith("metadata/version") for name in source.names) and any(
            map(BACKED_UP.fullmatch, source.names)
        )


class MustGatherReader(TreeReader):
    name = "must-gather"
    about = "oc adm must-gather, oc adm inspect"

    def __init__(self) -> None:
        super().__init__(GATHERED)

    def detects(self, source: SnapshotSource) -> bool:
        return any("cluster-scoped-resources/" in name for name in source.names)
