"""Whole worlds with and without the shortcuts of writes: the same objects, the same story."""

import pytest

import kubescene
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.registry.shortcuts import NAMES
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from kubescene.testing import make_deployment, make_node, make_pod
from random_scenarios import random_scenario


def story(seed: int, *, plain: bool) -> tuple[bytes, list[str]]:
    run = kubescene.run(random_scenario(seed), plain=plain)
    return run.cluster.export(), [repr(fact) for fact in run.log]


@pytest.mark.parametrize("seed", range(900, 906))
def test_scenarios_made_by_lot_end_alike(seed: int) -> None:
    assert story(seed, plain=False) == story(seed, plain=True)


def world(shortcuts: Shortcuts) -> bytes:
    """Pods are made, bound, started, owned and deleted."""
    cluster = Cluster(ClusterOptions(shortcuts=shortcuts))
    for number in range(4):
        cluster.create(make_node(f"n-{number}").cpu("8").memory("8Gi"))
    cluster.create(make_deployment("web").replicas(6))
    for number in range(6):
        cluster.create(make_pod(f"p-{number}").cpu("1"))
    cluster.settle()
    for number in range(3):
        cluster.delete("Pod", f"p-{number}")
    cluster.settle()
    return cluster.export()


@pytest.mark.parametrize("name", NAMES)
def test_each_shortcut_can_be_switched_off_alone(name: str) -> None:
    assert world(ALL.without(name)) == world(ALL) == world(PLAIN)
