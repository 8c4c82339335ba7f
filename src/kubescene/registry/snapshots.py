"""Whole worlds in and out: export, import, reset.

An export is a Kubernetes ``List``, so kubectl can read it too: every object as stored, without
revisions, each resource in order of creation, since that is the order in which a scheduler learns
of nodes. An import takes such a list (or one made from a real cluster) and puts its objects into
the world as they are, placed pods and status included: it is checked as a whole before anything is
written, and bypasses admission, which has happened where the objects come from.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from kubescene.actors import Actor
from kubescene.api.scheme import GroupResource, ResourceType
from kubescene.errors import ApiError, BadRequestError
from kubescene.registry.bootstrap import bootstrap
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.registry.deletion import DeleteOptions
from kubescene.registry.registry import Registry
from kubescene.types import JsonObject

FIRST = (
    DEFINITIONS,
    GroupResource("", "namespaces"),
    GroupResource("scheduling.k8s.io", "priorityclasses"),
    GroupResource("storage.k8s.io", "storageclasses"),
    GroupResource("", "nodes"),
)
"""Resources that others refer to come first; the rest follows by name."""

LEFT_OUT = frozenset({GroupResource("", "events"), GroupResource("coordination.k8s.io", "leases")})
"""Bookkeeping that says nothing about the world."""


def export(registry: Registry) -> bytes:
    """Every object, as one ``List``. The same world gives the same bytes."""
    items = b",".join(_exported(registry))
    return b'{"apiVersion":"v1","kind":"List","items":[' + items + b"]}"


def _exported(registry: Registry) -> Iterator[bytes]:
    store = registry.store
    rest = [resource for resource in store.resources() if resource not in FIRST]
    for resource in (*FIRST, *rest):
        if resource not in LEFT_OUT:
            for record in store.in_order_of_creation(resource):
                yield record.unversioned_data


def import_objects(registry: Registry, actor: Actor, document: bytes | Mapping[str, Any]) -> int:
    """Put the objects of a ``List`` into the world, replacing those that exist; returns how many.

    Nothing is written unless every object is acceptable.
    """
    items = _items(document)
    definitions = [item for item in items if item.get("kind") == "CustomResourceDefinition"]
    others = [item for item in items if item.get("kind") != "CustomResourceDefinition"]
    made = list(_put(registry, actor, _checked(registry, definitions)))
    try:
        checked = _checked(registry, others)
    except ApiError:
        for name in made:
            _take_back(registry, actor, name)
        raise
    return len(made) + len(list(_put(registry, actor, checked)))


def reset(registry: Registry) -> None:
    """Back to the world of a new API server."""
    for resource in reversed(registry.store.resources()):
        for record in registry.store.list(resource):
            registry.forget(record)
    registry.identities.reset(registry.identities.seed)
    bootstrap(registry)


def _items(document: bytes | Mapping[str, Any]) -> list[JsonObject]:
    try:
        listed = orjson.loads(document) if isinstance(document, bytes) else document
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the import is not valid JSON: {error}") from error
    items = listed.get("items") if isinstance(listed, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadRequestError("the import must be a List: an object whose items are objects")
    return items


def _checked(
    registry: Registry, items: Iterable[JsonObject]
) -> list[tuple[ResourceType, JsonObject]]:
    checked = []
    for index, item in enumerate(items):
        try:
            checked.append(registry.restorable(item))
        except ApiError as error:
            name = (item.get("metadata") or {}).get("name", "")
            raise BadRequestError(
                f"items[{index}], {item.get('kind')} {name!r}, is not acceptable: {error.message}"
            ) from error
    return checked


def _put(
    registry: Registry, actor: Actor, checked: Iterable[tuple[ResourceType, JsonObject]]
) -> Iterator[str]:
    for resource_type, obj in checked:
        yield registry.restore(actor, resource_type, obj).name


def _take_back(registry: Registry, actor: Actor, name: str) -> None:
    definition_type = registry.scheme.of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    registry.delete(actor, definition_type, "", name, options=DeleteOptions())
