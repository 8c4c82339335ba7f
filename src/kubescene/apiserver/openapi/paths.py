"""The operations of each resource, as OpenAPI v3 describes them.

From one `ResourceType` follow the paths of its collection (in one namespace and in all), of the
object and of each subresource, and the deprecated ``/watch/`` forms of the first three, which
custom resources do not have. Which operations a path has follows from the verbs.

Clients find their way by ``x-kubernetes-group-version-kind``: kubectl takes a kind as known if a
PATCH operation carries it, and ``explain`` goes from the path of a resource to its kind by it.
"""

from collections.abc import Callable, Iterable

from kubescene.api.scheme import (
    GroupResource,
    GroupVersionKind,
    ResourceType,
    Subresource,
)
from kubescene.apiserver.openapi import parameters
from kubescene.apiserver.openapi.operations import (
    ANY,
    META,
    STREAM,
    TEXT,
    PathOperation,
    information_path,
    optional_body,
    path_item,
    reference,
    required_body,
    responses,
)
from kubescene.types import JsonObject

SchemaNames = Callable[[GroupVersionKind], str]
"""From a kind to the name of its schema."""

_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC = "application/strategic-merge-patch+json"

_DEPRECATED_WATCH = "deprecated: use the 'watch' parameter with a list operation instead"
_NAMESPACE = parameters.in_path("namespace", "namespace of the object")
_PROXIED_PATH = parameters.in_path("path", "path to the resource")

_CONNECT_METHODS = {
    "get": ("get",),
    "create": ("post",),
    "delete": ("delete",),
    "patch": ("patch",),
    "update": ("put", "head", "options"),
}
_RETURNED_WHEN_DELETED = frozenset(
    GroupResource(group, resource)
    for group, resources in {
        "": "persistentvolumeclaims persistentvolumes pods podtemplates resourcequotas "
        "serviceaccounts services",
        "resource.k8s.io": "deviceclasses devicetaintrules resourceclaims resourceclaimtemplates "
        "resourcepoolstatusrequests resourceslices",
        "storage.k8s.io": "csidrivers csinodes storageclasses volumeattachments "
        "volumeattributesclasses",
    }.items()
    for resource in resources.split()
)
"""Deleting these replies with the object, deleting all others with a Status."""


def group_version_paths(types: Iterable[ResourceType], names: SchemaNames) -> JsonObject:
    """All paths of one group version, sorted; ``types`` are its resources, at least one."""
    served = list(types)
    gvk = served[0].gvk
    root = base_path(gvk.group, gvk.version)
    paths = {f"{root}/": _resource_list_path(gvk)}
    for resource_type in served:
        paths |= _ResourcePaths(resource_type, names).all()
    return dict(sorted(paths.items()))


def base_path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def group_word(group: str) -> str:
    """``RbacAuthorization`` for rbac.authorization.k8s.io, as operation ids spell groups."""
    words = (group or "core").removesuffix(".k8s.io").split(".")
    return "".join(_title(word.replace("-", "")) for word in words)


def group_tag(group: str) -> str:
    """``rbacAuthorization`` for rbac.authorization.k8s.io."""
    word = group_word(group)
    return word[0].lower() + word[1:]


def _resource_list_path(gvk: GroupVersionKind) -> JsonObject:
    return information_path(
        operation_id=f"get{group_word(gvk.group)}{_title(gvk.version)}APIResources",
        schema=f"{META}APIResourceList",
        description="get available resources",
        tag=_tag(gvk),
    )


class _ResourcePaths:
    """The paths of one resource."""

    def __init__(self, served: ResourceType, names: SchemaNames) -> None:
        self._served = served
        self._names = names
        self._schema = names(served.gvk)
        self._base = base_path(served.gvk.group, served.gvk.version)
        self._scope = "Namespaced" if served.namespaced else ""
        scoped = "/namespaces/{namespace}" if served.namespaced else ""
        self._collection = f"{scoped}/{served.plural}"
        self._item = f"{self._collection}/{{name}}"

    def all(self) -> JsonObject:
        paths = {
            self._base + self._collection: self._path(self._collection_operations()),
            self._base + self._item: self._path(self._item_operations(), named=True),
        }
        for name in sorted(self._served.subresources):
            paths |= self._subresource_paths(self._served.subresource(name))
        if self._served.namespaced and "list" in self._served.verbs:
            everywhere = self._list("ForAllNamespaces")
            paths[f"{self._base}/{self._served.plural}"] = self._path([everywhere], cluster=True)
        if "watch" in self._served.verbs and not self._served.custom:
            paths |= self._watch_paths()
        return {path: item for path, item in paths.items() if item}

    # -- the collection and the object ------------------------------------------------------

    def _collection_operations(self) -> list[PathOperation]:
        verbs = self._served.verbs
        operations = []
        if "list" in verbs:
            operations.append(self._list())
        if "create" in verbs:
            operations.append(self._create(self._served.gvk))
        if "deletecollection" in verbs:
            operations.append(self._delete_collection())
        return operations

    def _item_operations(self) -> list[PathOperation]:
        operations = self._read_write(self._served.gvk, self._served.verbs)
        if "delete" in self._served.verbs:
            operations.append(self._delete())
        return operations

    def _list(self, suffix: str = "") -> PathOperation:
        scope = "" if suffix else self._scope
        return PathOperation(
            method="get",
            action="list",
            operation_id=self._id("list", f"{scope}{self._served.kind}{suffix}"),
            description=f"list or watch objects of kind {self._served.kind}",
            gvk=self._served.gvk,
            responses=responses(("200",), reference(f"{self._schema}List"), STREAM),
            query=parameters.LIST,
        )

    def _create(self, gvk: GroupVersionKind, subresource: str = "") -> PathOperation:
        body = reference(self._names(gvk))
        what = f"{subresource} of a {self._served.kind}" if subresource else f"a {gvk.kind}"
        return PathOperation(
            method="post",
            action="post",
            operation_id=self._id("create", self._word(subresource)),
            description=f"create {what}",
            gvk=gvk,
            responses=responses(("200", "201", "202"), body),
            query=parameters.WRITE,
            request_body=required_body(body),
        )

    def _delete_collection(self) -> PathOperation:
        kind = self._served.kind
        return PathOperation(
            method="delete",
            action="deletecollection",
            operation_id=self._id("delete", f"Collection{self._scope}{kind}"),
            description=f"delete collection of {kind}",
            gvk=self._served.gvk,
            responses=responses(("200",), reference(f"{META}Status")),
            query=parameters.DELETE_COLLECTION,
            request_body=optional_body(reference(f"{META}DeleteOptions")),
        )

    def _delete(self) -> PathOperation:
        returned = self._served.named_resource in _RETURNED_WHEN_DELETED
        reply = reference(self._schema if returned else f"{META}Status")
        return PathOperation(
            method="delete",
            action="delete",
            operation_id=self._id("delete", self._word()),
            description=f"delete a {self._served.kind}",
            gvk=self._served.gvk,
            responses=responses(("200", "202"), reply),
            query=parameters.DELETE,
            request_body=optional_body(reference(f"{META}DeleteOptions")),
        )

    def _read_write(
        self, gvk: GroupVersionKind, verbs: Iterable[str], subresource: str = ""
    ) -> list[PathOperation]:
        builders = {"get": self._read, "patch": self._patch, "update": self._replace}
        return [build(gvk, subresource) for verb, build in builders.items() if verb in verbs]

    def _read(self, gvk: GroupVersionKind, subresource: str) -> PathOperation:
        is_log = subresource == "log"
        return PathOperation(
            method="get",
            action="get",
            operation_id=self._id("read", self._word(subresource)),
            description=f"read {self._specified(subresource)}",
            gvk=gvk,
            responses=responses(("200",), TEXT, ("text/plain",))
            if is_log
            else responses(("200",), reference(self._names(gvk))),
            query=parameters.LOG if is_log else (),
        )

    def _replace(self, gvk: GroupVersionKind, subresource: str) -> PathOperation:
        body = reference(self._names(gvk))
        return PathOperation(
            method="put",
            action="put",
            operation_id=self._id("replace", self._word(subresource)),
            description=f"replace {self._specified(subresource)}",
            gvk=gvk,
            responses=responses(("200", "201"), body),
            query=parameters.WRITE,
            request_body=required_body(body),
        )

    def _patch(self, gvk: GroupVersionKind, subresource: str) -> PathOperation:
        accepted = _PATCHES if self._served.custom else (*_PATCHES, _STRATEGIC)
        return PathOperation(
            method="patch",
            action="patch",
            operation_id=self._id("patch", self._word(subresource)),
            description=f"partially update {self._specified(subresource)}",
            gvk=gvk,
            responses=responses(("200", "201"), reference(self._names(gvk))),
            query=parameters.PATCH,
            request_body=required_body(reference(f"{META}Patch"), accepted),
        )

    # -- subresources -----------------------------------------------------------------------

    def _subresource_paths(self, subresource: Subresource) -> JsonObject:
        path = f"{self._base}{self._item}/{subresource.name}"
        if subresource.gvk.kind in parameters.CONNECT:
            return self._connect_paths(path, subresource)
        operations = self._read_write(subresource.gvk, subresource.verbs, subresource.name)
        if "create" in subresource.verbs:
            operations.append(self._create(subresource.gvk, subresource.name))
        return {path: self._path(operations, named=True)}

    def _connect_paths(self, path: str, subresource: Subresource) -> JsonObject:
        paths = {path: self._path(self._connect(subresource), named=True)}
        if subresource.name == "proxy":
            deeper = self._path(self._connect(subresource, "WithPath"), named=True)
            deeper["parameters"].insert(-1, _PROXIED_PATH)  # before the query parameter "path"
            paths[f"{path}/{{path}}"] = deeper
        return paths

    def _connect(self, subresource: Subresource, suffix: str = "") -> list[PathOperation]:
        methods = [m for verb in subresource.verbs for m in _CONNECT_METHODS[verb]]
        return [
            PathOperation(
                method=method,
                action="connect",
                operation_id=self._id(
                    "connect", f"{_title(method)}{self._word(subresource.name)}{suffix}"
                ),
                description=f"connect {method.upper()} requests to {subresource.name} "
                f"of {self._served.kind}",
                gvk=subresource.gvk,
                responses=responses(("200",), TEXT, ANY),
                query=parameters.CONNECT[subresource.gvk.kind],
            )
            for method in methods
        ]

    # -- deprecated watches -----------------------------------------------------------------

    def _watch_paths(self) -> JsonObject:
        kind, watch = self._served.kind, f"{self._base}/watch"
        paths = {
            watch + self._collection: self._path([self._watch("watchlist", f"{self._word()}List")]),
            watch + self._item: self._path([self._watch("watch", self._word())], named=True),
        }
        if self._served.namespaced:
            everywhere = self._watch("watchlist", f"{kind}ListForAllNamespaces")
            paths[f"{watch}/{self._served.plural}"] = self._path([everywhere], cluster=True)
        return paths

    def _watch(self, action: str, word: str) -> PathOperation:
        what = "an object of kind" if action == "watch" else "a list of"
        return PathOperation(
            method="get",
            action=action,
            operation_id=self._id("watch", word),
            description=f"watch changes to {what} {self._served.kind}. {_DEPRECATED_WATCH}.",
            gvk=self._served.gvk,
            responses=responses(("200",), reference(f"{META}WatchEvent"), STREAM),
            query=parameters.LIST,
        )

    # -- words and paths --------------------------------------------------------------------

    def _id(self, verb: str, word: str) -> str:
        gvk = self._served.gvk
        return f"{verb}{group_word(gvk.group)}{_title(gvk.version)}{word}"

    def _word(self, subresource: str = "") -> str:
        return f"{self._scope}{self._served.kind}{_title(subresource)}"

    def _specified(self, subresource: str) -> str:
        part = f"{subresource} of " if subresource else ""
        return f"{part}the specified {self._served.kind}"

    def _path(
        self, operations: list[PathOperation], *, named: bool = False, cluster: bool = False
    ) -> JsonObject:
        if not operations:
            return {}
        in_path = [_NAMESPACE] if self._served.namespaced and not cluster else []
        if named:
            in_path.append(parameters.in_path("name", f"name of the {operations[0].gvk.kind}"))
        return path_item(operations, in_path, tag=_tag(self._served.gvk))


def _tag(gvk: GroupVersionKind) -> str:
    return f"{group_tag(gvk.group)}_{gvk.version}"


def _title(word: str) -> str:
    return word[:1].upper() + word[1:]
