"""Coming to rest, and giving up on those who never do."""

import pytest

from kubescene.cluster import Cluster
from kubescene.errors import NotFoundError
from kubescene.testing import make_node, make_replica_set


def test_a_mass_deletion_is_not_a_livelock(cluster: Cluster) -> None:
    cluster.create(make_node("n").cpu("64").memory("64Gi").pods("500"))
    cluster.create(make_replica_set("web").replicas(300))
    cluster.settle()
    cluster.delete("replicaset", "web")
    cluster.settle(max_rounds=20)
    assert cluster.list("pods") == []
    with pytest.raises(NotFoundError):
        cluster.get("replicaset", "web")
