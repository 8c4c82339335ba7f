"""Plugins with arguments: what they decide, whole-cluster and per node, and what becomes of those
that a configuration leaves without preparation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.cluster import Cluster
from kubescene.scheduler import MAX_NODE_SCORE
from kubescene.scheduler.plugins.scoring_strategies import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    ScoringStrategy,
    worth,
)
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject

V1 = "kubescheduler.config.k8s.io/v1"
ZONE = "topology.kubernetes.io/zone"


def cluster(**profile: Any) -> Cluster:
    header = {"apiVersion": V1, "kind": "KubeSchedulerConfiguration"}
    return Cluster(scheduler={**header, "profiles": [profile]})


def configured(plugin: str, **args: Any) -> Cluster:
    return cluster(pluginConfig=[{"name": plugin, "args": args}])


def message(world: Cluster, pod: str) -> str:
    return world.settle().pod(pod).why_pending


# -- SC-3 --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "used", "offered", "rating"),
    [
        pytest.param(LeastAllocated(), 25, 100, 75, id="SC-3 least"),
        pytest.param(LeastAllocated(), 101, 100, 0, id="SC-3 least, overfull"),
        pytest.param(MostAllocated(), 25, 100, 25, id="SC-3 most"),
        pytest.param(MostAllocated(), 101, 100, 100, id="SC-3 most, overfull"),
        pytest.param(
            RequestedToCapacityRatio([(0, 10), (70, 0)]), 33, 100, 53, id="SC-3 ratio, S-3"
        ),
        pytest.param(RequestedToCapacityRatio([(0, 10), (70, 0)]), 80, 100, 0, id="SC-3 beyond"),
        pytest.param(RequestedToCapacityRatio([(20, 3), (70, 8)]), 10, 100, 30, id="SC-3 before"),
        pytest.param(RequestedToCapacityRatio([(0, 0), (100, 10)]), 9, 8, 100, id="SC-3 overfull"),
    ],
)
def test_what_a_share_is_worth(
    strategy: ScoringStrategy, used: int, offered: int, rating: int
) -> None:
    assert strategy.rate(used, offered) == rating
    column = strategy.rate_nodes(np.array([used]), np.array([offered]))
    assert column.tolist() == [rating]


SHAPES = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=5).map(
    lambda points: sorted(dict(points).items())
)


@settings(deadline=None)
@given(SHAPES, st.lists(st.tuples(st.integers(0, 300), st.integers(1, 200)), min_size=1))
def test_a_column_of_nodes_is_rated_like_each_of_them(
    shape: list[tuple[int, int]], nodes: list[tuple[int, int]]
) -> None:
    used = np.array([each[0] for each in nodes], dtype=np.int64)
    offered = np.array([each[1] for each in nodes], dtype=np.int64)
    for strategy in (LeastAllocated(), MostAllocated(), RequestedToCapacityRatio(shape)):
        whole = strategy.rate_nodes(used.copy(), offered.copy()).tolist()
        assert whole == [strategy.rate(*each) for each in nodes]
        assert all(0 <= rating <= MAX_NODE_SCORE for rating in whole)
        weights = offered % 4
        average = strategy.average_nodes(used, weights * (used > 0)).tolist()
        pairs = zip(used.tolist(), (weights * (used > 0)).tolist(), strict=True)
        if strategy.counts_zero:
            assert average == [strategy.average(t, w) if w else t for t, w in pairs]


def test_s_3_a_falling_line_is_rounded_towards_zero() -> None:
    assert worth(33, [(0, 100), (70, 0)]) == 53
    assert worth(33, [(0, 0), (70, 100)]) == 47


def test_sc_3_a_ratio_of_0_does_not_count_and_halves_are_rounded_up() -> None:
    ratio = RequestedToCapacityRatio([(0, 0), (100, 10)])
    assert not ratio.counts_zero
    assert ratio.average(125, 2) == 63
    assert ratio.average(0, 0) == 0


@pytest.mark.parametrize(
    ("strategy", "chosen"), [("LeastAllocated", "empty"), ("MostAllocated", "used")]
)
def test_the_strategy_chooses_the_node(strategy: str, chosen: str) -> None:
    world = configured("NodeResourcesFit", scoringStrategy={"type": strategy})
    world.create(make_node("empty").cpu("4").memory("8Gi"))
    world.create(make_node("used").cpu("4").memory("8Gi"))
    world.create(make_pod("old").cpu("1").memory("2Gi").on("used"))
    world.create(make_pod("new").cpu("1").memory("2Gi"))
    assert world.settle().pod("new").node == chosen


# -- F-13 --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"ignoredResources": ["example.com/gpu"]}, id="F-13 by name"),
        pytest.param({"ignoredResourceGroups": ["example.com"]}, id="F-13 by group"),
    ],
)
def test_an_ignored_resource_is_not_missed(args: JsonObject) -> None:
    world = configured("NodeResourcesFit", **args)
    world.create(make_node("n").cpu("4").memory("8Gi"))
    pod = make_pod("p").cpu("1").build()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    world.create(pod)
    assert world.settle().pod("p").node == "n"


def test_f_13_other_resources_are_missed_all_the_same() -> None:
    world = configured("NodeResourcesFit", ignoredResourceGroups=["example.com"])
    world.create(make_node("n").cpu("4").memory("8Gi"))
    pod = make_pod("p").cpu("9").build()
    pod["spec"]["containers"][0]["resources"]["limits"] = {"other.org/gpu": "1"}
    world.create(pod)
    assert "1 Insufficient cpu, 1 Insufficient other.org/gpu" in message(world, "p")


# -- F-7, SC-2 ---------------------------------------------------------------------------------

IN_A = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [IN_A]}}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": IN_A}]}


def two_zones(world: Cluster) -> Cluster:
    for zone in "ba":
        world.create(make_node(f"node-{zone}").cpu("4").memory("8Gi").labels({ZONE: zone}))
    return world


def test_f_7_an_added_affinity_is_required_of_every_node_and_told_first() -> None:
    world = two_zones(configured("NodeAffinity", addedAffinity=REQUIRED))
    world.create(make_pod("p").cpu("1"))
    assert world.settle().pod("p").node == "node-a"
    pod = make_pod("q").cpu("1").build()
    pod["spec"]["nodeSelector"] = {ZONE: "b"}
    world.create(pod)
    text = message(world, "q")
    assert "1 node(s) didn't match scheduler-enforced node affinity" in text
    assert "1 node(s) didn't match Pod's node affinity/selector" in text


def test_sc_2_an_added_preference_counts_for_pods_without_their_own() -> None:
    world = two_zones(configured("NodeAffinity", addedAffinity=PREFERRED))
    world.create(make_pod("p").cpu("1"))
    assert world.settle().pod("p").node == "node-a"


# -- G-10 and G-15 ----------------------------------------------------------------------------


def off(*names: str) -> JsonObject:
    return {"disabled": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        pytest.param(
            {"preScore": off("TaintToleration")},
            'running Score plugins: plugin "TaintToleration" failed with: '
            'failed to read "PreScoreTaintToleration" from cycleState: not found',
            id="Score without PreScore",
        ),
        pytest.param(
            {"preFilter": off("NodeResourcesFit")},
            'running "NodeResourcesFit" filter plugin: '
            'error reading "PreFilterNodeResourcesFit" from cycleState: not found',
            id="Filter without PreFilter",
        ),
        pytest.param(
            {"preFilter": off("*"), "filter": off("*")},
            'running Score plugins: plugin "DynamicResources" failed with: not found',
            id="Score without PreFilter",
        ),
    ],
)
def test_a_plugin_without_its_preparation_fails_the_attempt(plugins: JsonObject, text: str) -> None:
    world = two_zones(cluster(plugins=plugins))
    world.create(make_pod("p").cpu("1"))
    assert message(world, "p") == text


def test_fit_and_balance_can_do_without_pre_score() -> None:
    both = off("NodeResourcesFit", "NodeResourcesBalancedAllocation")
    world = two_zones(cluster(plugins={"preScore": both}))
    world.create(make_pod("p").cpu("1"))
    world.create(make_pod("best-effort"))
    assert world.settle().pod("p").node == "node-b"
    assert world.pod("best-effort").node == "node-a"


def test_without_score_plugins_the_first_node_is_taken_and_the_start_moves_on() -> None:
    world = two_zones(cluster(plugins={"score": off("*"), "preScore": off("*")}))
    for name in "pq":
        world.create(make_pod(name).cpu("1"))
    world.settle()
    assert [world.pod(name).node for name in "pq"] == ["node-b", "node-a"]
