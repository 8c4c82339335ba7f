"""The embedded client: revisions, watches and what a component may rely on."""

import pytest

import kubescene
from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import Change
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import ConflictError, NotFoundError, ReentrantWriteError
from kubescene.testing import make_pod


@pytest.fixture
def client() -> DirectClient:
    return kubescene.Cluster().client(Actor("tester"))


def test_a_write_is_seen_when_it_returns(client: DirectClient) -> None:
    seen: list[int] = []
    client.watch(POD, lambda change: seen.append(change.revision))
    record = client.create(make_pod("a").build())
    client.wait_seen(record.revision)
    assert seen == [record.revision]


def test_waiting_for_a_revision_that_does_not_exist_is_refused(client: DirectClient) -> None:
    with pytest.raises(ValueError, match="does not exist yet"):
        client.wait_seen(10**9)


def test_a_watch_begins_with_what_exists(client: DirectClient) -> None:
    client.create(make_pod("a").build())
    names: list[str] = []
    client.watch(POD, lambda change: names.append(change.record.name))
    client.create(make_pod("b").build())
    assert names == ["a", "b"]


def test_handlers_may_not_write(client: DirectClient) -> None:
    def handler(change: Change) -> None:
        client.delete(ObjectRef(POD, change.record.name, "default"))

    client.watch(POD, handler)
    with pytest.raises(ReentrantWriteError, match="enqueue the work"):
        client.create(make_pod("a").build())


def test_binding_happens_once(client: DirectClient) -> None:
    client.create(make_pod("a").build())
    ref = ObjectRef(POD, "a", "default")
    assert client.bind(ref, "n1").node == "n1"
    with pytest.raises(ConflictError, match='already assigned to node "n1"'):
        client.bind(ref, "n2")


def test_a_stale_update_is_a_conflict(client: DirectClient) -> None:
    stale = client.create(make_pod("a").build()).decode()
    ref = ObjectRef(POD, "a", "default")
    client.patch(ref, {"metadata": {"labels": {"x": "y"}}})
    with pytest.raises(ConflictError, match="the object has been modified"):
        client.update(stale)


def test_a_delete_for_another_uid_is_a_conflict(client: DirectClient) -> None:
    client.create(make_pod("a").build())
    with pytest.raises(ConflictError, match="UID in precondition"):
        client.delete(ObjectRef(POD, "a", "default"), options=DeleteOptions(uid="somebody-else"))


def test_find_returns_none_where_get_raises(client: DirectClient) -> None:
    ref = ObjectRef(POD, "a", "default")
    assert client.find(ref) is None
    with pytest.raises(NotFoundError):
        client.get(ref)


def test_owned_objects_come_in_order_of_creation(client: DirectClient) -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "o", "uid": "u1", "controller": True}
    for name in ("b", "a"):
        pod = make_pod(name).build()
        client.create({**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}})
    assert [pod["metadata"]["name"] for pod in client.owned(POD, "u1")] == ["b", "a"]
