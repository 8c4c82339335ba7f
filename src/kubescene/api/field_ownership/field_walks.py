"""Walks over objects by their shape: which fields an object has, and how two objects differ.

Null counts as an empty list or map where one is expected, as in decoded Go objects. Inputs are
decoded API objects or applied configurations that `kubescene.api.patching.apply` has checked.
"""

from typing import Any

from msgspec import Struct

from kubescene.api.field_ownership.field_sets import (
    LEAF,
    MEMBER,
    FieldSet,
    item_key,
    union,
    value_key,
)
from kubescene.api.field_ownership.field_shapes import FieldDivision, FieldShape
from kubescene.types import JsonObject, JsonValue

_LEAF, _MAP, _LIST, _SET, _FREE = FieldDivision


class NoKeyError(Exception):
    """A list item cannot be told from others: it has none of the keys, or is of the wrong type."""


class FieldChanges(Struct, frozen=True):
    """What became of an object; no field is in two of the sets."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def written(self) -> FieldSet:
        return union(self.modified, self.added)


def item_keys(items: list[Any], shape: FieldShape) -> list[str]:
    """The key of each item of a list that divides."""
    if shape.division is _SET:
        return [_known_by_value(item) for item in items]
    return [_known_by_keys(item, shape) for item in items]


def _known_by_keys(item: JsonValue, shape: FieldShape) -> str:
    if type(item) is not dict:
        kind = "a null element" if item is None else "non-map elements"
        raise NoKeyError(f"associative list with keys may not have {kind}")
    defaults = shape.defaults
    found = {
        name: item[name] if name in item else defaults[name]
        for name in shape.keys
        if name in item or name in defaults
    }
    if not found:
        names = " ".join(f'"{name}"' for name in shape.keys)
        raise NoKeyError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return item_key(found)


def _known_by_value(item: JsonValue) -> str:
    if item is None or isinstance(item, dict | list):
        raise NoKeyError("associative list without keys has an element that is not a scalar")
    return value_key(item)


def without_empty(obj: JsonObject, shape: FieldShape) -> JsonObject:
    """A decoded object without lists and maps that encoding omits; itself if it has none.

    Part by part the same as in the input, so that equal parts are still quickly found equal.
    """
    result = obj
    fields, element = shape.fields, shape.element
    for name, value in obj.items():
        kind = type(value)
        if kind is not dict and kind is not list:
            continue
        below = fields.get(name) or element
        if below is None:
            continue
        if not value:
            if below.omits_empty:
                result = {**result} if result is obj else result
                del result[name]
            continue
        if below.division is _LEAF:
            continue
        kept = _value_without_empty(value, below)
        if kept is not value:
            result = {**result} if result is obj else result
            result[name] = kept
    return result


def _value_without_empty(value: Any, shape: FieldShape) -> Any:
    if type(value) is dict:
        return without_empty(value, shape) if shape.fields else value
    element = shape.element
    if element is None or element.division is not _MAP:
        return value
    kept = [without_empty(item, element) if type(item) is dict else item for item in value]
    changed = any(new is not old for new, old in zip(kept, value, strict=True))
    return kept if changed else value


# -- what an object has --------------------------------------------------------------------


def field_set(obj: JsonObject, shape: FieldShape) -> FieldSet:
    """The fields that an object states: leaves, list items, entries of maps.

    Structs are not members, unless they are empty: who states ``spec.replicas`` does not own
    ``spec``.
    """
    result = {}
    for name, value in obj.items():
        stated = _stated(value, shape.below(name), named=name in shape.fields)
        if stated is not None:
            result[f"f:{name}"] = stated
    return result


def _stated(value: JsonValue, shape: FieldShape, *, named: bool) -> FieldSet | None:
    """The fields below a member and itself; None if neither is stated."""
    division = shape.division
    if division is _LEAF or value is None or value == {}:
        return LEAF
    if type(value) is dict and (division is _MAP or division is _FREE):
        below = field_set(value, shape)
    elif type(value) is list and (division is _LIST or division is _SET):
        below = _stated_items(value, shape)
    else:
        return LEAF
    if not named:
        return {MEMBER: LEAF, **below} if below else LEAF
    return below or None


def _stated_items(items: list[Any], shape: FieldShape) -> FieldSet:
    result: FieldSet = {}
    element = shape.element
    for key, item in zip(item_keys(items, shape), items, strict=True):
        if key in result or shape.division is _SET or element is None or type(item) is not dict:
            result[key] = LEAF
        else:
            below = field_set(item, element) if element.division is not _LEAF else LEAF
            result[key] = {MEMBER: LEAF, **below} if below else LEAF
    return result


def whole(value: JsonValue, shape: FieldShape) -> FieldSet:
    """A value with all that is below it, every step a member: what came or went as a whole."""
    division = shape.division
    if not value or division is _LEAF:
        return LEAF
    if type(value) is dict and (division is _MAP or division is _FREE):
        return _whole_map(value, shape)
    if type(value) is list and (division is _LIST or division is _SET):
        return _whole_list(value, shape)
    return LEAF


def _whole_map(value: JsonObject, shape: FieldShape) -> FieldSet:
    result: FieldSet = {MEMBER: LEAF}
    fields, element = shape.fields, shape.element
    for name, member in value.items():
        below = fields.get(name) or element
        result[f"f:{name}"] = LEAF if below is None else whole(member, below)
    return result


def _whole_list(items: list[Any], shape: FieldShape) -> FieldSet:
    result: FieldSet = {MEMBER: LEAF}
    element = shape.element
    for key, item in zip(item_keys(items, shape), items, strict=True):
        twice = key in result
        result[key] = LEAF if twice or element is None else whole(item, element)
    return result


# -- how two objects differ ----------------------------------------------------------------


def compare(old: JsonObject, new: JsonObject, shape: FieldShape) -> FieldChanges:
    """What it takes to come from ``old`` to ``new``."""
    changes = FieldChanges({}, {}, {})
    _compare_members(old, new, shape, changes)
    return changes


def _compare_members(
    old: JsonObject, new: JsonObject, shape: FieldShape, changes: FieldChanges
) -> None:
    for name, value in new.items():
        if name not in old:
            changes.added[f"f:{name}"] = whole(value, shape.below(name))
            continue
        before = old[name]
        if before is not value and before != value:
            _compare_value(f"f:{name}", before, value, shape.below(name), changes)
    for name, value in old.items():
        if name not in new:
            changes.removed[f"f:{name}"] = whole(value, shape.below(name))


def _compare_value(
    key: str, old: JsonValue, new: JsonValue, shape: FieldShape, changes: FieldChanges
) -> None:
    container = _container(shape)
    left: Any = old if type(old) is container else None
    right: Any = new if type(new) is container else None
    if not left and not right:
        changes.modified[key] = LEAF
        return
    inner = FieldChanges({}, {}, {})
    if container is dict:
        _compare_members(left or {}, right or {}, shape, inner)
    else:
        _compare_items(left or [], right or [], shape, inner)
    _attach(key, inner, changes)
    if (old is not None and left is None) or (new is not None and right is None):
        # One side is no container at all, which only places without a schema allow.
        changes.modified[key] = union({MEMBER: LEAF}, inner.modified)


def _container(shape: FieldShape) -> type | None:
    if shape.division in (_MAP, _FREE):
        return dict
    return list if shape.division in (_LIST, _SET) else None


def _attach(key: str, inner: FieldChanges, outer: FieldChanges) -> None:
    if inner.removed:
        outer.removed[key] = inner.removed
    if inner.modified:
        outer.modified[key] = inner.modified
    if inner.added:
        outer.added[key] = inner.added


def _compare_items(
    old: list[Any], new: list[Any], shape: FieldShape, changes: FieldChanges
) -> None:
    before, after = grouped(old, shape), grouped(new, shape)
    element = shape.element
    assert element is not None
    for key, items in after.items():
        known = before.get(key, [])
        if known == items:
            continue
        if len(items) == 1 and len(known) == 1:
            _compare_value(key, known[0], items[0], element, changes)
        elif len(items) > 1 and len(known) > 1:
            changes.modified[key] = LEAF
        else:
            if known:
                changes.removed[key] = _whole_item(known, element)
            changes.added[key] = _whole_item(items, element)
    for key, items in before.items():
        if key not in after:
            changes.removed[key] = _whole_item(items, element)


def _whole_item(items: list[Any], element: FieldShape) -> FieldSet:
    """Items of the same key: several are owned together, as one leaf."""
    return LEAF if len(items) > 1 else whole(items[0], element)


def grouped(items: list[Any], shape: FieldShape) -> dict[str, list[Any]]:
    """Items by key, in order; duplicates, which some stored lists have, together."""
    groups: dict[str, list[Any]] = {}
    for key, item in zip(item_keys(items, shape), items, strict=True):
        groups.setdefault(key, []).append(item)
    return groups
