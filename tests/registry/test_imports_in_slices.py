"""A large import lets others write meanwhile."""

import pytest

from kubescene.actors import Actor
from kubescene.cluster import Cluster
from kubescene.errors import BadRequestError
from kubescene.registry import exports
from kubescene.types import JsonObject

USER = Actor("user")


def config_map(name: str) -> JsonObject:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def test_others_have_a_turn_after_every_hundred_objects(cluster: Cluster) -> None:
    document = {"items": [config_map(f"a-{each}") for each in range(500)]}
    slices = exports.importing(cluster.registry, USER, document)
    turns = 0
    for turns, _ in enumerate(slices, 1):
        cluster.create(config_map(f"other-{turns}"))
    assert turns >= 2 * 500 // exports.AT_ONCE
    assert len(cluster.list("configmaps")) == 500 + turns


def test_nothing_is_written_if_the_last_object_is_bad(cluster: Cluster) -> None:
    before = len(cluster.list("configmaps"))
    document = {"items": [*(config_map(f"a-{each}") for each in range(300)), {"kind": []}]}
    with pytest.raises(BadRequestError, match=r"items\[300\]"):
        list(exports.importing(cluster.registry, USER, document))
    assert len(cluster.list("configmaps")) == before
