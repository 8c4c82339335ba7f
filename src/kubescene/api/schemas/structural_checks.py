"""What a structural schema demands beyond values: unique items, well-formed embedded objects."""

from collections.abc import Iterator
from typing import Any

import orjson

from kubescene.api.schemas.structural import Structural
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import validate_metadata
from kubescene.api.validation.names import dns_1035_label, path_segment
from kubescene.types import JsonObject, JsonValue

_MIXED_CASE = "may have mixed case, but should otherwise match: "
_STAND_IN_NAME = "fakename"


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
            _check_resource(value, path, errors)
        for member, below, where in _members(value, node, path):
            _check_embedded(member, below, where, errors)
    elif type(value) is list and node.items is not None:
        for position, item in enumerate(value):
            _check_embedded(item, node.items, path.index(position), errors)


def _check_resource(obj: JsonObject, path: Path, errors: ErrorList) -> None:
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
