"""What every real cluster has is there in a served world, and in no other."""

from typing import Any

import pytest

import kubescene
from kubescene.cluster import ClusterOptions
from kubescene.errors import InvalidError, NotFoundError
from kubescene.testing import make_node

FURNISHED = ClusterOptions(furnished=True)
NAMESPACES = ["default", "kube-node-lease", "kube-public", "kube-system"]
USUAL = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/hostname": "n",
    "kubernetes.io/os": "linux",
}


@pytest.fixture
def cluster() -> kubescene.Cluster:
    return kubescene.Cluster(FURNISHED).settle()


def places(cluster: kubescene.Cluster, kind: str) -> list[str]:
    found = [each["metadata"] for each in cluster.list(kind)]
    return sorted(f"{it['namespace']}/{it['name']}" for it in found)


def test_the_api_server_is_a_service(cluster: kubescene.Cluster) -> None:
    """As kube-apiserver v1.36 makes it: no selector, the first address, port 443."""
    service = cluster.get("services", "kubernetes")
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"] == {
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    [endpoint_slice] = cluster.list("endpointslices")
    assert endpoint_slice["metadata"]["name"] == "kubernetes"
    assert endpoint_slice["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    [endpoints] = cluster.list("endpoints")
    behind = endpoints["subsets"][0]
    assert behind["addresses"][0]["ip"] == endpoint_slice["endpoints"][0]["addresses"][0]
    assert behind["ports"] == [{"name": "https", "port": 6443, "protocol": "TCP"}]


@pytest.mark.parametrize("kind", ["services", "endpoints", "endpointslices"])
def test_what_is_deleted_of_it_comes_back(cluster: kubescene.Cluster, kind: str) -> None:
    cluster.delete(kind, "kubernetes")
    assert places(cluster, kind) == []
    assert places(cluster.settle(), kind) == ["default/kubernetes"]


def test_its_address_is_nobody_elses(cluster: kubescene.Cluster) -> None:
    wanted = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine"}}
    spec = {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]}
    with pytest.raises(InvalidError, match="provided IP is already allocated"):
        cluster.create({**wanted, "spec": spec})
    cluster.delete("services", "kubernetes")
    with pytest.raises(InvalidError, match="provided IP is already allocated"):
        cluster.create(
            {**wanted, "metadata": {"name": "kubernetes", "namespace": "kube-public"}, "spec": spec}
        )


def test_every_namespace_has_the_certificate(cluster: kubescene.Cluster) -> None:
    assert places(cluster, "configmaps") == [f"{each}/kube-root-ca.crt" for each in NAMESPACES]
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    cluster.settle()
    found = cluster.get("configmaps", "kube-root-ca.crt", "mine")
    assert found["data"] == {"ca.crt": ""}
    cluster.delete("configmaps", "kube-root-ca.crt", "mine")
    assert cluster.settle().get("configmaps", "kube-root-ca.crt", "mine")["data"] == {"ca.crt": ""}


def test_a_namespace_that_goes_takes_it_along(cluster: kubescene.Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    cluster.settle()
    cluster.delete("namespaces", "mine")
    cluster.settle()
    with pytest.raises(NotFoundError):
        cluster.get("namespaces", "mine")
    assert places(cluster, "configmaps") == [f"{each}/kube-root-ca.crt" for each in NAMESPACES]


def test_a_node_is_registered(cluster: kubescene.Cluster) -> None:
    node = make_node("n").cpu("4").build()
    node["metadata"].pop("labels", None)
    cluster.create(node)
    found = cluster.settle().get("nodes", "n")
    uid = found["metadata"]["uid"]
    assert found["metadata"]["labels"] == USUAL
    info = found["status"]["nodeInfo"]
    assert (info["operatingSystem"], info["architecture"]) == ("linux", "amd64")
    assert info["kubeletVersion"].startswith("v1.36.")
    assert (info["systemUUID"], info["machineID"]) == (uid, uid.replace("-", ""))
    assert [each["type"] for each in found["status"]["conditions"]] == ["Ready"]


GIVEN: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, str], dict[str, str]]] = {
    "labels stay": (
        {"kubernetes.io/hostname": "h", "kubernetes.io/os": "windows", "a": "b"},
        {},
        {"kubernetes.io/hostname": "h", "kubernetes.io/os": "windows", "a": "b"},
        {"operatingSystem": "windows", "architecture": "amd64"},
    ),
    "the info decides": (
        {},
        {"nodeInfo": {"architecture": "arm64", "kubeletVersion": "v1.30.0"}},
        {"kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "arm64"},
        {"architecture": "arm64", "kubeletVersion": "v1.30.0", "operatingSystem": "linux"},
    ),
}


@pytest.mark.parametrize(("labels", "status", "labelled", "info"), GIVEN.values(), ids=GIVEN)
def test_what_its_author_says_stays(
    cluster: kubescene.Cluster,
    labels: dict[str, str],
    status: dict[str, Any],
    labelled: dict[str, str],
    info: dict[str, str],
) -> None:
    node = make_node("n").cpu("4").build()
    node["metadata"]["labels"] = labels
    cluster.create({**node, "status": {**node["status"], **status}})
    found = cluster.settle().get("nodes", "n")
    assert labelled.items() <= found["metadata"]["labels"].items()
    assert found["metadata"]["labels"].keys() == USUAL.keys() | labels.keys()
    assert info.items() <= found["status"]["nodeInfo"].items()


def test_a_node_whose_kubelet_is_stopped_is_registered_when_it_is_back(
    cluster: kubescene.Cluster,
) -> None:
    annotation = "kubescene.dev/kubelet"
    cluster.create(make_node("n").cpu("4").annotate({annotation: "stopped"}))
    cluster.settle().advance("1m")
    assert version_of(cluster) == ""
    cluster.patch("nodes", "n", {"metadata": {"annotations": {annotation: None}}})
    assert version_of(cluster.settle()).startswith("v1.36.")


def version_of(cluster: kubescene.Cluster) -> str:
    version: str = cluster.get("nodes", "n")["status"]["nodeInfo"]["kubeletVersion"]
    return version


def test_other_worlds_hold_what_was_put_there() -> None:
    cluster = kubescene.Cluster()
    node = cluster.create(make_node("n").cpu("4"))
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    cluster.settle()
    kinds = ("configmaps", "services", "endpoints", "endpointslices")
    assert [each for kind in kinds for each in cluster.list(kind)] == []
    found = cluster.get("nodes", "n")
    assert found["metadata"].get("labels") == node["metadata"].get("labels")
    assert version_of(cluster) == ""


def test_what_can_be_no_label_is_left_out(cluster: kubescene.Cluster) -> None:
    name = "n" * 100
    info = {"operatingSystem": "$patch", "architecture": "a b"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    cluster.create({**node, "status": {"nodeInfo": info}})
    cluster.create(make_node("b").cpu("4"))
    cluster.settle()
    assert cluster.get("nodes", name)["metadata"].get("labels", {}) == {}
    assert cluster.get("nodes", name)["status"]["nodeInfo"].items() >= info.items()
    assert cluster.get("nodes", "b")["metadata"]["labels"]["kubernetes.io/hostname"] == "b"
