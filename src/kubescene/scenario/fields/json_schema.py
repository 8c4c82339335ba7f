"""The table of fields as JSON Schema: strict for editors, structural for the custom resource.

The structural schema admits more than the engine plays: an operation with none or two of its fields
is a scenario that fails and says so, not a request that is refused, as KEP-140 wants. Unknown
fields of the spec are kept for the same reason: pruned in silence, a typo would be a wrong answer.
"""

from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.scenario.fields.table import (
    OPERATION,
    OPERATION_BODIES,
    SCENARIO_FIELDS,
    SPEC,
    Field,
    FieldType,
)
from kubescene.types import JsonObject

DIALECT = "https://json-schema.org/draft/2020-12/schema"
KEEP_UNKNOWN = "x-kubernetes-preserve-unknown-fields"


def editor_schema() -> JsonObject:
    """A JSON Schema that an editor can check a scenario file with."""
    schema = _strict(SCENARIO_FIELDS)
    properties = schema["properties"]
    properties["apiVersion"]["const"] = SCENARIO.api_version
    properties["kind"]["const"] = SCENARIO.kind
    return {"$schema": DIALECT, "title": SCENARIO.kind, **schema}


def spec_schema() -> JsonObject:
    """``spec`` in the structural schema of the custom resource."""
    return _structural(SPEC)


def _strict(field: Field) -> JsonObject:
    schema: JsonObject = {"description": field.about, **_value(field)}
    if field.items is not None:
        schema["items"] = _strict(field.items)
    if field.is_map:
        schema["additionalProperties"] = {"type": "string"}
    elif field.type is FieldType.OBJECT:
        schema["properties"] = {
            name: _nullable(_strict(member), required=member.required)
            for member in field.fields
            for name in (member.name, *member.also)
        }
        schema["additionalProperties"] = field.open
        if required := [each.name for each in field.fields if each.required and not each.also]:
            schema["required"] = required
    if field is OPERATION:
        schema["oneOf"] = [{"required": [body.name]} for body in OPERATION_BODIES]
    return schema


def _nullable(schema: JsonObject, *, required: bool) -> JsonObject:
    """A field that is not needed may be there and empty, as YAML's authors like to write it."""
    if required or "enum" in schema:
        return schema
    types = schema["type"]
    return {**schema, "type": [*(types if isinstance(types, list) else [types]), "null"]}


def _structural(field: Field) -> JsonObject:
    if field.type is FieldType.AMOUNT:
        return {"description": field.about, KEEP_UNKNOWN: True}
    schema: JsonObject = {"description": field.about, "type": str(field.type)}
    if field.items is not None:
        schema |= {"items": _structural(field.items), "x-kubernetes-list-type": "atomic"}
    if field.is_map:
        schema["additionalProperties"] = {"type": "string"}
    elif field.type is FieldType.OBJECT:
        schema[KEEP_UNKNOWN] = True
        if members := {each.name: _structural(each) for each in field.fields}:
            schema["properties"] = members
    elif field.type is FieldType.WHOLE:
        schema["format"] = "int64"
    return schema


def _value(field: Field) -> dict[str, Any]:
    """What is said of a single value."""
    value: dict[str, Any] = {"type": str(field.type)}
    if field.type is FieldType.AMOUNT:
        value["type"] = ["string", "number", "object"]
    if field.choices:
        value["enum"] = list(field.choices)
    if field.least is not None:
        value["minimum"] = field.least
    if field.most is not None:
        value["maximum"] = field.most
    if field.default and field.type in (FieldType.WHOLE, FieldType.FLAG):
        value["default"] = int(field.default) if field.default.isdigit() else False
    return value
