"""Which volume would do for a claim, apart from the node (F-20)."""

from functools import lru_cache
from typing import NamedTuple

import orjson

from kubescene.api.quantity import parse
from kubescene.api.selectors.label_selectors import LabelSelector, from_label_selector
from kubescene.api.volumes.claims import class_of
from kubescene.types import ReadOnlyObject


class ClaimName(NamedTuple):
    """Who a claim is."""

    namespace: str
    name: str
    uid: str

    def __deepcopy__(self, memo: object) -> "ClaimName":
        return self  # nothing of it ever changes


class VolumeShape(NamedTuple):
    """What a claim asks of a volume. ``size`` is in billionths, to compare exactly."""

    storage_class: str
    size: int
    mode: str
    attributes_class: str
    selector: bytes
    access_modes: tuple[str, ...]


class Volume(NamedTuple):
    """What matters of a PersistentVolume when a claim looks for one.

    ``affinity`` is what it requires of nodes, encoded; empty if nothing.
    """

    name: str
    size: int
    mode: str
    attributes_class: str
    access_modes: tuple[str, ...]
    labels: ReadOnlyObject
    affinity: bytes
    claim: ClaimName | None
    is_available: bool
    is_deleting: bool
    storage_class: str

    def __deepcopy__(self, memo: object) -> "Volume":
        return self  # nothing of it ever changes

    @property
    def is_free(self) -> bool:
        return self.claim is None and self.is_available and not self.is_deleting

    def names(self, claim: ClaimName) -> bool:
        """Whether the volume is kept for, or bound to, just this claim."""
        owner = self.claim
        if owner is None or owner[:2] != claim[:2]:
            return False
        return owner.uid in ("", claim.uid)


def read_volume(obj: ReadOnlyObject) -> Volume:
    spec, metadata = obj["spec"], obj["metadata"]
    claim = spec.get("claimRef")
    return Volume(
        name=metadata["name"],
        size=_size((spec.get("capacity") or {}).get("storage")),
        mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        access_modes=tuple(spec.get("accessModes") or ()),
        labels=metadata.get("labels") or {},
        affinity=affinity_key(spec.get("nodeAffinity")),
        claim=None if claim is None else _claim_name(claim),
        is_available=(obj.get("status") or {}).get("phase") == "Available",
        is_deleting=metadata.get("deletionTimestamp") is not None,
        storage_class=class_of(obj),
    )


def read_shape(claim: ReadOnlyObject) -> VolumeShape:
    spec = claim["spec"]
    selector = spec.get("selector")
    return VolumeShape(
        storage_class=class_of(claim),
        size=requested(claim),
        mode=spec.get("volumeMode") or "Filesystem",
        attributes_class=spec.get("volumeAttributesClassName") or "",
        selector=b"" if selector is None else orjson.dumps(selector),
        access_modes=tuple(spec.get("accessModes") or ()),
    )


def requested(claim: ReadOnlyObject) -> int:
    """The size that a claim asks for, in billionths."""
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return _size(requests.get("storage"))


def name_of(claim: ReadOnlyObject) -> ClaimName:
    return _claim_name(claim["metadata"])


def affinity_key(affinity: ReadOnlyObject | None) -> bytes:
    """What a volume requires of nodes; empty if nothing."""
    required = (affinity or {}).get("required")
    return b"" if required is None else orjson.dumps(required, option=orjson.OPT_SORT_KEYS)


def holds_promise(volume: Volume, shape: VolumeShape) -> bool:
    """Whether a volume that names a claim is what the claim asks for."""
    return volume.size >= shape.size and not volume.is_deleting and _alike(volume, shape)


def fits(volume: Volume, shape: VolumeShape) -> bool:
    """Whether a volume of the class, free and large enough, is what a claim asks for."""
    if not _alike(volume, shape):
        return False
    if shape.selector and not _selector(shape.selector).matches(volume.labels):
        return False
    return all(mode in volume.access_modes for mode in shape.access_modes)


def _alike(volume: Volume, shape: VolumeShape) -> bool:
    return volume.mode == shape.mode and volume.attributes_class == shape.attributes_class


@lru_cache(maxsize=1024)
def _selector(written: bytes) -> LabelSelector:
    return from_label_selector(orjson.loads(written))


def _claim_name(named: ReadOnlyObject) -> ClaimName:
    return ClaimName(named.get("namespace") or "", named.get("name") or "", named.get("uid") or "")


def _size(written: str | int | None) -> int:
    return 0 if written is None else parse(written).nanos
