"""Autoscaler objects as users write them: v1, v2beta2 or v2, read, defaulted and checked.

What kube-apiserver would refuse is refused, with its words and the path of the field. Unknown
fields are refused, too: a misspelled ``stabilizationWindowSeconds`` would silently be another
autoscaler. ``autoscaling/v2beta2`` is served no more, but has the shape of v2.
"""

from typing import Any

from kubescene.api.builtin import builtin_scheme
from kubescene.api.conversion import autoscalers
from kubescene.api.defaulting import defaults
from kubescene.api.schemas import strict_decoding
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.text.reading import ReadingError
from kubescene.api.validation import raise_if_invalid
from kubescene.api.validation.autoscaling import validate_autoscaler
from kubescene.api.validation.field_errors import ErrorList
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

KIND = "HorizontalPodAutoscaler"
V1 = "autoscaling/v1"
V2 = "autoscaling/v2"
VERSIONS = (V2, V1, "autoscaling/v2beta2")


def accepted(source: JsonObject | str, *, scale_to_zero: bool = False) -> JsonObject:
    """The autoscaling/v2 object that an API server would store.

    ``source`` is an object or the YAML or JSON text of one. Raises `ConfigurationError` for what
    is no autoscaler, `BadRequestError` for wrong types and unknown fields, `InvalidError` for wrong
    values.
    """
    obj = parsed(source) if isinstance(source, str) else source
    version, kind = _text(obj, "apiVersion"), _text(obj, "kind")
    if version not in VERSIONS or kind != KIND:
        given = f"{version or 'no apiVersion'}, {kind or 'no kind'}"
        raise ConfigurationError(f"not a {KIND} of {', '.join(VERSIONS)}: {given}")
    new = _decoded(obj, GroupVersionKind.of(V1 if version == V1 else V2, KIND))
    _validate(new, scale_to_zero=scale_to_zero)
    return new


def parsed(text: str) -> JsonObject:
    """The one object of a YAML or JSON text."""
    from kubescene.api.text.yaml_text import read_yaml

    try:
        documents = [each.value for each in read_yaml(text) if each.value is not None]
    except ReadingError as error:
        raise ConfigurationError(f"the autoscaler cannot be read: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ConfigurationError(f"expected one {KIND} object, found {len(documents)} documents")
    return documents[0]


def _text(obj: Any, field: str) -> str:
    value = obj.get(field) if isinstance(obj, dict) else None
    return value if isinstance(value, str) else ""


def _decoded(obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
    new = defaults.drop_nulls({**obj, "apiVersion": gvk.api_version})
    strict_decoding.check_types(new, gvk)
    if unknown := strict_decoding.unknown_fields(new, gvk):
        raise strict_decoding.strict_error(gvk, [f'unknown field "{path}"' for path in unknown])
    new = defaults.apply_defaults(_in_namespace(new), gvk)
    if gvk.api_version == V1:
        v2 = GroupVersionKind.of(V2, KIND)
        new = defaults.apply_defaults(autoscalers.to_v2(new), v2)
    return new


def _in_namespace(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata") or {}
    return {**obj, "metadata": {"namespace": "default", **metadata}}


def _validate(obj: JsonObject, *, scale_to_zero: bool) -> None:
    errors = ErrorList()
    validate_autoscaler(obj, errors, scale_to_zero=scale_to_zero)
    name = obj["metadata"].get("name", "")
    raise_if_invalid(errors, builtin_scheme().of_kind(V2, KIND), name)
