"""Metadata that the system owns: names, uids, creation times, generations."""

from typing import Any

from kubescene.api.scheme import ResourceType
from kubescene.clock import Clock, Identities, format_time
from kubescene.errors import BadRequestError
from kubescene.registry.objects import with_part
from kubescene.registry.strategies import counts_generations
from kubescene.types import JsonObject

MAX_GENERATED_PREFIX = 63 - 5

_SET_BY_SYSTEM = ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT_FROM_OLD = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
)


def new_metadata(
    obj: JsonObject,
    resource_type: ResourceType,
    namespace: str,
    identities: Identities,
    clock: Clock,
) -> JsonObject:
    """A copy ready to be created: named, identified, dated."""
    given = obj.get("metadata") or {}
    if given.get("resourceVersion"):
        raise BadRequestError("resourceVersion should not be set on objects to be created")
    metadata: dict[str, Any] = {k: v for k, v in given.items() if k not in _SET_BY_SYSTEM}
    kind = resource_type.kind
    if not metadata.get("name") and (prefix := metadata.get("generateName")):
        suffix = identities.name_suffix(kind, namespace, prefix)
        metadata["name"] = prefix[:MAX_GENERATED_PREFIX] + suffix
    if namespace:
        metadata["namespace"] = namespace
    elif "namespace" in metadata and not metadata["namespace"]:
        del metadata["namespace"]
    metadata["uid"] = identities.uid(kind, namespace, metadata.get("name", ""))
    metadata["creationTimestamp"] = format_time(clock.now())
    metadata.pop("generation", None)
    if counts_generations(resource_type):
        metadata["generation"] = 1
    return with_part(obj, "metadata", metadata)


def updated_metadata(new: JsonObject, old: JsonObject) -> JsonObject:
    """A copy whose system-owned metadata is that of the stored object."""
    metadata = dict(new["metadata"])
    stored = old["metadata"]
    for field in _KEPT_FROM_OLD:
        if field in stored:
            metadata[field] = stored[field]
        else:
            metadata.pop(field, None)
    if stored.get("namespace"):
        metadata.setdefault("namespace", stored["namespace"])
    metadata["resourceVersion"] = stored["resourceVersion"]
    return new if metadata == new["metadata"] else with_part(new, "metadata", metadata)
