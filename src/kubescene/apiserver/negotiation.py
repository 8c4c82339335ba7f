"""What a client wants to read: whole objects, tables for people, or metadata only.

``Accept`` lists media ranges with parameters; the first (by quality, then order) that can be served
wins. Replies are JSON, or YAML where asked for; protobuf is read but never written, which every
client accepts because it names JSON or ``*/*`` as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kubescene.api.kinds import SCENARIO
from kubescene.errors import NotAcceptableError

JSON = "application/json"
YAML = "application/yaml"
META_GROUP = "meta.k8s.io"
COLUMNS_GROUP = SCENARIO.group


class ResponseShape(Enum):
    OBJECT = "Object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    COLUMNS = "Columns"
    """Lists of pods only (`columns`), and not upstream's."""


@dataclass(frozen=True, slots=True)
class ResponseForm:
    """The form of a reply. ``version`` is that of ``meta.k8s.io`` for tables and metadata."""

    shape: ResponseShape = ResponseShape.OBJECT
    version: str = "v1"
    media_type: str = JSON

    @property
    def api_version(self) -> str:
        return f"{META_GROUP}/{self.version}"

    @property
    def is_plain(self) -> bool:
        """Whether stored bytes can go out as they are."""
        return self.shape is ResponseShape.OBJECT and self.media_type == JSON


PLAIN = ResponseForm()
IN_COLUMNS = ResponseForm(ResponseShape.COLUMNS, SCENARIO.version)
_SHAPES = {
    "Table": ResponseShape.TABLE,
    "PartialObjectMetadata": ResponseShape.METADATA,
    "PartialObjectMetadataList": ResponseShape.METADATA,
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
def negotiate(accept: str, *, has_columns: bool = False) -> ResponseForm:
    """The form of the reply; 406 if the client accepts nothing that can be served."""
    if not accept:
        return PLAIN
    ranges = [_parse(text) for text in accept.split(",") if text.strip()]
    for media_type, parameters in sorted(ranges, key=lambda each: -_quality(each[1])):
        form = _form(media_type, parameters)
        if form is not None and (has_columns or form is not IN_COLUMNS):
            return form
    raise NotAcceptableError(
        "only the following media types are accepted: application/json, application/yaml"
    )


def first_accepted(accept: str, offered: Iterable[str]) -> str | None:
    """Which of the media types the client likes best; for pages that are no objects.

    As kube-apiserver has it: what is named goes before what a star stands for, and the first that
    is offered is what a star gets. Even a quality of zero is no refusal.
    """
    ranges = [_parse(text) for text in (accept or "*/*").split(",")]
    for wanted, _ in sorted(ranges, key=lambda each: (-_quality(each[1]), each[0].count("*"))):
        for media_type in offered:
            if wanted in (media_type, f"{media_type.partition('/')[0]}/*", "*/*", "*"):
                return media_type
    return None


def _form(media_type: str, parameters: dict[str, str]) -> ResponseForm | None:
    if _quality(parameters) <= 0 or media_type not in _MEDIA_TYPES:
        return None
    wanted = parameters.get("as", "")
    if not wanted:
        return ResponseForm(media_type=_MEDIA_TYPES[media_type])
    if (wanted, parameters.get("g")) == (ResponseShape.COLUMNS.value, COLUMNS_GROUP):
        return IN_COLUMNS if parameters.get("v") == IN_COLUMNS.version else None
    shape, version = _SHAPES.get(wanted), parameters.get("v", "v1")
    if shape is None or parameters.get("g", META_GROUP) != META_GROUP:
        return None
    return ResponseForm(shape, version, JSON) if version in ("v1", "v1beta1") else None


def _parse(text: str) -> tuple[str, dict[str, str]]:
    media_type, *rest = (part.strip() for part in text.split(";"))
    pairs = (part.partition("=") for part in rest)
    return media_type.lower(), {key.strip().lower(): value.strip() for key, _, value in pairs}


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
