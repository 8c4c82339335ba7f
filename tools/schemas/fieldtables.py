"""The small table beside the schemas: what decoding, patching and applying ask about a field.

A field is one string, read left to right: ``[`` a list of, ``{`` a map of, then a scalar letter or
``#n``, the n-th type. Annotations, where a field has any, follow in a pair ``[string, {...}]``.
"""

from typing import Any

from tools.schemas.definitions import GVK, NEW_REF, JsonSchema

SCALARS = {
    ("string", None): "s",
    ("string", "byte"): "y",
    ("integer", "int32"): "i",
    ("integer", "int64"): "l",
    ("number", "double"): "f",
    ("boolean", None): "b",
}

NAMED_SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "q",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "a",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "m",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": "a",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "a",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "x",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "a",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "a",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "a",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "a",
}

ANNOTATIONS = {
    "x-kubernetes-patch-strategy": "patchStrategy",
    "x-kubernetes-patch-merge-key": "patchMergeKey",
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "listMapKeys",
    "x-kubernetes-map-type": "mapType",
    "default": "default",
}


def field_tables(definitions: dict[str, JsonSchema]) -> dict[str, Any]:
    """Types by position: their names, fields and whether atomic; and the type of each kind."""
    names = [name for name in definitions if name not in NAMED_SCALARS]
    index = {name: position for position, name in enumerate(names)}
    return {
        "names": names,
        "fields": [_fields(definitions[name], index) for name in names],
        "atomic": [
            index[name]
            for name in names
            if definitions[name].get("x-kubernetes-map-type") == "atomic"
        ],
        "kinds": {
            f"{gvk['group']}/{gvk['version']}/{gvk['kind']}": index[name]
            for name in names
            for gvk in definitions[name].get(GVK, ())
        },
    }


def _fields(schema: JsonSchema, index: dict[str, int]) -> dict[str, Any]:
    return {name: _field(field, index) for name, field in schema.get("properties", {}).items()}


def _field(schema: JsonSchema, index: dict[str, int]) -> Any:
    annotations = {short: schema[long] for long, short in ANNOTATIONS.items() if long in schema}
    spelled = _spelled(schema, index)
    return [spelled, annotations] if annotations else spelled


def _spelled(schema: JsonSchema, index: dict[str, int]) -> str:
    reference = schema.get("$ref") or (schema["allOf"][0]["$ref"] if "allOf" in schema else None)
    if reference:
        name = reference.removeprefix(NEW_REF)
        return NAMED_SCALARS.get(name) or f"#{index[name]}"
    if schema["type"] == "array":
        return "[" + _spelled(schema["items"], index)
    if schema["type"] == "object":
        return "{" + _spelled(schema["additionalProperties"], index)
    return SCALARS[schema["type"], schema.get("format")]
