"""Which objects an operation is about: one by its name, numbered ones, or those of a selector."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin
from kubescene.api.scheme import Scheme
from kubescene.client import ObjectRef, Reader
from kubescene.scenario.operations.creation import IndexedTemplate
from kubescene.scenario.reading.selections import read_share, selector_of
from kubescene.scenario.spec import Operation
from kubescene.types import JsonObject

CHOICE = ("selector", "namespace", "limit", "share", "count")
"""What says which objects are meant, and is not told of each of them."""
POD_TYPE = {"apiVersion": POD.api_version, "kind": POD.kind}


class Target(NamedTuple):
    """One object, and the operation as it would be written for it alone."""

    ref: ObjectRef
    body: JsonObject
    origin: OperationOrigin


class Targets:
    """The objects of one operation, chosen when it begins, in their order."""

    def __init__(self, operation: Operation, reader: Reader, scheme: Scheme) -> None:
        self.operation = operation
        self._scheme = scheme
        body = {**operation.body, "typeMeta": operation.body.get("typeMeta") or POD_TYPE}
        self._own = {name: value for name, value in body.items() if name not in CHOICE}
        self._is_one = operation.instances == 1 and "selector" not in body
        self._chosen: Sequence[JsonObject] = ()
        self._numbered = IndexedTemplate(self._own) if "count" in body else None
        self.size = operation.instances
        if "selector" in body:
            gvk = scheme.of_kind(body["typeMeta"]["apiVersion"], body["typeMeta"]["kind"]).gvk
            found = reader.list(
                gvk, namespace=body.get("namespace") or "", labels=selector_of(body["selector"])
            )
            self._chosen = found[: how_many(len(found), body.get("limit"), body.get("share"))]
            self.size = len(self._chosen)

    def __getitem__(self, index: int) -> Target:
        body = self._own
        if self._chosen:
            metadata = self._chosen[index]["metadata"]
            place = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
            body = {**body, "objectMeta": place}
        elif self._numbered is not None:
            body = self._numbered.instance(index)
        id = self.operation.id
        origin = OperationOrigin.of(id if self._is_one else f"{id}[{index}]", body)
        return Target(self._ref(body), body, origin)

    def _ref(self, body: JsonObject) -> ObjectRef:
        types, metadata = body["typeMeta"], body["objectMeta"]
        resource_type = self._scheme.of_kind(types["apiVersion"], types["kind"])
        namespace = (metadata.get("namespace") or "default") if resource_type.namespaced else ""
        return ObjectRef(resource_type.gvk, metadata["name"], namespace)


def how_many(found: int, limit: int | None, share: str | None) -> int:
    """Of so many: a share rounded up, and never more than the limit."""
    if share is not None:
        found = ceil(found * read_share(share))
    return found if limit is None else min(found, limit)
