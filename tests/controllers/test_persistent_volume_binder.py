"""The volume controller: how claims get volumes, lose them, and what becomes of these."""

import pytest

from kubescene.cluster import ClusterOptions, ClusterWorld, builtin_controllers
from kubescene.errors import NotFoundError
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.storage import ZONE, claim, mounting, storage_class, using, volume

STATIC = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
EPHEMERAL: JsonObject = {"ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}


def world(*objects: JsonObject, events: bool = False) -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(events=events))
    for name in ("a1", "b1"):
        cluster.create(make_node(name).cpu("4").memory("8Gi").zone(name[0]))
    for obj in objects:
        cluster.create(obj)
    cluster.settle()
    return cluster


def phases(cluster: ClusterWorld, resource: str) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["status"]["phase"] for obj in cluster.list(resource)}


def bound(cluster: ClusterWorld) -> dict[str, str]:
    """The volumes of all claims that have one."""
    found = {}
    for each in cluster.list("persistentvolumeclaims"):
        if "pv.kubernetes.io/bind-completed" in (each["metadata"].get("annotations") or {}):
            found[each["metadata"]["name"]] = each["spec"]["volumeName"]
    return found


def test_an_immediate_claim_gets_the_smallest_volume_that_will_do() -> None:
    fixed = storage_class("fixed", "Immediate", STATIC)
    volumes = [volume(f"v{size}", f"{size}Gi", "fixed") for size in (9, 3, 1, 4)]
    cluster = world(fixed, *volumes, claim("c", "2Gi", "fixed"))
    assert bound(cluster) == {"c": "v3"}
    assert phases(cluster, "persistentvolumes")["v3"] == "Bound"
    assert phases(cluster, "persistentvolumes")["v1"] == "Available"
    obj = cluster.get("persistentvolumeclaims", "c")
    assert obj["status"]["capacity"] == {"storage": "3Gi"}
    assert obj["status"]["accessModes"] == ["ReadWriteOnce"]
    assert obj["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    held = cluster.get("persistentvolumes", "v3")
    assert held["spec"]["claimRef"]["uid"] == obj["metadata"]["uid"]
    assert held["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_a_claim_that_waits_gets_the_volume_that_comes_later() -> None:
    cluster = world(storage_class("fixed", "Immediate", STATIC), claim("c", "2Gi", "fixed"))
    assert bound(cluster) == {}
    cluster.create(volume("small", "1Gi", "fixed"))
    cluster.create(volume("v", "5Gi", "fixed"))
    cluster.settle()
    assert bound(cluster) == {"c": "v"}


def test_a_claim_that_became_too_large_for_its_namespace_waits_and_says_why() -> None:
    limit = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [limit]},
    }
    fixed = storage_class("fixed", "Immediate", STATIC)
    cluster = world(fixed, claim("c", "2Gi", "fixed"), limits, events=True)
    cluster.create(volume("v", "2Gi", "fixed"))
    cluster.settle()
    assert bound(cluster) == {}
    told = {each["message"] for each in cluster.list("events") if each["reason"] == "FailedBinding"}
    assert any("maximum storage usage per PersistentVolumeClaim is 1Gi" in each for each in told)
    cluster.delete("limitranges", "l")
    cluster.create(volume("w", "3Gi", "fixed"))
    cluster.settle()
    assert [*bound(cluster)] == ["c"]


def test_a_claim_that_waits_gets_its_class_later() -> None:
    cluster = world(claim("c"))
    assert bound(cluster) == {}
    cluster.create(storage_class("slow", "Immediate"))
    cluster.settle()
    assert [*bound(cluster)] == ["c"]


@pytest.mark.parametrize("both", [False, True])
def test_volumes_and_claims_that_name_each_other(both: bool) -> None:
    named: JsonObject = {"claimRef": {"namespace": "default", "name": "c"}}
    cluster = world(
        storage_class(provisioner=STATIC),
        volume("kept", "5Gi", **named),
        volume("other"),
        claim("c", **({"volumeName": "kept"} if both else {})),
    )
    assert bound(cluster) == {"c": "kept"}
    annotations = cluster.get("persistentvolumes", "kept")["metadata"].get("annotations") or {}
    assert "pv.kubernetes.io/bound-by-controller" not in annotations


def test_a_claim_that_names_a_volume_of_somebody_else_waits() -> None:
    named: JsonObject = {"claimRef": {"namespace": "default", "name": "other", "uid": "x"}}
    cluster = world(volume("v", **named), claim("c", volumeName="v"))
    assert bound(cluster) == {}
    assert phases(cluster, "persistentvolumeclaims") == {"c": "Pending"}


def test_a_claim_that_names_a_volume_that_is_too_small_waits() -> None:
    cluster = world(volume("v", "1Gi"), claim("c", "2Gi", volumeName="v"), events=True)
    assert bound(cluster) == {}
    reasons = {each["reason"] for each in cluster.list("events")}
    assert "VolumeMismatch" in reasons


def test_immediate_provisioning() -> None:
    cluster = world(
        storage_class("now", "Immediate", reclaimPolicy="Retain"), claim("c", "2Gi", "now")
    )
    uid = cluster.get("persistentvolumeclaims", "c")["metadata"]["uid"]
    made = cluster.get("persistentvolumes", f"pvc-{uid}")
    assert made["spec"]["csi"] == {"driver": "disk.example.com", "volumeHandle": f"pvc-{uid}"}
    assert made["spec"]["capacity"] == {"storage": "2Gi"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert "nodeAffinity" not in made["spec"]
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "disk.example.com"
    assert bound(cluster) == {"c": f"pvc-{uid}"}


def test_a_provisioner_that_is_no_driver_makes_directories() -> None:
    """Such as those of small clusters; the run used to end with an error."""
    local = storage_class("now", "Immediate", provisioner="rancher.io/local-path")
    cluster = world(local, claim("c", "2Gi", "now"))
    uid = cluster.get("persistentvolumeclaims", "c")["metadata"]["uid"]
    made = cluster.get("persistentvolumes", f"pvc-{uid}")["spec"]
    assert (made["hostPath"]["path"], "csi" in made) == (f"/var/lib/volumes/pvc-{uid}", False)
    assert bound(cluster) == {"c": f"pvc-{uid}"}


def test_a_claim_waits_for_its_first_consumer_and_gets_a_volume_in_its_zone() -> None:
    cluster = world(storage_class(), claim("c"), volume("far", zone="z"))
    assert bound(cluster) == {}
    cluster.create(merged(using("p", "c"), {"spec": {"nodeSelector": {ZONE: "b"}}}))
    cluster.settle()
    assert cluster.get("pods", "p")["status"]["phase"] == "Running"
    made = cluster.get("persistentvolumes", bound(cluster)["c"])
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}


def test_a_selected_node_that_is_gone_is_taken_back() -> None:
    selected = {"metadata": {"annotations": {SELECTED_NODE: "nowhere", "kept": "yes"}}}
    cluster = world(storage_class(), merged(claim("c"), selected))
    assert cluster.get("persistentvolumeclaims", "c")["metadata"]["annotations"] == {"kept": "yes"}


def test_a_volume_whose_claim_is_gone_is_released_or_deleted() -> None:
    cluster = world(
        storage_class("now", "Immediate"),
        storage_class("kept", "Immediate", reclaimPolicy="Retain"),
        claim("gone", "1Gi", "now"),
        claim("left", "1Gi", "kept"),
    )
    names = bound(cluster)
    for name in ("gone", "left"):
        cluster.delete("persistentvolumeclaims", name)
    cluster.settle()
    assert phases(cluster, "persistentvolumes") == {names["left"]: "Released"}
    with pytest.raises(NotFoundError):
        cluster.get("persistentvolumes", names["gone"])


def test_a_claim_is_lost_with_its_volume() -> None:
    cluster = world(storage_class("now", "Immediate"), claim("c", "1Gi", "now"))
    made = cluster.get("persistentvolumes", bound(cluster)["c"])
    cluster.patch("persistentvolumes", made["metadata"]["name"], {"metadata": {"finalizers": None}})
    cluster.delete("persistentvolumes", made["metadata"]["name"])
    cluster.settle()
    assert phases(cluster, "persistentvolumeclaims") == {"c": "Lost"}


def test_a_volume_that_forgot_its_claim_is_told_again() -> None:
    cluster = world(storage_class("now", "Immediate"), claim("c", "1Gi", "now"))
    name = bound(cluster)["c"]
    cluster.patch("persistentvolumes", name, {"spec": {"claimRef": None}})
    cluster.patch("persistentvolumeclaims", "c", {"metadata": {"labels": {"look": "again"}}})
    cluster.settle()
    assert cluster.get("persistentvolumes", name)["spec"]["claimRef"]["name"] == "c"
    assert phases(cluster, "persistentvolumeclaims") == {"c": "Bound"}


def test_claims_of_ephemeral_volumes_come_and_go_with_their_pod() -> None:
    cluster = world(storage_class(), mounting("p", EPHEMERAL))
    made = cluster.get("persistentvolumeclaims", "p-v0")
    (owner,) = made["metadata"]["ownerReferences"]
    pod = cluster.get("pods", "p")
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "Pod",
        pod["metadata"]["uid"],
        True,
    )
    assert pod["status"]["phase"] == "Running"
    cluster.delete("pods", "p")
    cluster.settle()
    assert phases(cluster, "persistentvolumeclaims") == {}
    assert phases(cluster, "persistentvolumes") == {}


def test_a_claim_of_somebody_else_is_left_alone() -> None:
    cluster = world(storage_class(), claim("p-v0"), mounting("p", EPHEMERAL))
    assert "ownerReferences" not in cluster.get("persistentvolumeclaims", "p-v0")["metadata"]
    (condition,) = cluster.get("pods", "p")["status"]["conditions"]
    assert "was not created for pod default/p (pod is not owner)" in condition["message"]


def test_nothing_is_written_where_nobody_has_claims() -> None:
    options = ClusterOptions()
    known = builtin_controllers(options)
    quiet = known.copy()
    for name in ("persistentvolume-binder", "ephemeral-volume"):
        quiet.replace(name, known.factory("namespace"))
    revisions = []
    for controllers in (known, quiet):
        cluster = ClusterWorld(options, controllers=controllers)
        cluster.create(make_node("n").cpu("4").memory("8Gi"))
        cluster.create(make_pod("p"))
        cluster.settle()
        revisions.append(cluster.revision)
    assert revisions[0] == revisions[1]
