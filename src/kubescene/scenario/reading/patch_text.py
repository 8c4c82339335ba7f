"""The text of a ``patchOperation``."""

from typing import Any

from kubescene.api.patching.patches import PatchType
from kubescene.api.text.reading import Document, ReadingError, read_json
from kubescene.errors import BadRequestError


def decode_patch(text: str) -> Any:
    """A patch is JSON, or YAML as people like to write it; raises `BadRequestError`."""
    try:
        document = read_json(text)
    except ReadingError:
        document = _yaml_patch(text)
    if document.duplicates:
        raise BadRequestError(f"the patch gives the key {document.duplicates[0].key!r} twice")
    return document.value


def check_form(patch: Any, patch_type: PatchType | None) -> None:
    """Raise `BadRequestError` for a patch that cannot be one of this type (None: by the kind)."""
    if patch_type is PatchType.JSON:
        if not isinstance(patch, list):
            raise BadRequestError("a JSON patch must be a list of operations")
    elif not isinstance(patch, dict):
        raise BadRequestError("the patch must be an object; a list is a patch of patchType json")


def _yaml_patch(text: str) -> Document:
    # YAML is only imported for patches that are not JSON.
    from kubescene.api.text.yaml_text import read_yaml

    try:
        documents = read_yaml(text)
    except ReadingError as error:
        raise BadRequestError(f"the patch is neither JSON nor YAML: {error}") from error
    if len(documents) != 1:
        raise BadRequestError("the patch must be one JSON or YAML document")
    return documents[0]
