"""Field validation of request bodies: ``fieldValidation=Strict|Warn|Ignore``.

The types of values always count. Unknown and duplicate fields are refused, told in ``Warning`` headers
(the default) or ignored; in any case they do not reach the store.
"""

from kubescene.api import fields
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver.requests import Request
from kubescene.errors import BadRequestError, Cause, InvalidError
from kubescene.types import JsonObject

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
DIRECTIVES = (IGNORE, WARN, STRICT)


def directive(request: Request) -> str:
    """What to do about unknown and duplicate fields."""
    value = request.query.get("fieldValidation", "") or WARN
    if value not in DIRECTIVES:
        field = "fieldValidation"
        message = f'Unsupported value: "{value}": supported values: "Ignore", "Strict", "Warn"'
        raise InvalidError(
            f'CreateOptions.meta.k8s.io "" is invalid: {field}: {message}',
            group="meta.k8s.io",
            kind="CreateOptions",
            causes=(Cause("FieldValueNotSupported", message, field),),
        )
    return value


def checked(
    obj: JsonObject,
    resource_type: ResourceType,
    request: Request,
    duplicates: tuple[str, ...] = (),
) -> JsonObject:
    """The body without what its kind does not have; 400 if a type is wrong or the request is strict."""
    how, gvk = directive(request), resource_type.gvk
    if not resource_type.custom:
        fields.check_types(obj, gvk)
    complaints = [f'duplicate field "{path}"' for path in duplicates] + unknown(obj, resource_type)
    if complaints and how == STRICT:
        raise strict_error(gvk, complaints)
    if how == WARN:
        request.warnings += complaints
    return obj if resource_type.custom else fields.prune_unknown(obj, gvk)


def checked_patch(
    patched: JsonObject, resource_type: ResourceType, request: Request, patch: object
) -> JsonObject:
    """The same for the result of a patch, where upstream answers 422."""
    how, gvk = directive(request), resource_type.gvk
    if resource_type.custom:
        return patched
    fields.check_types(patched, gvk)
    complaints = unknown(patched, resource_type)
    if complaints and how == STRICT:
        joined = ", ".join(complaints)
        message = f'Invalid value: {str(patch)!r}: strict decoding error: {joined}'
        raise InvalidError(
            f' "" is invalid: patch: {message}',
            causes=(Cause("FieldValueInvalid", message, "patch"),),
        )
    if how == WARN:
        request.warnings += complaints
    return fields.prune_unknown(patched, gvk)


def unknown(obj: JsonObject, resource_type: ResourceType) -> list[str]:
    if resource_type.custom:
        return []
    return [f'unknown field "{path}"' for path in fields.unknown_fields(obj, resource_type.gvk)]


def strict_error(gvk: GroupVersionKind, complaints: list[str]) -> BadRequestError:
    return BadRequestError(
        f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: '
        f"strict decoding error: {', '.join(complaints)}"
    )


def check_kind(obj: JsonObject, expected: GroupVersionKind) -> JsonObject:
    """The body with apiVersion and kind; 400 if it is of another kind than the URL says."""
    kind, api_version = obj.get("kind", ""), obj.get("apiVersion", "")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise BadRequestError("couldn't get version/kind; apiVersion and kind must be strings")
    if api_version and api_version != expected.api_version:
        raise BadRequestError(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({expected.api_version})"
        )
    if kind and kind != expected.kind:
        raise BadRequestError(
            f'{kind} in version "{expected.version}" cannot be handled as a {expected.kind}: '
            f"converting ({expected.version}.{kind}) to "
            f"({expected.group.partition('.')[0] or 'core'}.{expected.kind}): unknown conversion"
        )
    if kind and api_version:
        return obj
    return {**obj, "apiVersion": expected.api_version, "kind": expected.kind}
