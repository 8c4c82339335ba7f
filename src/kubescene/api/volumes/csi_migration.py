"""Volumes of the old, built-in kinds, and the CSI drivers that have taken them over.

What Kubernetes once did itself for seven kinds of storage is now done by CSI drivers. A volume of
such a kind counts as one of its driver, under a handle made from its fields, and the zone in its
node affinity or labels goes by the driver's own label.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubescene.types import JsonObject, ReadOnlyObject

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
_MANY_ZONES = "__"
_UNSPECIFIED = "UNSPECIFIED"
_EBS_VOLUME = re.compile(r"vol-[^/]*")


class TranslationError(Exception):
    """A volume that its driver cannot take over."""


class CsiVolume(NamedTuple):
    """The driver of a volume, and what the driver calls it."""

    driver: str
    handle: str

    @property
    def unique_name(self) -> str:
        return f"{self.driver}/{self.handle}"


class InTree(NamedTuple):
    """One of the old kinds: the field that holds it, its names, and how to translate it.

    ``is_taken_over`` says whether the scheduler counts it as a volume of the driver.
    """

    field: str
    plugin: str
    driver: str
    handle: Callable[[ReadOnlyObject, ReadOnlyObject], str]
    zone: str = ""
    is_taken_over: bool = True


def _ebs(source: ReadOnlyObject, labels: ReadOnlyObject) -> str:
    volume: str = source.get("volumeID") or ""
    if not volume.startswith("aws://"):
        return volume
    found = volume.removeprefix("aws://").partition("/")[2].strip("/")
    if not _EBS_VOLUME.fullmatch(found):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume "
            f"({volume})"
        )
    return found


def _gce(source: ReadOnlyObject, labels: ReadOnlyObject) -> str:
    written = labels.get(BETA_ZONE) or labels.get(ZONE) or ""
    zones = written.split(_MANY_ZONES)
    if len(zones) > 1:
        place = f"regions/{_gce_region(zones)}"
    else:
        place = f"zones/{zones[0] or _UNSPECIFIED}"
    return f"projects/{_UNSPECIFIED}/{place}/disks/{source.get('pdName') or ''}"


def _gce_region(zones: list[str]) -> str:
    regions = []
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.append("-".join(parts[:2]))
    if len(set(regions)) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(set(regions)))
        raise TranslationError(
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            f"map[{found}]"
        )
    return regions[0]


def _azure_disk(source: ReadOnlyObject, labels: ReadOnlyObject) -> str:
    kind = source.get("kind")
    if kind is not None and kind.lower() != "managed":
        raise TranslationError(f"kind({kind}) is not supported in csi migration")
    return source.get("diskURI") or ""


def _volume_id(source: ReadOnlyObject, labels: ReadOnlyObject) -> str:
    return source.get("volumeID") or ""


def _volume_path(source: ReadOnlyObject, labels: ReadOnlyObject) -> str:
    return source.get("volumePath") or ""


def _share(source: ReadOnlyObject, labels: ReadOnlyObject) -> str:
    return source.get("shareName") or ""


IN_TREE = (
    InTree(
        "gcePersistentDisk",
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        _gce,
        zone="topology.gke.io/zone",
    ),
    InTree(
        "awsElasticBlockStore",
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        _ebs,
        zone="topology.ebs.csi.aws.com/zone",
    ),
    InTree(
        "cinder",
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        _volume_id,
        zone="topology.cinder.csi.openstack.org/zone",
    ),
    InTree("azureDisk", "kubernetes.io/azure-disk", "disk.csi.azure.com", _azure_disk),
    InTree("portworxVolume", "kubernetes.io/portworx-volume", "pxd.portworx.com", _volume_id),
    InTree(
        "azureFile",
        "kubernetes.io/azure-file",
        "file.csi.azure.com",
        _share,
        is_taken_over=False,
    ),
    InTree(
        "vsphereVolume",
        "kubernetes.io/vsphere-volume",
        "csi.vsphere.vmware.com",
        _volume_path,
        is_taken_over=False,
    ),
)
BY_PLUGIN: Mapping[str, InTree] = {each.plugin: each for each in IN_TREE}


def in_tree(source: ReadOnlyObject) -> InTree | None:
    """The old kind of a volume of a pod, or of the spec of a PersistentVolume."""
    return next((each for each in IN_TREE if source.get(each.field) is not None), None)


def inline_volume(volume: ReadOnlyObject, kind: InTree) -> CsiVolume:
    """A volume of a pod as one of its driver; raises `TranslationError`."""
    # Nobody knows the zone of a disk that only a pod speaks of.
    return CsiVolume(kind.driver, kind.handle(volume[kind.field], {}))


def persistent_volume(volume: ReadOnlyObject, kind: InTree) -> CsiVolume:
    """A PersistentVolume as one of its driver; raises `TranslationError`."""
    labels = volume["metadata"].get("labels") or {}
    return CsiVolume(kind.driver, kind.handle(volume["spec"][kind.field], labels))


def migrated_plugins(csi_node: ReadOnlyObject) -> frozenset[str]:
    """The old kinds that a node leaves to CSI drivers."""
    annotations = csi_node["metadata"].get("annotations") or {}
    return frozenset(filter(None, (annotations.get(MIGRATED_PLUGINS) or "").split(",")))


def translated_affinity(volume: ReadOnlyObject, kind: InTree) -> JsonObject | None:
    """The node affinity of a PersistentVolume in the words of its driver."""
    affinity: JsonObject | None = volume["spec"].get("nodeAffinity")
    if not kind.zone:
        return affinity
    labels = volume["metadata"].get("labels") or {}
    zone, region = _labels_in_use(affinity, labels)
    if _values(affinity, zone):
        affinity = _renamed(affinity, zone, kind.zone)
    elif zone in labels:
        affinity = _with_zones(affinity, kind.zone, labels[zone].split(_MANY_ZONES))
    if region == BETA_REGION and _values(affinity, region):
        affinity = _renamed(affinity, region, REGION)
    return affinity


def _labels_in_use(affinity: Any, labels: ReadOnlyObject) -> tuple[str, str]:
    keys = {each.get("key") for term in _terms(affinity) for each in _expressions(term)}
    for zone, region in ((ZONE, REGION), (BETA_ZONE, BETA_REGION)):
        if zone in keys:
            return zone, region
    if ZONE not in labels and BETA_ZONE in labels:
        return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(affinity: Any, key: str) -> list[str]:
    return [
        value
        for term in _terms(affinity)
        for each in _expressions(term)
        if each.get("key") == key
        for value in each.get("values") or ()
    ]


def _renamed(affinity: Any, old: str, new: str) -> JsonObject:
    terms = [
        {
            **term,
            "matchExpressions": [
                {**each, "key": new} if each.get("key") == old else each
                for each in _expressions(term)
            ],
        }
        for term in _terms(affinity)
    ]
    return _with_terms(affinity, terms)


def _with_zones(affinity: Any, key: str, zones: list[str]) -> JsonObject | None:
    named = sorted({zone.strip() for zone in zones} - {""})
    if not named:
        return affinity  # type: ignore[no-any-return]
    added = {"key": key, "operator": "In", "values": named}
    terms = [
        {**term, "matchExpressions": [*_expressions(term), added]}
        for term in _terms(affinity) or [{}]
    ]
    return _with_terms(affinity, terms)


def _with_terms(affinity: Any, terms: list[JsonObject]) -> JsonObject:
    required = {**((affinity or {}).get("required") or {}), "nodeSelectorTerms": terms}
    return {**(affinity or {}), "required": required}


def _terms(affinity: Any) -> list[JsonObject]:
    return ((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or []


def _expressions(term: ReadOnlyObject) -> list[JsonObject]:
    return term.get("matchExpressions") or []
