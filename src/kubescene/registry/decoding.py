"""Request bodies as objects: what decoding into Go types does to them, done to JSON.

Nulls and unknown fields go, values of the wrong type are refused, defaults come, and a built-in
kind is converted to the version in which it is stored. Custom kinds go by their own schema and
stay in the version of the request, because that is the one they are validated in.
"""

import orjson

from kubescene.api import conversion, defaults, fields
from kubescene.api.scheme import ResourceType
from kubescene.errors import BadRequestError
from kubescene.registry.custom_resources import DEFINITIONS, CustomResources, check_size
from kubescene.types import JsonObject

FREE_FORM_KINDS = frozenset({"ControllerRevision", "CustomResourceDefinition"})
"""Built-in kinds with parts that no type bounds."""

TOO_DEEP = "the object is nested too deeply"


def accepted(
    obj: JsonObject, served: ResourceType, subresource: str, custom: CustomResources
) -> JsonObject:
    """The object that a body stands for; it certainly has metadata."""
    if served.group_resource == DEFINITIONS:
        check_size(obj, served)
    try:
        if served.custom or served.kind in FREE_FORM_KINDS:
            check_encodable(obj)
        if served.custom:
            return with_metadata_object(custom.accepted(obj, served.gvk))
        return typed(obj, served, subresource)
    except RecursionError as error:
        raise BadRequestError(TOO_DEEP) from error


def typed(obj: JsonObject, served: ResourceType, subresource: str) -> JsonObject:
    """A body of a built-in kind, in the version that is stored."""
    new = defaults.drop_nulls(obj)
    fields.check_types(new, served.gvk)
    new = with_metadata_object(fields.prune_unknown(new, served.gvk))
    if subresource == "status" and served.kind == "Pod":
        return new  # the status of a pod has no defaults, and is written more than all else
    new = defaults.apply_defaults(new, served.gvk)
    if not served.stored_as:
        return new
    return defaults.apply_defaults(conversion.to_storage(new, served), served.storage_gvk)


def check_encodable(obj: JsonObject) -> None:
    """400 for an object that no type bounds and that is too deep to be written down."""
    try:
        orjson.dumps(obj)
    except orjson.JSONEncodeError as error:
        raise BadRequestError(TOO_DEEP) from error


def with_metadata_object(obj: JsonObject) -> JsonObject:
    """An object that can be relied on to have metadata."""
    return obj if type(obj.get("metadata")) is dict else {**obj, "metadata": {}}
