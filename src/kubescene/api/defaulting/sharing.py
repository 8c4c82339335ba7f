"""Copy on write for JSON objects: change one member, share all the others."""

from collections.abc import Callable
from operator import is_
from typing import Any

from kubescene.types import JsonObject

Defaulter = Callable[[JsonObject], JsonObject]
"""Fills in one object: returns its input itself when nothing was missing."""


def merged(obj: JsonObject, changes: JsonObject) -> JsonObject:
    """``obj`` with ``changes`` laid over it; ``obj`` itself when there are none."""
    return {**obj, **changes} if changes else obj


def filled(obj: JsonObject, defaults: JsonObject) -> JsonObject:
    """``obj`` with each default laid where a member is absent or empty (zero, "", null)."""
    return merged(obj, {key: value for key, value in defaults.items() if not obj.get(key)})


def filled_unset(obj: JsonObject, defaults: JsonObject) -> JsonObject:
    """Like `filled`, for optional fields in which zero and "" are values of their own."""
    return merged(obj, {key: value for key, value in defaults.items() if obj.get(key) is None})


def without_false(obj: JsonObject, key: str) -> JsonObject:
    """``obj`` without a member that Go leaves out when it is false: saying so changes nothing."""
    if obj.get(key) is not False:
        return obj
    return {name: value for name, value in obj.items() if name != key}


def mapped(items: list[Any], default: Callable[[Any], Any]) -> list[Any]:
    """``items`` with ``default`` run over each; the list itself when no item changed."""
    done = [default(item) for item in items]
    return items if all(map(is_, done, items)) else done


def within(obj: JsonObject, key: str, default: Callable[[Any], Any]) -> JsonObject:
    """``obj`` with ``default`` run over the object at ``key``, if there is one."""
    child = obj.get(key)
    if child is None:
        return obj
    done = default(child)
    return obj if done is child else {**obj, key: done}


def into(obj: JsonObject, key: str, default: Defaulter) -> JsonObject:
    """Like `within`, but an absent object counts as an empty one and gets its defaults.

    For the parts that the Go types embed as structs, which are never absent.
    """
    child = obj.get(key)
    before: JsonObject = {} if child is None else child
    done = default(before)
    return obj if done is before else {**obj, key: done}


def within_each(obj: JsonObject, key: str, default: Callable[[Any], Any]) -> JsonObject:
    """``obj`` with ``default`` run over each item of the list at ``key``, if there is one."""
    return within(obj, key, lambda items: mapped(items, default))


def at(obj: JsonObject, path: tuple[str, ...], default: Callable[[Any], Any]) -> JsonObject:
    """``obj`` with ``default`` run over the object at ``path``, if all of the path is there."""
    if len(path) == 1:
        return within(obj, path[0], default)
    return within(obj, path[0], lambda child: at(child, path[1:], default))
