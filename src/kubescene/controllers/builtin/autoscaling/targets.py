"""What an autoscaler scales, by its ``spec.scaleTargetRef``."""

from collections.abc import Mapping

from msgspec import Struct

from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, parse_labels
from kubescene.client import ObjectRef, Reader
from kubescene.types import JsonObject


class ScaledTarget(Struct, frozen=True):
    """What is scaled, as of this pass."""

    ref: ObjectRef
    replicas: int
    selector: LabelSelector
    labels: Mapping[str, str]
    """Of its pods."""


def target_of(autoscaler: JsonObject, reader: Reader) -> ScaledTarget:
    """What it scales; raises an error of the API, or ValueError."""
    given = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    if not given.get("kind") or not given.get("name"):
        raise ValueError("spec.scaleTargetRef: kind and name are needed")
    kind = GroupVersionKind.of(given.get("apiVersion", ""), given["kind"])
    ref = ObjectRef(kind, given["name"], autoscaler["metadata"]["namespace"])
    scale, spec = reader.get_scale(ref), reader.get(ref)["spec"]
    template = (spec.get("template") or {}).get("metadata") or {}
    status = scale.get("status") or {}
    return ScaledTarget(
        ref,
        (scale.get("spec") or {}).get("replicas", 0),
        parse_labels(status.get("selector", "")),
        template.get("labels") or (spec.get("selector") or {}).get("matchLabels") or {},
    )
