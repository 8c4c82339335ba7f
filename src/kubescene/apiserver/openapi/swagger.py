"""OpenAPI v2 ("Swagger 2.0"): one document of everything, made of those of v3.

What v3 can say and v2 cannot is left out as kube-apiserver leaves it out: kubectl and other clients
take what they find for the whole truth, so that a field of several types, or one that may be null,
has no type at all. Defaults are left out, too: a client would fill them in.

Parameters that many operations take stand once, under ``parameters``; but kubectl looks for
``dryRun`` and ``fieldValidation`` in the operations themselves.
"""

import hashlib
from collections.abc import Iterable

import orjson

from kubescene.api.schemas.builtin_types import REF_PREFIX, definitions
from kubescene.apiserver.openapi.operations import ANY, GVK, META
from kubescene.apiserver.openapi.swagger_protobuf import SCHEMA
from kubescene.types import JsonObject

DEFINITIONS = "#/definitions/"
PARAMETERS = "#/parameters/"

_PRESERVED = "x-kubernetes-preserve-unknown-fields"
_OWN_PARAMETERS = frozenset({"dryRun", "fieldValidation", "name"})


def swagger_document(documents: Iterable[JsonObject], *, version: str) -> JsonObject:
    """All of these v3 documents, at least one, as one of v2."""
    paths: JsonObject = {}
    schemas: JsonObject = {}
    security: JsonObject = {}
    for document in documents:
        paths |= document["paths"]
        schemas |= document["components"]["schemas"]
        security |= document["components"]["securitySchemes"]
    shared: JsonObject = {}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": {path: _path_item(paths[path], shared) for path in sorted(paths)},
        "definitions": {name: _definition(name, schemas[name]) for name in sorted(schemas)},
        "parameters": dict(sorted(shared.items())),
        "securityDefinitions": security,
        "security": [{scheme: []} for scheme in security],
    }


# -- schemas -------------------------------------------------------------------------------------


def _definition(name: str, schema: JsonObject) -> JsonObject:
    # A document of v3 names only its own group version where a kind belongs to all of them.
    schema = definitions().get(name, schema)
    if schema.get(_PRESERVED):
        return {"type": "object", GVK: schema[GVK]}
    told = _schema(schema)
    if "oneOf" in schema:
        told.setdefault("type", "string")  # a quantity, a number or name of a port
    return told


def _schema(schema: JsonObject) -> JsonObject:
    told = {key: value for key, value in schema.items() if key in SCHEMA or key.startswith("x-")}
    if reference := schema.get("$ref") or _wrapped_reference(schema):
        return told | {"$ref": DEFINITIONS + reference.removeprefix(REF_PREFIX)}
    if schema.get("nullable"):
        _drop(told, "type", "items", "properties")
    if schema.get(_PRESERVED):
        _drop(told, "items", "properties")
    if _cannot_be_typed(told):
        _drop(told, "type")
    return _with_parts(told)


def _wrapped_reference(schema: JsonObject) -> str:
    """In v3 nothing may stand beside a reference, so one with a description is wrapped."""
    wrapped = schema.get("allOf", ())
    return str(wrapped[0].get("$ref", "")) if len(wrapped) == 1 else ""


def _cannot_be_typed(schema: JsonObject) -> bool:
    """What kubectl cannot read: arrays of what nobody knows, and objects with unknown fields."""
    wanting = {"array": "items" not in schema, "object": bool(schema.get(_PRESERVED))}
    return wanting.get(schema.get("type", ""), False)


def _with_parts(schema: JsonObject) -> JsonObject:
    fields = schema.get("properties", {})
    if fields:
        schema["properties"] = {name: _schema(field) for name, field in fields.items()}
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        schema["additionalProperties"] = _schema(values)
    if "items" in schema:
        schema["items"] = _schema(schema["items"])
    if "required" in schema:
        required = [f for f in schema["required"] if not fields.get(f, {}).get("nullable")]
        _drop(schema, "required")
        if required:
            schema["required"] = required
    return schema


def _drop(schema: JsonObject, *keys: str) -> None:
    for key in keys:
        schema.pop(key, None)


# -- operations ----------------------------------------------------------------------------------


def _path_item(item: JsonObject, shared: JsonObject) -> JsonObject:
    told: JsonObject = {
        key: _operation(value, shared) for key, value in item.items() if isinstance(value, dict)
    }
    if listed := item.get("parameters"):
        told["parameters"] = [_kept(_parameter(each), shared) for each in listed]
    return told


def _operation(operation: JsonObject, shared: JsonObject) -> JsonObject:
    body = operation.get("requestBody")
    listed = [_parameter(each) for each in operation.get("parameters", ())]
    if body is not None:
        listed.insert(0, _body_parameter(body))
    answers = operation["responses"].values()
    produced = dict.fromkeys(kind for reply in answers for kind in reply.get("content", ()))
    told = {
        **operation,
        "consumes": list(ANY if body is None else body["content"]),
        "produces": list(produced),
        "responses": {code: _response(reply) for code, reply in operation["responses"].items()},
    }
    _drop(told, "requestBody", "parameters")
    if listed:
        told["parameters"] = [_kept(each, shared) for each in listed]
    return told


def _response(reply: JsonObject) -> JsonObject:
    told = {"description": reply["description"]}
    return told | _content_schema(reply) if "content" in reply else told


def _body_parameter(body: JsonObject) -> JsonObject:
    told = {"name": "body", "in": "body", **_content_schema(body)}
    return told | {"required": True} if body.get("required") else told


def _content_schema(holder: JsonObject) -> JsonObject:
    """The schema of a body or reply, the same in all of its media types."""
    first = next(iter(holder["content"].values()))
    return {"schema": _schema(first["schema"])}


def _parameter(parameter: JsonObject) -> JsonObject:
    told = dict(parameter)
    told.update(told.pop("schema"))
    return told


def _kept(parameter: JsonObject, shared: JsonObject) -> JsonObject:
    """The parameter, or a reference to where it stands for all operations."""
    if not _is_shared(parameter):
        return parameter
    digest = hashlib.sha256(orjson.dumps(parameter, option=orjson.OPT_SORT_KEYS)).hexdigest()
    name = f"{parameter['name']}-{digest[:8]}"
    shared.setdefault(name, parameter)
    return {"$ref": PARAMETERS + name}


def _is_shared(parameter: JsonObject) -> bool:
    if parameter["in"] == "body":
        return str(parameter["schema"]["$ref"]).startswith(DEFINITIONS + META)
    return parameter["name"] not in _OWN_PARAMETERS
