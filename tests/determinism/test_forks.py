"""A world is a value: a copy of it goes on alike, and the original does not notice."""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from kubescene.api.kinds import POD
from kubescene.cluster import Cluster, ClusterWorld
from kubescene.runs.staging import cluster_options
from kubescene.scenario import Engine, ScenarioPhase, load_scenario
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject
from playing import begun, reads_files

EXAMPLES = [
    path
    for path in sorted(Path(__file__).parents[2].glob("examples/*/scenario.yaml"))
    if not reads_files(path)
]
EVERY, EVERY_OF_MANY = 7, 37
"""Not every moment of an example, but moments of every kind; fewer of the one with many nodes."""
MOST = 60
"""So many forks of an example that passes through thousands of moments."""
KEPT = 3
"""So many forks wait while the original goes on, before they are played beside it."""


def played(scenario: JsonObject) -> Engine:
    return begun(ClusterWorld(cluster_options(scenario, None)), scenario)


def outcome(engine: Engine) -> tuple[ScenarioPhase, bytes, bytes]:
    """Everything a scenario leaves behind: its status with the timeline, and the world."""
    phase = engine.run()
    assert isinstance(engine.scenario, ScenarioResource)
    assert isinstance(engine.world, Cluster)
    return phase, engine.scenario.data, engine.world.export()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_forks_go_on_alike_and_the_original_does_not_notice(path: Path) -> None:
    scenario = load_scenario(path)
    expected = outcome(played(scenario))
    engine = played(scenario)
    forks, made = deque[Engine](), 0
    every = EVERY_OF_MANY if "thousand" in path.parent.name else EVERY
    every = max(every, sum(1 for _ in played(scenario).play()) // MOST)
    for _ in islice(engine.play(), 0, None, every):
        forks.append(engine.fork())
        made += 1
        if len(forks) > KEPT:
            assert outcome(forks.popleft()) == expected
    assert made > 5
    assert outcome(engine) == expected
    assert all(outcome(fork) == expected for fork in forks)


def test_a_fork_of_a_fork_goes_on_alike() -> None:
    scenario = load_scenario(EXAMPLES[0])
    expected = outcome(played(scenario))
    engine = played(scenario)
    while not engine.is_over:
        for _ in islice(engine.play(), EVERY):
            pass
        engine = engine.fork()
    assert outcome(engine) == expected


def busy_world() -> Cluster:
    cluster = Cluster()
    for number in range(5):
        cluster.create(make_node(f"n{number}").cpu("4").memory("8Gi"))
    cluster.create(make_deployment("web").replicas(6))
    cluster.create(make_pod("huge").cpu("64"))
    return cluster.settle()


def later(cluster: Cluster) -> bytes:
    """The world after something happened that all controllers have to do with."""
    cluster.create(make_node("big").cpu("128").memory("64Gi"))
    cluster.patch("deployments", "web", {"spec": {"replicas": 9}})
    cluster.delete("nodes", "n0")
    return cluster.advance("10m").export()


def test_a_fork_of_a_cluster_goes_on_alike() -> None:
    expected = later(busy_world())
    cluster = busy_world()
    fork = cluster.fork()
    before = cluster.export()
    assert later(fork) == expected
    assert cluster.export() == before
    assert later(cluster) == expected
    assert fork.pod("huge").node == "big"


def test_a_fork_keeps_its_own_time_chance_and_names() -> None:
    cluster = busy_world()
    fork = cluster.fork()
    draws = [cluster.streams.stream("x").next_u64() for _ in range(3)]
    assert [fork.streams.stream("x").next_u64() for _ in range(3)] == draws
    fork.advance("1h")
    assert fork.clock.now() > cluster.clock.now()
    ours, theirs = (generated(world) for world in (cluster, fork))
    assert ours == theirs


def generated(cluster: Cluster) -> list[str]:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}
    return [cluster.create(body)["metadata"]["name"] for _ in range(3)]


def test_watches_of_a_fork_belong_to_the_fork() -> None:
    cluster = busy_world()
    watch = cluster.watch("pods")
    fork = cluster.fork()
    fork.create(make_pod("only-there"))
    assert list(watch.drain()) == []
    assert names(cluster.list("pods")) != names(fork.list("pods"))


def test_a_function_that_looks_on_stays_with_the_original() -> None:
    cluster = busy_world()
    heard: list[str] = []
    cluster.client(cluster.actor).watch(POD, lambda change: heard.append(change.record.name))
    heard.clear()
    cluster.fork().create(make_pod("only-there"))
    assert heard == []


def names(objects: list[JsonObject]) -> Iterator[str]:
    return iter([obj["metadata"]["name"] for obj in objects])
