"""Field validation of request bodies: ``fieldValidation=Strict|Warn|Ignore``.

The types of values always count. Unknown and duplicate fields are refused, told in ``Warning``
headers (the default) or ignored; in any case they do not reach the store.
"""

import json

from kubescene.api.schemas import strict_decoding
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver.requests import Request
from kubescene.errors import BadRequestError, InvalidError, StatusCause
from kubescene.registry.custom_resources import CustomResources
from kubescene.registry.decoding import unknown_complaints
from kubescene.types import JsonObject, JsonValue

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
            causes=(StatusCause("FieldValueNotSupported", message, field),),
        )
    return value


class FieldValidation:
    """Looks for fields that a kind does not have. What becomes of them then is the registry's."""

    def __init__(self, custom: CustomResources) -> None:
        self._custom = custom

    def check(
        self,
        obj: JsonObject,
        resource_type: ResourceType,
        request: Request,
        duplicates: tuple[str, ...] = (),
    ) -> None:
        """400 for unknown or duplicate fields if the request is strict, else warnings."""
        how, gvk = directive(request), resource_type.gvk
        if how == IGNORE:
            return
        complaints = [f'duplicate field "{path}"' for path in duplicates]
        complaints += unknown_complaints(obj, resource_type, self._custom)
        if complaints and how == STRICT:
            raise strict_decoding.strict_error(gvk, complaints)
        request.warnings += complaints

    def decoded(self, obj: JsonObject, resource_type: ResourceType, request: Request) -> JsonObject:
        """A body that is no object of the registry (a Scale, a Binding), checked and pruned."""
        strict_decoding.check_types(obj, resource_type.gvk)
        self.check(obj, resource_type, request)
        return strict_decoding.prune_unknown(obj, resource_type.gvk)

    def check_patched(
        self, patched: JsonObject, resource_type: ResourceType, request: Request, patch: JsonValue
    ) -> JsonObject:
        """The same for the result of a patch, which upstream refuses with 422."""
        how = directive(request)
        complaints = []
        if how != IGNORE:
            complaints = unknown_complaints(patched, resource_type, self._custom)
        if complaints and how == STRICT:
            written = json.dumps(json.dumps(patch))
            message = f"Invalid value: {written}: strict decoding error: {', '.join(complaints)}"
            raise InvalidError(
                f' "" is invalid: patch: {message}',
                causes=(StatusCause("FieldValueInvalid", message, "patch"),),
            )
        request.warnings += complaints
        return patched


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
