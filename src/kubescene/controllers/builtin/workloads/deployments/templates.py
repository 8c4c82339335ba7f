"""Pod templates: when two are the same, and the short hash that tells them apart.

The hash goes into the name of the ReplicaSet and, as a label, into its selector and its pods. It
is our own (a digest of the canonical JSON) and looks like that of Kubernetes. Whether a
set belongs to a template is never decided by the hash.
"""

from hashlib import blake2b
from typing import Any

import orjson

from kubescene.bounded import BoundedDict
from kubescene.types import JsonObject

HASH_LABEL = "pod-template-hash"
HASH_LENGTH = 10

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MAPS = frozenset({"annotations", "labels", "limits", "matchLabels", "nodeSelector", "requests"})
"""Members that are maps: an empty one means the same as none."""

_ALIKE: BoundedDict[tuple[int, int], tuple[JsonObject, JsonObject]] = BoundedDict()
"""Templates found to be alike: the sets of a Deployment are looked at with every pod they get."""


def template_hash(template: JsonObject, collisions: int | None) -> str:
    """Ten letters and digits; another ``collisions`` count gives other ones."""
    text = orjson.dumps([pared(template), collisions], option=orjson.OPT_SORT_KEYS)
    digest = blake2b(text, digest_size=HASH_LENGTH).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest)


def identical(one: JsonObject, other: JsonObject) -> bool:
    """Whether both are written alike, the hash label aside."""
    pair = _ALIKE.get((id(one), id(other)))
    if pair is not None and pair[0] is one and pair[1] is other:
        return True
    alike = bool(without_hash(one) == without_hash(other))
    if alike:
        # Templates are read-only, and held here, so nobody else has their ids.
        _ALIKE[id(one), id(other)] = (one, other)
    return alike


def same_template(one: JsonObject, other: JsonObject) -> bool:
    """Whether both make the same pods, the hash label aside."""
    return bool(pared(without_hash(one)) == pared(without_hash(other)))


def with_hash(template: JsonObject, value: str) -> JsonObject:
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: value}
    return {**template, "metadata": {**metadata, "labels": labels}}


def without_hash(template: JsonObject) -> JsonObject:
    metadata = template.get("metadata") or {}
    labels = metadata.get("labels") or {}
    if HASH_LABEL not in labels:
        return template
    kept = {key: value for key, value in labels.items() if key != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": kept}}


def pared(value: Any) -> Any:
    """Without empty lists and maps, which say nothing; an empty object can say something."""
    if isinstance(value, dict):
        return {key: pared(it) for key, it in value.items() if not is_unsaid(key, it)}
    return [pared(it) for it in value] if isinstance(value, list) else value


def is_unsaid(key: str, value: Any) -> bool:
    return value is None or value == [] or (value == {} and key in _MAPS)
