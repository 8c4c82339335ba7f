"""Whole OpenAPI v3 documents: one for each group version, and the small ones about the server.

Keys of the index are paths without the leading slash: ``api/v1``, ``apis/apps``, ``version``.
"""

from collections.abc import Iterable, Sequence

from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver.openapi.operations import META, information_path
from kubescene.apiserver.openapi.paths import (
    base_path,
    group_tag,
    group_version_paths,
    group_word,
)
from kubescene.apiserver.openapi.schemas import (
    custom_schemas,
    open_schema,
    reachable_schemas,
    schema_name,
)
from kubescene.types import JsonObject

_VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
        "description": "Bearer Token authentication",
    }
}


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
