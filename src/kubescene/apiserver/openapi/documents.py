"""Whole OpenAPI v3 documents: one for each group version, and the small ones about the server.

A document holds operations, the schemas they refer to and all that those refer to. Schemas of
custom resources come from their definitions; as kube-apiserver does, they are given the fields
that every object has, a list type, and a name made of the reversed group, version and kind.

Keys of the index are paths without the leading slash: ``api/v1``, ``apis/apps``, ``version``.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from kubescene.api.schemas.builtin_types import REF_PREFIX, api_type, definitions
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver.openapi.operations import GVK, META, information_path, reference
from kubescene.apiserver.openapi.paths import (
    base_path,
    group_tag,
    group_version_paths,
    group_word,
)
from kubescene.types import JsonObject, JsonValue

_VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
        "description": "Bearer Token authentication",
    }
}
_POD = "io.k8s.api.core.v1.Pod"
_POD_LIST = "io.k8s.api.core.v1.PodList"
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_EMBEDDED = "x-kubernetes-embedded-resource"


def index_key(group: str, version: str) -> str:
    return base_path(group, version).removeprefix("/")


def group_version_document(
    types: Sequence[ResourceType], crds: Iterable[JsonObject] = ()
) -> JsonObject:
    """The operations and schemas of one group version; ``types`` are its resources, at least one.

    ``crds`` are the definitions that may describe custom ones among them; a custom kind that
    none of them describes is any object.
    """
    gvk = types[0].gvk
    paths = group_version_paths(types, schema_name)
    custom = _described(types, crds)
    schemas = reachable_schemas(paths, custom, group=gvk.group, version=gvk.version)
    return _document(paths, schemas)


def information_document(key: str) -> JsonObject:
    """The document about ``api``, ``apis``, ``version`` or a group (``apis/apps``)."""
    paths = {f"/{key}/": _information_path(key)}
    return _document(paths, reachable_schemas(paths, {}, group="", version="v1"))


def _information_path(key: str) -> JsonObject:
    if key == "version":
        return information_path(
            operation_id="getCodeVersion",
            schema=_VERSION_INFO,
            description="get the version information for this server",
            tag="version",
        )
    root, _, group = key.partition("/")
    if group:
        return information_path(
            operation_id=f"get{group_word(group)}APIGroup",
            schema=f"{META}APIGroup",
            description="get information of a group",
            tag=group_tag(group),
        )
    is_core = root == "api"
    return information_path(
        operation_id="getCoreAPIVersions" if is_core else "getAPIVersions",
        schema=f"{META}APIVersions" if is_core else f"{META}APIGroupList",
        description="get available API versions",
        tag="core" if is_core else "apis",
    )


def _described(types: Iterable[ResourceType], crds: Iterable[JsonObject]) -> dict[str, JsonObject]:
    wanted = {served.gvk for served in types if served.custom}
    found: dict[str, JsonObject] = {}
    for gvk in sorted(wanted):
        found |= _undescribed(gvk)
    for crd in crds:
        for gvk, schemas in custom_schemas(crd):
            if gvk in wanted:
                found |= schemas
    return found


def _undescribed(gvk: GroupVersionKind) -> dict[str, JsonObject]:
    listed = gvk._replace(kind=f"{gvk.kind}List")
    return {schema_name(gvk): open_schema(gvk), schema_name(listed): open_schema(listed)}


def _document(paths: JsonObject, schemas: JsonObject) -> JsonObject:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": _SECURITY},
    }


def schema_name(gvk: GroupVersionKind) -> str:
    """``io.k8s.api.apps.v1.Deployment``, or ``dev.example.v1.Foo`` for a custom kind."""
    known = api_type(gvk)
    if known is not None:
        return known.name
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


def reachable_schemas(
    roots: JsonValue, custom: dict[str, JsonObject], *, group: str, version: str
) -> JsonObject:
    """All schemas that ``roots`` refer to, directly or not, by name in order of names.

    Kinds that belong to every group version name only their own and the core one.
    """
    found: dict[str, JsonObject] = {}
    pending = list(references(roots))
    while pending:
        name = pending.pop()
        if name in found:
            continue
        if name in custom:
            found[name] = custom[name]
            pending += references(custom[name])
        elif name in definitions():
            found[name] = _of_group_version(definitions()[name], group, version)
            pending += _references_of(name)
    return dict(sorted(found.items()))


def references(node: JsonValue) -> Iterator[str]:
    """Names of the schemas that a piece of a document refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(REF_PREFIX)
            elif isinstance(value, dict | list):
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def custom_schemas(crd: JsonObject) -> Iterator[tuple[GroupVersionKind, dict[str, JsonObject]]]:
    """For each served version of a definition its kind, and the schemas of object and list."""
    spec = crd["spec"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        gvk = GroupVersionKind(spec["group"], version["name"], spec["names"]["kind"])
        structural = version.get("schema", {}).get("openAPIV3Schema")
        list_kind = spec["names"].get("listKind") or f"{gvk.kind}List"
        name = schema_name(gvk)
        yield (
            gvk,
            {
                name: _custom_schema(gvk, structural),
                f"{name}List": _list_schema(gvk, list_kind, spec["names"]["plural"]),
            },
        )


def open_schema(gvk: GroupVersionKind) -> JsonObject:
    """What can be said about a kind of which nothing but the name is known."""
    return {"type": "object", GVK: [gvk._asdict()]}


def _custom_schema(gvk: GroupVersionKind, structural: JsonObject | None) -> JsonObject:
    if structural is None:
        return open_schema(gvk)
    schema = _with_embedded_objects(structural)
    properties = schema.get("properties", {}) | _object_properties()
    return {**schema, "properties": properties, GVK: [gvk._asdict()]}


def _list_schema(gvk: GroupVersionKind, list_kind: str, plural: str) -> JsonObject:
    kinds = definitions()[_POD_LIST]["properties"]
    return {
        "description": f"{list_kind} is a list of {gvk.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": kinds["apiVersion"],
            "items": {
                "description": f"List of {plural}. More info: {_CONVENTIONS}",
                "type": "array",
                "items": reference(schema_name(gvk)),
            },
            "kind": kinds["kind"],
            "metadata": {
                "description": f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds",
                "allOf": [reference(f"{META}ListMeta")],
            },
        },
        GVK: [gvk._replace(kind=list_kind)._asdict()],
    }


@cache
def _object_properties() -> JsonObject:
    of_pod = definitions()[_POD]["properties"]
    return {name: of_pod[name] for name in ("apiVersion", "kind", "metadata")}


def _with_embedded_objects(schema: JsonObject) -> JsonObject:
    """A copy in which embedded objects have the fields that every object has."""
    copied = dict(schema)
    if "properties" in copied:
        copied["properties"] = {
            name: _with_embedded_objects(value) for name, value in copied["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(copied.get(key), dict):
            copied[key] = _with_embedded_objects(copied[key])
    if copied.get(_EMBEDDED):
        copied["properties"] = copied.get("properties", {}) | _object_properties()
    return copied


@cache
def _references_of(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(references(definitions()[name])))


def _of_group_version(schema: JsonObject, group: str, version: str) -> JsonObject:
    kinds = schema.get(GVK, [])
    if len(kinds) < 2:
        return schema
    own = [k for k in kinds if (k["group"], k["version"]) in (("", "v1"), (group, version))]
    return {**schema, GVK: own}
