"""The ordered admission chain: plugins that complete or refuse a request before validation.

Each plugin sees who asks and returns the object, changed or not; objects are read-only, so a
change is a copy. The order is kube-apiserver's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kubescene.actors import Actor
from kubescene.api.scheme import ResourceType
from kubescene.clock import Clock
from kubescene.store import Store
from kubescene.types import JsonObject


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One request on its way to the store. ``verb`` is create, update, delete or connect."""

    verb: str
    resource_type: ResourceType
    subresource: str
    namespace: str
    name: str
    actor: Actor
    obj: JsonObject
    old: JsonObject | None
    store: Store
    clock: Clock

    def is_create(self, kind: str) -> bool:
        """Whether this creates an object of a built-in kind (not a subresource)."""
        return (
            self.verb == "create"
            and not self.subresource
            and self.resource_type.kind == kind
            and not self.resource_type.custom
        )


class AdmissionPlugin(Protocol):
    @property
    def name(self) -> str: ...

    def admit(self, request: AdmissionRequest) -> JsonObject:
        """The object as it should be, or an `ApiError` that refuses the request."""
        ...


class AdmissionChain:
    """Plugins in order; each sees what the one before returned."""

    def __init__(self, plugins: Sequence[AdmissionPlugin]) -> None:
        self.plugins = tuple(plugins)

    def admit(self, request: AdmissionRequest) -> JsonObject:
        obj = request.obj
        for plugin in self.plugins:
            admitted = plugin.admit(request)
            if admitted is not obj:
                obj = admitted
                request = replace(request, obj=obj)
        return obj
