"""How the server prints a value from inside an object.

Messages show offending values in the server's inner form: fields in declaration order, with
capital letters, and null for what is absent. Users compare messages, so we print the same for
the shapes that can turn up in one. A shape lists its fields; what a field holds, if it has
fields of its own, is another shape.
"""

from typing import Any, TypeAlias

from kubescene.types import JsonObject

Shape: TypeAlias = dict[str, Any]
"""Wire name of each field to its zero, or to the shape below it."""

_REQUIREMENT: Shape = {"key": "", "operator": "", "values": None}
NODE_SELECTOR_TERM: Shape = {"matchExpressions": _REQUIREMENT, "matchFields": _REQUIREMENT}
VOLUME_NODE_AFFINITY: Shape = {"required": {"nodeSelectorTerms": NODE_SELECTOR_TERM}}
POD_RESOURCE_CLAIM: Shape = {
    "name": "",
    "resourceClaimName": None,
    "resourceClaimTemplateName": None,
}
IP: Shape = {"ip": ""}
DEPLOYMENT_STRATEGY: Shape = {
    "type": "",
    "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0},
}
STATEFUL_ROLLING_UPDATE: Shape = {"partition": 0, "maxUnavailable": None}
STATEFUL_STRATEGY: Shape = {"type": "", "rollingUpdate": STATEFUL_ROLLING_UPDATE}
SUCCESS_POLICY: Shape = {"rules": {"succeededIndexes": None, "succeededCount": None}}
TAINT: Shape = {"key": "", "value": "", "effect": "", "timeAdded": None}
NODE_ADDRESS: Shape = {"type": "", "address": ""}
BUDGET_SPEC: Shape = {
    "minAvailable": None,
    "selector": None,
    "maxUnavailable": None,
    "unhealthyPodEvictionPolicy": None,
}
SERVICE_PORT: Shape = {
    "name": "",
    "protocol": "",
    "appProtocol": None,
    "port": 0,
    "targetPort": 0,
    "nodePort": 0,
}
SCOPE_SELECTOR: Shape = {"matchExpressions": {"scopeName": "", "operator": "", "values": None}}
SECCOMP_PROFILE: Shape = {"type": "", "localhostProfile": None}
SECURITY_CONTEXT: Shape = {
    "capabilities": {"add": None, "drop": None},
    "privileged": None,
    "seLinuxOptions": {"user": "", "role": "", "type": "", "level": ""},
    "windowsOptions": None,
    "runAsUser": None,
    "runAsGroup": None,
    "runAsNonRoot": None,
    "readOnlyRootFilesystem": None,
    "allowPrivilegeEscalation": None,
    "procMount": None,
    "seccompProfile": SECCOMP_PROFILE,
    "appArmorProfile": {"type": "", "localhostProfile": None},
}
_ACRONYMS = {"ip": "IP", "seLinuxOptions": "SELinuxOptions"}

DEFINITION_VERSION: Shape = {
    "name": "",
    "served": False,
    "storage": False,
    "deprecated": False,
    "deprecationWarning": None,
    "schema": None,
    "subresources": None,
    "additionalPrinterColumns": None,
    "selectableFields": None,
}
VALIDATION_RULE: Shape = {
    "rule": "",
    "message": "",
    "messageExpression": "",
    "reason": None,
    "fieldPath": "",
    "optionalOldSelf": None,
}


def inner(value: Any, shape: Shape) -> Any:
    """The value as the server prints it; lists are printed item by item."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_inner_fields(item, shape) for item in value] or None
    return _inner_fields(value, shape)


def _inner_fields(value: JsonObject, shape: Shape) -> JsonObject:
    printed = {}
    for field, below in shape.items():
        name = _ACRONYMS.get(field) or field[0].upper() + field[1:]
        if isinstance(below, dict):
            printed[name] = inner(value.get(field), below)
        else:
            printed[name] = value.get(field, below)
    return printed


_SCHEMA: Shape = {
    **{"id": "", "schema": "", "$ref": None, "description": "", "type": "", "nullable": False},
    **{"format": "", "title": "", "default": None, "maximum": None, "exclusiveMaximum": False},
    **{"minimum": None, "exclusiveMinimum": False, "maxLength": None, "minLength": None},
    **{"pattern": "", "maxItems": None, "minItems": None, "uniqueItems": False},
    **{"multipleOf": None, "enum": None, "maxProperties": None, "minProperties": None},
    **{"required": None, "items": None, "allOf": None, "oneOf": None, "anyOf": None, "not": None},
    **{"properties": None, "additionalProperties": None, "patternProperties": None},
    **{"dependencies": None, "additionalItems": None, "definitions": None},
    **{"externalDocs": None, "example": None, "x-kubernetes-preserve-unknown-fields": None},
    **{"x-kubernetes-embedded-resource": False, "x-kubernetes-int-or-string": False},
    **{"x-kubernetes-list-map-keys": None, "x-kubernetes-list-type": None},
    **{"x-kubernetes-map-type": None, "x-kubernetes-validations": None},
}


def inner_schema(schema: JsonObject) -> JsonObject:
    """A schema as the server prints it."""
    printed = {}
    for field, zero in _SCHEMA.items():
        words = field.removeprefix("x-kubernetes").lstrip("$").split("-")
        name = "".join(word[:1].upper() + word[1:] for word in words)
        name = f"X{name}" if field.startswith("x-") else "ID" if field == "id" else name
        printed[name] = _schema_part(field, schema.get(field, zero))
    return printed


def _schema_part(field: str, value: Any) -> Any:
    if isinstance(value, dict) and field in ("properties", "patternProperties", "definitions"):
        return {name: inner_schema(part) for name, part in value.items()}
    if isinstance(value, list) and field in ("allOf", "anyOf", "oneOf"):
        return [inner_schema(part) for part in value] or None
    if field == "x-kubernetes-validations":
        return inner(value, VALIDATION_RULE)
    if field == "not" and isinstance(value, dict):
        return inner_schema(value)
    if field == "items" and isinstance(value, dict):
        return {"Schema": inner_schema(value), "JSONSchemas": None}
    if field in ("additionalProperties", "additionalItems") and value is not None:
        schema = inner_schema(value) if isinstance(value, dict) else None
        return {"Allows": value is not False, "Schema": schema}
    return value
