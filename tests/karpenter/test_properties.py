"""Laws of Karpenter that hold in any world."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from karpenter_worlds import CAPACITY, KarpenterCluster, catalogue, deployment, kind, pool, wants

KIND_SETS = (
    (kind("m-2", 2, "0.1"), kind("m-8", 8, "0.4")),
    (kind("m-4", 4, "0.2", spot="0.07"), kind("c-16", 16, "0.7", "a", spot="0.3")),
    (kind("m-2", 2, "0.1", "a"), kind("m-4", 4, "0.19", "b"), kind("m-8", 8, "0.41")),
)
CORES = ("100m", "500m", "1", "1500m")
LOADS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(CORES), st.integers(0, 12)),
    min_size=1,
    max_size=3,
)
WORLDS = st.tuples(
    st.sampled_from(KIND_SETS),
    st.sampled_from((("on-demand",), ("spot", "on-demand"))),
    st.sampled_from(("0s", "30s", "Never")),
    LOADS,
)


def cluster_of(world: Any) -> KarpenterCluster:
    kinds, capacity, wait, loads = world
    if not any(offer.get("capacityType") for each in kinds for offer in each["offers"]):
        capacity = ("on-demand",)
    general = pool("general", wants(CAPACITY, *capacity), disruption={"consolidateAfter": wait})
    cluster = KarpenterCluster(catalogue(*kinds), general)
    for number, (replicas, cores, _) in enumerate(loads):
        cluster.add(deployment(replicas, cores, f"web-{number}"))
    return cluster


def rescaled(cluster: KarpenterCluster, world: Any) -> KarpenterCluster:
    for number, (_, _, replicas) in enumerate(world[3]):
        cluster.scale(replicas, f"web-{number}")
    return cluster


def state_of(cluster: KarpenterCluster) -> list[Any]:
    """All that people see, as it is told."""
    return [
        sorted(map(str, cluster.world.list(each)))
        for each in ("nodes", "nodeclaims", "pods", "instances")
    ]


def used(pods: Iterable[Any]) -> Decimal:
    total = Decimal(0)
    for each in pods:
        text = each["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        total += Decimal(text[:-1]) / 1000 if text.endswith("m") else Decimal(text)
    return total


@given(world=WORLDS)
@settings(max_examples=25, deadline=None)
def test_no_pod_that_a_machine_holds_is_left_waiting(world: Any) -> None:
    cluster = cluster_of(world).after("10m")
    assert cluster.waiting == []
    rescaled(cluster, world).after("20m")
    assert cluster.waiting == []


@given(world=WORLDS)
@settings(max_examples=25, deadline=None)
def test_no_machine_holds_more_than_it_has_and_each_has_its_claim(world: Any) -> None:
    cluster = rescaled(cluster_of(world).after("10m"), world).after("7m")
    pods = list(cluster.world.list("pods"))
    for node in cluster.nodes:
        name = node["metadata"]["name"]
        here = [each for each in pods if each["spec"].get("nodeName") == name]
        assert used(here) <= Decimal(node["status"]["capacity"]["cpu"])
        assert len(here) <= int(node["status"]["capacity"]["pods"])
    claims = {each["metadata"]["name"] for each in cluster.claims}
    machines = {each["metadata"]["name"] for each in cluster.world.list("instances")}
    assert {each["metadata"]["name"] for each in cluster.nodes} <= machines
    assert machines == claims


@given(world=WORLDS)
@settings(max_examples=25, deadline=None)
def test_what_is_left_without_a_load_is_nothing_unless_the_pool_never_gives_up(world: Any) -> None:
    cluster = cluster_of(world).after("10m")
    before = len(cluster.nodes)
    for number in range(len(world[3])):
        cluster.scale(0, f"web-{number}")
    cluster.after("15m")
    assert len(cluster.nodes) == (before if world[2] == "Never" else 0)


@given(world=WORLDS, cuts=st.lists(st.integers(1, 1199), max_size=4))
@settings(max_examples=15, deadline=None)
def test_time_may_pass_in_pieces(world: Any, cuts: list[int]) -> None:
    whole = rescaled(cluster_of(world).after("10m"), world).after("20m")
    cut = rescaled(cluster_of(world).after("10m"), world)
    at = 0
    for each in [*sorted(set(cuts)), 1200]:
        cut.after(f"{each - at}s")
        at = each
    assert state_of(cut) == state_of(whole)


@given(world=WORLDS, at=st.integers(1, 1199))
@settings(max_examples=15, deadline=None)
def test_a_copy_goes_on_as_the_world_does(world: Any, at: int) -> None:
    cluster = rescaled(cluster_of(world).after("10m"), world).after(f"{at}s")
    copy = cluster.world.fork()
    cluster.after(f"{1200 - at}s")
    copy.advance(f"{1200 - at}s")
    cluster_state = state_of(cluster)
    cluster.world = copy
    assert state_of(cluster) == cluster_state
