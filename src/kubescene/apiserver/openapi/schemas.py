"""The schemas of one OpenAPI document: built-in ones that are reachable, custom ones as served.

A document holds the schemas its operations refer to and all that those refer to. Schemas of
custom resources come from their definitions; as kube-apiserver does, they are given the fields
that every object has, a list type, and a name made of the reversed group, version and kind.
"""

from collections.abc import Iterator
from functools import cache

from kubescene.api.schemas.builtin_types import REF_PREFIX, api_type, definitions
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.openapi.operations import GVK, META, reference
from kubescene.types import JsonObject, JsonValue

_POD = "io.k8s.api.core.v1.Pod"
_POD_LIST = "io.k8s.api.core.v1.PodList"
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_EMBEDDED = "x-kubernetes-embedded-resource"


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
