"""A snapshot put into a world, as it was.

Nothing is admitted, defaulted or decided about: that has happened where the objects come from.
Nobody is told either: a world that begins with them has them before anything happens.
"""

from collections import Counter
from collections.abc import Sequence

from kubescene.controllers.builtin.workloads.controller_revisions import data_of
from kubescene.errors import ApiError
from kubescene.registry import Registry
from kubescene.registry.exports import FIRST, furnish, restorable
from kubescene.snapshots.gathering import INFO
from kubescene.snapshots.snapshot import Snapshot
from kubescene.types import JsonObject

REVISED = ("StatefulSet", "DaemonSet")
"""Kinds whose templates are kept as revisions."""


def restore(registry: Registry, snapshot: Snapshot) -> Sequence[str]:
    """Put all its objects into a world whose controllers have not begun; an equal name gives way.

    What the API here would not take is left out: the sentences returned say how many objects of
    which kind, and why the first of them.
    """
    refused: Counter[str] = Counter()
    why: dict[str, str] = {}
    templates: dict[str, JsonObject] = {}
    for obj in _in_order([*missing_namespaces(snapshot.objects), *snapshot.objects]):
        try:
            resource_type, body = restorable(registry, _with_template(obj, templates))
        except ApiError as error:
            kind = str(obj.get("kind"))
            refused[kind] += 1
            why.setdefault(kind, f"{obj['metadata'].get('name')}: {error.message}")
            continue
        furnish(registry, resource_type, body)
        if obj["kind"] in REVISED:
            templates[body["metadata"]["uid"]] = body["spec"]["template"]
    return [
        f"{times} x {kind} cannot be restored here, such as {why[kind]}"
        for kind, times in sorted(refused.items())
    ]


def _with_template(obj: JsonObject, templates: dict[str, JsonObject]) -> JsonObject:
    """A revision holds the template of its set as it is written here, quantities and all.

    Controllers tell by comparing whether pods are of the newest template.
    """
    if obj.get("kind") != "ControllerRevision":
        return obj
    owners = obj["metadata"].get("ownerReferences") or ()
    template = templates.get(str(owners[0].get("uid"))) if owners else None
    return obj if template is None else {**obj, "data": data_of(template)}


def missing_namespaces(objects: Sequence[JsonObject]) -> list[JsonObject]:
    """Those that objects are in and that are not among them."""
    there = {obj["metadata"]["name"] for obj in objects if obj.get("kind") == "Namespace"}
    needed = dict.fromkeys(
        str(obj["metadata"]["namespace"]) for obj in objects if obj["metadata"].get("namespace")
    )
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in needed
        if name not in there
    ]


_KINDS = {
    "CustomResourceDefinition": 0,
    "Namespace": 1,
    "PriorityClass": 2,
    "StorageClass": 3,
    "Node": 4,
}
"""As `kubescene.registry.exports.FIRST` has their resources."""
assert len(_KINDS) == len(FIRST)


def _in_order(objects: Sequence[JsonObject]) -> list[JsonObject]:
    """What others refer to comes first; pods in the order of their creation, as they would queue.

    Everything else stays in the order in which it was listed.
    """
    return sorted((obj for obj in objects if obj.get("kind") != INFO), key=_rank)


def _rank(obj: JsonObject) -> tuple[int, str]:
    kind = obj.get("kind")
    if kind == "ControllerRevision":
        return len(_KINDS) + 1, ""
    if kind == "Pod":
        return len(_KINDS) + 2, str(obj["metadata"].get("creationTimestamp") or "")
    return _KINDS.get(str(kind), len(_KINDS)), ""
