"""One operation of the API, and one path, as OpenAPI v3 describes them.

A parameter that all operations of a path take stands on the path, as upstream puts it. Only the
media types that this server sends are named. Parts are shared between operations, never changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from kubescene.api.schemas.builtin_types import REF_PREFIX
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.openapi import parameters
from kubescene.types import JsonObject

GVK = "x-kubernetes-group-version-kind"
ACTION = "x-kubernetes-action"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

OBJECT = ("application/json", "application/yaml")
STREAM = ("application/json", "application/json;stream=watch", "application/yaml")
DISCOVERY = ("application/json",)
ANY = ("*/*",)
TEXT = {"type": "string"}

_STATUS_TEXTS = {"200": "OK", "201": "Created", "202": "Accepted"}
_UNAUTHORIZED = {"401": {"description": "Unauthorized"}}
_PRETTY = parameters.in_query(["pretty"])


@dataclass(frozen=True, slots=True)
class PathOperation:
    """One method of a path, before the parameters it shares with its neighbours are known."""

    method: str
    action: str
    operation_id: str
    description: str
    gvk: GroupVersionKind
    responses: JsonObject
    query: tuple[str, ...] = ()
    request_body: JsonObject | None = None


def path_item(
    operations: list[PathOperation], in_path: list[JsonObject], *, tag: str
) -> JsonObject:
    """The operations of one path with the parameters they share; at least one operation."""
    shared = set(operations[0].query).intersection(*(o.query for o in operations))
    # A connection carries bytes of somebody else, which nobody here can indent.
    pretty = [] if operations[0].action == "connect" else _PRETTY
    item: JsonObject = {o.method: _describe(o, shared, tag) for o in operations}
    listed = [*parameters.in_query(sorted(shared)), *in_path, *pretty]
    item["parameters"] = sorted(listed, key=lambda p: (p["name"], p["in"]))
    return item


def information_path(*, operation_id: str, schema: str, description: str, tag: str) -> JsonObject:
    """A path that only tells about the server."""
    operation = {
        "description": description,
        "operationId": operation_id,
        "responses": responses(("200",), reference(schema), DISCOVERY),
        "tags": [tag],
    }
    return {"get": operation}


@cache
def reference(schema: str) -> JsonObject:
    """A pointer to the schema of that name."""
    return {"$ref": REF_PREFIX + schema}


def responses(
    codes: Iterable[str], schema: JsonObject, media_types: Iterable[str] = OBJECT
) -> JsonObject:
    """The same reply under each of the codes, and the refusal that every request may get."""
    content = _content(schema, media_types)
    told = {code: {"description": _STATUS_TEXTS[code], "content": content} for code in codes}
    return told | _UNAUTHORIZED


def optional_body(schema: JsonObject) -> JsonObject:
    return {"content": _content(schema, ANY)}


def required_body(schema: JsonObject, media_types: Iterable[str] = ANY) -> JsonObject:
    return {"content": _content(schema, media_types), "required": True}


def _content(schema: JsonObject, media_types: Iterable[str]) -> JsonObject:
    return {media_type: {"schema": schema} for media_type in media_types}


def _describe(operation: PathOperation, shared: set[str], tag: str) -> JsonObject:
    described: JsonObject = {
        "description": operation.description,
        "operationId": operation.operation_id,
        "responses": operation.responses,
        "tags": [tag],
        ACTION: operation.action,
        GVK: operation.gvk._asdict(),
    }
    if own := [name for name in operation.query if name not in shared]:
        described["parameters"] = parameters.in_query(own)
    if operation.request_body is not None:
        described["requestBody"] = operation.request_body
    return described
