"""Node hints for runs of pods that are alike. [B-1, B-2]"""

import numpy as np
import pytest

from kubescene.clock import MILLISECOND
from kubescene.scheduler import Profile, default_profile
from kubescene.scheduler.cycle.batching import Ranking
from kubescene.scheduler.cycle.best_node import pick
from kubescene.testing.builders import PodBuilder, make_node, make_pod
from scheduler.staging import Stage

ARGUMENTS = {"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": []}}


def stage(*, signs: bool = True) -> Stage:
    """Nodes for one pod each; pods are alike if default constraints are off."""
    default = default_profile()
    profile = Profile(default.scheduler_name, default.points, ARGUMENTS if signs else {})
    world = Stage(profiles=(profile,))
    world.nodes("a", "b", "c", cpu="2")
    return world


def looked_at(world: Stage, *pods: PodBuilder) -> list[tuple[str, int]]:
    world.create(*pods)
    return [(each.node, each.evaluated) for each in world.work()]


def big(name: str) -> PodBuilder:
    return make_pod(name).cpu("1500m").label(app="x")


def test_b_2_the_next_best_node_is_tried_first_when_the_last_one_is_full() -> None:
    seen = looked_at(stage(), big("p"), big("q"), big("r"))
    assert sorted(node for node, _ in seen) == ["a", "b", "c"]
    assert [evaluated for _, evaluated in seen] == [3, 1, 1]


def test_b_1_without_signatures_every_pod_is_looked_for_anew() -> None:
    seen = looked_at(stage(signs=False), big("p"), big("q"), big("r"))
    assert [evaluated for _, evaluated in seen] == [3, 3, 3]


def test_b_2_a_node_that_takes_another_pod_gives_no_hint() -> None:
    seen = looked_at(stage(), *(make_pod(name).cpu("500m") for name in "pq"))
    assert [evaluated for _, evaluated in seen] == [3, 3]


def test_b_2_hints_are_those_of_the_last_search() -> None:
    """Not those that are left of the search before, which liked other nodes."""
    world = stage()
    for name, cpu, memory in (("c", "4", "4Gi"), ("m", "3", "9Gi")):
        for number in "123":
            world.create(make_node(f"{name}{number}").cpu(cpu).memory(memory).pods("1"))
    by_cpu = [make_pod(f"p{number}").cpu("2").memory("1Gi") for number in range(2)]
    by_memory = [make_pod(f"r{number}").cpu("1").memory("3Gi") for number in range(2)]
    seen = looked_at(world, *by_cpu, *by_memory)
    assert [node[0] for node, _ in seen] == ["c", "c", "m", "m"]
    assert [evaluated for _, evaluated in seen] == [9, 1, 9, 1]


@pytest.mark.parametrize(
    "second",
    [
        make_pod("q").cpu("2").label(app="x"),
        make_pod("q").cpu("1500m").label(app="y"),
        make_pod("q").cpu("1500m").label(app="x").tolerate("t"),
        make_pod("q").cpu("1500m").label(app="x").select(disk="ssd"),
    ],
    ids=["resources", "labels", "tolerations", "node selector"],
)
def test_b_1_pods_that_are_signed_differently_are_not_alike(second: PodBuilder) -> None:
    signing = stage().scheduler.cycle_of("default-scheduler").batch._signing
    world = stage()
    world.create(big("p"), second)
    first, other = (world.scheduler.queue.get(world.uid(name)) for name in ("p", "q"))
    assert first is not None
    assert other is not None
    assert signing.of(first.pod) is not None
    assert signing.of(first.pod) != signing.of(other.pod)


def test_b_1_default_constraints_of_spreading_sign_nobody() -> None:
    world = stage(signs=False)
    world.create(big("p"))
    entry = world.scheduler.queue.get(world.uid("p"))
    assert entry is not None
    assert world.scheduler.cycle_of("default-scheduler").batch._signing.of(entry.pod) is None


def test_b_2_hints_are_forgotten_after_half_a_second() -> None:
    world = stage()
    world.create(big("p"))
    world.work()
    batch, queue = world.scheduler.cycle_of("default-scheduler").batch, world.scheduler.queue
    world.create(big("q"))
    entry = queue.get(world.uid("q"))
    assert entry is not None
    assert batch.may_hint(entry.pod, queue.cycle + 1)
    assert not batch.may_hint(entry.pod, queue.cycle + 2)
    world.pass_time(500 * MILLISECOND)
    assert batch.may_hint(entry.pod, queue.cycle + 1)
    world.pass_time(MILLISECOND)
    assert not batch.may_hint(entry.pod, queue.cycle + 1)


@pytest.mark.parametrize(
    "totals", [[1, 5, 10, 10], [10, 10, 10], [5, 7, 9, 9, 9], [5, 5, 9, 5, 5, 9, 9]]
)
def test_c_14_a_ranking_begins_with_the_node_that_is_picked(totals: list[int]) -> None:
    scores = np.array(totals, dtype=np.int64)
    names = [str(index) for index in range(len(totals))]
    ranking = Ranking(names, np.arange(len(totals)), scores)
    order = [int(ranking.pop()) for _ in totals]
    assert order[0] == pick(scores)
    assert [totals[index] for index in order] == sorted(totals, reverse=True)
