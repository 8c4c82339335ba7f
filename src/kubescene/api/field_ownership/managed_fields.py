"""``metadata.managedFields``: who wrote which fields of an object, and how.

Each `ManagedFieldsEntry` is one manager's set of fields in one API version. A manager that
*updates* owns what its writes changed and takes it from everybody else; a manager that *applies*
owns what its last configuration stated (`kubescene.api.patching.apply`). Entries know fields by
their paths in a version, so an object is compared in each version that some entry has.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from msgspec import Struct

from kubescene.api.field_ownership.field_sets import (
    FieldSet,
    difference,
    excluding,
    fields_of,
    is_field_set,
    union,
)
from kubescene.api.field_ownership.field_shapes import FieldShape
from kubescene.api.field_ownership.field_walks import FieldChanges, compare
from kubescene.types import JsonObject, JsonValue

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATERS = 10
OLD_UPDATES = "ancient-changes"


SYSTEM_OWNED = fields_of(
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "creationTimestamp"),
    ("metadata", "selfLink"),
    ("metadata", "uid"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)
"""Nobody owns these, whoever states them."""


class ManagerId(Struct, frozen=True, order=True):
    """What makes two entries the same manager's. An applier is the same in every version."""

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """One manager's fields. Updates that made no difference leave no time."""

    manager: str
    operation: str
    api_version: str
    fields: FieldSet
    subresource: str = ""
    time: str = ""

    @property
    def id(self) -> ManagerId:
        version = "" if self.operation == APPLY else self.api_version
        return ManagerId(self.manager, self.operation, version, self.subresource)

    def to_dict(self) -> JsonObject:
        entry: JsonObject = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
        }
        if self.time:
            entry["time"] = self.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = self.fields
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


Managers: TypeAlias = dict[ManagerId, ManagedFieldsEntry]


class Versions(Protocol):
    """The versions of a kind, by ``apiVersion``. None stands for one that is served no more."""

    def shape(self, api_version: str) -> FieldShape | None: ...

    def convert(self, obj: JsonObject, api_version: str) -> JsonObject | None: ...


@dataclass(frozen=True, slots=True)
class OwnedWrite:
    """One write as ownership sees it: who, in which version, through what, when."""

    manager: str
    api_version: str
    time: str
    subresource: str = ""
    reset: FieldSet = field(default_factory=dict)
    """Fields that the server ignores in such a write: nobody gets to own them by it."""

    def entry(self, operation: str, fields: FieldSet) -> ManagedFieldsEntry:
        """The entry of all that is stated, some of which nobody may own."""
        stated = excluding(fields, self.reset)
        return ManagedFieldsEntry(
            self.manager, operation, self.api_version, stated, self.subresource, self.time
        )


def owned(entry: ManagedFieldsEntry) -> ManagedFieldsEntry:
    """The entry without fields that are the system's."""
    return replace(entry, fields=difference(entry.fields, SYSTEM_OWNED))


# -- the wire ------------------------------------------------------------------------------


def decode(entries: JsonValue) -> Managers | None:
    """The managers of an object; None if its ``managedFields`` cannot be read."""
    managers: Managers = {}
    for each in entries or ():
        entry = _entry(each)
        if entry is None:
            return None
        managers[entry.id] = entry
    return managers


def stored(entries: JsonValue) -> Managers:
    """The managers of a stored object: what is stored was checked when it was written."""
    managers: Managers = {}
    for each in entries or ():
        entry = _read(each)
        managers[entry.id] = entry
    return managers


def _entry(given: JsonValue) -> ManagedFieldsEntry | None:
    if not isinstance(given, dict) or given.get("operation") not in (APPLY, UPDATE):
        return None
    if given.get("fieldsType") != "FieldsV1" or not given.get("apiVersion"):
        return None
    return _read(given) if is_field_set(given.get("fieldsV1") or {}) else None


def _read(given: JsonObject) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=given.get("manager") or "",
        operation=given["operation"],
        api_version=given["apiVersion"],
        fields=given.get("fieldsV1") or {},
        subresource=given.get("subresource") or "",
        time=given.get("time") or "",
    )


def encode(managers: Managers) -> list[JsonObject]:
    """Appliers first, then updaters; each by time."""
    return [entry.to_dict() for entry in sorted(managers.values(), key=_wire_order)]


def _wire_order(entry: ManagedFieldsEntry) -> tuple[str, ...]:
    return entry.operation, entry.time, entry.manager, entry.api_version, entry.subresource


def is_reset(entries: JsonValue) -> bool:
    """Whether a client asks that all ownership be forgotten: an empty list, or one empty entry."""
    return isinstance(entries, list) and entries in ([], [{}])


def without_managed_fields(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**obj, "metadata": kept}


def with_managed_fields(obj: JsonObject, entries: list[JsonObject] | None) -> JsonObject:
    """A copy with these entries; without any if there are none."""
    metadata = obj.get("metadata") or {}
    if entries:
        return {**obj, "metadata": {**metadata, "managedFields": entries}}
    return without_managed_fields(obj)


def with_entries_of(obj: JsonObject, other: JsonObject) -> JsonObject:
    """A copy with the entries of another object; itself if they are its own."""
    entries = other["metadata"].get("managedFields")
    return (
        obj
        if obj["metadata"].get("managedFields") is entries
        else with_managed_fields(obj, entries)
    )


def same_but_times(new: JsonObject, old: JsonObject) -> bool:
    """Whether two objects that have entries differ in nothing but the times of these."""
    if "managedFields" not in new["metadata"] or "managedFields" not in old["metadata"]:
        return False
    if without_managed_fields(new) != without_managed_fields(old):
        return False
    return _untimed(new) == _untimed(old)


def _untimed(obj: JsonObject) -> list[JsonObject]:
    return [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in obj["metadata"].get("managedFields") or ()
    ]


# -- updates -------------------------------------------------------------------------------


def updated(
    managers: Managers, old: JsonObject, new: JsonObject, writer: OwnedWrite, versions: Versions
) -> Managers:
    """Who owns what after a write that is no apply.

    ``old`` and ``new`` are in the version of the writer. What the write changed, its manager
    owns, alone; what it removed, nobody does.
    """
    comparisons = Comparisons(old, new, writer, versions)
    changes = comparisons.of(writer.api_version)
    result: Managers = {}
    for entry in managers.values():
        differing = comparisons.of(entry.api_version)
        if differing is None:
            continue
        fields = difference(difference(entry.fields, differing.written), differing.removed)
        if fields:
            result[entry.id] = replace(entry, fields=fields)
    assert changes is not None
    own = owned(writer.entry(UPDATE, changes.written))
    if own.fields:
        known = result.get(own.id)
        result[own.id] = replace(own, fields=union(own.fields, known.fields)) if known else own
    return _capped(result)


class Comparisons:
    """Two states of an object, compared in the versions that are asked for."""

    def __init__(
        self, old: JsonObject, new: JsonObject, writer: OwnedWrite, versions: Versions
    ) -> None:
        self._old = old
        self._new = new
        self._writer = writer
        self._versions = versions
        self._known: dict[str, FieldChanges | None] = {}

    def of(self, api_version: str) -> FieldChanges | None:
        """What changed in terms of a version; None if the version is gone."""
        if api_version not in self._known:
            self._known[api_version] = self._compared(api_version)
        return self._known[api_version]

    def _compared(self, api_version: str) -> FieldChanges | None:
        shape = self._versions.shape(api_version)
        old, new = (self._versions.convert(each, api_version) for each in (self._old, self._new))
        if shape is None or old is None or new is None:
            return None
        changes = compare(old, new, shape)
        reset = self._writer.reset
        if not reset:
            return changes
        return FieldChanges(
            excluding(changes.removed, reset),
            excluding(changes.modified, reset),
            excluding(changes.added, reset),
        )


def _capped(managers: Managers) -> Managers:
    """At most ten updaters: of the oldest, those of one version become one entry."""
    updaters = [entry for entry in managers.values() if entry.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    result = dict(managers)
    first: dict[str, ManagedFieldsEntry] = {}
    for entry in sorted(updaters, key=lambda each: (each.time, each.id)):
        if excess == 0:
            break
        known = first.get(entry.api_version)
        if known is None:
            first[entry.api_version] = entry
            continue
        bucket = ManagedFieldsEntry(
            OLD_UPDATES, UPDATE, entry.api_version, union(entry.fields, known.fields)
        )
        _replace(result, (known, entry), replace(bucket, time=entry.time))
        first[entry.api_version] = result[bucket.id]
        excess -= 1
    return result


def _replace(
    managers: Managers, gone: Iterable[ManagedFieldsEntry], entry: ManagedFieldsEntry
) -> None:
    for each in gone:
        managers.pop(each.id, None)
    managers[entry.id] = entry
