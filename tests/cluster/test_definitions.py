"""The kinds that controllers bring along are part of the world, whatever becomes of them."""

import pytest

import kubescene
from kubescene.cluster import ClusterWorld
from kubescene.cluster.options import ClusterOptions, builtin_controllers

DEFINITIONS = "customresourcedefinitions"
OURS = [each["metadata"]["name"] for each in builtin_controllers(ClusterOptions()).definitions]


@pytest.mark.parametrize("name", OURS)
def test_a_definition_that_was_deleted_is_there_when_controllers_begin(name: str) -> None:
    world = ClusterWorld()
    before = world.get(DEFINITIONS, name)
    world.delete(DEFINITIONS, name)
    world.start(list(world.registrations))
    assert world.get(DEFINITIONS, name)["spec"] == before["spec"]
    assert world.list(before["spec"]["names"]["plural"]) == []


@pytest.mark.parametrize("name", OURS)
def test_one_that_is_not_served_any_more_is_made_anew(name: str) -> None:
    world = ClusterWorld()
    before = world.get(DEFINITIONS, name)
    versions = [{**each, "served": False} for each in before["spec"]["versions"]]
    world.patch(DEFINITIONS, name, {"spec": {"versions": versions}}, patch_type="merge")
    world.start(list(world.registrations))
    assert world.get(DEFINITIONS, name)["spec"] == before["spec"]


def test_so_they_are_in_a_cluster_that_settles() -> None:
    cluster = kubescene.Cluster()
    for name in OURS:
        cluster.delete(DEFINITIONS, name)
    cluster.settle()
    assert [each["metadata"]["name"] for each in cluster.list(DEFINITIONS)] == sorted(OURS)


def test_what_is_there_is_left_alone() -> None:
    world = ClusterWorld()
    revision = world.revision
    world.start(list(world.registrations))
    assert world.revision == revision
