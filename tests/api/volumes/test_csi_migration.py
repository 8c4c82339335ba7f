"""Volumes of old kinds as those of CSI drivers: handles, and zones in the driver's words."""

import pytest

from kubescene.api.volumes.csi_migration import (
    BETA_ZONE,
    REGION,
    ZONE,
    TranslationError,
    in_tree,
    inline_volume,
    persistent_volume,
    translated_affinity,
)
from kubescene.types import JsonObject

GCE = {"gcePersistentDisk": {"pdName": "d"}}


def stored(source: JsonObject, labels: dict[str, str] | None = None, **spec: object) -> JsonObject:
    return {"metadata": {"name": "v", "labels": labels or {}}, "spec": {**source, **spec}}


@pytest.mark.parametrize(
    ("source", "labels", "driver", "handle"),
    [
        (
            {"awsElasticBlockStore": {"volumeID": "vol-1"}},
            {},
            "ebs.csi.aws.com",
            "vol-1",
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}},
            {},
            "ebs.csi.aws.com",
            "vol-1",
        ),
        (
            GCE,
            {},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        (
            GCE,
            {ZONE: "us-central1-a"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/us-central1-a/disks/d",
        ),
        (
            GCE,
            {ZONE: "us-central1-a__us-central1-b"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/us-central1/disks/d",
        ),
        ({"azureDisk": {"diskURI": "/x/d", "kind": "Managed"}}, {}, "disk.csi.azure.com", "/x/d"),
        ({"cinder": {"volumeID": "c"}}, {}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "pxd.portworx.com", "p"),
    ],
)
def test_handles(source: JsonObject, labels: dict[str, str], driver: str, handle: str) -> None:
    kind = in_tree(source)
    assert kind is not None
    assert persistent_volume(stored(source, labels), kind) == (driver, handle)


@pytest.mark.parametrize(
    "source",
    [
        {"awsElasticBlockStore": {"volumeID": "aws:///us-east-1a/vol-1"}},
        {"azureDisk": {"diskURI": "x", "kind": "Dedicated"}},
    ],
)
def test_volumes_that_no_driver_takes_over(source: JsonObject) -> None:
    kind = in_tree(source)
    assert kind is not None
    with pytest.raises(TranslationError):
        inline_volume(source, kind)


def test_zones_that_belong_to_different_regions() -> None:
    kind = in_tree(GCE)
    assert kind is not None
    with pytest.raises(TranslationError, match="multiple or no regions"):
        persistent_volume(stored(GCE, {ZONE: "us-a-1__eu-b-1"}), kind)


def _requires(key: str, *values: str) -> JsonObject:
    expression = {"key": key, "operator": "In", "values": [*values]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


@pytest.mark.parametrize(
    ("labels", "affinity", "translated"),
    [
        ({}, None, None),
        ({}, _requires(ZONE, "a"), _requires("topology.gke.io/zone", "a")),
        ({}, _requires(BETA_ZONE, "a"), _requires("topology.gke.io/zone", "a")),
        ({ZONE: "b__a"}, None, _requires("topology.gke.io/zone", "a", "b")),
        ({}, _requires(REGION, "r"), _requires(REGION, "r")),
        (
            {},
            _requires("failure-domain.beta.kubernetes.io/region", "r"),
            _requires("failure-domain.beta.kubernetes.io/region", "r"),
        ),
    ],
)
def test_zones_in_the_words_of_the_driver(
    labels: dict[str, str], affinity: JsonObject | None, translated: JsonObject | None
) -> None:
    kind = in_tree(GCE)
    assert kind is not None
    assert translated_affinity(stored(GCE, labels, nodeAffinity=affinity), kind) == translated


def test_a_csi_volume_is_of_no_old_kind() -> None:
    assert in_tree({"csi": {"driver": "x"}}) is None
