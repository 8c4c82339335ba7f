"""What a client wants to read: whole objects, tables for people, or metadata only.

``Accept`` lists media ranges with parameters; the first (by quality, then order) that can be served
wins. Replies are JSON, or YAML where asked for; protobuf is read but never written, which every
client accepts because it names JSON or ``*/*`` as well.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kubescene.errors import NotAcceptableError

JSON = "application/json"
YAML = "application/yaml"
META_GROUP = "meta.k8s.io"


class Shape(Enum):
    OBJECT = "Object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a reply. ``version`` is that of ``meta.k8s.io`` for tables and metadata."""

    shape: Shape = Shape.OBJECT
    version: str = "v1"
    media_type: str = JSON

    @property
    def api_version(self) -> str:
        return f"{META_GROUP}/{self.version}"

    @property
    def is_plain(self) -> bool:
        """Whether stored bytes can go out as they are."""
        return self.shape is Shape.OBJECT and self.media_type == JSON


PLAIN = Form()
_SHAPES = {
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.METADATA,
    "PartialObjectMetadataList": Shape.METADATA,
}
_MEDIA_TYPES = {
    JSON: JSON,
    "application/*": JSON,
    "*/*": JSON,
    "*": JSON,
    YAML: YAML,
    "application/x-yaml": YAML,
}


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form:
    """The form of the reply; 406 if the client accepts nothing that can be served."""
    if not accept:
        return PLAIN
    ranges = [_parse(text) for text in accept.split(",") if text.strip()]
    for media_type, parameters in sorted(ranges, key=lambda each: -_quality(each[1])):
        if form := _form(media_type, parameters):
            return form
    raise NotAcceptableError(
        "only the following media types are accepted: application/json, application/yaml"
    )


def _form(media_type: str, parameters: dict[str, str]) -> Form | None:
    if _quality(parameters) <= 0 or media_type not in _MEDIA_TYPES:
        return None
    wanted = parameters.get("as", "")
    if not wanted:
        return Form(media_type=_MEDIA_TYPES[media_type])
    shape, version = _SHAPES.get(wanted), parameters.get("v", "v1")
    if shape is None or parameters.get("g", META_GROUP) != META_GROUP:
        return None
    return Form(shape, version, JSON) if version in ("v1", "v1beta1") else None


def _parse(text: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = (part.strip() for part in text.split(";"))
    pairs = (part.partition("=") for part in rest)
    return media_type.lower(), {key.strip().lower(): value.strip() for key, _, value in pairs}


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
