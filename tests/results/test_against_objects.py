"""Results, computed a second time from the objects that a run leaves: `Cluster.export`.

The ledger follows a run; this reads its end. Both must say the same, for any run.
"""

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.api.quantity import parse
from kubescene.results import open_run
from kubescene.results.ledger_entries import BOUND, DELETED, FINISHED, PENDING, TERMINATING
from kubescene.results.measures import measures
from kubescene.runs.local import Run
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod, make_priority_class, make_replica_set

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/scenario.yaml"))


class Left:
    """The nodes and pods of an export, added up anew."""

    def __init__(self, run: Run) -> None:
        items: list[dict[str, Any]] = orjson.loads(run.cluster.export())["items"]
        self.nodes = {each["metadata"]["name"]: each for each in items if each["kind"] == "Node"}
        self.pods = [each for each in items if each["kind"] == "Pod"]

    def on(self, node: str) -> list[dict[str, Any]]:
        """The pods that take room of a node."""
        return [
            pod
            for pod in self.pods
            if pod["spec"].get("nodeName") == node
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def requested(self, node: str, resource: str) -> Fraction:
        return sum((asked(pod, resource) for pod in self.on(node)), Fraction(0))

    def allocatable(self, node: str, resource: str) -> Fraction:
        listed = (self.nodes[node].get("status") or {}).get("allocatable") or {}
        return exact(listed.get(resource, "0"))

    def allocation(self, resource: str) -> float | None:
        offered = sum((self.allocatable(node, resource) for node in self.nodes), Fraction(0))
        taken = sum((self.requested(node, resource) for node in self.nodes), Fraction(0))
        return float(taken / offered) if offered else None

    def states(self) -> Counter[str]:
        return Counter(map(state, self.pods))


def exact(quantity: str) -> Fraction:
    return Fraction(parse(quantity).milli_value(), 1000)


def asked(pod: dict[str, Any], resource: str) -> Fraction:
    """Of pods without init containers and overhead, which is what is played here."""
    requests = (each.get("resources", {}).get("requests", {}) for each in pod["spec"]["containers"])
    return sum((exact(each.get(resource, "0")) for each in requests), Fraction(0))


def state(pod: dict[str, Any]) -> str:
    if pod["status"].get("phase") in ("Succeeded", "Failed"):
        return FINISHED
    if pod["metadata"].get("deletionTimestamp"):
        return TERMINATING
    return BOUND if pod["spec"].get("nodeName") else PENDING


def check(run: Run) -> None:
    """All that can be seen at the end."""
    left, source = Left(run), open_run(run)
    ledger, found = source.ledger, measures(source)
    present = {node.name: node for node in source.tables()["nodes"] if node.present}
    assert set(present) == set(left.nodes)
    for name, node in present.items():
        assert node.pods == len(left.on(name))
        assert Fraction(node.cpu_requested, 1000) == left.requested(name, "cpu")
        assert node.memory_requested == left.requested(name, "memory")
        assert Fraction(node.cpu_allocatable, 1000) == left.allocatable(name, "cpu")
    assert found.get("allocation_cpu") == pytest.approx(left.allocation("cpu"))
    assert found.get("allocation_memory") == pytest.approx(left.allocation("memory"))
    states = {each: count for each, count in ledger.states.items() if count and each != DELETED}
    assert states == dict(left.states())
    assert sum(ledger.states.values()) == found["pods_created"] == len(ledger.pods)
    alive = {(p["metadata"]["namespace"], p["metadata"]["name"]) for p in left.pods}
    assert alive == {(p.namespace, p.name) for p in ledger.pods if p.state != DELETED}


@pytest.mark.parametrize("scenario", EXAMPLES, ids=[path.parent.name for path in EXAMPLES])
def test_results_of_an_example_are_those_of_its_objects(scenario: Path) -> None:
    check(kubescene.run(scenario))


AMOUNTS = st.sampled_from(["100m", "500m", "1", "1500m", "3"])


@st.composite
def scenarios(draw: st.DrawFn) -> ScenarioBuilder:
    """Nodes that come and go, pods that are placed, pushed out, finished and deleted."""
    delay = draw(st.sampled_from(["0s", "15s"]))
    scenario = ScenarioBuilder("any").settings(kubelet={"terminateDelay": delay})
    scenario.create(make_priority_class("high", 1000))
    nodes = draw(st.integers(1, 3))
    scenario.create(make_node("n-$(INDEX)").cpu("4").memory("4Gi"), count=nodes)
    for name in (f"{step}-{number}" for step in range(2, 6) for number in range(3)):
        scenario.create(make_pod(f"early-{name}").cpu("100m").priority_class("high"))
    for step in range(2, draw(st.integers(3, 6))):
        scenario.step(step)
        for number in range(draw(st.integers(1, 3))):
            act(draw, scenario, f"{step}-{number}")
        if draw(st.booleans()):
            scenario.advance(draw(st.sampled_from(["10s", "20s"])))
    return scenario


def act(draw: st.DrawFn, scenario: ScenarioBuilder, name: str) -> None:
    """Something that moves pods or nodes."""
    cpu = draw(AMOUNTS)
    draw(st.sampled_from([come, push, shrink, leave, grow, vanish]))(scenario, name, cpu)


def come(scenario: ScenarioBuilder, name: str, cpu: str) -> None:
    scenario.create(make_pod(f"p-{name}-$(INDEX)").cpu(cpu).memory("256Mi"), count=3)


def push(scenario: ScenarioBuilder, name: str, cpu: str) -> None:
    scenario.create(make_pod(f"h-{name}").cpu(cpu).priority_class("high"))


def shrink(scenario: ScenarioBuilder, name: str, cpu: str) -> None:
    scenario.create(make_replica_set(f"r-{name}").replicas(2).template(make_pod("x").cpu(cpu)))
    smaller = {"spec": {"replicas": 1}}
    scenario.patch("apps/v1", "ReplicaSet", f"r-{name}", smaller, namespace="default")


def leave(scenario: ScenarioBuilder, name: str, cpu: str) -> None:
    del cpu
    scenario.delete("v1", "Pod", f"early-{name}", namespace="default")


def grow(scenario: ScenarioBuilder, name: str, cpu: str) -> None:
    scenario.create(make_node(f"extra-{name}").cpu(cpu).memory("1Gi"))


def vanish(scenario: ScenarioBuilder, name: str, cpu: str) -> None:
    scenario.create(make_node(f"short-{name}").cpu(cpu))
    scenario.create(make_pod(f"s-{name}").cpu(cpu).on(f"short-{name}"))
    scenario.delete("v1", "Node", f"short-{name}")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_results_of_any_run_are_those_of_its_objects(scenario: ScenarioBuilder) -> None:
    run = kubescene.run(scenario)
    assert run.ok, run.message
    check(run)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_allocation_never_exceeds_capacity_and_pods_are_conserved(
    scenario: ScenarioBuilder,
) -> None:
    source = open_run(kubescene.run(scenario))
    tables = source.tables()
    for row in tables["utilization"]:
        assert 0 <= row.cpu_requested <= row.cpu_allocatable
        assert 0 <= row.memory_requested <= row.memory_allocatable
        assert 0 <= row.pods <= row.pods_allocatable
    for row in tables["allocation"]:
        assert 0 <= row.requested <= row.allocatable
    created = 0
    for step in tables["steps"]:
        created += step.pods_created
        assert step.pods_pending + step.pods_bound <= created
    assert created == len(tables["pods"].rows)
    by_node: Counter[tuple[int, int]] = Counter()
    for row in tables["utilization"]:
        by_node[row.step, 0] += row.cpu_requested
    for step in tables["steps"]:
        assert by_node[step.step, 0] == step.cpu_requested
