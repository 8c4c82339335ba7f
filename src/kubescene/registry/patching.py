"""Which patch algebra applies to which kind."""

from typing import Any

from kubescene.api.patching import patches
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import ResourceType
from kubescene.errors import BadRequestError, UnsupportedMediaTypeError
from kubescene.types import JsonObject


def apply_patch(
    obj: JsonObject, patch: Any, patch_type: PatchType, resource_type: ResourceType
) -> JsonObject:
    """The patched object; identity may not be changed by a patch."""
    patched = _patched(obj, patch, patch_type, resource_type)
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise BadRequestError("the patch turns the object into something that is not an object")
    for field in ("apiVersion", "kind"):
        if patched.get(field) != obj.get(field):
            raise BadRequestError(
                f"the patch changes {field} from {obj.get(field)!r} to {patched.get(field)!r}"
            )
    return patched


def _patched(
    obj: JsonObject, patch: Any, patch_type: PatchType, resource_type: ResourceType
) -> Any:
    if patch_type is PatchType.JSON:
        return patches.json_patch(obj, patch)
    if patch_type is PatchType.STRATEGIC:
        if resource_type.custom:
            raise UnsupportedMediaTypeError(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/apply-patch+yaml"
            )
        # The merge table is loaded only when the first strategic patch comes.
        from kubescene.api.schemas.builtin_types import api_type

        return patches.strategic_merge(obj, patch, api_type(resource_type.gvk))
    if patch_type is PatchType.MERGE:
        if not isinstance(patch, dict):
            raise BadRequestError("a merge patch must be a JSON object")
        return patches.merge_patch(obj, patch)
    raise UnsupportedMediaTypeError(
        f"{patch_type.value} is not supported for this subresource: use a JSON, merge or strategic "
        "merge patch"
    )
