"""Pods in columns: as much of each as a map of thousands shows, and what is equal told once.

Fifty thousand pods are some forty to two hundred megabytes as objects, and may be of ten templates.
Here each is a name and a few numbers, which say where in the lists its spec, labels and the like
stand. A client asks for a list of pods in this form::

    Accept: application/json;as=Columns;g=simulation.kube-scheduler-simulator.x-k8s.io;v=v1alpha1

::

    {"kind": "PodColumns", "apiVersion": ..., "metadata": {"resourceVersion": "4711"},
     "names": ["web-1", ...], "deleting": [0, ...],
     "spec": {"values": [{...}, ...], "at": [0, 0, 1, ...]},
     "status": ..., "labels": ..., "owner": ..., "namespace": ..., "node": ...}

The node is told beside the spec. The status of a pod that has one is its phase: the rest differs
from pod to pod, and is in the object.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache

import orjson

from kubescene.api.kinds import SCENARIO
from kubescene.api.records import Record
from kubescene.api.records.keys import keys_of, pod_keys, pod_status, spec_text, status_text
from kubescene.api.records.owner_references import controller_name, owner_references
from kubescene.bounded import KEPT
from kubescene.types import JsonObject

KIND = "PodColumns"


class Numbers(dict[Hashable, int]):
    """The place of each value among those that are different, in the order of their coming."""

    def __missing__(self, value: Hashable) -> int:
        number = self[value] = len(self)
        return number


def pods_in_columns(records: Sequence[Record], metadata: JsonObject) -> bytes:
    """The document; ``metadata`` are those of a list."""
    keys = [pod_keys(each) or keys_of(each.decode()) for each in records]
    statuses = (
        phase_of(each.phase) if each.node else status
        for each, (_, _, status, _) in zip(records, keys, strict=True)
    )
    return orjson.dumps(
        {
            "kind": KIND,
            "apiVersion": SCENARIO.api_version,
            "metadata": metadata,
            "names": [each.name for each in records],
            "deleting": [int(each.deleting) for each in records],
            "spec": column((spec for spec, *_ in keys), spec_text),
            "status": column(statuses, status_text),
            "labels": column(orjson.dumps(each.labels) for each in records),
            "owner": column(owner_of(each) if each.owner else "" for each in records),
            "namespace": column(each.namespace for each in records),
            "node": column(each.node for each in records),
        }
    )


def column(values: Iterable[bytes | str], text: Callable[[bytes], bytes] = bytes) -> JsonObject:
    """Each value once, and which of them every pod has; bytes are JSON by way of ``text``."""
    numbers = Numbers()
    at = [numbers[value] for value in values]
    told = [orjson.Fragment(text(each)) if isinstance(each, bytes) else each for each in numbers]
    return {"values": told, "at": at}


@lru_cache(KEPT)
def phase_of(phase: str) -> bytes:
    return pod_status({"phase": phase})


def owner_of(record: Record) -> str:
    """``Kind/name`` of the managing owner."""
    references = owner_references(record)
    if references is not None:
        return controller_name(references)
    told = record.decode()["metadata"].get("ownerReferences") or ()
    return next((f"{each['kind']}/{each['name']}" for each in told if each.get("controller")), "")
