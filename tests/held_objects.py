"""A Reader over objects that a test has written down."""

from collections.abc import Iterable

from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector
from kubescene.client import ObjectRef
from kubescene.client.interfaces import Objects
from kubescene.errors import NotFoundError
from kubescene.types import JsonObject


class HeldObjects:
    """Just these objects, in the order given."""

    def __init__(self, objects: Iterable[JsonObject]) -> None:
        self._objects = list(objects)

    def get(self, ref: ObjectRef) -> JsonObject:
        found = self.find(ref)
        if found is None:
            raise NotFoundError(f"{ref} not found")
        return found

    def find(self, ref: ObjectRef) -> JsonObject | None:
        return next((each for each in self._objects if ObjectRef.to(each) == ref), None)

    def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> Objects:
        del labels
        found = [each for each in self._objects if ObjectRef.to(each).gvk == gvk]
        return [each for each in found if namespace in ("", each["metadata"].get("namespace"))]

    def owned(self, gvk: GroupVersionKind, owner_uid: str) -> Objects:
        return [each for each in self.list(gvk) if owner_uid in owner_uids(each)]

    def on_node(self, node: str, *, labels: LabelSelector | None = None) -> Objects:
        del labels
        pods = [each for each in self._objects if each["kind"] == "Pod"]
        return [each for each in pods if each["spec"].get("nodeName") == node]

    def get_scale(self, ref: ObjectRef) -> JsonObject:
        raise NotFoundError(f"{ref} has no scale")


def owner_uids(obj: JsonObject) -> list[str]:
    return [each["uid"] for each in obj["metadata"].get("ownerReferences") or ()]
