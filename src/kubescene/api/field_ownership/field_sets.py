"""Sets of fields in the form that ``managedFields`` has on the wire: FieldsV1.

A set is a tree of plain dicts. A key says how to go down: ``f:replicas`` to a field,
``k:{"name":"c"}`` to the list item with these keys, ``v:"x"`` to the item of this value. The place
a key leads to belongs to the set if its dict is empty or has the member ``.``; otherwise only
places below it do::

    {"f:spec": {"f:replicas": {}, "f:template": {".": {}, "f:spec": {}}}}

holds ``spec.replicas``, ``spec.template`` and ``spec.template.spec``. Working on this form saves
decoding and encoding on every write. Sets are never changed once made, so they share parts.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import orjson

FieldSet: TypeAlias = dict[str, Any]

MEMBER = "."
LEAF: FieldSet = {}
"""Below a key: the place itself and nothing else. As a whole set: nothing."""

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_RANKS = {int: 0, float: 0, str: 1, bool: 2}


def is_member(below: FieldSet) -> bool:
    """Whether the place that this dict stands for is itself in the set."""
    return not below or MEMBER in below


def is_field_set(value: Any) -> bool:
    """Whether a value of unknown origin is a set of fields, with keys that can be read."""
    if type(value) is not dict:
        return False
    return all(is_field_set(below) and _is_key(key) for key, below in value.items())


def _is_key(key: str) -> bool:
    if key == MEMBER or key.startswith("f:"):
        return True
    try:
        value = orjson.loads(key[2:])
    except orjson.JSONDecodeError:
        return False
    if key.startswith("k:"):
        return isinstance(value, dict) and bool(value)
    return key.startswith("v:") or (key.startswith("i:") and type(value) is int)


def fields_of(*paths: tuple[str, ...]) -> FieldSet:
    """The set of some places, given by field names: ``("metadata", "name")``."""
    result: FieldSet = {}
    for path in paths:
        place: FieldSet = LEAF
        for name in reversed(path):
            place = {f"f:{name}": place}
        result = union(result, place)
    return result


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right or left is right:
        return left or right
    result = dict(left)
    for key, below in right.items():
        known = result.get(key)
        result[key] = below if known is None else _either(known, below)
    return result


def _either(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        more = left or right
        return {MEMBER: LEAF, **more} if more else LEAF
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in ``left`` and not in ``right``; a place does not take along what is below it."""
    result: FieldSet = {}
    for key, below in left.items():
        other = right.get(key)
        if other is None:
            result[key] = below
        elif key != MEMBER:
            member = is_member(below) and not is_member(other)
            _attach(result, key, difference(below, other), member=member)
    return result


def excluding(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in ``left`` and neither in ``right`` nor below something in ``right``."""
    result: FieldSet = {}
    for key, below in left.items():
        other = right.get(key)
        if other is None:
            result[key] = below
        elif key != MEMBER and not is_member(other):
            _attach(result, key, excluding(below, other), member=is_member(below))
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for key, below in left.items():
        other = right.get(key)
        if other is not None and key != MEMBER:
            member = is_member(below) and is_member(other)
            _attach(result, key, intersection(below, other), member=member)
    return result


def _attach(result: FieldSet, key: str, below: FieldSet, *, member: bool) -> None:
    rest = {name: place for name, place in below.items() if name != MEMBER}
    if member:
        result[key] = {MEMBER: LEAF, **rest} if rest else LEAF
    elif rest:
        result[key] = rest


def members(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """All places of a set as keys from the root, in the order in which conflicts are told."""
    keys = sorted((key for key in fields if key != MEMBER), key=_order)
    for key in keys:
        if is_member(fields[key]):
            yield (key,)
    for key in keys:
        for rest in members(fields[key]):
            yield (key, *rest)


def contains(fields: FieldSet, path: tuple[str, ...]) -> bool:
    for key in path:
        below = fields.get(key)
        if below is None:
            return False
        fields = below
    return is_member(fields)


# -- keys ----------------------------------------------------------------------------------


def item_key(keys: dict[str, Any]) -> str:
    """The key of a list item that is known by some of its members."""
    return "k:" + _encoded(keys)


def value_key(value: Any) -> str:
    """The key of a list item that is known by its value."""
    return "v:" + _encoded(value)


def _encoded(value: Any) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return text.translate(_HTML) if "<" in text or ">" in text or "&" in text else text


def shown(path: tuple[str, ...]) -> str:
    """A place as people read it: ``.spec.containers[name="c"].image``."""
    return "".join(_shown_key(key) for key in path)


def _shown_key(key: str) -> str:
    if key.startswith("f:"):
        return "." + key[2:]
    value = orjson.loads(key[2:])
    if key.startswith("k:"):
        return "[" + ",".join(f"{name}={_encoded(part)}" for name, part in value.items()) + "]"
    return f"[={_encoded(value)}]"


def _order(key: str) -> tuple[str, Any]:
    if key.startswith("f:"):
        return "f", key
    value = orjson.loads(key[2:])
    if key.startswith("k:"):
        return "k", [(name, _RANKS.get(type(part), 3), part) for name, part in value.items()]
    return "v", (_RANKS.get(type(value), 3), value)
