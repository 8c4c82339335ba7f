"""The library's verbs: what `kubescene.Cluster` offers to people."""

import pytest

import kubescene
from kubescene.errors import AlreadyExistsError, InvalidError, NotFoundError
from kubescene.testing import make_node, make_pod, make_replica_set


@pytest.fixture
def cluster() -> kubescene.Cluster:
    return kubescene.Cluster()


def test_late_pod_waits_for_node(cluster: kubescene.Cluster) -> None:
    cluster.create(make_pod("a").cpu("2"))
    assert cluster.settle().pod("a").is_pending
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    assert cluster.settle().pod("a").node == "n1"
    assert cluster.pod("a").is_ready
    assert cluster.node("n1").is_ready


def test_a_pending_pod_says_why(cluster: kubescene.Cluster) -> None:
    cluster.create(make_node("n1").cpu("1").memory("8Gi"))
    cluster.create(make_pod("a").cpu("2"))
    why = cluster.settle().pod("a").why_pending
    assert why.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_created_objects_are_complete(cluster: kubescene.Cluster) -> None:
    pod = cluster.create(make_pod("a"))
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert pod["metadata"]["uid"]
    assert pod["status"]["phase"] == "Pending"


def test_dry_run_writes_nothing(cluster: kubescene.Cluster) -> None:
    revision = cluster.store.revision
    assert cluster.create(make_pod("a"), dry_run=True)["metadata"]["uid"]
    assert cluster.store.revision == revision
    with pytest.raises(NotFoundError, match='pods "a" not found'):
        cluster.get("pod", "a")


def test_creating_twice_is_refused(cluster: kubescene.Cluster) -> None:
    cluster.create(make_pod("a"))
    with pytest.raises(AlreadyExistsError, match='pods "a" already exists'):
        cluster.create(make_pod("a"))


def test_invalid_objects_are_refused_with_their_causes(cluster: kubescene.Cluster) -> None:
    pod = make_pod("a").build() | {"spec": {"containers": []}}
    with pytest.raises(InvalidError) as refused:
        cluster.create(pod)
    assert refused.value.to_status()["details"]["causes"][0]["field"] == "spec.containers"


def test_apply_creates_then_changes_only_what_it_owns(cluster: kubescene.Cluster) -> None:
    cluster.apply(make_pod("a").label(tier="web", track="canary"))
    cluster.patch("pod", "a", {"metadata": {"labels": {"owner": "somebody"}}})
    labels = cluster.apply(make_pod("a").label(tier="api"))["metadata"]["labels"]
    assert labels == {"tier": "api", "owner": "somebody"}


def test_applying_the_same_again_changes_nothing(cluster: kubescene.Cluster) -> None:
    cluster.apply(make_replica_set("web").replicas(3))
    revision = cluster.store.revision
    cluster.apply(make_replica_set("web").replicas(3))
    assert cluster.store.revision == revision


@pytest.mark.parametrize("kind", ["Pod", "pods", "po", "pod"])
def test_kinds_go_by_every_name(cluster: kubescene.Cluster, kind: str) -> None:
    cluster.create(make_pod("a"))
    assert cluster.get(kind, "a")["kind"] == "Pod"


def test_lists_are_selected_by_labels_and_fields(cluster: kubescene.Cluster) -> None:
    cluster.create(make_pod("a").label(app="x"))
    cluster.create(make_pod("b").label(app="y").on("n1"))
    by_label = cluster.list("pods", labels="app=x")
    by_field = cluster.list("pods", fields="spec.nodeName=n1")
    names = [[pod["metadata"]["name"] for pod in found] for found in (by_label, by_field)]
    assert names == [["a"], ["b"]]


def test_watch_tells_what_happened_since(cluster: kubescene.Cluster) -> None:
    watch = cluster.watch("pods")
    cluster.create(make_pod("a"))
    cluster.delete("pod", "a")
    assert [kind for kind, _ in watch.drain()] == ["ADDED", "DELETED"]
    assert list(watch.drain()) == []
    watch.close()


def test_deleting_an_assigned_pod_waits_for_its_kubelet(cluster: kubescene.Cluster) -> None:
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    deleting = cluster.delete("pod", "a")
    assert deleting["metadata"]["deletionGracePeriodSeconds"] == 30
    with pytest.raises(NotFoundError):
        cluster.settle().pod("a")


def test_the_same_calls_give_the_same_bytes() -> None:
    def play() -> list[bytes]:
        cluster = kubescene.Cluster()
        cluster.create(make_node("n1").cpu("4").memory("8Gi"))
        cluster.create(make_replica_set("web").replicas(5))
        cluster.settle()
        store = cluster.store
        return [record.data for resource in store.resources() for record in store.list(resource)]

    assert play() == play()


def test_what_was_handed_over_may_be_changed_afterwards(cluster: kubescene.Cluster) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x": "1"}}
    cluster.create(obj)
    obj["data"] |= {"x": "2"}  # type: ignore[operator]  # a dict of dicts
    assert cluster.get("cm", "c")["data"] == {"x": "1"}
    assert cluster.update(obj)["data"] == {"x": "2"}
