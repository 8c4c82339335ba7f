"""Request bodies as objects: what decoding into Go types does to them, done to JSON.

Nulls and unknown fields go, values of the wrong type are refused, defaults come, and a built-in
kind is converted to the version in which it is stored. Custom kinds go by their own schema and
stay in the version of the request, because that is the one they are validated in.
"""

from typing import Any

import orjson

from kubescene.api import conversion
from kubescene.api.defaulting import defaults
from kubescene.api.schemas import definition_types, strict_decoding
from kubescene.api.schemas.structural import Examined
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.bounded import BoundedDict
from kubescene.errors import BadRequestError
from kubescene.registry.custom_resources import DEFINITIONS, CustomResources, check_size
from kubescene.types import JsonObject, JsonValue

FREE_FORM_KINDS = frozenset({"ControllerRevision", "CustomResourceDefinition"})
"""Built-in kinds with parts that no type bounds."""

BY_ANNOTATIONS = frozenset({"HorizontalPodAutoscaler"})
"""Built-in kinds whose annotations say something about their spec."""

WITHOUT_DEFAULTS = frozenset({"metadata", "status"})
"""Parts of a stored object that a change brings no defaults to."""
DEFAULTED_IN_STATUS = {
    "Node": frozenset({"capacity", "allocatable"}),
    "PersistentVolumeClaim": frozenset({"capacity", "allocatedResources"}),
    "Pod": frozenset({"podIP", "podIPs"}),
    "ResourceQuota": frozenset({"hard", "used"}),
}
"""But for these members of a status: amounts in their short form, addresses that agree."""

_STATUS = {"status"}
_MISSING: Any = object()

TOO_DEEP = "the object is nested too deeply"


def accepted(
    obj: JsonObject,
    served: ResourceType,
    custom: CustomResources,
    *,
    known: JsonObject | None = None,
    examined: Examined | None = None,
) -> JsonObject:
    """The object that a body stands for; it certainly has metadata.

    ``known`` is an accepted object that ``obj`` was made from: parts they share are not looked at
    again. Nor is a body that was ``examined`` before.
    """
    if examined is not None and custom.is_current_examination(examined, served.gvk):
        return examined.accepted
    if served.group_resource == DEFINITIONS:
        check_size(obj, served)
    try:
        if served.custom or served.kind in FREE_FORM_KINDS:
            check_encodable(obj)
        if served.custom:
            return with_metadata_object(custom.accepted(obj, served.gvk))
        if known is not None and not served.stored_as:
            return typed_change(obj, known, served)
        return typed_body(obj, served)
    except RecursionError as error:
        raise BadRequestError(TOO_DEEP) from error


def examination(obj: JsonObject, served: ResourceType, custom: CustomResources) -> Examined | None:
    """What can be said of a body of a custom kind before it is written. On any thread.

    None for other kinds. `BadRequestError` as from `accepted`.
    """
    if not served.custom:
        return None
    try:
        check_encodable(obj)
        return custom.examined(obj, served.gvk)
    except RecursionError as error:
        raise BadRequestError(TOO_DEEP) from error


def typed_body(obj: JsonObject, served: ResourceType) -> JsonObject:
    """A body of a built-in kind, in the version that is stored.

    Bodies that differ in metadata only, such as the pods of one template, are decoded once.
    """
    if "status" in obj or served.stored_as or served.kind in BY_ANNOTATIONS:
        return typed(obj, served)
    # Where metadata stand is part of what is remembered: field owners are told in that order.
    body = {name: None if name == "metadata" else part for name, part in obj.items()}
    encoded = encoding_of(body)
    remembered = _BODIES.get((served.gvk, encoded))
    if remembered is None:
        complete = typed(obj, served)
        remembered = {**complete, "metadata": {}}
        _BODIES.put((served.gvk, encoded), remembered)
        return complete
    metadata = checked({"kind": served.kind, "metadata": obj.get("metadata")}, served)
    complete = {**remembered, "metadata": metadata.get("metadata") or {}}
    return defaults.default_metadata(complete, served.gvk)


def typed_change(obj: JsonObject, known: JsonObject, served: ResourceType) -> JsonObject:
    """A changed object: only parts that are not those of ``known`` are checked.

    Without a part that it had, it is a new object: Go would fill in an empty one.
    """
    if known.keys() - obj.keys():
        return typed(obj, served)
    changed = {name: part for name, part in obj.items() if part is not known.get(name)}
    has_defaults = has_defaulted_status(obj, known, served)
    if changed.keys() == _STATUS and is_checked_status(changed["status"], known, served):
        new = with_metadata_object(obj)
    else:
        new = with_metadata_object({**obj, **checked_once(changed, served)})
    if changed.keys() <= WITHOUT_DEFAULTS and not has_defaults:
        return new
    return defaults.apply_defaults(new, served.gvk)


def has_defaulted_status(obj: JsonObject, known: JsonObject, served: ResourceType) -> bool:
    """Whether a member of the status has changed to which defaults come."""
    members = DEFAULTED_IN_STATUS.get(served.kind)
    if members is None or served.gvk.group:
        return False
    new, old = obj.get("status"), known.get("status") or {}
    return type(new) is dict and any(new.get(it) is not old.get(it) for it in members)


def is_checked_status(status: JsonValue, known: JsonObject, served: ResourceType) -> bool:
    """Whether a status stays as it is: only members that are not those of ``known`` are checked."""
    before = known.get("status")
    if type(status) is not dict or type(before) is not dict:
        return False
    members = {k: v for k, v in status.items() if v is not before.get(k, _MISSING)}
    if strict_decoding.are_sound_scalars(members, served.gvk, "status"):
        return True
    parts = {"status": members}
    return checked_once(parts, served) == parts


def typed(obj: JsonObject, served: ResourceType) -> JsonObject:
    new = with_metadata_object(checked(obj, served))
    new = defaults.apply_defaults(new, served.gvk)
    if not served.stored_as:
        return new
    return defaults.apply_defaults(conversion.to_storage(new, served), served.storage_gvk)


def checked_once(parts: JsonObject, served: ResourceType) -> JsonObject:
    """`checked`, remembering: the same status is reported for many objects."""
    key = (served.gvk, encoding_of(parts))
    remembered = _PARTS.get(key)
    if remembered is None:
        remembered = checked(parts, served)
        _PARTS.put(key, remembered)
    return remembered


def checked(parts: JsonObject, served: ResourceType) -> JsonObject:
    """Some or all parts of an object: without nulls, of the right types, nothing unknown."""
    encoded = encoding_of(parts)
    new = parts if encoded and b"null" not in encoded else defaults.drop_nulls(parts)
    if served.group_resource != DEFINITIONS:
        return strict_decoding.checked(new, served.gvk)
    strict_decoding.check_types(new, served.gvk)
    definition_types.check_schemas(new)
    return strict_decoding.prune_unknown(new, served.gvk)


def encoding_of(parts: JsonObject) -> bytes:
    """What distinguishes parts; empty if they cannot be written down, which nobody remembers."""
    try:
        return orjson.dumps(parts)
    except orjson.JSONEncodeError:
        return b""


class Remembered(BoundedDict[tuple[GroupVersionKind, bytes], JsonObject]):
    """The newest decoded parts by their encoding: shared, and read-only like everything."""

    LONGEST = 16 * 1024

    def __init__(self, kept: int = 512) -> None:
        super().__init__(kept)

    def put(self, key: tuple[GroupVersionKind, bytes], parts: JsonObject) -> None:
        if 0 < len(key[1]) <= self.LONGEST:
            self[key] = parts


_BODIES = Remembered()
_PARTS = Remembered()


def unknown_complaints(obj: JsonObject, served: ResourceType, custom: CustomResources) -> list[str]:
    """One text for each field that the kind does not have, in kube-apiserver's words."""
    find = custom.unknown_fields if served.custom else strict_decoding.unknown_fields
    return [f'unknown field "{path}"' for path in find(obj, served.gvk)]


def check_encodable(obj: JsonObject) -> None:
    """400 for an object that no type bounds and that is too deep to be written down."""
    try:
        orjson.dumps(obj)
    except orjson.JSONEncodeError as error:
        raise BadRequestError(TOO_DEEP) from error


def with_metadata_object(obj: JsonObject) -> JsonObject:
    """An object that can be relied on to have metadata."""
    return obj if type(obj.get("metadata")) is dict else {**obj, "metadata": {}}
