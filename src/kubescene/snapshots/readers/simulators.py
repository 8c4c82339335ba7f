"""Exports of other simulators: kube-scheduler-simulator's, and KWOK's snapshots."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubescene.clock import format_time
from kubescene.clock.clocks import DEFAULT_START
from kubescene.errors import SnapshotError
from kubescene.snapshots.readers.documents import objects_of_text
from kubescene.snapshots.readers.interface import FoundObjects
from kubescene.snapshots.sources import SnapshotSource
from kubescene.types import JsonObject

MEMBERS = {
    "namespaces": ("v1", "Namespace"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "nodes": ("v1", "Node"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "pvs": ("v1", "PersistentVolume"),
    "pods": ("v1", "Pod"),
}
"""The members of kube-scheduler-simulator's export, and what is in them."""
FEWEST = 3
"""So many of them make it one: a file may name some of its own objects so."""


class SimulatorReader:
    name = "kube-scheduler-simulator"
    about = "GET /api/v1/export of kube-scheduler-simulator"

    def detects(self, source: SnapshotSource) -> bool:
        if source.has_files or not source.head.lstrip().startswith(b"{"):
            return False
        named = [each for each in MEMBERS if b'"%s"' % each.encode() in source.text]
        is_list = re.search(rb'^\s*\{\s*"(apiVersion|kind|items)"', source.head)
        return is_list is None and len(named) >= FEWEST

    def read(self, source: SnapshotSource) -> FoundObjects:
        documents = list(objects_of_text(source.text, source.where))
        document = documents[0] if len(documents) == 1 else None
        if not isinstance(document, Mapping) or not any(name in document for name in MEMBERS):
            raise SnapshotError(
                f"an export has the members {', '.join(MEMBERS)}", where=source.where
            )
        config = document.get("schedulerConfig")
        return FoundObjects(
            self._objects(document, source.where),
            [
                "the form holds pods, nodes, volumes, claims and classes: there is no controller, "
                "so nobody makes a pod again that is evicted",
                "kube-scheduler-simulator leaves out namespaces kube-* and default, and the "
                "priority classes of the system",
            ],
            config if isinstance(config, dict) else None,
        )

    def _objects(self, document: Mapping[str, Any], where: str) -> Iterator[JsonObject]:
        for member, (api_version, kind) in MEMBERS.items():
            listed = document.get(member) or []
            if not isinstance(listed, list):
                raise SnapshotError(f"{member} must be a list", where=where)
            for number, each in enumerate(listed):
                if not isinstance(each, dict):
                    raise SnapshotError("must be an object", where=f"{where}: {member}[{number}]")
                yield {"apiVersion": api_version, "kind": kind, **each}


OFFSET = re.compile(rb"\$\(time-offset-nanosecond (-?\d{1,19})\)")
RECORDED = "action.kwok.x-k8s.io"


class KwokReader:
    name = "kwok"
    about = "kwokctl snapshot export, or kwokctl snapshot save --format k8s"

    def detects(self, source: SnapshotSource) -> bool:
        return not source.has_files and (
            OFFSET.search(source.head) is not None or RECORDED.encode() in source.head
        )

    def read(self, source: SnapshotSource) -> FoundObjects:
        text = OFFSET.sub(self._stamp, source.text)
        found = FoundObjects(iter(()))
        found.objects = self._objects(text, source.where, found.remarks)
        return found

    def _stamp(self, offset: "re.Match[bytes]") -> bytes:
        """An instant relative to the export's, which is taken for the start of virtual time."""
        instant = DEFAULT_START + int(offset[1])
        return b'"%s"' % format_time(max(instant, 0)).encode()

    def _objects(self, text: bytes, where: str, remarks: list[str]) -> Iterator[Any]:
        actions = 0
        for each in objects_of_text(text, where):
            if isinstance(each, dict) and str(each.get("apiVersion")).startswith(RECORDED):
                actions += 1
            else:
                yield each
        if actions:
            remarks.append(
                f"{actions} recorded changes follow the snapshot: they are not in it; "
                "`replayOperation` plays them"
            )
