"""What a part of an object was before a change, and whether it is still the same.

As kube-apiserver decides it when it forgives old faults (ratcheting): items of lists are found
again by their keys, and only there; what a schema says nothing about is never the same.
"""

from typing import Any

from kubescene.types import JsonObject, JsonValue

NO_OLD: Any = object()
"""Stands for "there is nothing to compare with"."""


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON: a number is never a truth value."""
    if type(one) is dict and type(other) is dict:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) is bool) == (type(other) is bool) and bool(one == other)


def old_item(item: JsonValue, schema: JsonObject, old: JsonValue) -> JsonValue:
    """The earlier form of an item: known only where items have keys."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or type(old) is not list or type(item) is not dict:
        return NO_OLD
    if not all(key in item for key in keys):
        return NO_OLD
    wanted = [item[key] for key in keys]
    for candidate in old:
        if type(candidate) is dict and same([candidate.get(key, NO_OLD) for key in keys], wanted):
            return candidate
    return NO_OLD


def is_unchanged(now: JsonValue, before: JsonValue, schema: JsonObject) -> bool:
    """Whether a part is what it was."""
    if type(now) is dict and type(before) is dict:
        return now.keys() == before.keys() and all(
            (below := _member(schema, name)) is not None and is_unchanged(part, before[name], below)
            for name, part in now.items()
        )
    if type(now) is not list or type(before) is not list:
        return same(now, before)
    if len(now) != len(before):
        return False
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, dict):
        return same(now, before)
    return all(
        (old := old_item(item, schema, before)) is not NO_OLD and is_unchanged(item, old, items)
        for item in now
    )


def _member(schema: JsonObject, name: str) -> JsonObject | None:
    found = (schema.get("properties") or {}).get(name)
    others = schema.get("additionalProperties")
    return found if found is not None else others if isinstance(others, dict) else None
