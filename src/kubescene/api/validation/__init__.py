"""Validation: what kube-apiserver would say about an object, in its own words.

Runs after defaulting and type checks, on read-only objects. Each kind has a module with its
rules; `kinds` lists them; `metadata` holds what all share. Everything here is a pure function of
the objects handed in: whether other objects exist is for admission to find out.

The rules are those of kube-apiserver v1.36 with its default feature gates.
"""

from kubescene.api.scheme import ResourceType
from kubescene.api.validation.core.namespaces import validate_namespace_finalize
from kubescene.api.validation.field_errors import (
    ErrorList,
    ErrorType,
    FieldError,
    raise_if_invalid,
)
from kubescene.api.validation.kinds import OwnStatusRule, rules_of
from kubescene.api.validation.metadata import validate_metadata_update
from kubescene.api.validation.pods.pod_updates import validate_binding as _validate_binding
from kubescene.api.validation.pods.pod_updates import (
    validate_ephemeral_containers,
    validate_pod_resize,
)
from kubescene.types import JsonObject

__all__ = [
    "ErrorType",
    "FieldError",
    "OwnStatusRule",
    "is_sound_status",
    "own_status_rule",
    "raise_if_invalid",
    "validate_binding",
    "validate_create",
    "validate_finalize",
    "validate_metadata_change",
    "validate_pod_part",
    "validate_status_update",
    "validate_update",
]


def validate_create(
    obj: JsonObject, resource_type: ResourceType, *, namespace: str | None
) -> list[FieldError]:
    """What is wrong with a new object; ``namespace`` is the one of the request, if it has one."""
    errors = ErrorList()
    rules_of(resource_type).create(_in_namespace(obj, resource_type, namespace), errors)
    return errors


def _in_namespace(
    obj: JsonObject, resource_type: ResourceType, namespace: str | None
) -> JsonObject:
    metadata = obj.get("metadata") or {}
    if not namespace or not resource_type.namespaced or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def validate_update(
    new: JsonObject, old: JsonObject, resource_type: ResourceType
) -> list[FieldError]:
    """What is wrong with replacing ``old`` by ``new``."""
    errors = ErrorList()
    rules_of(resource_type).update(new, old, errors)
    return errors


def validate_status_update(
    new: JsonObject, old: JsonObject, resource_type: ResourceType
) -> list[FieldError]:
    """What is wrong with an update through the ``status`` subresource."""
    errors = ErrorList()
    rules_of(resource_type).status(new, old, errors)
    return errors


def own_status_rule(resource_type: ResourceType) -> OwnStatusRule | None:
    """What a kind asks of a status by itself; None if it looks at more than status and metadata."""
    return rules_of(resource_type).own_status


def is_sound_status(rule: OwnStatusRule, kind: str, status: JsonObject, before: JsonObject) -> bool:
    """Whether nothing is wrong with a status by itself."""
    errors = ErrorList()
    rule(kind, status, before, errors)
    return not errors


def validate_metadata_change(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What is wrong with the metadata of an object whose other parts are known to be fine."""
    errors = ErrorList()
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    return errors


def validate_binding(binding: JsonObject) -> list[FieldError]:
    """What is wrong with a pod's Binding."""
    errors = ErrorList()
    _validate_binding(binding, errors)
    return errors


def validate_finalize(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What is wrong with an update through a namespace's ``finalize`` subresource."""
    errors = ErrorList()
    validate_namespace_finalize(new, old, errors)
    return errors


def validate_pod_part(new: JsonObject, old: JsonObject, subresource: str) -> list[FieldError]:
    """What is wrong with an update of a pod through ``resize`` or ``ephemeralcontainers``."""
    errors = ErrorList()
    check = validate_pod_resize if subresource == "resize" else validate_ephemeral_containers
    check(new, old, errors)
    return errors
