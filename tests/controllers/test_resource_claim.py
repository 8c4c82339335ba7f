"""The ResourceClaim controller in a world that runs: claims from templates, and their end."""

from typing import Any

import pytest

from kubescene.api.scheme import GroupVersionKind
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.storage.resource_claim import _base_name
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject

CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"


def resource(kind: str, name: str, spec: JsonObject) -> JsonObject:
    metadata = {"name": name}
    if kind.startswith("ResourceClaim"):
        metadata["namespace"] = "default"
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def template(**metadata: Any) -> JsonObject:
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    spec = {"spec": {"devices": devices}, "metadata": metadata}
    return resource("ResourceClaimTemplate", "t", spec)


def pod(name: str, **spec: Any) -> JsonObject:
    made = make_pod(name).build()
    entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    made["spec"] |= {"resourceClaims": entries, **spec}
    return made


@pytest.fixture
def devices(cluster: ClusterWorld) -> ClusterWorld:
    """A node with one device."""
    cluster.create(make_node("n").cpu("4").memory("8Gi").build())
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": "gpu-0"}]
    spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": listed}
    cluster.create(resource("ResourceSlice", "s", spec))
    cluster.create(resource("DeviceClass", "gpu", {}))
    return cluster


def claims(cluster: ClusterWorld) -> list[JsonObject]:
    return cluster.list("resourceclaims")


def phase(cluster: ClusterWorld, name: str) -> str:
    found: str = cluster.get("pods", name)["status"]["phase"]
    return found


def test_a_pod_gets_a_claim_of_its_own_and_runs(devices: ClusterWorld) -> None:
    devices.create(template(labels={"team": "a"}, annotations={"note": "x"}))
    devices.create(pod("p"))
    devices.settle()
    (claim,) = claims(devices)
    metadata = claim["metadata"]
    assert metadata["name"].startswith("p-gpu-")
    assert metadata["labels"] == {"team": "a"}
    names = {"resource.kubernetes.io/pod-claim-name": "gpu", "note": "x"}
    assert metadata["annotations"] == names
    statuses = devices.get("pods", "p")["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": metadata["name"]}]
    assert phase(devices, "p") == "Running"
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["p"]


def test_a_template_that_comes_late_is_waited_for(devices: ClusterWorld) -> None:
    devices.create(pod("p"))
    devices.settle()
    assert claims(devices) == []
    devices.create(template())
    devices.settle()
    assert phase(devices, "p") == "Running"


def test_people_are_told_of_a_template_that_is_missing() -> None:
    cluster = ClusterWorld(ClusterOptions(events=True))
    cluster.create(pod("p"))
    cluster.settle()
    told = [each["message"] for each in cluster.list("events") if "Claim" in each["reason"]]
    assert told == [
        'PodResourceClaim gpu: resource claim template "t": '
        'resourceclaimtemplate.resource.k8s.io "t" not found'
    ]


def test_devices_go_to_the_next_pod_when_one_is_gone(devices: ClusterWorld) -> None:
    devices.create(template())
    devices.create(pod("p"))
    devices.create(pod("q"))
    devices.settle()
    assert (phase(devices, "p"), phase(devices, "q")) == ("Running", "Pending")
    devices.delete("pods", "p")
    devices.advance("1m")
    assert phase(devices, "q") == "Running"
    assert [each["metadata"]["name"][0] for each in claims(devices)] == ["q"]


def test_a_claim_goes_when_its_pod_has_ended(devices: ClusterWorld) -> None:
    devices.create(template())
    devices.create(pod("p"))
    devices.settle()
    devices.patch("pods", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    devices.settle()
    assert claims(devices) == []


def test_a_claim_that_people_made_stays_and_gives_its_devices_back(devices: ClusterWorld) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    devices.create(resource("ResourceClaim", "ours", {"devices": {"requests": [request]}}))
    entries = [{"name": "gpu", "resourceClaimName": "ours"}]
    devices.create(pod("p", resourceClaims=entries))
    devices.settle()
    (claim,) = claims(devices)
    assert claim["status"]["allocation"]
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    devices.delete("pods", "p")
    devices.advance("1m")
    (claim,) = claims(devices)
    assert not claim["status"].get("allocation")
    assert not claim["metadata"].get("finalizers")


def test_a_claim_that_is_deleted_while_used_waits_for_its_pod(devices: ClusterWorld) -> None:
    devices.create(template())
    devices.create(pod("p"))
    devices.settle()
    (claim,) = claims(devices)
    devices.delete("resourceclaims", claim["metadata"]["name"])
    devices.settle()
    assert claims(devices)
    devices.delete("pods", "p")
    devices.advance("1m")
    assert claims(devices) == []


def test_a_claim_of_extended_resources_goes_with_its_pod(devices: ClusterWorld) -> None:
    spec = {"extendedResourceName": "example.com/gpu"}
    devices.create(resource("DeviceClass", "extended", spec))
    made = make_pod("p").build()
    amounts = {"example.com/gpu": "1"}
    made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    devices.create(made)
    devices.settle()
    assert phase(devices, "p") == "Running"
    assert len(claims(devices)) == 1
    devices.patch("pods", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    devices.settle()
    assert claims(devices) == []


def test_a_pod_that_came_with_its_node_has_its_claim_reserved(devices: ClusterWorld) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    devices.create(resource("ResourceClaim", "ours", {"devices": {"requests": [request]}}))
    entries = [{"name": "gpu", "resourceClaimName": "ours"}]
    devices.create(pod("p", resourceClaims=entries))
    devices.settle()
    devices.create(pod("q", resourceClaims=entries, nodeName="n"))
    devices.settle()
    (claim,) = claims(devices)
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["p", "q"]


def test_long_names_are_both_shortened() -> None:
    assert _base_name("p", "gpu") == "p-gpu-"
    made = _base_name("p" * 60, "c" * 20)
    assert made == f"{'p' * 41}-{'c' * 13}"


def test_without_claims_there_is_nothing_to_do(cluster: ClusterWorld) -> None:
    cluster.create(make_node("n").cpu("4").memory("8Gi").build())
    cluster.create(make_pod("p").build())
    cluster.settle()
    slot = next(each for each in cluster.slots if each.name == "resourceclaim")
    assert not slot.awake
