"""Whether a request is about the object that is there: by name, by uid, by revision."""

from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record
from kubescene.api.scheme import ResourceType
from kubescene.errors import ConflictError, NotFoundError
from kubescene.types import JsonObject

CHANGED_MEANWHILE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def not_found(resource_type: ResourceType, name: str) -> NotFoundError:
    resource = resource_type.named_resource
    return NotFoundError(
        f'{resource} "{name}" not found', name=name, group=resource.group, kind=resource.resource
    )


def conflict(resource_type: ResourceType, name: str, why: str) -> ConflictError:
    resource = resource_type.named_resource
    return ConflictError(
        f'Operation cannot be fulfilled on {resource} "{name}": {why}',
        name=name,
        group=resource.group,
        kind=resource.resource,
    )


def overtaken(resource_type: ResourceType, name: str) -> ConflictError:
    """The answer to whoever looked at an object that is another by now."""
    return conflict(resource_type, name, CHANGED_MEANWHILE)


def check_precondition(resource_type: ResourceType, current: Record, metadata: JsonObject) -> None:
    """A write that names a revision or uid only applies to exactly that object."""
    if (version := metadata.get("resourceVersion")) and version != str(current.revision):
        raise overtaken(resource_type, current.name)
    if (uid := metadata.get("uid")) and uid != current.uid:
        raise conflict(
            resource_type,
            current.name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}",
        )


def check_delete_preconditions(
    resource_type: ResourceType, current: Record, options: DeleteOptions
) -> None:
    if options.uid and options.uid != current.uid:
        raise conflict(
            resource_type,
            current.name,
            f"Precondition failed: UID in precondition: {options.uid}, "
            f"UID in object meta: {current.uid}",
        )
    if options.resource_version and options.resource_version != str(current.revision):
        raise conflict(
            resource_type,
            current.name,
            f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {current.revision}",
        )
