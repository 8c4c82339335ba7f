"""Strategic merge: a merge patch that knows which lists are really maps.

Where a JSON merge patch replaces every list, a strategic one asks the schema. A list whose
strategy is ``merge`` is a set: of scalars, or of objects told apart by their merge key. Merging
one takes four steps: elements marked ``$patch`` delete or replace, the rest are merged into their
namesakes or appended, the outcome is split into elements the patch names and elements only the
server has, and the two are woven together so that each group keeps its order.

Directives beside the fields steer the merge:

========================================  =====================================================
``$patch: replace | delete``              take this object as it stands; empty the object
``$retainKeys: [field, ...]``             first drop the fields that are not named
``$setElementOrder/list: [...]``          the order of the elements the client knows
``$deleteFromPrimitiveList/list: [...]``  scalars to take out of the list
========================================  =====================================================

The rules, their odd corners and the error texts are those of
``k8s.io/apimachinery/pkg/util/strategicpatch`` v0.36; what a request with such an error answers
(400, 422 or 500) is kube-apiserver's. Three differences, all on purpose: a field the schema does
not know is patched as by a JSON merge patch where upstream refuses it; input that makes upstream
panic is refused; and where upstream's outcome depends on the iteration order of a Go map, ours
is fixed (fields first, then deletions from primitive lists).
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias

from kubescene.errors import BadRequestError, InternalError, InvalidError
from kubescene.types import JsonObject, JsonValue

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ELEMENT_ORDER = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList"

_DROPPED = object()

JsonList: TypeAlias = list[JsonValue]
Identity: TypeAlias = tuple[type, Any]
Identify: TypeAlias = Callable[[JsonValue], Identity]


class FieldInfo(NamedTuple):
    """How one field of a type is patched.

    ``strategies`` and ``merge_key`` are the ``patchStrategy`` and ``patchMergeKey`` of the API;
    ``element`` is the type of the child object, of a map's values, or of a list's elements.
    """

    strategies: tuple[str, ...]
    merge_key: str
    element: "TypeRef | None"


class TypeRef(Protocol):
    """The patch-relevant side of an API type. The schema tables provide it."""

    def field(self, name: str) -> FieldInfo:
        """Facts about the field; ``FieldInfo((), "", None)`` for a field the type does not have."""
        ...


UNKNOWN_FIELD = FieldInfo((), "", None)


def merge_objects(target: JsonObject, patch: JsonObject, types: TypeRef | None) -> JsonObject:
    """Merge ``patch`` into ``target``; ``target`` itself if nothing changes."""
    if DIRECTIVE in patch:
        return _obey(patch)
    result = _retained(target, patch)
    ordered = _merge_ordered_lists(result, patch, types)
    deletions = []
    for key, value in patch.items():
        if key.startswith(DELETE_FROM_PRIMITIVE_LIST):
            deletions.append((_list_name(key, DELETE_FROM_PRIMITIVE_LIST), value))
        elif key not in ordered:
            _merge_field(result, key, value, types)
    for key, value in deletions:
        _delete_scalars(result, key, value, types)
    return target if _unchanged(target, result) else result


def same(left: JsonValue, right: JsonValue) -> bool:
    """JSON equality: unlike Python's ``==``, true is not 1 and 1 is not 1.0."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            same(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


# Objects


def _obey(patch: JsonObject) -> JsonObject:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(patch)


def _retained(target: JsonObject, patch: JsonObject) -> JsonObject:
    """A copy of the target with the fields that ``$retainKeys``, if given, names."""
    if RETAIN_KEYS not in patch:
        return dict(target)
    keys = patch[RETAIN_KEYS]
    retained = {key for key in keys if isinstance(key, str)} if isinstance(keys, list) else None
    if retained is None or any(_escapes(key, patch[key], retained) for key in patch):
        raise BadRequestError("invalid patch format of retainKeys")
    return {key: value for key, value in target.items() if key in retained}


def _escapes(key: str, value: JsonValue, retained: set[str]) -> bool:
    if value is None or key == RETAIN_KEYS:
        return False
    return key not in retained and not key.startswith(
        (DELETE_FROM_PRIMITIVE_LIST, SET_ELEMENT_ORDER)
    )


def _merge_field(result: JsonObject, key: str, value: JsonValue, types: TypeRef | None) -> None:
    if value is None:
        result.pop(key, None)
        return
    current = result.get(key, _DROPPED)
    info = types.field(key) if types else UNKNOWN_FIELD
    if type(current) is not type(value):
        merged = _fresh(value, nulls=False)
    elif isinstance(value, dict):
        replace = "replace" in info.strategies
        merged = value if replace else merge_objects(current, value, info.element)
    elif isinstance(value, list) and "merge" in info.strategies:
        merged = _merge_lists(current, value, info)
    else:
        merged = value
    if merged is _DROPPED:
        result.pop(key, None)
    elif not same(current, merged):
        result[key] = merged


def _delete_scalars(result: JsonObject, key: str, value: JsonValue, types: TypeRef | None) -> None:
    if value is None:
        result.pop(key, None)
        return
    current = result.get(key, _DROPPED)
    if type(current) is not type(value) or not (current or value):
        return
    if not isinstance(value, list):
        _merge_field(result, key, value, types)
        return
    if _element_type(current, value) is dict:
        info = types.field(key) if types else UNKNOWN_FIELD
        result[key] = _merge_lists(current, value, info)
        return
    doomed = {_itself(item) for item in value}
    result[key] = [item for item in current if _itself(item) not in doomed]


def _fresh(value: JsonValue, *, nulls: bool) -> JsonValue:
    """What remains of a patch value that meets nothing to merge with: no ``$patch``, no nulls."""
    if isinstance(value, dict):
        if DIRECTIVE in value and (nulls or value[DIRECTIVE] is not None):
            return _DROPPED
        kept = {
            key: clean
            for key, item in value.items()
            if (nulls or item is not None) and (clean := _fresh(item, nulls=nulls)) is not _DROPPED
        }
        return value if _unchanged(value, kept) else kept
    if isinstance(value, list):
        cleaned = (_fresh(item, nulls=nulls) for item in value)
        return [item for item in cleaned if item is not _DROPPED]
    return value


def _unchanged(before: JsonObject, after: JsonObject) -> bool:
    return len(before) == len(after) and all(
        after.get(key, _DROPPED) is value for key, value in before.items()
    )


# Lists whose order the client sets


def _merge_ordered_lists(
    result: JsonObject, patch: JsonObject, types: TypeRef | None
) -> frozenset[str]:
    """Merge each list that has a ``$setElementOrder``; the patch keys that are now done."""
    done = {RETAIN_KEYS}
    for key, order in patch.items():
        if not key.startswith(SET_ELEMENT_ORDER):
            continue
        _expect(list, order)
        name = _list_name(key, SET_ELEMENT_ORDER)
        info = types.field(name) if types else UNKNOWN_FIELD
        current, change = result.get(name, _DROPPED), patch.get(name, _DROPPED)
        merged = _merge_ordered(current, change, order=order, info=info)
        done |= {key, name} if merged is not _DROPPED else {key}
        if merged is not _DROPPED and not same(current, merged):
            result[name] = merged
    return frozenset(done)


def _merge_ordered(
    current: JsonValue, change: JsonValue, *, order: JsonList, info: FieldInfo
) -> JsonValue:
    for value in (current, change):
        if value is not _DROPPED:
            _expect(list, value)
    server = [] if current is _DROPPED else current
    patch = [] if change is _DROPPED else change
    _check_order(patch, order, info.merge_key)
    if current is _DROPPED and change is _DROPPED:
        return _DROPPED
    server_order = server
    if change is _DROPPED:
        merged = server
    elif current is _DROPPED:
        merged = _fresh(change, nulls=True)
    elif "merge" in info.strategies:
        merged = _merge_lists(server, patch, info)
        server_order = _overwritten(server, patch, info.merge_key)
    else:
        merged = patch
    kind = _element_type(server, patch)
    return _weave(merged, order, server_order, info.merge_key, kind)


def _check_order(patch: JsonList, order: JsonList, merge_key: str) -> None:
    """Refuse a patch list with elements that the order does not name, or in another order."""
    if not patch or not order:
        return
    remaining = patch
    if merge_key:
        for item in patch:
            _expect(dict, item)
        remaining = [item for item in patch if item.get(DIRECTIVE) != "delete"]
    at = step = 0
    while at < len(remaining) and step < len(order):
        if isinstance(remaining[at], dict) and DIRECTIVE in remaining[at]:
            at += 1
            continue
        at += _alike(remaining[at], order[step], merge_key)
        step += 1
    if at < len(remaining) and step >= len(order):
        raise InternalError(
            f"The order in patch list:\n{go_text(patch)}\n doesn't match {SET_ELEMENT_ORDER} list:"
            f"\n{go_text(order)}\n"
        )


def _alike(left: JsonValue, right: JsonValue, merge_key: str) -> bool:
    if not merge_key:
        return _itself(left) == _itself(right)
    for item in (left, right):
        _expect(dict, item)
    return _keyed(left, merge_key) == _keyed(right, merge_key)


def _overwritten(server: JsonList, patch: JsonList, merge_key: str) -> JsonList:
    """The server's order as upstream sees it after merging.

    Upstream deletes and appends in the array that also records the order, so elements the patch
    adds take the places that its deletions left, and count as standing there from the start.
    """
    if not merge_key or any(item.get(DIRECTIVE) == "replace" for item in patch):
        patch = [item for item in patch if merge_key and item.get(DIRECTIVE) == "delete"]
    if not patch:
        return server
    doomed = [_keyed(item, merge_key) for item in patch if item.get(DIRECTIVE) == "delete"]
    kept, left_behind = _deleted_in_place(server, doomed, merge_key)
    array, length = kept + left_behind, len(kept)
    present = {_itself(item[merge_key]) for item in kept if merge_key in item}
    for item in patch:
        if DIRECTIVE in item or length >= len(array):
            continue
        if (identity := _keyed(item, merge_key)) not in present:
            array[length] = item
            present.add(identity)
            length += 1
    return array


def _deleted_in_place(
    server: JsonList, doomed: list[Identity], merge_key: str
) -> tuple[JsonList, JsonList]:
    """What remains of an array, and what stands behind it in the places that are given up.

    Taking an element out moves those behind it forward and leaves the last one standing twice.
    """
    places: dict[Identity, list[int]] = {}
    for at, item in enumerate(server):
        if doomed and merge_key in item:
            places.setdefault(_itself(item[merge_key]), []).append(at)
    gone, last = set[int](), len(server) - 1
    left_behind: JsonList = []
    for identity in doomed:
        for at in places.pop(identity, ()):
            while last in gone:
                last -= 1
            left_behind.append(server[last])
            gone.add(at)
    return [item for at, item in enumerate(server) if at not in gone], left_behind[::-1]


# Merging lists


def _merge_lists(server: JsonList, patch: JsonList, info: FieldInfo) -> JsonList:
    if not server and not patch:
        return server
    kind = _element_type(server, patch)
    if kind is not dict:
        merged = list({_itself(item): item for item in [*server, *patch]}.values())
        return _weave(merged, patch, server, info.merge_key, kind)
    if not info.merge_key:
        raise InternalError("cannot merge lists without merge key for struct")
    server, patch = _apply_marked(server, patch, info.merge_key)
    merged = _merge_elements(server, patch, info)
    return _weave(merged, patch, server, info.merge_key, kind)


def _apply_marked(server: JsonList, patch: JsonList, merge_key: str) -> tuple[JsonList, JsonList]:
    """Carry out the elements marked ``$patch``; the server's list and the patch without them."""
    unmarked = [item for item in patch if DIRECTIVE not in item]
    replace, doomed = False, set[Identity]()
    for item in patch:
        directive = item.get(DIRECTIVE, _DROPPED)
        if directive == "delete":
            doomed.add(_keyed(item, merge_key))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise InternalError("merging lists cannot yet be specified in the patch")
        elif directive is not _DROPPED:
            raise _unknown_directive(item)
    if doomed:
        server = [item for item in server if not _is_one_of(item, doomed, merge_key)]
    return (unmarked, []) if replace else (server, unmarked)


def _merge_elements(server: JsonList, patch: JsonList, info: FieldInfo) -> JsonList:
    merged = list(server)
    places: dict[Identity, int] = {}
    for at, item in enumerate(server):
        if info.merge_key in item:
            places.setdefault(_keyed(item, info.merge_key), at)
    for item in patch:
        identity = _keyed(item, info.merge_key)
        at = places.setdefault(identity, len(merged))
        if at < len(merged):
            merged[at] = merge_objects(merged[at], item, info.element)
        else:
            merged.append(item)
    return merged


# Order


def _weave(
    merged: JsonList, patch_order: JsonList, server_order: JsonList, merge_key: str, kind: type
) -> JsonList:
    """Order the merged elements: the patch's among themselves, the server's between them."""
    identify = _identify_by(merge_key)
    named = _named(merged, patch_order, merge_key)
    ours = [item for item in merged if identify(item) in named]
    theirs = [item for item in merged if identify(item) not in named]
    if kind is dict:
        _check_keys([*ours, *patch_order, *theirs, *server_order], merge_key)
    ours = _sorted_by(ours, _ranks(patch_order, identify), identify)
    ranks = _ranks(server_order, identify)
    theirs = _sorted_by(theirs, ranks, identify)
    return _interleave(theirs, ours, ranks, identify)


def _named(merged: JsonList, patch_order: JsonList, merge_key: str) -> set[Identity]:
    """The identities in the patch's order. An element without merge key is refused later."""
    if not merge_key:
        return set(map(_itself, patch_order))
    for at, item in enumerate(patch_order):
        if merged and not isinstance(item, dict):
            raise InternalError(f"value for key {at} is not a map")
    return {_itself(item[merge_key]) for item in patch_order if merge_key in item}


def _interleave(
    left: JsonList, right: JsonList, ranks: dict[Identity, int], identify: Identify
) -> JsonList:
    """Insert each of ``left`` before the first of ``right`` that the server had behind it."""
    woven: JsonList = []
    at = 0
    for item in right:
        place = ranks.get(identify(item), -1)
        while at < len(left) and 0 <= ranks.get(identify(left[at]), place) < place:
            woven.append(left[at])
            at += 1
        woven.append(item)
    return woven + left[at:]


def _sorted_by(items: JsonList, ranks: dict[Identity, int], identify: Identify) -> JsonList:
    if all(identify(item) in ranks for item in items):
        return sorted(items, key=lambda item: ranks[identify(item)])
    return _insertion_sorted(items, ranks, identify)


def _insertion_sorted(items: JsonList, ranks: dict[Identity, int], identify: Identify) -> JsonList:
    """Upstream's order for elements without a rank, which is where its sort happens to put them.

    It inserts one after the other: an element without a rank at the very front, one with a rank
    right behind the last of those before it that rank no higher.
    """
    given = [ranks.get(identify(item)) for item in items]
    before = _ranked_before(given)
    following: dict[int, int] = {}
    for at in range(len(items)):
        place = before.get(at, -1)
        following[at] = following.get(place, -1)
        following[place] = at
    at, placed = -1, []
    while (at := following.get(at, -1)) >= 0:
        placed.append(items[at])
    return placed


def _ranked_before(given: list[int | None]) -> dict[int, int]:
    """For each place with a rank: which earlier place ranks next below it, or the same; or -1.

    Taken out from the last to the first, each finds only earlier ones beside it.
    """
    ranked = [(rank, at) for at, rank in enumerate(given) if rank is not None]
    order = [-1, *(at for _, at in sorted(ranked)), len(given)]
    above = dict(pairwise(order))
    below = {upper: lower for lower, upper in pairwise(order)}
    before = {}
    for _, at in reversed(ranked):
        before[at] = below[at]
        above[below[at]], below[above[at]] = above[at], below[at]
    return before


def _ranks(order: JsonList, identify: Identify) -> dict[Identity, int]:
    ranks: dict[Identity, int] = {}
    for at, item in enumerate(order):
        ranks.setdefault(identify(item), at)
    return ranks


# Identity of elements


def _identify_by(merge_key: str) -> Identify:
    if not merge_key:
        return _itself
    return lambda item: _keyed(item, merge_key)


def _itself(item: JsonValue) -> Identity:
    """A scalar as a dictionary key. The type is part of it: 1, 1.0 and true are different."""
    if isinstance(item, dict | list):
        raise InternalError(f"expected a scalar list element, but received {go_text(item)}")
    return type(item), item


def _keyed(item: JsonValue, merge_key: str) -> Identity:
    _expect(dict, item)
    if merge_key not in item:
        raise _no_merge_key(item, merge_key)
    return _itself(item[merge_key])


def _is_one_of(item: JsonValue, identities: set[Identity], merge_key: str) -> bool:
    return merge_key in item and _itself(item[merge_key]) in identities


def _check_keys(items: Iterable[JsonValue], merge_key: str) -> None:
    for item in items:
        _keyed(item, merge_key)


def _element_type(*lists: JsonList) -> type:
    """The one type that all elements have."""
    kinds = dict.fromkeys(type(item) for items in lists for item in items)
    if not kinds:
        raise InternalError("no elements in any of the given slices")
    kind = next(iter(kinds))
    if kind is list:
        raise InvalidError("lists of lists are not supported")
    if len(kinds) > 1 or kind is type(None):
        raise InternalError(f"list element types are not identical: {go_text(list(lists))}")
    return kind


def _list_name(key: str, prefix: str) -> str:
    directive, slash, name = key.partition("/")
    if directive == prefix and slash:
        return name
    which = "primitive" if prefix == DELETE_FROM_PRIMITIVE_LIST else "setElementOrder"
    raise BadRequestError(f"invalid patch format of {which} list")


# Errors, in the words of Go

_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "%!s(<nil>)",
}


def _expect(kind: type, value: JsonValue) -> None:
    if type(value) is not kind:
        _refuse_type(kind, value)


def _refuse_type(kind: type, value: JsonValue) -> NoReturn:
    raise InternalError(f"expected a {_GO_TYPES[kind]}, but received a {_GO_TYPES[type(value)]}")


def _no_merge_key(item: JsonObject, merge_key: str) -> InternalError:
    return InternalError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")


def _unknown_directive(item: JsonObject) -> InternalError:
    directive = item[DIRECTIVE]
    text = go_text(directive)
    if directive is None:
        text = "%!s(<nil>)"
    elif not isinstance(directive, str | list | dict):
        text = f"%!s({_GO_TYPES[type(directive)]}={text})"
    return InternalError(f"unknown patch type: {text} in map: {go_text(item)}")


def go_text(value: JsonValue) -> str:
    """The value as Go's ``%v`` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)
