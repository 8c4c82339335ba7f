"""Tokens of service accounts, and the certificate of a namespace."""

from base64 import b64decode

import pytest

from kubescene.cluster import ClusterWorld
from kubescene.errors import NotFoundError
from kubescene.types import JsonObject

TOKEN = "kubernetes.io/service-account-token"
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


@pytest.fixture
def world() -> ClusterWorld:
    return ClusterWorld()


def obj(kind: str, name: str, namespace: str = "default", **parts: object) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **parts}


def ask_for_token(world: ClusterWorld, name: str, account: str, **annotations: str) -> None:
    secret = obj("Secret", name, type=TOKEN)
    secret["metadata"]["annotations"] = {NAME: account, **annotations}
    world.create(secret)


def certificate(world: ClusterWorld, namespace: str = "default") -> JsonObject:
    found: JsonObject = world.get("ConfigMap", "kube-root-ca.crt", namespace)
    return found


def test_a_token_says_whose_it_is(world: ClusterWorld) -> None:
    world.create(obj("ConfigMap", "kube-root-ca.crt", data={"ca.crt": "certificate"}))
    world.create(obj("ServiceAccount", "robot"))
    ask_for_token(world, "t", "robot")
    data = world.get("Secret", "t", "default")["data"]
    assert {key: b64decode(text).decode() for key, text in data.items()} == {
        "ca.crt": "certificate",
        "namespace": "default",
        "token": "system:serviceaccount:default:robot",
    }


@pytest.mark.parametrize("annotations", [{}, {UID: "that of another"}])
def test_a_secret_of_nobody_goes(world: ClusterWorld, annotations: dict[str, str]) -> None:
    if annotations:
        world.create(obj("ServiceAccount", "robot"))
    ask_for_token(world, "t", "robot", **annotations)
    with pytest.raises(NotFoundError):
        world.get("Secret", "t", "default")


def test_a_new_account_of_the_same_name_does_not_get_the_old_token(world: ClusterWorld) -> None:
    ask_for_token(world, "t", "default")
    world.delete("ServiceAccount", "default", "default")
    assert world.get("ServiceAccount", "default", "default")
    with pytest.raises(NotFoundError):
        world.get("Secret", "t", "default")


def test_other_secrets_are_left_alone(world: ClusterWorld) -> None:
    world.create(obj("Secret", "s", data={"k": "dg=="}))
    assert world.get("Secret", "s", "default")["data"] == {"k": "dg=="}


def test_a_secret_that_may_not_change_stays_as_it_is(world: ClusterWorld) -> None:
    secret = obj("Secret", "t", type=TOKEN, immutable=True)
    secret["metadata"]["annotations"] = {NAME: "default"}
    world.create(secret)
    assert not world.get("Secret", "t", "default").get("data")


def test_the_certificate_comes_back(world: ClusterWorld) -> None:
    data = {"ca.crt": "certificate"}
    world.create(obj("ConfigMap", "kube-root-ca.crt", data=data))
    change = {"data": {"ca.crt": "mine", "more": "x"}}
    world.patch("ConfigMap", "kube-root-ca.crt", change, "default", patch_type="merge")
    assert certificate(world)["data"] == data
    first = certificate(world)["metadata"]["uid"]
    world.delete("ConfigMap", "kube-root-ca.crt", "default")
    assert certificate(world)["data"] == data
    assert certificate(world)["metadata"]["uid"] != first


def test_a_namespace_goes_with_its_certificate_and_tokens(world: ClusterWorld) -> None:
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}})
    world.create(obj("ConfigMap", "kube-root-ca.crt", "short", data={"ca.crt": "c"}))
    world.delete("Namespace", "short")
    world.settle()
    world.advance("1m")
    with pytest.raises(NotFoundError):
        world.get("Namespace", "short")


def test_a_world_that_has_none_gets_none(world: ClusterWorld) -> None:
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
    world.settle()
    assert [each["metadata"]["name"] for each in world.list("ConfigMap")] == []


def test_a_wiped_world_does_not_get_its_certificate_back(world: ClusterWorld) -> None:
    world.create(obj("ConfigMap", "kube-root-ca.crt", data={"ca.crt": "c"}))
    world.wipe()
    world.settle()
    assert world.list("ConfigMap") == []


def test_a_quota_on_accounts_does_not_stop_a_deletion(world: ClusterWorld) -> None:
    hard = {"hard": {"count/serviceaccounts": "1"}}
    world.create(obj("ResourceQuota", "q", spec=hard))
    world.settle()
    world.delete("ServiceAccount", "default", "default")
    assert world.settle().get("ResourceQuota", "q", "default")["status"]["used"] == {
        "count/serviceaccounts": "0"
    }
