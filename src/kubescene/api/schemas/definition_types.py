"""Types in the schemas of a CustomResourceDefinition, where one field may hold two kinds of value.

``items`` is a schema or a list of them, ``additionalProperties`` a schema or a boolean,
``dependencies`` schemas or lists of names. The field tables call these "anything", so what stands
there is looked at here, in the words of the Go decoder, which reads them one level at a time.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from kubescene.api.schemas import strict_decoding
from kubescene.api.schemas.builtin_types import ApiType, api_type
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject, JsonValue

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

_OR_BOOLEAN = ("additionalProperties", "additionalItems")
_LISTS = ("allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "definitions")


def check_schemas(definition: JsonObject) -> None:
    """400 if a schema below a union has a value of the wrong type; the rest is checked already."""
    for version in (definition.get("spec") or {}).get("versions") or ():
        schema = ((version or {}).get("schema") or {}).get("openAPIV3Schema")
        if schema:
            _check(schema)


def _check(schema: JsonObject) -> None:
    for nested in _typed(schema):
        _check(nested)
    for nested in _untyped(schema):
        if complaint := strict_decoding.complaint_about(nested, _schema_type()):
            raise strict_decoding.not_handled(DEFINITION, complaint)
        if nested:
            _check(nested)


def _typed(schema: JsonObject) -> Iterator[JsonObject]:
    """Schemas below whose types the tables know."""
    for name in _MAPS:
        yield from filter(None, (schema.get(name) or {}).values())
    for name in _LISTS:
        yield from filter(None, schema.get(name) or ())
    if schema.get("not"):
        yield schema["not"]


def _untyped(schema: JsonObject) -> Iterator[JsonValue]:
    """What stands where a schema may: another kind of value that may stand there is left out."""
    items = schema.get("items")
    if isinstance(items, dict | list):
        yield from items if isinstance(items, list) else (items,)
    for name in _OR_BOOLEAN:
        if not isinstance(schema.get(name), bool | None):
            yield schema[name]
    for dependency in (schema.get("dependencies") or {}).values():
        if isinstance(dependency, dict):
            yield dependency


@cache
def _schema_type() -> ApiType:
    found: Any = api_type(DEFINITION)
    for name in ("spec", "versions", "schema", "openAPIV3Schema"):
        found = found.fields[name].element
    assert isinstance(found, ApiType)
    return found
