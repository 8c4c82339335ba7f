"""The gate is asked once per write, and never for what is not written."""

from collections.abc import Callable

import pytest

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.gates import OpenGate, role_without_scenario
from kubescene.api.kinds import POD
from kubescene.api.options import WriteOptions
from kubescene.api.scheme import ResourceType
from kubescene.client import DirectClient, ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.testing import make_pod

REF = ObjectRef(POD, "a", "default")


class Counting:
    def __init__(self) -> None:
        self.asked = 0

    def role_of(self, actor: Actor) -> Role:
        return role_without_scenario(actor)

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        del actor, resource_type, subresource
        self.asked += 1


@pytest.fixture
def client(cluster: ClusterWorld) -> DirectClient:
    held = make_pod("a").build()
    cluster.create({**held, "metadata": {**held["metadata"], "finalizers": ["example.dev/x"]}})
    return cluster.client(Actor("tester"))


def test_every_kind_of_write_asks_once(cluster: ClusterWorld, client: DirectClient) -> None:
    gate = cluster.registry.gate = Counting()
    asked = []
    writes: tuple[Callable[[], object], ...] = (
        lambda: client.patch(REF, {"metadata": {"labels": {"x": "y"}}}),
        lambda: client.bind(REF, "n"),
        lambda: client.delete(REF),
        lambda: client.patch(REF, {"metadata": {"deletionGracePeriodSeconds": 0}}),
        lambda: client.create(make_pod("b").build()),
    )
    for write in writes:
        write()
        asked.append(gate.asked)
        gate.asked = 0
    assert asked == [1, 1, 1, 0, 1]


def test_removing_the_last_finalizer_asks_once(cluster: ClusterWorld, client: DirectClient) -> None:
    client.delete(REF)
    gate = cluster.registry.gate = Counting()
    client.patch(REF, {"metadata": {"finalizers": None}})
    assert (gate.asked, client.find(REF)) == (1, None)


def test_a_dry_run_does_not_ask(cluster: ClusterWorld, client: DirectClient) -> None:
    gate = cluster.registry.gate = Counting()
    client.create(make_pod("b").build(), options=WriteOptions(dry_run=True))
    assert gate.asked == 0


def test_without_a_scenario_only_what_the_world_made_is_more_than_a_user(
    cluster: ClusterWorld,
) -> None:
    actors = (ENGINE, cluster.registrations.actor("kube-scheduler"), Actor("kube-scheduler"))
    roles = [OpenGate().role_of(actor) for actor in actors]
    assert roles == [Role.ENGINE, Role.PRESIMULATION, Role.USER]
