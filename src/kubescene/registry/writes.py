"""A write on its way to the store: who asks, for what, and how.

What belongs together travels together: one `WriteRequest` goes through admission, validation, the
gate and the instruments, and every stage takes from it what it needs.
"""

from enum import Enum
from typing import Any, Final, TypeAlias

import msgspec

from kubescene.actors import Actor, Role
from kubescene.api.field_ownership.field_managers import manager_of
from kubescene.api.options import NO_OPTIONS, DeleteOptions, OperationOrigin, WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.drafts import Parts
from kubescene.api.scheme import ResourceType
from kubescene.errors import BadRequestError
from kubescene.instruments import ObjectWrite
from kubescene.types import JsonObject

DEFAULT_NAMESPACE = "default"


class Removal(Enum):
    """A write that takes the object away."""

    REMOVAL = "removal"


REMOVAL: Final = Removal.REMOVAL
Result: TypeAlias = JsonObject | Parts | Removal
"""What a write leads to: the object that is to be stored, perhaps encoded already, or none."""


class WriteRequest(msgspec.Struct, frozen=True):
    """One write. ``verb`` is create, update, patch, bind or delete; ``body`` is what was sent.

    ``namespace`` is that of the request of a create. ``wish`` is how a deletion is meant
    (`DeleteOptions`). ``tracked``: whether it is noted who owns the fields that are written.
    """

    actor: Actor
    verb: str
    resource_type: ResourceType
    subresource: str = ""
    options: WriteOptions = NO_OPTIONS
    body: Any = None
    patch_type: str = ""
    namespace: str = ""
    wish: Any = None
    tracked: bool = False
    served: ResourceType | None = None
    """The version that the client names, if it is not ``resource_type``."""

    @property
    def manager(self) -> str:
        """The field manager: as given, else from the writer's name."""
        return self.options.field_manager or manager_of(self.actor.manager)

    @property
    def owned_through(self) -> str:
        """The subresource that owners are noted with."""
        return self.subresource or self.options.through

    def done(self, record: Record, previous: Record | None, role: Role) -> ObjectWrite:
        """The write as instruments see it once it was accepted."""
        return ObjectWrite(
            self.actor,
            role,
            self.verb,
            self.subresource,
            self.resource_type.gvk,
            record,
            previous,
            self.body,
            self.patch_type,
            self.options.origin,
        )


def options_of_deletion(wish: DeleteOptions, origin: OperationOrigin | None) -> WriteOptions:
    """What a deletion says that writes may say as well."""
    if origin is None and wish.warn is None and not (wish.dry_run or wish.is_admitted):
        return NO_OPTIONS
    return WriteOptions(
        dry_run=wish.dry_run,
        origin=origin,
        warn=wish.warn,
        is_admitted=wish.is_admitted,
        consultation=wish.consultation,
    )


def resolve_namespace(resource_type: ResourceType, obj: JsonObject, namespace: str) -> str:
    """Where the object lives: the request's namespace, its own, or ``default``."""
    own = (obj.get("metadata") or {}).get("namespace", "")
    if not resource_type.namespaced:
        return ""
    if namespace and own and namespace != own:
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return namespace or own or DEFAULT_NAMESPACE
