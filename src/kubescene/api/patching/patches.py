"""The patch algebra of the API: four media types, each a pure function from object to object.

A patch never changes what it is given. Results are built copy on write: only the containers on
the way to a change are new, every other sub-tree is the one the target (or the patch) holds, and
a patch that changes nothing returns the target itself, so ``result is target`` means "no-op".
"""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import orjson

from kubescene.api.patching.strategic import FieldInfo, TypeRef, merge_objects, same
from kubescene.errors import BadRequestError, InvalidError, RequestTooLargeError
from kubescene.types import JsonObject, JsonValue

__all__ = [
    "FieldInfo",
    "PatchType",
    "TypeRef",
    "diff_merge_patch",
    "json_patch",
    "merge_patch",
    "strategic_merge",
]

MAX_DEPTH = 200
"""Levels of nesting a patch may have. No API type comes near, and recursion stays safe."""

MAX_OPERATIONS = 10_000
"""Operations a JSON patch may have; kube-apiserver's limit."""

MAX_COPY_BYTES = 3 * 1024 * 1024
"""Growth that the copy operations of one JSON patch may cause; kube-apiserver's limit."""

_MISSING = object()

Container: TypeAlias = dict[str, Any] | list[Any]


class PatchType(StrEnum):
    """The media types of PATCH."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"

    @classmethod
    def parse(cls, text: str) -> "PatchType":
        """The type named by a media type (parameters ignored) or by kubectl's short word."""
        word = text.partition(";")[0].strip().lower()
        for member in cls:
            if word in (member.value, member.name.lower()):
                return member
        choices = ", ".join(f"{m.name.lower()} ({m.value})" for m in cls)
        raise ValueError(f"unknown patch type {text!r}: choose one of {choices}")


def merge_patch(target: JsonValue, patch: JsonValue) -> JsonValue:
    """Apply a JSON merge patch (RFC 7386). Returns ``target`` itself if nothing changes."""
    check_depth(patch)
    if not isinstance(patch, dict):
        return target if same(target, patch) else patch
    return _merge(target, patch) if isinstance(target, dict) else _merge({}, patch)


def diff_merge_patch(old: JsonValue, new: JsonValue) -> JsonValue:
    """The smallest merge patch that turns ``old`` into ``new``; ``{}`` between equal objects.

    Exact unless ``new`` has a null where ``old`` does not: a merge patch cannot set a null.
    """
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    patch: JsonObject = {}
    for key, after in new.items():
        before = old.get(key, _MISSING)
        if before is after:
            continue
        if isinstance(after, dict) and isinstance(before, dict):
            if change := diff_merge_patch(before, after):
                patch[key] = change
        elif not same(before, after):
            patch[key] = after
    for key in old:
        if key not in new:
            patch[key] = None
    return patch


def strategic_merge(target: JsonObject, patch: JsonValue, types: TypeRef | None) -> JsonObject:
    """Apply a strategic merge patch under the schema ``types`` (`strategic`).

    Without a schema every list is atomic. Nulls and directives inside list elements that the
    patch adds stay in the result, as upstream leaves them to the decoding that follows.
    """
    if patch is None:
        return target
    if not isinstance(patch, dict):
        raise BadRequestError(_wrong_type(patch, "value of type map[string]interface {}"))
    check_depth(patch)
    return merge_objects(target, patch, types)


def json_patch(target: JsonValue, operations: JsonValue) -> JsonValue:
    """Apply a JSON patch (RFC 6902), all of it or nothing.

    Follows kube-apiserver where it is laxer than the RFC: an index may be negative, ``replace``
    of an absent member adds it, ``copy`` of one yields null, and ``test`` finds it equal to null.
    """
    steps = _decode(operations)
    draft = _Draft()
    result = target
    for step in steps:
        result = _OPERATIONS.get(step.kind, _unexpected)(result, step, draft)
    check_depth(result)
    return result


def check_depth(value: JsonValue) -> None:
    """Refuse a value nested deeper than ``MAX_DEPTH`` levels."""
    if _is_surely_shallow(value):
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return
    raise BadRequestError(f"the patch is nested deeper than {MAX_DEPTH} levels")


def _is_surely_shallow(value: JsonValue) -> bool:
    """Few opening brackets leave no room for depth; most patches have few."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH


def _merge(target: JsonObject, patch: JsonObject) -> JsonObject:
    result = target
    for key, value in patch.items():
        current = target.get(key, _MISSING)
        merged = _MISSING if value is None else _merge_value(current, value)
        if merged is current:
            continue
        if result is target:
            result = target.copy()
        if merged is _MISSING:
            del result[key]
        else:
            result[key] = merged
    return result


def _merge_value(current: JsonValue, value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _merge(current if isinstance(current, dict) else {}, value)
    return current if same(current, value) else value


# JSON patch


class _PointerStep(NamedTuple):
    kind: str
    path: str | None
    source: str | None
    value: JsonValue


class _Draft:
    """What a JSON patch has made so far: its own containers, which it may change in place.

    Each container of the document is copied at most once, however many operations meet in it.
    """

    def __init__(self) -> None:
        self._own: dict[int, Container] = {}
        self._spent = 0

    def own(self, container: Container) -> Any:
        """The container itself if it is the patch's own, or else a copy that is."""
        if id(container) in self._own:
            return container
        copy = container.copy()
        self._own[id(copy)] = copy
        return copy

    def share(self, value: JsonValue) -> None:
        """The value will stand in two places: from now on it belongs to neither."""
        check_depth(value)
        self._spent += 0 if value is None else len(orjson.dumps(value))
        if self._spent > MAX_COPY_BYTES:
            raise InvalidError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._spent}, exceeding the limit {MAX_COPY_BYTES}"
            )
        shared = [value]
        while shared:
            each = shared.pop()
            if isinstance(each, dict | list) and self._own.pop(id(each), None) is not None:
                shared += each.values() if isinstance(each, dict) else each


class _Location(NamedTuple):
    """A location in a document: the containers on the way, and a key in the last of them."""

    trail: Sequence[tuple[Container, Any]]
    container: Container
    key: str

    def rebuild(self, container: Container, draft: _Draft) -> Container:
        """The document with the last container exchanged; the others are the draft's own."""
        for parent, key in reversed(self.trail):
            copy = draft.own(parent)
            copy[key] = container
            container = copy
        return container


def _decode(operations: JsonValue) -> list[_PointerStep]:
    if not isinstance(operations, list):
        raise BadRequestError(_wrong_type(operations, "value of type jsonpatch.Patch"))
    check_depth(operations)
    for operation in operations:
        if not isinstance(operation, dict):
            raise BadRequestError(_wrong_type(operation, "value of type jsonpatch.Operation"))
    if len(operations) > MAX_OPERATIONS:
        raise RequestTooLargeError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}"
        )
    return list(map(_decode_step, operations))


def _decode_step(operation: JsonObject) -> _PointerStep:
    for field in ("op", "path", "from"):
        if not isinstance(value := operation.get(field), str | None):
            where = f"struct field jsonPatchOp.{field} of type string"
            raise BadRequestError(f"error decoding patch: {_wrong_type(value, where)}")
    kind = operation.get("op")
    return _PointerStep(
        kind="unknown" if kind is None else kind,
        path=operation.get("path"),
        source=operation.get("from"),
        value=operation.get("value"),
    )


def _add(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    path = _required(step.path, "add operation failed to decode path: missing value")
    lost = f'add operation does not apply: doc is missing path: "{path}": missing value'
    place = _locate(document, path, lost)
    added = _added(place, step.value, draft, f"error in add for path: '{path}'")
    return place.rebuild(added, draft)


def _remove(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    path = _required(step.path, "remove operation failed to decode path: missing value")
    lost = f'remove operation does not apply: doc is missing path: "{path}": missing value'
    place = _locate(document, path, lost)
    removed = _removed(place, draft, f"error in remove for path: '{path}'")
    return place.rebuild(removed, draft)


def _replace(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    missing = "replace operation failed to decode path: operation missing path field: missing value"
    path = _required(step.path, missing)
    if path == "":
        return _whole(step.value)
    lost = f"replace operation does not apply: doc is missing path: {path}: missing value"
    place = _locate(document, path, lost)
    copy = draft.own(place.container)
    try:
        copy[_position(place.container, place.key)] = step.value
    except ValueError:
        raise InvalidError(lost.replace("missing path", "missing key", 1)) from None
    return place.rebuild(copy, draft)


def _move(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    missing = "move operation failed to decode from: operation, missing from field: missing value"
    source = _required(step.source, missing)
    lost = f"move operation does not apply: doc is missing from path: {source}: missing value"
    origin = _locate(document, source, lost)
    where = f"error in move for path: '{origin.key}'"
    value = _got(origin, where)
    document = origin.rebuild(_removed(origin, draft, where), draft)
    missing = "move operation failed to decode path: operation missing path field: missing value"
    path = _required(step.path, missing)
    lost = f"move operation does not apply: doc is missing destination path: {path}: missing value"
    place = _locate(document, path, lost)
    added = _added(place, value, draft, f"error in move for path: '{path}'")
    return place.rebuild(added, draft)


def _copy(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    missing = "copy operation failed to decode from: operation, missing from field: missing value"
    source = _required(step.source, missing)
    lost = f"copy operation does not apply: doc is missing from path: {source}: missing value"
    value = _got(_locate(document, source, lost), f"error in copy for from: '{source}'")
    path = _required(step.path, "copy operation failed to decode path: missing value")
    lost = f"copy operation does not apply: doc is missing destination path: {path}: missing value"
    place = _locate(document, path, lost)
    draft.share(value)
    added = _added(place, value, draft, "error while adding value during copy")
    return place.rebuild(added, draft)


def _test(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    missing = "test operation failed to decode path: operation missing path field: missing value"
    path = _required(step.path, missing)
    if path == "":
        actual = document
    else:
        lost = f"test operation does not apply: is missing path: {path}: missing value"
        actual = _got(_locate(document, path, lost), f"error in test for path: '{path}'")
    if not same(actual, step.value):
        raise InvalidError(f"testing value {path} failed: test failed")
    return document


def _unexpected(document: JsonValue, step: _PointerStep, draft: _Draft) -> JsonValue:
    raise InvalidError(f"Unexpected kind: {step.kind}")


_OPERATIONS: dict[str, Callable[[JsonValue, _PointerStep, _Draft], JsonValue]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _required(text: str | None, message: str) -> str:
    if text is None:
        raise InvalidError(message)
    return text


def _whole(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict | list):
        raise InvalidError("replace operation value must be object or array")
    return value


def _locate(document: JsonValue, path: str, lost: str) -> _Location:
    head, *tokens = path.split("/")
    if head or not tokens or not isinstance(document, dict | list):
        raise InvalidError(lost)
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in tokens]
    trail: list[tuple[Container, Any]] = []
    here: Container = document
    for token in tokens[:-1]:
        try:
            key = _position(here, token)
            child = here[key]
        except (KeyError, ValueError):
            raise InvalidError(lost) from None
        if not isinstance(child, dict | list):
            raise InvalidError(lost)
        trail.append((here, key))
        here = child
    return _Location(trail, here, tokens[-1])


def _position(container: Container, key: str, *, room: int = 0) -> Any:
    """The key of a member, or the index of an existing element (``room`` = 1: of a gap)."""
    if isinstance(container, dict):
        return key
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", key):
        raise ValueError(f'strconv.Atoi: parsing "{key}": invalid syntax')
    index = int(key)
    size = len(container) + room
    if not -size <= index < size:
        raise ValueError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index + size if index < 0 else index


def _got(place: _Location, where: str) -> JsonValue:
    try:
        key = _position(place.container, place.key)
    except ValueError as error:
        raise InvalidError(f"{where}: {error}") from None
    return place.container.get(key) if isinstance(place.container, dict) else place.container[key]


def _added(place: _Location, value: JsonValue, draft: _Draft, where: str) -> Container:
    copy: Container = draft.own(place.container)
    if isinstance(copy, dict):
        copy[place.key] = value
        return copy
    try:
        index = len(copy) if place.key == "-" else _position(copy, place.key, room=1)
    except ValueError as error:
        detail = str(error)
        if detail.startswith("strconv"):
            detail = f"value was not a proper array index: '{place.key}': {detail}"
        raise InvalidError(f"{where}: {detail}") from None
    copy.insert(index, value)
    return copy


def _removed(place: _Location, draft: _Draft, where: str) -> Container:
    copy: Container = draft.own(place.container)
    try:
        del copy[_position(place.container, place.key)]
    except KeyError:
        detail = f"Unable to remove nonexistent key: {place.key}: missing value"
        raise InvalidError(f"{where}: {detail}") from None
    except ValueError as error:
        raise InvalidError(f"{where}: {error}") from None
    return copy


def _wrong_type(value: JsonValue, where: str) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}
    return f"json: cannot unmarshal {names.get(type(value), 'number')} into Go {where}"
