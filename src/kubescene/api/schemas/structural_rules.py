"""What the schemas of a CustomResourceDefinition may say.

They have to be structural: keywords that would make pruning or defaulting ambiguous are refused,
defaults have to satisfy the schema they stand in, lists that promise keys have to name them. As in
kube-apiserver these are three questions: is a schema structural, are its defaults right (asked if
it is), and what is wrong with its keywords one by one. Of CEL rules only the outline is looked at:
what they say is looked at when all else is right (`kubescene.registry.rules`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kubescene.api.schemas import patterns
from kubescene.api.schemas.schema_validation import validate_schema
from kubescene.api.schemas.simple_paths import valid_field_path
from kubescene.api.schemas.structural import (
    Structural,
    check_resource,
    compile_schema,
    pruned,
)
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.api.validation.inner_forms import inner_schema
from kubescene.types import JsonObject

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"

_UNSUPPORTED = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf")
_EITHER = [{"type": "integer"}, {"type": "string"}]
"""What a schema of an int-or-string may say of its type, in one of two places."""
_NOT_NESTED = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_OF_EITHER = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
_REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_NOT_EMPTY = "must be non-empty if specified"
_LINE_BREAK = re.compile(r"[\n\r]")
_EMBEDDED = "must be object if x-kubernetes-embedded-resource is true"
_META = ("metadata", "kind", "apiVersion")
_ONLY_NAMES = (
    "must not specify anything other than name and generateName, but metadata is implicitly "
    "specified"
)
_WITH_STATUS = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum"),
    *("ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems"),
    *("UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example"),
    *("XPreserveUnknownFields", "XValidations"),
)
"""What may stand at the root where the status is a part of its own; names as inside the server."""


def shared_parts(spec: JsonObject, name: str) -> Iterator[tuple[Any, Path, JsonObject]]:
    """A part of all versions, with place and version; one that all share stands above them."""
    versions: list[JsonObject] = spec.get("versions") or []
    found = [version.get(name) for version in versions]
    if versions and found[0] and all(part == found[0] for part in found):
        yield found[0], SPEC.child(name), versions[0]
        return
    for position, part in enumerate(found):
        if part:
            yield part, SPEC.child("versions").index(position).child(name), versions[position]


def schemas_of(spec: JsonObject) -> Iterator[tuple[JsonObject, Path]]:
    """Every schema with its place; one that all versions share stands above them."""
    for schema, path, _ in _schemas(spec):
        yield schema, path


def _schemas(spec: JsonObject) -> Iterator[tuple[JsonObject, Path, JsonObject]]:
    shared = len({str(it.get("schema")) for it in spec.get("versions") or ()}) == 1
    for holder, path, version in shared_parts(spec, "schema"):
        schema = holder.get("openAPIV3Schema")
        if schema is not None:
            place = SPEC.child("validation") if shared else path
            yield schema, place.child("openAPIV3Schema"), version


def check_schemas(spec: JsonObject, errors: ErrorList) -> None:
    """Look at the schemas of a definition whose values have the right types."""
    for schema, path, version in _schemas(spec):
        if "status" in (version.get("subresources") or {}):
            _check_with_status(schema, errors, path)
        if schema.get("nullable"):
            errors.forbidden(path.child("nullable"), "nullable cannot be true at the root")
        if not _has_unsupported(schema):
            found = ErrorList()
            _check_structure(schema, ROOT, found, path)
            _check_complete(schema, schema, found, path, path)
            if not found:
                _check_defaults(compile_schema(schema), found, path, is_resource=True)
            errors += sorted(found, key=lambda error: error.message)
        _check_keywords(schema, errors, path, _Around(is_root=True))


def _check_with_status(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    """Of a status that is a part of its own only what stands below ``status`` is asked."""
    for name, value in inner_schema(schema).items():
        if name == "Type" and value and value != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status '
                "subresource is enabled"
            )
            errors.invalid(path.child("type"), value, detail)
            return
        if value not in (None, "", False) and name not in _WITH_STATUS:
            detail = f"only [{' '.join(_WITH_STATUS)}] fields are allowed at the root of the schema"
            shown = inner_schema(schema)
            errors.invalid(path, shown, f"{detail} if the status subresource is enabled")
            return


def _has_unsupported(schema: JsonObject) -> bool:
    """Whether nobody can say if a schema is structural; its keywords are told one by one."""
    if any(schema.get(name) for name in _UNSUPPORTED) or isinstance(schema.get("items"), list):
        return True
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return True
    return any(map(_has_unsupported, _all_below(schema)))


def _all_below(schema: JsonObject) -> Iterator[JsonObject]:
    yield from (schema.get("properties") or {}).values()
    candidates = [schema.get("items"), schema.get("additionalProperties"), schema.get("not")]
    for name in _LISTS_OF_SCHEMAS:
        candidates += schema.get(name) or ()
    yield from (each for each in candidates if isinstance(each, dict))


# -- structure -----------------------------------------------------------------------------


def _check_structure(schema: JsonObject, level: str, errors: ErrorList, path: Path) -> None:
    items, others = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        errors.required(path.child("items"), "must be specified")
    if isinstance(items, dict):
        _check_structure(items, ITEM, errors, path.child("items"))
    for name, part in (schema.get("properties") or {}).items():
        _check_structure(part, FIELD, errors, path.child("properties").key(name))
    if others is not None and level == ROOT:
        errors.forbidden(path.child("additionalProperties"), "must not be used at the root")
    if isinstance(others, dict):
        _check_structure(others, FIELD, errors, path.child("additionalProperties"))
    if schema.get("x-kubernetes-int-or-string"):
        for name in _OF_EITHER:
            if schema.get(name):
                detail = "must be false if x-kubernetes-int-or-string is true"
                errors.invalid(path.child(name), True, detail)
    _check_alternatives(schema, errors, path)
    _check_type(schema, level, errors, path)
    _check_metadata(schema, level, errors, path)


def _check_type(schema: JsonObject, level: str, errors: ErrorList, path: Path) -> None:
    kind, embedded = schema.get("type") or "", schema.get("x-kubernetes-embedded-resource")
    any_type = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if embedded and kind != "object":
        _not_object(kind, _EMBEDDED, errors, path)
    elif not kind and not any_type:
        errors.required(path.child("type"), f"must not be empty {level}")
    if embedded and schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        errors.forbidden(path.child("additionalProperties"), detail)
    if level == ROOT and kind and kind != "object":
        errors.invalid(path.child("type"), kind, "must be object at the root")
    if embedded and not (
        schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("properties")
    ):
        errors.required(
            path.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )


def _not_object(kind: str, detail: str, errors: ErrorList, path: Path) -> None:
    if kind:
        errors.invalid(path.child("type"), kind, detail)
    else:
        errors.required(path.child("type"), detail)


def _check_metadata(schema: JsonObject, level: str, errors: ErrorList, path: Path) -> None:
    """Resources have a kind and metadata, of which schemas say next to nothing."""
    properties, at = schema.get("properties") or {}, path.child("properties")
    if level != ROOT and not schema.get("x-kubernetes-embedded-resource"):
        return
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        part = properties.get(name)
        if part is not None and part.get("type") != wanted:
            errors.invalid(at.key(name).child("type"), part.get("type", ""), f"must be {wanted}")
    metadata = properties.get("metadata")
    if level != ROOT or metadata is None:
        return
    said = {
        name: value
        for name, value in metadata.items()
        if value not in (None, "", False, [], {}) and name not in ("type", "default")
    }
    if said.get("properties", {}).keys() <= {"name", "generateName"}:
        said.pop("properties", None)
    if said:
        errors.forbidden(at.key("metadata"), _ONLY_NAMES)


def _check_alternatives(
    schema: JsonObject, errors: ErrorList, path: Path, *, skips_any: bool | None = None
) -> None:
    """What ``anyOf`` and the like may say; an int-or-string may name its two types there."""
    first: JsonObject = ((schema.get("allOf") or [{}])[0]) or {}
    is_either = skips_any if skips_any is not None else schema.get("anyOf") == _EITHER
    if not is_either:
        for part, where in _nested(schema, "anyOf", path):
            _check_nested(part, errors, where)
    for position, (part, where) in enumerate(_nested(schema, "allOf", path)):
        skips = skips_any is None and position == 0 and first.get("anyOf") == _EITHER
        _check_nested(part, errors, where, skips_any=skips)
    for name in ("oneOf", "not"):
        for part, where in _nested(schema, name, path):
            _check_nested(part, errors, where)
    pattern = schema.get("pattern")
    if pattern and (problem := patterns.problem(pattern)):
        detail = f"must be a valid regular expression, but isn't: {problem}"
        errors.invalid(path.child("pattern"), pattern, detail)


def _nested(schema: JsonObject, name: str, path: Path) -> Iterator[tuple[JsonObject, Path]]:
    if name == "not":
        if isinstance(schema.get(name), dict):
            yield schema[name], path.child(name)
        return
    for position, nested in enumerate(schema.get(name) or ()):
        yield nested, path.child(name).index(position)


def _check_nested(
    schema: JsonObject, errors: ErrorList, path: Path, *, skips_any: bool = False
) -> None:
    _check_alternatives(schema, errors, path, skips_any=skips_any)
    if isinstance(schema.get("items"), dict):
        _check_nested(schema["items"], errors, path.child("items"))
    for name, part in (schema.get("properties") or {}).items():
        _check_nested(part, errors, path.child("properties").key(name))
    for keyword, detail in _NOT_NESTED.items():
        value = schema.get(keyword)
        if value or (value is not None and keyword in ("default", "additionalProperties")):
            errors.forbidden(path.child(keyword), detail)
    if "metadata" in (schema.get("properties") or {}):
        detail = "must not be specified in a nested context"
        errors.forbidden(path.child("properties").key("metadata"), detail)


def _check_complete(
    nested: JsonObject, schema: JsonObject | None, errors: ErrorList, at: Path, told: Path
) -> None:
    """Alternatives at the root speak only of parts that stand outside them, too."""
    if schema is None:
        errors.required(at, f"because it is defined in {told}")
        return
    for name in (*_LISTS_OF_SCHEMAS, "not"):
        for part, where in _nested(nested, name, told):
            _check_complete_parts(part, schema, errors, at, where)


def _check_complete_parts(
    nested: JsonObject, schema: JsonObject, errors: ErrorList, at: Path, told: Path
) -> None:
    _check_complete(nested, schema, errors, at, told)
    items = nested.get("items")
    if isinstance(items, dict):
        inner_items, where = schema.get("items"), at.child("items")
        if isinstance(inner_items, dict):
            _check_complete_parts(items, inner_items, errors, where, told.child("items"))
        else:
            errors.required(where, f"because it is defined in {told.child('items')}")
    for name, part in (nested.get("properties") or {}).items():
        where, said = at.child("properties").key(name), told.child("properties").key(name)
        inner_part = (schema.get("properties") or {}).get(name)
        if inner_part is None:
            errors.required(where, f"because it is defined in {said}")
        else:
            _check_complete_parts(part, inner_part, errors, where, said)


# -- defaults ------------------------------------------------------------------------------


def _check_defaults(
    node: Structural, errors: ErrorList, path: Path, *, is_resource: bool, in_meta: bool = False
) -> None:
    is_resource = is_resource or node.embedded
    in_meta = in_meta and not node.embedded
    if node.default is not None and not in_meta:
        _check_default(node, errors, path.child("default"), is_resource=is_resource)
    if node.items is not None:
        _check_defaults(node.items, errors, path.child("items"), is_resource=False, in_meta=in_meta)
    for name, part in node.properties.items():
        below = in_meta or (is_resource and name in _META)
        at = path.child("properties").key(name)
        _check_defaults(part, errors, at, is_resource=False, in_meta=below)


def _check_default(node: Structural, errors: ErrorList, path: Path, *, is_resource: bool) -> None:
    default = node.default
    if isinstance(default, dict) and pruned(default, node) != default:
        errors.invalid(path, default, "must not have unknown fields")
    before = len(errors)
    if is_resource and isinstance(default, dict):
        check_resource(default, path, errors)
    if len(errors) == before:
        errors += validate_schema(default, node.schema, below=str(path))


# -- keywords ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Around:
    """Where a schema stands. ``no_defaults`` says why it may have none."""

    is_root: bool = False
    in_meta: bool = False
    no_defaults: str | None = None


def _check_keywords(schema: JsonObject, errors: ErrorList, path: Path, around: _Around) -> None:
    _check_supported(schema, errors, path, around)
    others = schema.get("additionalProperties")
    if (others is False or isinstance(others, dict)) and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.forbidden(path.child("additionalProperties"), detail)
    inside = replace(around, is_root=False)
    if isinstance(others, dict):
        below = inside
        if around.in_meta:
            reason = "inside additionalProperties applying to object metadata"
            below = replace(inside, no_defaults=reason)
        _check_keywords(others, errors, path.child("additionalProperties"), below)
    is_resource = around.is_root or schema.get("x-kubernetes-embedded-resource")
    for name, part in (schema.get("properties") or {}).items():
        below = inside
        if is_resource and name in _META:
            why = f"in top-level {name}" if around.is_root else inside.no_defaults
            below = replace(inside, in_meta=True, no_defaults=why)
        _check_keywords(part, errors, path.child("properties").key(name), below)
    for name in (*_LISTS_OF_SCHEMAS, "not"):
        for part, where in _nested(schema, name, path):
            _check_keywords(part, errors, where, inside)
    if isinstance(schema.get("items"), dict):
        _check_keywords(schema["items"], errors, path.child("items"), inside)
    _check_lists_and_maps(schema, errors, path)
    for position, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = path.child("x-kubernetes-validations").index(position)
        _check_rule(rule, schema, errors, at)


def _check_supported(schema: JsonObject, errors: ErrorList, path: Path, around: _Around) -> None:
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        errors.not_supported(path.child("type"), kind, _TYPES)
    if schema.get("default") is not None and around.no_defaults is not None:
        errors.forbidden(path.child("default"), f"must not be set {around.no_defaults}")
    for keyword in _UNSUPPORTED:
        if schema.get(keyword):
            errors.forbidden(path.child(keyword), f"{keyword} is not supported")
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        errors.forbidden(path.child("type"), detail)
    if isinstance(schema.get("items"), list):
        errors.forbidden(path.child("items"), "items must be a schema object and not an array")
    if around.in_meta and schema.get("x-kubernetes-embedded-resource"):
        where = path.child("x-kubernetes-embedded-resource")
        errors.forbidden(where, "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.forbidden(path.child("uniqueItems"), detail)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = path.child("x-kubernetes-preserve-unknown-fields")
        errors.invalid(where, False, "must be true or undefined")


def _check_lists_and_maps(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    map_type, kind = schema.get("x-kubernetes-map-type"), schema.get("type") or ""
    if map_type is not None:
        if kind != "object":
            _not_object(kind, "must be object if x-kubernetes-map-type is specified", errors, path)
        if map_type not in _MAP_TYPES:
            errors.not_supported(path.child("x-kubernetes-map-type"), map_type, _MAP_TYPES)
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    at, items = path.child("x-kubernetes-list-type"), schema.get("items")
    if list_type is not None:
        if kind != "array":
            detail = "must be array if x-kubernetes-list-type is specified"
            _not_object(kind, detail, errors, path)
        elif list_type == "set" and isinstance(items, dict):
            _check_set_items(items, errors, path.child("items"))
        if list_type not in _LIST_TYPES:
            errors.not_supported(at, list_type, _LIST_TYPES)
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            errors.required(at, detail)
        else:
            errors.invalid(at, list_type, detail)
    if list_type == "map":
        _check_keys(schema, items, keys or [], errors, path)
    if list_type in ("map", "set") and isinstance(items, dict) and items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        errors.forbidden(path.child("items").child("nullable"), detail)


def _check_set_items(items: JsonObject, errors: ErrorList, path: Path) -> None:
    list_type = items.get("x-kubernetes-list-type")
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        errors.invalid(path.child("x-kubernetes-list-type"), list_type, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # As there: what is shown is the type of a list.
        errors.invalid(path.child("x-kubernetes-map-type"), list_type, detail)


def _check_keys(
    schema: JsonObject, items: Any, keys: list[str], errors: ErrorList, path: Path
) -> None:
    where = path.child("x-kubernetes-list-map-keys")
    if not keys:
        errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        errors.required(path.child("items"), "must have a schema if x-kubernetes-list-type is map")
        return
    if not isinstance(items, dict):
        detail = "must only have a single schema if x-kubernetes-list-type is map"
        errors.invalid(path.child("items"), items, detail)
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        errors.invalid(path.child("items").child("type"), items.get("type", ""), detail)
        return
    seen: set[str] = set()
    for key in keys:
        if key not in (items.get("properties") or {}):
            errors.invalid(where, keys, "entries must all be names of item properties")
        else:
            _check_key(key, items, errors, path.child("items").child("properties").key(key))
        if key in seen:
            errors.invalid(where, keys, "must not contain duplicate entries")
        seen.add(key)


def _check_key(key: str, items: JsonObject, errors: ErrorList, path: Path) -> None:
    part = items["properties"][key]
    if part.get("type") in ("array", "object"):
        detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        errors.invalid(path.child("type"), items.get("type", ""), detail)
    said = "this property is in x-kubernetes-list-map-keys, so it"
    if key not in (items.get("required") or ()) and part.get("default") is None:
        errors.required(
            path.child("default"), f"{said} must have a default or be a required property"
        )
    if part.get("nullable"):
        errors.forbidden(path.child("nullable"), f"{said} cannot be nullable")


def _check_rule(rule: JsonObject, schema: JsonObject, errors: ErrorList, path: Path) -> None:
    """What can be said of a rule without reading its expressions."""
    text, given = rule.get("rule") or "", rule.get("message") or ""
    message = given.strip()
    if not text.strip():
        errors.required(path.child("rule"), "rule is not specified")
    elif given and not message:
        errors.invalid(path.child("message"), given, _NOT_EMPTY)
    elif _LINE_BREAK.search(message):
        errors.invalid(path.child("message"), given, "must not contain line breaks")
    elif _LINE_BREAK.search(text.strip()) and not message:
        detail = "message must be specified if rule contains line breaks"
        errors.required(path.child("message"), detail)
    words = rule.get("messageExpression") or ""
    if words and not words.strip():
        errors.required(path.child("messageExpression"), f"messageExpression {_NOT_EMPTY}")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.not_supported(path.child("reason"), reason, _REASONS)
    _check_field_path(rule.get("fieldPath") or "", schema, errors, path.child("fieldPath"))


def _check_field_path(text: str, schema: JsonObject, errors: ErrorList, path: Path) -> None:
    if text and not text.strip():
        errors.invalid(path, text, _NOT_EMPTY)
    if _LINE_BREAK.search(text):
        errors.invalid(path, text, "must not contain line breaks")
    try:
        valid_field_path(text, schema)
    except ValueError:
        errors.invalid(path, text, "must be a valid path")
