"""Scaling in process: the same rules as over HTTP."""

import pytest

from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import ConflictError, InvalidError, NotFoundError
from kubescene.registry import Registry
from kubescene.testing import make_pod, make_replica_set
from registry.conftest import USER

WEB = ObjectRef(REPLICA_SET, "web", "default")


@pytest.fixture
def scaled(client: DirectClient) -> DirectClient:
    client.create(make_replica_set("web").replicas(2).build())
    return client


def test_a_scale_shows_replicas_and_selector(scaled: DirectClient) -> None:
    scale = scaled.get_scale(WEB)
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}


def test_scaling_changes_the_replicas_alone(scaled: DirectClient) -> None:
    before = scaled.get(WEB)
    assert scaled.scale(WEB, 5).decode()["spec"]["replicas"] == 5
    after = scaled.get(WEB)
    assert after["spec"] == {**before["spec"], "replicas": 5}
    assert after["metadata"]["generation"] == 2


def test_scaling_to_nothing(scaled: DirectClient) -> None:
    scaled.scale(WEB, 0)
    assert scaled.get(WEB)["spec"]["replicas"] == 0


def test_less_than_nothing_is_refused(scaled: DirectClient) -> None:
    with pytest.raises(InvalidError, match=r"spec\.replicas: Invalid value: -1"):
        scaled.scale(WEB, -1)


def test_a_kind_without_scale(client: DirectClient) -> None:
    client.create(make_pod("a").build())
    with pytest.raises(NotFoundError, match="could not find the requested resource"):
        client.scale(ObjectRef(POD, "a", "default"), 2)


def test_a_stale_scale_is_a_conflict(scaled: DirectClient, registry: Registry) -> None:
    stale = scaled.get_scale(WEB)
    scaled.scale(WEB, 3)
    sets = registry.type_of(REPLICA_SET)
    with pytest.raises(ConflictError, match="the object has been modified"):
        registry.scales.update(USER, sets, "default", "web", stale)


def test_the_owner_of_the_number_came_through_scale(
    client: DirectClient, registry: Registry
) -> None:
    registry.track_fields = True
    client.create(make_replica_set("web").replicas(2).build())
    client.scale(WEB, 3)
    entry = client.get(WEB)["metadata"]["managedFields"][-1]
    assert (entry["manager"], entry["subresource"]) == ("user", "scale")
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
