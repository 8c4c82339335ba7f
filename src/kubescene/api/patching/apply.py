"""Server-side apply: an object, a configuration that states some of it, and who owned what.

The configuration is merged into the object. What the same manager stated last time and states no
more goes, unless somebody else owns it. Where the outcome changes a field of another manager there
is a conflict, which is refused or, by force, won. Lists and maps merge as their shapes say.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct

from kubescene.api.field_ownership import field_sets
from kubescene.api.field_ownership.field_sets import (
    LEAF,
    MEMBER,
    FieldSet,
    difference,
    intersection,
    is_member,
    union,
)
from kubescene.api.field_ownership.field_shapes import FieldDivision, FieldShape
from kubescene.api.field_ownership.field_walks import NoKeyError, compare, field_set, item_keys
from kubescene.api.field_ownership.managed_fields import (
    APPLY,
    UPDATE,
    Comparisons,
    ManagedFieldsEntry,
    Managers,
    OwnedWrite,
    Versions,
    owned,
)
from kubescene.errors import ConflictError, StatusCause
from kubescene.types import JsonObject, JsonValue

_LEAF, _MAP, _LIST, _SET, _FREE = FieldDivision


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that the configuration would change and that is another manager's."""

    entry: ManagedFieldsEntry
    path: tuple[str, ...]

    @property
    def field(self) -> str:
        return field_sets.shown(self.path)


class ApplyConflictError(ConflictError):
    """409: the configuration changes fields of others, and was not applied by force."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self.conflicts = tuple(conflicts)
        causes = [
            StatusCause("FieldManagerConflict", f"conflict with {_owner(each.entry)}", each.field)
            for each in conflicts
        ]
        super().__init__(_message(conflicts), causes=causes)


class Applied(Struct, frozen=True):
    """The outcome. ``obj`` is None if applying leaves the object as it is."""

    obj: JsonObject | None
    managers: Managers


def apply(
    managers: Managers,
    live: JsonObject,
    config: JsonObject,
    applier: OwnedWrite,
    versions: Versions,
    *,
    force: bool = False,
) -> Applied:
    """Apply ``config``, which `complaints` has no complaints about, to an object.

    Both are in the version of the applier; ``live`` has no ``managedFields``, and is empty if the
    object is yet to be created.
    """
    shape = versions.shape(applier.api_version)
    assert shape is not None
    stated = applier.entry(APPLY, field_set(config, shape))
    last = managers.get(stated.id)
    new = merged(live, config, shape)
    if last is not None and last.fields:
        new = _pruned(new, {**managers, stated.id: stated}, last, stated, versions)
    others = {identity: entry for identity, entry in managers.items() if identity != stated.id}
    result = _taken(others, Comparisons(live, new, applier, versions), force=force)
    own = owned(stated)
    if new == live:
        own = replace(own, time=last.time if last else "")
    if own.fields:
        result[own.id] = own
    return Applied(None if new == live else new, result)


def _taken(others: Managers, comparisons: Comparisons, *, force: bool) -> Managers:
    """The other managers, after they have lost what was changed or removed."""
    conflicts: list[Conflict] = []
    result: Managers = {}
    for identity in sorted(others):
        entry = others[identity]
        changes = comparisons.of(entry.api_version)
        if changes is None:
            continue
        lost = intersection(entry.fields, changes.written)
        conflicts += [Conflict(entry, path) for path in field_sets.members(lost)]
        fields = difference(difference(entry.fields, lost), changes.removed)
        if fields:
            result[identity] = entry if fields == entry.fields else replace(entry, fields=fields)
    if conflicts and not force:
        raise ApplyConflictError(conflicts)
    return result


# -- messages ------------------------------------------------------------------------------


def _message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {_owner(only.entry)}: {only.field}"
    lines: list[str] = []
    for conflict in conflicts:
        heading = f"conflicts with {_owner(conflict.entry)}:"
        if heading not in lines:
            lines.append(heading)
        lines.append(f"- {conflict.field}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _owner(entry: ManagedFieldsEntry) -> str:
    owner = f'"{entry.manager}"'
    if entry.subresource:
        owner += f' with subresource "{entry.subresource}"'
    return f"{owner} using {entry.api_version}" if entry.operation == UPDATE else owner


# -- merging -------------------------------------------------------------------------------


def merged(live: JsonValue, config: JsonValue, shape: FieldShape) -> JsonValue:
    """Both in one: what the configuration states is its own, everything else stays."""
    division = shape.division
    if not live or (config is not None and type(config) is not type(live)):
        return config
    if type(live) is dict and (division is _MAP or division is _FREE):
        return _merged_map(live, config or {}, shape)
    if type(live) is list and (division is _LIST or division is _SET):
        return _merged_list(live, config or [], shape)
    return config


def _merged_map(live: JsonObject, config: JsonObject, shape: FieldShape) -> JsonObject:
    result = dict(live)
    for name, value in config.items():
        result[name] = merged(live[name], value, shape.below(name)) if name in live else value
    return result


def _merged_list(live: list[Any], config: list[Any], shape: FieldShape) -> list[Any]:
    element = shape.element
    assert element is not None
    left, right = item_keys(live, shape), item_keys(config, shape)
    stated = dict(zip(right, config, strict=True))
    known: dict[str, Any] = {}
    for key, item in zip(left, live, strict=True):
        # Of duplicates none can be merged with: the stated item stands instead of them.
        known[key] = None if key in known else item
    result = []
    for key, position in _order(left, right):
        if key not in stated:
            result.append(live[position])
        elif known.get(key) is None:
            result.append(stated[key])
        else:
            result.append(merged(known[key], stated[key], element))
    return result


def _order(left: list[str], right: list[str]) -> list[tuple[str, int]]:
    """Keys of both lists, each once, with their position in ``left`` where it is needed.

    Stated items come in the order of the configuration; an item that only the object has keeps
    its place before the shared item that followed it.
    """
    stated, known = set(right), set(left)
    shared = deque(key for key in right if key in known)
    order: list[tuple[str, int]] = []
    done: set[str] = set()
    waiting = deque(right)
    position = 0
    while position < len(left) or waiting:
        here = left[position] if position < len(left) else None
        if here is not None and here not in stated:
            order.append((here, position))
            position += 1
            continue
        follows = bool(shared) and here is not None and here != shared[0]
        if here is not None and waiting and here != waiting[0] and follows:
            position += 1  # shared, but stated at another place
            continue
        if here is not None and (here in done or (waiting and here == waiting[0])):
            position += 1
        if waiting:
            key = waiting.popleft()
            order.append((key, -1))
            done.add(key)
            if shared and shared[0] == key:
                shared.popleft()
    return order


# -- pruning -------------------------------------------------------------------------------


def _pruned(
    new: JsonObject,
    managers: Managers,
    last: ManagedFieldsEntry,
    own: ManagedFieldsEntry,
    versions: Versions,
) -> JsonObject:
    """The object without what the applier stated last and nobody owns now."""
    shape = versions.shape(last.api_version)
    before = versions.convert(new, last.api_version)
    if shape is None or before is None:
        return new
    stated_last = with_structs(last.fields, shape)
    kept = without(before, stated_last, shape) or {}
    for api_version, fields in _by_version(managers, last.api_version):
        kept = _with_owned(before, kept, fields, api_version, versions)
    there, left = _all_fields(before, shape), _all_fields(_in(kept, last, versions), shape)
    gone = intersection(difference(there, left), stated_last)
    result = versions.convert(without(before, gone, shape) or {}, own.api_version)
    return new if result is None else result


def _in(obj: JsonObject, entry: ManagedFieldsEntry, versions: Versions) -> JsonObject:
    return versions.convert(obj, entry.api_version) or obj


def _by_version(managers: Managers, first: str) -> list[tuple[str, FieldSet]]:
    """All fields that somebody owns, by version; the version of the pruned object first."""
    fields: dict[str, FieldSet] = {first: {}}
    for identity in sorted(managers):
        entry = managers[identity]
        fields[entry.api_version] = union(fields.get(entry.api_version, {}), entry.fields)
    return list(fields.items())


def _with_owned(
    before: JsonObject, kept: JsonObject, fields: FieldSet, api_version: str, versions: Versions
) -> JsonObject:
    """The pruned object with everything back that somebody owns in this version."""
    shape = versions.shape(api_version)
    full, rest = versions.convert(before, api_version), versions.convert(kept or {}, api_version)
    if shape is None or full is None or rest is None:
        return kept
    stay = union(_all_fields(rest, shape), with_structs(fields, shape))
    return without(full, difference(_all_fields(full, shape), stay), shape) or {}


def _all_fields(obj: JsonObject, shape: FieldShape) -> FieldSet:
    return with_structs(field_set(obj, shape), shape)


def with_structs(fields: FieldSet, shape: FieldShape) -> FieldSet:
    """The set with every struct of which it has a field."""
    result: FieldSet = {}
    for key, below in fields.items():
        if not below:
            result[key] = below
            continue
        name = key[2:] if key.startswith("f:") else ""
        inner = with_structs(below, _shape_at(key, shape))
        result[key] = {MEMBER: LEAF, **inner} if name and name in shape.fields else inner
    return result


def _shape_at(key: str, shape: FieldShape) -> FieldShape:
    return shape.below(key[2:]) if key.startswith("f:") else shape.element or shape


def without(value: Any, gone: FieldSet, shape: FieldShape) -> Any:
    """The value without the places of a set; None if nothing of it remains."""
    if not value or shape.division is _LEAF:
        return None if isinstance(value, dict | list) else value
    if type(value) is dict:
        kept = {
            name: _kept(member, gone.get(f"f:{name}"), shape.below(name))
            for name, member in value.items()
            if not _is_gone(gone.get(f"f:{name}"))
        }
        return kept or None
    if type(value) is list and shape.element is not None:
        keys = item_keys(value, shape)
        pairs = [(gone.get(key), item) for key, item in zip(keys, value, strict=True)]
        items = [_kept(item, fate, shape.element) for fate, item in pairs if not _is_gone(fate)]
        return items or None
    return value


def _is_gone(fate: FieldSet | None) -> bool:
    return fate is not None and is_member(fate)


def _kept(value: JsonValue, gone: FieldSet | None, shape: FieldShape) -> JsonValue:
    return value if gone is None else without(value, gone, shape)


# -- configurations ------------------------------------------------------------------------


def complaints(config: JsonObject, shape: FieldShape) -> list[str]:
    """Why an object cannot be applied: unknown fields, wrong types, items without keys."""
    return _complaints(config, shape, "")


def _complaints(value: JsonValue, shape: FieldShape, path: str) -> list[str]:
    division = shape.division
    if value is None or division is _LEAF or division is _FREE:
        return []
    if division is _MAP:
        if type(value) is not dict:
            return [f"{path}: expected map, got {_go_value(value)}"]
        return _member_complaints(value, shape, path)
    if type(value) is not list:
        return [f"{path}: expected list, got {_go_value(value)}"]
    return _item_complaints(value, shape, path)


def _member_complaints(value: JsonObject, shape: FieldShape, path: str) -> list[str]:
    found: list[str] = []
    for name, member in value.items():
        if not shape.knows(name):
            return [*found, f"{path}.{name}: field not declared in schema"]
        found += _complaints(member, shape.below(name), f"{path}.{name}")
    return found


def _item_complaints(items: list[Any], shape: FieldShape, path: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    element = shape.element
    assert element is not None
    for position, item in enumerate(items):
        try:
            [key] = item_keys([item], shape)
        except NoKeyError as error:
            return [*found, f"{path}: element {position}: {error}"]
        shown = field_sets.shown((key,))
        if key in seen:
            found.append(f"{path}: duplicate entries for key {shown}")
        seen.add(key)
        found += _complaints(item, element, path + shown)
    return found


def _go_value(value: JsonValue) -> str:
    return f"&{{{_printed(value)}}}"


def _printed(value: JsonValue) -> str:
    """A value as Go's ``%v`` prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{_printed(value[k])}" for k in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_printed(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def last_applied_fields(live: JsonObject, last: JsonObject, shape: FieldShape) -> FieldSet:
    """Fields of a client-side configuration whose value the object still has."""
    changes = compare(last, live, shape)
    stated = difference(field_set(last, shape), changes.written)
    return difference(stated, changes.removed)
