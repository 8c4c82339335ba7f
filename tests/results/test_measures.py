"""Measures of a small run, worked out by hand.

Two nodes of 4 cpu and 8Gi; after a minute two pods of 1 cpu, which get a node each; after another a
third of 3500m, which fits on neither; two minutes pass.
"""

import math

import pytest

import kubescene
from kubescene.results import Prices, open_run
from kubescene.results.measures import measures
from kubescene.runs.local import Run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_priority_class

LABEL = "node.kubernetes.io/instance-type"


def waiting() -> ScenarioBuilder:
    """Step 1: nodes, 60 s. Step 2: a, b (1 cpu, 1Gi), 60 s. Step 3: big (3500m) waits, 120 s."""
    return (
        ScenarioBuilder("by-hand")
        .create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=2)
        .advance("60s")
        .step(2)
        .create(make_pod("a").cpu("1").memory("1Gi"), make_pod("b").cpu("1").memory("1Gi"))
        .advance("60s")
        .step(3)
        .create(make_pod("big").cpu("3500m"))
        .advance("120s")
        .done()
    )


@pytest.fixture(scope="module")
def run() -> Run:
    return kubescene.run(waiting())


@pytest.fixture(scope="module")
def found(run: Run) -> dict[str, float]:
    return measures(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 3),
        ("virtual_seconds", 240.0),
        ("node_hours", 2 * 240 / 3600),
        ("pods_created", 3),
        ("pods_bound", 2),
        ("pods_pending", 1),
        ("pods_deleted", 0),
        ("pods_terminating", 0),
        ("pods_finished", 0),
        ("pods_ever_bound", 2),
        ("pods_never_bound", 1),
        # a and b at once, big for 120 s until the end
        ("pending_seconds_mean", 120 / 3),
        ("pending_seconds_p50", 0.0),
        ("pending_seconds_max", 120.0),
        ("pending_steps_mean", 0.0),
        ("pending_steps_max", 0),
        ("attempts_failed", 1),
        ("attempts", 3),
        ("attempts_per_placement", 3 / 2),
        ("preemptions", 0),
        ("preemptors", 0),
        ("nodes", 2),
        ("nodes_empty", 0),
        ("allocation_cpu", 2 / 8),
        ("allocation_memory", 2 / 16),
        ("allocation_pods", 2 / 220),
        ("allocation_peak_cpu", 2 / 8),
        # nothing for 60 s, then 2 of 8 for 180 s
        ("allocation_mean_cpu", 2 / 8 * 180 / 240),
        ("utilization_min_cpu", 1 / 4),
        ("utilization_mean_cpu", 1 / 4),
        ("utilization_max_cpu", 1 / 4),
        ("imbalance_cpu", 0.0),
        ("imbalance_within_nodes", 1 / 4 - 1 / 8),
        ("utilization_peak_cpu", 1 / 4),
        # 3 cpu are free on each: one pod of three does not fit, and that asks for no memory
        ("fragmentation_cpu", 1 / 3),
        ("fragmentation_memory", 0.0),
    ],
)
def test_a_measure_is_what_the_hand_computes(
    found: dict[str, float], name: str, value: float
) -> None:
    assert found[name] == pytest.approx(value, rel=1e-12)


def test_percentiles_that_are_not_known_are_absent(found: dict[str, float]) -> None:
    """One pod of three never had a node: within what time 90 % have one, nobody can say."""
    assert "pending_seconds_p90" not in found


def test_a_resource_that_is_all_taken_cannot_be_fragmented() -> None:
    run = kubescene.run(
        ScenarioBuilder("full").create(make_node("n").cpu("1"), make_pod("a").cpu("1")).done()
    )
    assert "fragmentation_cpu" not in measures(run)


def test_room_that_is_just_enough_is_of_use() -> None:
    """A pod of 3 cpu on one of two nodes of 3: it would fit on the other, too."""
    nodes = make_node("n-$(INDEX)").cpu("3")
    scenario = ScenarioBuilder("tight").create(nodes, count=2).create(make_pod("a").cpu("3"))
    found = measures(kubescene.run(scenario.done()))
    assert found["fragmentation_cpu"] == 0.0


def test_room_without_a_place_for_a_pod_is_of_no_use() -> None:
    scenario = ScenarioBuilder("few").create(make_node("n").cpu("4").pods("1"))
    found = measures(kubescene.run(scenario.create(make_pod("a").cpu("1")).done()))
    assert found["fragmentation_cpu"] == 1.0


def test_a_pod_that_asks_for_what_nobody_offers_can_use_nothing() -> None:
    gpu = make_pod("a").build()
    amounts = {"cpu": "1", "example.com/gpu": "1"}
    gpu["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    scenario = ScenarioBuilder("gpu").create(make_node("n").cpu("4"), gpu, make_pod("b").cpu("1"))
    assert measures(kubescene.run(scenario.done()))["fragmentation_cpu"] == 0.5


def test_pods_that_do_not_ask_for_a_resource_do_not_dilute_its_fragmentation() -> None:
    """2 GPUs are free on each of two nodes, and whoever wants GPUs wants 3."""
    amounts = {"example.com/gpu": "3"}
    gpu = make_pod("train-$(INDEX)").build()
    gpu["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    node = make_node("n-$(INDEX)").cpu("64").build()
    for list_ in ("capacity", "allocatable"):
        node["status"][list_] = {**node["status"][list_], "example.com/gpu": "8"}
    scenario = ScenarioBuilder("gpus").create(node, count=2).create(gpu, count=5)
    scenario.create(make_pod("web-$(INDEX)").cpu("100m"), count=99)
    assert measures(kubescene.run(scenario.done()))["fragmentation_example_com_gpu"] == 1.0


def test_imbalance_is_the_standard_deviation() -> None:
    scenario = (
        ScenarioBuilder("uneven")
        .create(make_node("n-$(INDEX)").cpu("4"), count=2)
        .create(make_pod("a").cpu("3").on("n-0"))
        .done()
    )
    found = measures(kubescene.run(scenario))
    # 0.75 and 0: both are 0.375 away from their mean
    assert found["imbalance_cpu"] == 0.375
    assert (found["utilization_min_cpu"], found["utilization_max_cpu"]) == (0.0, 0.75)
    assert found["nodes_empty"] == 1


def test_a_pod_that_came_with_its_node_never_waited() -> None:
    scenario = ScenarioBuilder("static").create(make_node("n").cpu("4"), make_pod("a").on("n"))
    found = measures(kubescene.run(scenario.done()))
    assert found["pods_ever_bound"] == 1
    assert "pending_seconds_mean" not in found


def test_preemptions_are_counted() -> None:
    scenario = (
        ScenarioBuilder("pushing")
        .create(make_priority_class("high", 1000), make_node("n").cpu("4"))
        .create(make_pod("low-$(INDEX)").cpu("2"), count=2)
        .step(2)
        .create(make_pod("high").cpu("4").priority_class("high"))
        .done()
    )
    run = kubescene.run(scenario)
    found = measures(run)
    assert (found["preemptions"], found["preemptors"], found["pods_deleted"]) == (2, 1, 2)
    victims = [row for row in open_run(run).tables()["pods"] if row.preempted_by]
    assert [row.preempted_by for row in victims] == ["default/high"] * 2


def test_time_a_terminating_pod_takes_is_not_free_yet() -> None:
    def played(pause: str) -> dict[str, float]:
        scenario = (
            ScenarioBuilder("leaving")
            .settings(kubelet={"terminateDelay": "20s"})
            .create(make_node("n").cpu("4"), make_pod("a").cpu("4"))
            .step(2)
            .delete("v1", "Pod", "a", namespace="default")
            .advance(pause)
            .done()
        )
        return measures(kubescene.run(scenario))

    early, late = played("19s"), played("40s")
    assert (early["allocation_cpu"], early["pods_terminating"]) == (1.0, 1)
    assert (late["allocation_cpu"], late["pods_deleted"]) == (0.0, 1)
    assert late["allocation_mean_cpu"] == 0.5


def test_an_empty_run_has_no_shares() -> None:
    found = measures(kubescene.run(ScenarioBuilder("empty").done()))
    assert found["pods_created"] == found["nodes"] == 0
    assert not [name for name in found if name.startswith(("allocation", "utilization"))]
    assert not [name for name in found if name.startswith(("pending", "fragmentation"))]
    assert not any(math.isnan(value) for value in found.values())


class TestCost:
    PRICES = Prices(hourly={"small": 0.1, "large": 0.4})

    @staticmethod
    def played(*kinds: str) -> Run:
        nodes = [make_node(f"n-{at}").label(**{LABEL: kind}) for at, kind in enumerate(kinds)]
        scenario = ScenarioBuilder("priced").create(*nodes).advance("30m").step(2)
        return kubescene.run(scenario.delete("v1", "Node", "n-0").advance("30m").done())

    def test_nodes_cost_while_they_are_there(self) -> None:
        found = measures(self.played("small", "large"), self.PRICES)
        assert found["cost"] == 0.1 / 2 + 0.4
        assert found["cost_per_hour"] == 0.4

    def test_without_prices_there_is_no_cost(self) -> None:
        assert "cost" not in measures(self.played("small"))

    def test_a_node_without_a_price_is_named(self) -> None:
        with pytest.raises(kubescene.KubesceneError, match=r"node n-1 \(.*instance-type=huge\)"):
            measures(self.played("small", "huge"), self.PRICES)

    def test_a_default_is_for_all_others(self) -> None:
        prices = Prices(hourly={"small": 0.1}, default=1.0, currency="EUR")
        assert measures(self.played("small", "huge"), prices)["cost_per_hour"] == 1.0


def with_devices(amounts: dict[str, str]) -> dict[str, object]:
    """A pod whose container asks for devices, which may not be overcommitted."""
    container = {"name": "c", "image": "i", "resources": {"limits": amounts, "requests": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [container]},
    }


def test_a_resource_that_no_node_offers_any_more_keeps_its_measures() -> None:
    """A device plugin that goes away leaves 0: what was allocated before still counts."""
    gone = {"status": {"allocatable": {"example.com/gpu": "0"}}}
    scenario = (
        ScenarioBuilder("gone")
        .create(make_node("n").cpu("4").capacity("example.com/gpu", "2"))
        .create(with_devices({"example.com/gpu": "1"}))
        .advance("60s")
        .step(2)
        .patch("v1", "Node", "n", gone, subresource="status")
        .advance("60s")
        .done()
    )
    found = measures(kubescene.run(scenario))
    assert found["allocation_peak_example_com_gpu"] == 0.5
    assert found["allocation_mean_example_com_gpu"] == (1 * 120) / (2 * 60)
    assert "allocation_example_com_gpu" not in found


def test_resources_whose_names_become_the_same_word_are_told_apart() -> None:
    node = make_node("n").cpu("4")
    for name in ("example.com/gpu-a", "example.com/gpu.a", "mean/cpu"):
        node = node.capacity(name, "4")
    pod = with_devices({"example.com/gpu-a": "1", "example.com/gpu.a": "2"})
    run = kubescene.run(ScenarioBuilder("alike").create(node).create(pod).advance("60s").done())
    names = [row.measure for row in open_run(run).tables()["measures"]]
    assert len(names) == len(set(names))
    found = measures(run)
    assert found["allocation_example.com/gpu-a"] == 0.25
    assert found["allocation_example.com/gpu.a"] == 0.5
    assert found["allocation_mean_cpu"] == found["allocation_mean/cpu"] == 0
