"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had, numbered.

A revision holds a template as a patch that would bring it back. Which revision belongs to a
template is decided by comparing templates; the hash only makes its name.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.workloads.deployments.templates import template_hash
from kubescene.controllers.reconcile import Delete, Patch
from kubescene.types import JsonObject

CONTROLLER_REVISION = GroupVersionKind("apps", "v1", "ControllerRevision")
REVISION_LABEL = "controller-revision-hash"
"""The label of a pod that says from which revision it was made."""

_LONGEST_PREFIX = 223
_REPLACED = {"$patch": "replace"}


def data_of(template: JsonObject) -> JsonObject:
    """What a revision says of a template."""
    return {"spec": {"template": {**template, **_REPLACED}}}


def template_of(revision: JsonObject) -> JsonObject | None:
    """The template that a revision holds; None if it holds something else."""
    found = revision.get("data")
    for name in ("spec", "template"):
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("spec"), dict):
        return None
    return {name: each for name, each in found.items() if name not in _REPLACED}


def holds(revision: JsonObject, template: JsonObject) -> bool:
    return bool(revision.get("data") == data_of(template))


def in_order(revisions: Iterable[JsonObject]) -> list[JsonObject]:
    """By number; what was made first comes first among equal ones."""
    return sorted(revisions, key=revision_order)


def revision_order(revision: JsonObject) -> tuple[int, str, str]:
    metadata = revision["metadata"]
    return number_of(revision), metadata.get("creationTimestamp", ""), metadata["name"]


def number_of(revision: JsonObject) -> int:
    """Its number; one that says none is before all others."""
    return int(revision.get("revision") or 0)


def next_number(revisions: Iterable[JsonObject]) -> int:
    return max(map(number_of, revisions), default=0) + 1


def new_revision(
    owner: JsonObject, number: int, collisions: int, label: str, reader: Reader
) -> tuple[JsonObject, int]:
    """A revision for the owner's template, and how many of its names were taken so far.

    ``label`` gets the hash. If a revision of that name has the same template, it is returned.
    """
    metadata, template = owner["metadata"], owner["spec"]["template"]
    while True:
        hashed = template_hash(template, collisions or None)
        name = f"{metadata['name'][:_LONGEST_PREFIX]}-{hashed}"
        known = reader.find(ObjectRef(CONTROLLER_REVISION, name, metadata["namespace"]))
        if known is None:
            break
        if holds(known, template):
            return known, collisions
        collisions += 1
    labels = (template.get("metadata") or {}).get("labels") or {}
    own: JsonObject = {
        "name": name,
        "namespace": metadata["namespace"],
        "labels": {**labels, label: hashed},
        "ownerReferences": [controller_of(owner)],
    }
    if metadata.get("annotations"):
        own["annotations"] = metadata["annotations"]
    revision = {
        "apiVersion": CONTROLLER_REVISION.api_version,
        "kind": CONTROLLER_REVISION.kind,
        "metadata": own,
        "data": data_of(template),
        "revision": number,
    }
    return revision, collisions


def is_stored(revision: JsonObject) -> bool:
    return "uid" in revision["metadata"]


def renumbered(revision: JsonObject, number: int) -> Patch:
    return Patch(ObjectRef.to(revision), {"revision": number})


def adopted(revision: JsonObject, owner: JsonObject) -> Patch:
    metadata = revision["metadata"]
    references = [*(metadata.get("ownerReferences") or ()), controller_of(owner)]
    return Patch(
        ObjectRef.to(revision),
        {"metadata": {"ownerReferences": references, "uid": metadata["uid"]}},
    )


def removed(revisions: Sequence[JsonObject]) -> list[Delete]:
    return [Delete(ObjectRef.to(each)) for each in revisions]


def labels_of(obj: JsonObject) -> JsonObject:
    labels: JsonObject = obj["metadata"].get("labels") or {}
    return labels
