"""Structural schemas: what a CustomResourceDefinition says about the shape of its objects.

A schema is compiled once into a tree of `Structural` nodes. Three walks over an object use it, in
this order: `pruned` drops fields that the schema does not mention, `without_nulls` drops nulls that
a field may not hold, `defaulted` fills in defaults. Together they do for a custom resource what
decoding into Go types does for a built-in kind. None changes its input: unchanged parts are
shared, and an object that needs nothing comes back as it is.

Two more walks find what a schema demands beyond values: unique items (`check_lists`), well-formed
embedded objects (`check_embedded`). Value validation is `schema_validation`. CEL rules
(``x-kubernetes-validations``) are accepted and ignored: what a rule would refuse is let through.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from kubescene.api.defaulting.nulls import drop_nulls
from kubescene.api.schemas import strict_decoding
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.validation.field_errors import ErrorList, FieldError
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import validate_metadata
from kubescene.api.validation.names import dns_1035_label, path_segment
from kubescene.types import JsonObject, JsonValue

MAX_DEPTH = 100
MAX_NODES = 100_000

_NESTED_LISTS = ("allOf", "anyOf", "oneOf")
_MIXED_CASE = "may have mixed case, but should otherwise match: "
_STAND_IN_NAME = "fakename"
_TYPE_META = frozenset({"apiVersion", "kind", "metadata"})
_META_HOLDER = GroupVersionKind("", "v1", "ConfigMap")
"""Any built-in kind does: only its ``metadata`` is looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """One node of a schema. ``schema`` is the raw form, for value validation."""

    schema: JsonObject
    properties: "dict[str, Structural]"
    items: "Structural | None" = None
    additional: "Structural | None" = None
    has_additional: bool = False
    preserves: bool = False
    embedded: bool = False
    nullable: bool = False
    default: JsonValue = None
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    defaults: tuple[tuple[str, JsonValue], ...] = ()
    """Properties that have a default, with it."""

    def __deepcopy__(self, memo: object) -> "Structural":
        return self  # nothing of it ever changes

    def below(self, key: str) -> "Structural | None":
        """The node of a member: that of its property, else that of all others."""
        return self.properties.get(key, self.additional)


EMPTY = Structural({}, {})
"""Says nothing: everything but type and metadata is pruned."""


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """What was found out about a body before it is written: its schema need not be asked again.

    For large bodies, which are looked at on another thread than the one that writes.
    """

    body: JsonObject
    root: Structural
    accepted: JsonObject
    errors: tuple[FieldError, ...] = ()


def complaint_about_size(schema: JsonObject) -> str:
    """Why a schema is too deep or too large to be compiled; empty if it is not.

    Looks without recursion, so that no schema can exhaust the stack.
    """
    count = 0
    waiting = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            return f"must not be nested more than {MAX_DEPTH} levels deep"
        if count > MAX_NODES:
            return f"must not have more than {MAX_NODES} schemas"
        waiting += [(child, depth + 1) for child in _children(node)]
    return ""


def _children(schema: JsonObject) -> Iterator[JsonObject]:
    properties = schema.get("properties")
    candidates: list[Any] = list(properties.values()) if isinstance(properties, dict) else []
    candidates += [schema.get("items"), schema.get("additionalProperties"), schema.get("not")]
    for name in _NESTED_LISTS:
        nested = schema.get(name)
        candidates += nested if isinstance(nested, list) else []
    return (child for child in candidates if isinstance(child, dict))


def compile_schema(schema: JsonObject) -> Structural:
    """The tree of an ``openAPIV3Schema``, whose size `complaint_about_size` has approved."""
    properties = {
        name: compile_schema(child)
        for name, child in (schema.get("properties") or {}).items()
        if isinstance(child, dict)
    }
    items, additional = schema.get("items"), schema.get("additionalProperties")
    return Structural(
        schema=schema,
        properties=properties,
        items=compile_schema(items) if isinstance(items, dict) else None,
        additional=compile_schema(additional) if isinstance(additional, dict) else None,
        has_additional=isinstance(additional, dict) or additional is True,
        preserves=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        nullable=bool(schema.get("nullable")),
        default=schema.get("default"),
        list_type=schema.get("x-kubernetes-list-type") or "",
        list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        defaults=tuple(
            (name, child.default) for name, child in properties.items() if child.default is not None
        ),
    )


# -- pruning -------------------------------------------------------------------------------


def pruned(obj: JsonObject, root: Structural) -> JsonObject:
    """The object without fields that its schema does not mention."""
    result: JsonObject = _Pruner().root(obj, root)
    return result


def unknown_fields(obj: JsonObject, root: Structural) -> list[str]:
    """Paths of the fields that `pruned` would drop, sorted: ``spec.rules[0].foo``."""
    pruner = _Pruner(dropped := [])
    pruner.root(obj, root)
    dropped += _unknown_metadata(obj, "")
    return sorted(dropped)


def _unknown_metadata(obj: JsonObject, path: str) -> list[str]:
    found = strict_decoding.unknown_fields({"metadata": obj.get("metadata")}, _META_HOLDER)
    return [f"{path}.{it}" if path else it for it in found]


def object_metadata(metadata: JsonObject, gvk: GroupVersionKind | None = None) -> JsonObject:
    """Metadata as a typed object of a kind keeps it: without unknown fields, without nulls.

    `BadRequestError` if a field is of the wrong type.
    """
    holder = drop_nulls({"metadata": metadata})
    kept: JsonObject = strict_decoding.checked(holder, _META_HOLDER, told_as=gvk)["metadata"]
    return metadata if kept == metadata else kept


class _Pruner:
    """One walk. With ``dropped``, notes where fields were dropped."""

    def __init__(self, dropped: list[str] | None = None) -> None:
        self._dropped = dropped

    def root(self, obj: JsonObject, node: Structural) -> Any:
        kept = {key: value for key, value in obj.items() if key in _TYPE_META}
        rest = {key: value for key, value in obj.items() if key not in _TYPE_META}
        done = self._members(rest, node, "")
        if done is rest:
            return obj
        return {key: kept.get(key, done.get(key)) for key in obj if key in kept or key in done}

    def value(self, value: JsonValue, node: Structural | None, path: str) -> JsonValue:
        if type(value) is dict:
            return self._members(value, node, path)
        if type(value) is list:
            return self._items(value, node, path)
        return value

    def _members(self, obj: JsonObject, node: Structural | None, path: str) -> JsonObject:
        kept: JsonObject = {}
        for key, value in obj.items():
            where = f"{path}.{key}" if path else key
            if node is not None and node.embedded and key in _TYPE_META:
                kept[key] = _embedded_member(key, value)
                if self._dropped is not None and key == "metadata" and type(value) is dict:
                    self._dropped += _unknown_metadata(obj, path)
            elif node is not None and (key in node.properties or node.has_additional):
                kept[key] = self.value(value, node.below(key), where)
            elif node is not None and node.preserves:
                kept[key] = value
            elif self._dropped is not None:
                self._dropped.append(where)
        return kept if _differs(kept, obj) else obj

    def _items(self, items: list[Any], node: Structural | None, path: str) -> list[Any]:
        below = node.items if node is not None else None
        if node is not None and node.preserves:
            if below is None:
                return items
            below = _preserving(below)
        done = [
            self.value(item, below, f"{path}[{position}]") for position, item in enumerate(items)
        ]
        return done if any(new is not old for new, old in zip(done, items, strict=True)) else items


def _preserving(node: Structural) -> Structural:
    """Items below a list that keeps unknown fields keep theirs, too."""
    return Structural(
        schema=node.schema,
        properties=node.properties,
        items=node.items,
        additional=node.additional,
        has_additional=node.has_additional,
        preserves=True,
        embedded=node.embedded,
    )


def _embedded_member(key: str, value: JsonValue) -> JsonValue:
    return object_metadata(value) if key == "metadata" and type(value) is dict else value


def _differs(new: JsonObject, old: JsonObject) -> bool:
    return len(new) != len(old) or any(new[key] is not value for key, value in old.items())


# -- nulls and defaults --------------------------------------------------------------------


def without_nulls(value: JsonValue, node: Structural | None) -> JsonValue:
    """The value without null members that may not be null and have no default."""
    if node is None:
        return value
    if type(value) is dict:
        kept = {
            key: without_nulls(member, node.below(key))
            for key, member in value.items()
            if not _is_forbidden_null(member, node.below(key))
        }
        return kept if _differs(kept, value) else value
    if type(value) is list and node.items is not None:
        return _each(value, [without_nulls(item, node.items) for item in value])
    return value


def _is_forbidden_null(value: JsonValue, node: Structural | None) -> bool:
    return value is None and node is not None and not node.nullable and node.default is None


def defaulted(value: JsonValue, node: Structural | None) -> JsonValue:
    """The value with the defaults of its schema where members are absent (or null in vain)."""
    if node is None:
        return value
    if type(value) is dict:
        return _defaulted_members(value, node)
    if type(value) is list and node.items is not None:
        return _each(value, [_defaulted_member(item, node.items) for item in value])
    return value


def _defaulted_members(obj: JsonObject, node: Structural) -> JsonObject:
    filled = dict(obj)
    for name, default in node.defaults:
        filled.setdefault(name, default)
    for key, member in filled.items():
        filled[key] = _defaulted_member(member, node.below(key))
    return filled if _differs(filled, obj) else obj


def _defaulted_member(value: JsonValue, node: Structural | None) -> JsonValue:
    if value is None and node is not None and not node.nullable:
        value = node.default
    return defaulted(value, node)


def _each(old: list[Any], new: Iterable[Any]) -> list[Any]:
    done = list(new)
    return done if any(a is not b for a, b in zip(done, old, strict=True)) else old


def check_lists(obj: JsonObject, node: Structural, errors: ErrorList) -> None:
    """Lists of type set have no equal items, lists of type map no equal keys."""
    for value, below, path in _members(obj, node, None):
        _check_lists(value, below, path, errors)


def _check_lists(value: JsonValue, node: Structural, path: Path, errors: ErrorList) -> None:
    if type(value) is list:
        if node.list_type == "set":
            _check_unique(value, value, path, errors)
        elif node.list_type == "map":
            _check_keys(value, node.list_map_keys, path, errors)
        if node.items is not None:
            for position, item in enumerate(value):
                _check_lists(item, node.items, path.index(position), errors)
    elif type(value) is dict:
        for member, below, where in _members(value, node, path):
            _check_lists(member, below, where, errors)


def _members(
    obj: JsonObject, node: Structural, path: Path | None
) -> Iterator[tuple[JsonValue, Structural, Path]]:
    for key, value in obj.items():
        below = node.below(key)
        if below is not None:
            yield value, below, _step(path, key, named=key in node.properties)


def _step(path: Path | None, key: str, *, named: bool) -> Path:
    if path is None:
        return Path(key if named else f"[{key}]")
    return path.child(key) if named else path.key(key)


def _check_keys(items: list[Any], keys: tuple[str, ...], path: Path, errors: ErrorList) -> None:
    for position, item in enumerate(items):
        if item is not None and type(item) is not dict:
            detail = "must be an object for an array of list-type map"
            errors.invalid(path.index(position), item, detail)
            return
    found = [{key: item[key] for key in keys if key in item} if item else {} for item in items]
    _check_unique(found, found, path, errors)


def _check_unique(items: list[Any], shown: list[Any], path: Path, errors: ErrorList) -> None:
    """Tells of the first repetition of each item."""
    times: dict[bytes, int] = {}
    for position, item in enumerate(items):
        encoded = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        times[encoded] = times.get(encoded, 0) + 1
        if times[encoded] == 2:
            errors.duplicate(path.index(position), shown[position])


def check_embedded(obj: JsonObject, node: Structural, errors: ErrorList) -> None:
    """Embedded resources say what they are, and have metadata like any object."""
    for value, below, path in _members(obj, node, None):
        _check_embedded(value, below, path, errors)


def _check_embedded(value: JsonValue, node: Structural, path: Path, errors: ErrorList) -> None:
    if type(value) is dict:
        if node.embedded:
            check_resource(value, path, errors)
        for member, below, where in _members(value, node, path):
            _check_embedded(member, below, where, errors)
    elif type(value) is list and node.items is not None:
        for position, item in enumerate(value):
            _check_embedded(item, node.items, path.index(position), errors)


def check_resource(obj: JsonObject, path: Path, errors: ErrorList) -> None:
    for field in ("apiVersion", "kind"):
        at, value = path.child(field), obj.get(field)
        if field not in obj:
            errors.required(at)
        elif not isinstance(value, str):
            errors.invalid(at, value, "must be a string")
        elif not value:
            errors.invalid(at, value, "must not be empty")
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if isinstance(kind, str) and kind and (complaints := dns_1035_label(kind.lower())):
        errors.invalid(path.child("kind"), kind, _MIXED_CASE + ",".join(complaints))
    if isinstance(version, str) and version.count("/") > 1:
        detail = f"unexpected GroupVersion string: {version}"
        errors.invalid(path.child("apiVersion"), version, detail)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        validate_metadata(
            {**metadata, "name": metadata.get("name") or _STAND_IN_NAME},
            errors,
            namespaced=bool(metadata.get("namespace")),
            name_rule=path_segment,
            path=path.child("metadata"),
            kube_finalizers=False,
        )
