"""What a CustomResourceDefinition may say, beyond its names and versions.

Schemas have to be structural: keywords that would make pruning or defaulting ambiguous are
refused, defaults have to satisfy the schema they stand in, lists that promise keys have to name
them. CEL rules are not looked at.
"""

from collections.abc import Iterator

from kubescene.api.schemas import patterns
from kubescene.api.schemas.schema_validation import validate_schema
from kubescene.api.schemas.structural import Structural, compile_schema, pruned
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, Path
from kubescene.types import JsonObject

APPROVAL = "api-approved.kubernetes.io"

_PROTECTED = ("k8s.io", "kubernetes.io")
_UNSUPPORTED = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
_SCALARS = ("string", "integer", "number", "boolean")
_NESTED = ("allOf", "anyOf", "oneOf")
_NOT_NESTED = {
    "default": "must be undefined to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
}
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_EMBEDDED = "must be object if x-kubernetes-embedded-resource is true"


def check_definition(definition: JsonObject, errors: ErrorList) -> None:
    """Look at schemas, subresources and columns of a definition whose outline is sound."""
    spec = definition.get("spec") or {}
    _check_approval(definition, spec.get("group") or "", errors)
    for schema, path in schemas_of(spec):
        _check_root(schema, errors, path)
    for position, version in enumerate(spec.get("versions") or ()):
        path = SPEC.child("versions").index(position)
        scale = (version.get("subresources") or {}).get("scale")
        if scale is not None:
            _check_scale(scale, errors, path.child("subresources"))
        for place, column in enumerate(version.get("additionalPrinterColumns") or ()):
            _check_column(column, errors, path.child("additionalPrinterColumns").index(place))
    _check_conversion(spec.get("conversion") or {}, errors)


def _check_approval(definition: JsonObject, group: str, errors: ErrorList) -> None:
    protected = any(group == name or group.endswith(f".{name}") for name in _PROTECTED)
    given = (definition["metadata"].get("annotations") or {}).get(APPROVAL, "")
    path = METADATA.child("annotations").key(APPROVAL)
    if not protected or given.startswith(("unapproved", "https://", "http://")):
        return
    if given:
        detail = (
            f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a '
            'reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        errors.invalid(path, given, detail)
        return
    errors.required(
        path,
        f'protected groups must have approval annotation "{APPROVAL}", see '
        "https://github.com/kubernetes/enhancements/pull/1111",
    )


def schemas_of(spec: JsonObject) -> Iterator[tuple[JsonObject, Path]]:
    """Every schema with its place; one that all versions share stands above them."""
    found = [
        (version.get("schema") or {}).get("openAPIV3Schema")
        for version in spec.get("versions") or ()
    ]
    if found and found[0] is not None and all(schema == found[0] for schema in found):
        yield found[0], SPEC.child("validation").child("openAPIV3Schema")
        return
    for position, schema in enumerate(found):
        if schema is not None:
            path = SPEC.child("versions").index(position).child("schema")
            yield schema, path.child("openAPIV3Schema")


def _check_root(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    if schema.get("nullable"):
        errors.forbidden(path.child("nullable"), "nullable cannot be true at the root")
    if isinstance(schema.get("additionalProperties"), dict):
        errors.forbidden(path.child("additionalProperties"), "must not be used at the root")
    _check_node(compile_schema(schema), errors, path)


def _check_node(node: Structural, errors: ErrorList, path: Path) -> None:
    _check_keywords(node.schema, errors, path)
    _check_pattern(node.schema, errors, path)
    _check_lists(node, errors, path)
    _check_embedded(node, errors, path)
    if node.default is not None:
        _check_default(node, errors, path.child("default"))
    for name in (*_NESTED, "not"):
        for nested, where in _nested(node.schema, name, path):
            _check_nested(nested, errors, where)
    for name, child in node.properties.items():
        _check_node(child, errors, path.child("properties").key(name))
    if node.additional is not None:
        _check_node(node.additional, errors, path.child("additionalProperties"))
    if node.items is not None:
        _check_node(node.items, errors, path.child("items"))


def _nested(schema: JsonObject, name: str, path: Path) -> Iterator[tuple[JsonObject, Path]]:
    if name == "not":
        if isinstance(schema.get(name), dict):
            yield schema[name], path.child(name)
        return
    for position, nested in enumerate(schema.get(name) or ()):
        yield nested, path.child(name).index(position)


def _check_nested(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    for keyword, detail in _NOT_NESTED.items():
        if schema.get(keyword):
            errors.forbidden(path.child(keyword), detail)
    _check_pattern(schema, errors, path)
    for name in (*_NESTED, "not"):
        for nested, where in _nested(schema, name, path):
            _check_nested(nested, errors, where)


def _check_keywords(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    for keyword in _UNSUPPORTED:
        if schema.get(keyword):
            errors.forbidden(path.child(keyword), f"{keyword} is not supported")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.forbidden(path.child("uniqueItems"), detail)
    others = schema.get("additionalProperties")
    if (others is False or isinstance(others, dict)) and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.forbidden(path.child("additionalProperties"), detail)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = path.child("x-kubernetes-preserve-unknown-fields")
        errors.invalid(where, False, "must be true or undefined")
    kind = schema.get("x-kubernetes-map-type")
    if kind is not None and kind not in _MAP_TYPES:
        errors.not_supported(path.child("x-kubernetes-map-type"), kind, _MAP_TYPES)


def _check_pattern(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    pattern = schema.get("pattern")
    if pattern and (problem := patterns.problem(pattern)):
        detail = f"must be a valid regular expression, but isn't: {problem}"
        errors.invalid(path.child("pattern"), pattern, detail)


def _check_lists(node: Structural, errors: ErrorList, path: Path) -> None:
    schema, kind, keys = node.schema, node.list_type, node.list_map_keys
    if isinstance(schema.get("items"), list):
        errors.forbidden(path.child("items"), "items must be a schema object and not an array")
    elif schema.get("type") == "array" and node.items is None:
        errors.required(path.child("items"), "must be specified")
    if kind and schema.get("type") != "array":
        detail = "must be array if x-kubernetes-list-type is specified"
        errors.invalid(path.child("type"), schema.get("type", ""), detail)
    if kind and kind not in _LIST_TYPES:
        errors.not_supported(path.child("x-kubernetes-list-type"), kind, _LIST_TYPES)
    if keys and kind != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        errors.invalid(path.child("x-kubernetes-list-type"), kind, detail)
    if kind == "map":
        _check_keys(node, keys, errors, path)


def _check_keys(node: Structural, keys: tuple[str, ...], errors: ErrorList, path: Path) -> None:
    where = path.child("x-kubernetes-list-map-keys")
    if not keys:
        errors.required(where, "must not be empty if x-kubernetes-list-type is map")
    if node.items is None:
        errors.required(path.child("items"), "must have a schema if x-kubernetes-list-type is map")
        return
    if len(set(keys)) != len(keys):
        errors.invalid(where, list(keys), "must not contain duplicate entries")
    required = node.items.schema.get("required") or ()
    for key in dict.fromkeys(keys):
        child = node.items.properties.get(key)
        at = path.child("items").child("properties").key(key)
        if child is None:
            errors.invalid(where, list(keys), "entries must all be names of item properties")
        elif child.schema.get("type") not in _SCALARS:
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.invalid(at.child("type"), child.schema.get("type", ""), detail)
        elif key not in required and child.default is None:
            errors.required(
                at.child("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be "
                "a required property",
            )


def _check_embedded(node: Structural, errors: ErrorList, path: Path) -> None:
    if not node.embedded:
        return
    kind = node.schema.get("type")
    if not kind:
        errors.required(path.child("type"), _EMBEDDED)
    elif kind != "object":
        errors.invalid(path.child("type"), kind, _EMBEDDED)
    if not node.preserves and not node.properties:
        errors.required(
            path.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields",
        )


def _check_default(node: Structural, errors: ErrorList, path: Path) -> None:
    default = node.default
    if isinstance(default, dict) and pruned(default, node) != default:
        errors.invalid(path, default, "must not have unknown fields")
    errors += validate_schema(default, node.schema, below=str(path))


def _check_scale(scale: JsonObject, errors: ErrorList, path: Path) -> None:
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value = scale.get(field)
        if not value:
            errors.required(path.child(f"scale.{field}"))
        elif not value.startswith(f"{root}."):
            detail = f"should be a json path under {root}"
            errors.invalid(path.child(f"scale.{field}"), value, detail)
    selector = scale.get("labelSelectorPath")
    if selector and not selector.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        errors.invalid(path.child("scale.labelSelectorPath"), selector, detail)


def _check_column(column: JsonObject, errors: ErrorList, path: Path) -> None:
    if not column.get("name"):
        errors.required(path.child("name"))
    kind, choices = column.get("type"), f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        errors.required(path.child("type"), choices)
    elif kind not in _COLUMN_TYPES:
        errors.invalid(path.child("type"), kind, choices)
    if not column.get("jsonPath"):
        errors.required(path.child("JSONPath"))


def _check_conversion(conversion: JsonObject, errors: ErrorList) -> None:
    strategy, path = conversion.get("strategy", "None"), SPEC.child("conversion")
    if strategy not in ("None", "Webhook"):
        errors.not_supported(path.child("strategy"), strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client = webhook.get("clientConfig")
    if strategy == "Webhook" and client is None:
        detail = "required when strategy is set to Webhook"
        errors.required(path.child("webhookClientConfig"), detail)
    if strategy == "None" and client is not None:
        detail = "should not be set when strategy is not set to Webhook"
        errors.forbidden(path.child("webhookClientConfig"), detail)
