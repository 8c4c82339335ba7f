"""What kubectl and the API write: lists, several documents, one kind or many; our own files, too.

A folder or an archive of such files, in whatever order, is read as one snapshot.
"""

from collections.abc import Iterator
from typing import Any

from kubescene.snapshots.readers.documents import objects_of_text
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.snapshots.sources import READ, SnapshotSource


class KubectlReader:
    name = "kubectl"
    about = "kubectl get -A -o yaml (or json), files of manifests, kubescene snapshot"

    def detects(self, source: SnapshotSource) -> bool:
        if source.has_files:
            return any(name.endswith(READ) for name in source.names)
        head = source.head.lstrip(b"\xef\xbb\xbf \r\n\t")
        return not head or head.startswith((b"{", b"[")) or b":" in head

    def read(self, source: SnapshotSource) -> FoundObjects:
        return FoundObjects(self._objects(source))

    def _objects(self, source: SnapshotSource) -> Iterator[Any]:
        if not source.has_files:
            yield from objects_of_text(source.text, source.where)
            return
        for name, text in source.files():
            yield from objects_of_text(text, f"{source.where}/{name}")
