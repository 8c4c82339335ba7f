"""Metadata that the system owns: names, uids, creation times, generations."""

from functools import partial
from typing import Any

from kubescene.api.consultations import Consultation
from kubescene.api.scheme import ResourceType
from kubescene.clock import Clock, Identities, format_time
from kubescene.errors import AlreadyExistsError, BadRequestError
from kubescene.registry.objects import with_part
from kubescene.registry.strategies import counts_generations
from kubescene.store import Store
from kubescene.types import JsonObject

MAX_GENERATED_PREFIX = 63 - 5
NAME_ATTEMPTS = 8
_ANY_SUFFIX = "bbbbb"

_SET_BY_SYSTEM = (
    "resourceVersion",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
_KEPT_FROM_OLD = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


class PinnedIdentities(Identities):
    """Those of a write that is tried again while webhooks are asked: what it was given stays."""

    def __init__(self, identities: Identities, consultation: Consultation) -> None:
        super().__init__(identities.seed)
        self._identities = identities
        self._pinned = consultation
        self._drawn = 0

    def uid(self, kind: str, namespace: str, name: str) -> str:
        key = ("uid", kind, namespace, name)
        return self._pinned.pin(key, partial(self._identities.uid, kind, namespace, name))

    def name_suffix(self, kind: str, namespace: str, prefix: str) -> str:
        self._drawn += 1
        key = ("name", kind, namespace, prefix, str(self._drawn))
        return self._pinned.pin(key, partial(self._identities.name_suffix, kind, namespace, prefix))


def pinned(identities: Identities, consultation: Consultation | None) -> Identities:
    """Who names and identifies what a write creates."""
    return identities if consultation is None else PinnedIdentities(identities, consultation)


def is_revision(version: str) -> bool:
    """Whether a ``resourceVersion`` names a state of the store: 64 bits, and not zero."""
    digits = version.lstrip("0")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and int(digits) < 1 << 64


def new_metadata(
    obj: JsonObject,
    resource_type: ResourceType,
    namespace: str,
    name: str,
    identities: Identities,
    clock: Clock,
) -> JsonObject:
    """A copy ready to be created: named, identified, dated."""
    given = obj.get("metadata") or {}
    if is_revision(given.get("resourceVersion", "")):
        raise BadRequestError("resourceVersion should not be set on objects to be created")
    metadata: dict[str, Any] = {k: v for k, v in given.items() if k not in _SET_BY_SYSTEM}
    if name:
        metadata["name"] = name
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = identities.uid(resource_type.kind, namespace, name)
    metadata["creationTimestamp"] = format_time(clock.now())
    if counts_generations(resource_type):
        metadata["generation"] = 1
    return with_part(obj, "metadata", metadata)


def free_name(
    metadata: JsonObject,
    resource_type: ResourceType,
    namespace: str,
    identities: Identities,
    store: Store,
) -> str:
    """The name to create an object by; generated, if it brings a prefix only.

    A generated name that is taken is replaced, eight times at most, as kube-apiserver does.
    """
    prefix = metadata.get("generateName")
    if metadata.get("name") or not prefix:
        return metadata.get("name") or ""
    resource = resource_type.group_resource
    for _ in range(NAME_ATTEMPTS):
        suffix = identities.name_suffix(resource_type.kind, namespace, prefix)
        name: str = prefix[:MAX_GENERATED_PREFIX] + suffix
        if store.get(resource, namespace, name) is None:
            return name
    shown = resource_type.named_resource
    raise AlreadyExistsError(
        f'{shown} "{name}" already exists, the server was not able to generate a unique name for '
        "the object",
        name=name,
        group=shown.group,
        kind=shown.resource,
        retry_after_s=1,
    )


def example_name(metadata: JsonObject) -> str:
    """A name such as `free_name` would give, without taking one."""
    prefix = metadata.get("generateName")
    if metadata.get("name") or not prefix:
        return metadata.get("name") or ""
    return f"{prefix[:MAX_GENERATED_PREFIX]}{_ANY_SUFFIX}"


def check_unused(resource_type: ResourceType, namespace: str, name: str, store: Store) -> None:
    """409 if an object of this name exists, even one that is about to go."""
    record = store.get(resource_type.group_resource, namespace, name)
    if record is None:
        return
    shown = resource_type.named_resource
    going = store.decoded(record)["metadata"].get("deletionTimestamp")
    raise AlreadyExistsError(
        f'{"object is being deleted: " if going else ""}{shown} "{name}" already exists',
        name=name,
        group=shown.group,
        kind=shown.resource,
    )


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
    else:
        metadata.pop("namespace", None)  # its kind has none, whatever a manifest says
    metadata["resourceVersion"] = stored["resourceVersion"]
    return new if metadata == new["metadata"] else with_part(new, "metadata", metadata)
