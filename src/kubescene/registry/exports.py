"""Whole worlds in and out: export, import, reset.

An export is a Kubernetes ``List``, so kubectl can read it too: every object as stored, without
revisions, each resource in order of creation, since that is the order in which a scheduler learns
of nodes. An import takes such a list (or one made from a real cluster) and puts its objects into
the world as they are, placed pods and status included: it is checked as a whole before anything is
written, and bypasses admission, which has happened where the objects come from.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from kubescene.actors import Actor, Role
from kubescene.api.field_ownership import managed_fields
from kubescene.api.field_ownership.managed_fields import with_managed_fields
from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record
from kubescene.api.schemas.structural import Examined
from kubescene.api.scheme import GroupResource, ResourceType
from kubescene.api.text.encoding import enclosed
from kubescene.api.text.reading import ReadingError, read_json
from kubescene.errors import ApiError, BadRequestError
from kubescene.registry.bootstrap import bootstrap
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.registry.interface import Registry
from kubescene.registry.metadata import new_metadata
from kubescene.registry.objects import with_part
from kubescene.registry.writes import WriteRequest, resolve_namespace
from kubescene.store import Store
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


AT_ONCE = 100
"""So many objects of an import are checked, or written, before others have their turn."""

Examinations: TypeAlias = Mapping[int, Examined]
"""By position in the list."""

KEPT = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that an imported object brings along, although the system sets it otherwise."""


def export(registry: Registry) -> bytes:
    """Every object, as one ``List``. The same world gives the same bytes."""
    return list_of(exported(registry.store))


def exported(store: Store) -> list[Record]:
    """What there is now, in the order of an export. To write it down is another's work."""
    rest = [resource for resource in store.resources() if resource not in FIRST]
    shown = (resource for resource in (*FIRST, *rest) if resource not in LEFT_OUT)
    return [record for resource in shown for record in store.in_order_of_creation(resource)]


def list_of(records: Iterable[Record]) -> bytes:
    """Records as one ``List``. On any thread."""
    items = (record.unversioned_data for record in records)
    return enclosed(b'{"apiVersion":"v1","kind":"List","items":[', items, b"]}")


def import_objects(
    registry: Registry,
    actor: Actor,
    document: bytes | Mapping[str, Any],
    examined: Examinations | None = None,
) -> int:
    """Put the objects of a ``List`` into the world, replacing those that exist; returns how many.

    Nothing is written unless every object is acceptable.
    """
    slices = importing(registry, actor, document, examined)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            count: int = end.value
            return count


def examinations(registry: Registry, document: Mapping[str, Any]) -> Examinations:
    """What schemas say of an import's objects of custom kinds, which takes long for large ones.

    On any thread. What is bad is told when it is to be imported.
    """
    found = enumerate(map(registry.examined, _items(document)))
    return {at: examined for at, examined in found if examined is not None}


def importing(
    registry: Registry,
    actor: Actor,
    document: bytes | Mapping[str, Any],
    examined: Examinations | None = None,
) -> Generator[None, None, int]:
    """The same in slices: whoever asks for the next one may let others write in between."""
    known = examined or {}
    items = [_Item(at, item, known.get(at)) for at, item in enumerate(_items(document))]
    yield
    definitions = [each for each in items if each.is_definition]
    others = [each for each in items if not each.is_definition]
    before = _definitions(registry)
    made = list(_put(registry, actor, list(_checked(registry, definitions))))
    yield
    checked: list[tuple[ResourceType, JsonObject]] = []
    try:
        for each in _checked(registry, others):
            checked.append(each)
            if not len(checked) % AT_ONCE:
                yield
    except ApiError:
        for name in made:
            _take_back(registry, actor, name, before.get(name))
        raise
    count = 0
    for name in _put(registry, actor, checked):
        count += bool(name)
        if not count % AT_ONCE:
            yield
    return len(made) + count


def reset(registry: Registry) -> None:
    """Back to the world of a new API server."""
    for resource in reversed(registry.store.resources()):
        for record in registry.store.list(resource):
            _forget(registry, record)
    registry.identities.reset(registry.identities.seed)
    bootstrap(registry)


def _items(document: bytes | Mapping[str, Any]) -> list[JsonObject]:
    try:
        listed = read_json(document).value if isinstance(document, bytes) else document
    except ReadingError as error:
        raise BadRequestError(f"the import is not valid JSON: {error}") from error
    items = listed.get("items") if isinstance(listed, Mapping) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadRequestError("the import must be a List: an object whose items are objects")
    return items


class _Item(NamedTuple):
    """An object of an import, and where in its list it stands."""

    position: int
    obj: JsonObject
    examined: Examined | None

    @property
    def is_definition(self) -> bool:
        return bool(self.obj.get("kind") == "CustomResourceDefinition")


def _checked(
    registry: Registry, items: Iterable[_Item]
) -> Iterator[tuple[ResourceType, JsonObject]]:
    for position, obj, examined in items:
        try:
            yield restorable(registry, obj, examined)
        except ApiError as error:
            metadata = obj.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            raise BadRequestError(
                f"items[{position}], {obj.get('kind')} {name!r}, is not acceptable: {error.message}"
            ) from error


def restorable(
    registry: Registry, obj: JsonObject, examined: Examined | None = None
) -> tuple[ResourceType, JsonObject]:
    """An object from elsewhere as it would be stored here, checked but not admitted.

    Its identity, dates and status stay; what is missing of them is made up.
    """
    resource_type, body = registry.to_storage(obj, examined)
    place = resolve_namespace(resource_type, body, "")
    own = body["metadata"]
    unversioned = {k: v for k, v in own.items() if k != "resourceVersion"}
    fresh = new_metadata(
        with_part(body, "metadata", unversioned),
        resource_type,
        place,
        own.get("name", ""),
        registry.identities,
        registry.clocks.of(resource_type),
    )
    kept = {name: own[name] for name in KEPT if name in own}
    complete = with_part(fresh, "metadata", {**fresh["metadata"], **kept})
    if managed_fields.decode(own.get("managedFields")) is None:  # stored ones can be read
        complete = with_managed_fields(complete, None)
    if "status" not in obj or resource_type.group_resource == DEFINITIONS:
        complete = registry.preparation.create(complete, resource_type)
    registry.checks.validate(complete, None, resource_type, examined=examined)
    return resource_type, registry.stored(complete, resource_type)


def restore(
    registry: Registry, actor: Actor, resource_type: ResourceType, obj: JsonObject
) -> Record:
    """Store what `restorable` returned; an object of that name gives way.

    Another one, by its uid, is deleted first: whoever knows objects by uid would keep it for ever.
    """
    metadata, resource, store = obj["metadata"], resource_type.group_resource, registry.store
    registry.gate.before_write(actor, resource_type, "", metadata["name"])
    current = store.get(resource, metadata.get("namespace", ""), metadata["name"])
    if current is not None and current.uid != metadata["uid"] and resource != DEFINITIONS:
        removed = store.remove(resource, current.namespace, current.name)
        registry.tell(WriteRequest(actor, "delete", resource_type), removed, current)
        current = None
    record = store.put(resource, obj)
    registry.tell(WriteRequest(actor, "create", resource_type, body=obj), record, current)
    registry.consequences.updated(record)
    return record


def furnish(registry: Registry, resource_type: ResourceType, obj: JsonObject) -> Record:
    """Store what `restorable` returned in a world that begins with it: nobody asks, nobody hears.

    An object of that name gives way.
    """
    record = registry.store.put(resource_type.group_resource, obj)
    registry.consequences.updated(record)
    return record


def _forget(registry: Registry, record: Record) -> None:
    """Take an object away without asking, telling or waiting: this world begins anew."""
    removed = registry.store.remove(record.resource, record.namespace, record.name)
    if record.resource == DEFINITIONS:
        registry.custom.uninstall(removed.name)


def _put(
    registry: Registry, actor: Actor, checked: list[tuple[ResourceType, JsonObject]]
) -> Iterator[str]:
    if registry.role_of(actor) is Role.USER:
        # Whom a scenario turns away has written nothing; asking for a user moves no step.
        for resource_type, obj in checked:
            registry.gate.before_write(actor, resource_type, "", obj["metadata"]["name"])
    for resource_type, obj in checked:
        yield restore(registry, actor, resource_type, obj).name


def _definitions(registry: Registry) -> dict[str, JsonObject]:
    """The definitions that there are, by name."""
    store = registry.store
    return {each.name: store.decoded(each) for each in store.list(DEFINITIONS)}


def _take_back(registry: Registry, actor: Actor, name: str, before: JsonObject | None) -> None:
    """A definition that a refused import brought goes; one that was there is as it was."""
    definition_type = registry.scheme.of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    if before is None:
        registry.delete(actor, definition_type, "", name, options=DeleteOptions())
    else:
        restore(registry, actor, definition_type, before)
