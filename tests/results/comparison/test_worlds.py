"""Comparisons of runs with an extender in another process, with pod groups, with preemption."""

from collections.abc import Iterator

import pytest

import kubescene
from kubescene.results.comparison import Cause, Comparison, Why, compare
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import FeatureGates, SchedulerOptions
from kubescene.testing import make_node, make_pod, make_priority_class
from kubescene.types import JsonObject
from scheduler.extender_process import FakeExtender, fake_extender

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
GATES = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True})


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeExtender]:
    with fake_extender() as extender:
        yield extender


def with_extender(extender: JsonObject | None) -> kubescene.Run:
    scenario = ScenarioBuilder("extended").settings(explain="Full")
    for name in "abc":
        scenario.create(make_node(name).cpu("4").memory("8Gi"))
    scenario.step(2).create(make_pod("p").cpu("1")).done()
    extenders = {} if extender is None else {"extenders": [extender]}
    return kubescene.run(scenario, scheduler={**HEADER, **extenders})


def test_an_extender_that_refuses_a_node_moved_the_pod(fake: FakeExtender) -> None:
    """The fake one leaves the last node alone."""
    refuses = {"urlPrefix": fake.url("good"), "filterVerb": "filter", "nodeCacheCapable": True}
    found = compare(with_extender(None), with_extender(refuses))
    (pod,) = found.placed
    assert (pod.node_in_a, pod.node_in_b, pod.cause) == ("a", "c", Cause.SCHEDULER)
    assert pod.attribution is not None
    assert (pod.attribution.why, pod.attribution.node) == (Why.VERDICT, "a")
    assert "127.0.0.1" in pod.attribution.plugin


def test_an_extender_that_rates_nodes_moved_the_pod(fake: FakeExtender) -> None:
    rates = {
        "urlPrefix": fake.url("good"),
        "prioritizeVerb": "prioritize",
        "weight": 5,
        "nodeCacheCapable": True,
    }
    found = compare(with_extender(None), with_extender(rates))
    (pod,) = found.placed
    assert (pod.node_in_a, pod.node_in_b) == ("a", "c")
    assert pod.attribution is not None
    assert pod.attribution.why is Why.SCORE
    assert "127.0.0.1" in pod.attribution.plugin
    assert any("extenders" in each.what for each in found.inputs)


def gang(cpu: str) -> kubescene.Run:
    """Three pods that must be placed together, on a node of 4 cores."""
    grouped = {"schedulingGroup": {"podGroupName": "g"}}
    scenario = ScenarioBuilder("gang").create(make_node("n").cpu(cpu)).step(2)
    scenario.create(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        }
    )
    for name in ("g-1", "g-2", "g-3"):
        pod = make_pod(name).cpu("2").build()
        scenario.create({**pod, "spec": {**pod["spec"], **grouped}})
    return kubescene.run(scenario.done(), scheduler=SchedulerOptions(feature_gates=GATES))


def test_a_gang_that_fits_in_one_run_only_waits_as_a_whole() -> None:
    found = compare(gang("8"), gang("4"))
    assert [(pod.pod, pod.node_in_a, pod.node_in_b) for pod in found.placed] == [
        (f"default/g-{number}", "n", "") for number in (1, 2, 3)
    ]
    assert {pod.cause for pod in found.placed} <= {Cause.SCENARIO, Cause.CONSEQUENCE}
    assert all(pod.message for pod in found.placed)
    assert compare(gang("8"), gang("8")).equal


def preempting(victims: str) -> Comparison:
    """In B, the urgent pod is smaller and needs fewer to leave."""

    def played(cpu: str) -> kubescene.Run:
        scenario = ScenarioBuilder("urgent").create(make_priority_class("high", 1000))
        scenario.create(make_node("n").cpu("3"))
        scenario.create(make_pod("low-$(INDEX)").cpu("1"), count=3)
        return kubescene.run(
            scenario.step(2).create(make_pod("urgent").cpu(cpu).priority_class("high")).done()
        )

    return compare(played("2"), played(victims))


def test_fewer_victims_are_fewer_preemptions() -> None:
    found = preempting("1")
    (gone,) = found.preemptions
    assert (gone.side, gone.preemptor, gone.node) == ("A", "default/urgent", "n")
    measures = {each.measure: (each.a, each.b) for each in found.measures}
    assert measures["preemptions"] == (2, 1)
    assert not found.equal
    assert preempting("2").equal
