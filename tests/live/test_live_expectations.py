"""Expectations of Scenarios that live in a server: at a pause, after an edit, at the end."""

import pytest

from kubescene.errors import InvalidError
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from live.test_scenarios import Stage

WAITS = "pending.size() == 1"


@pytest.fixture
def stage() -> Stage:
    return Stage()


def two_pods() -> ScenarioBuilder:
    """One core, and two pods that need it."""
    node = make_node("n").cpu("1").memory("1Gi").pods("9")
    return ScenarioBuilder("s").create(node).create(make_pod("p-$(INDEX)").cpu("1"), count=2)


def held(stage: Stage) -> dict[str, bool] | None:
    listed = stage.cluster.get("scenarios", "s")["status"].get("expectations")
    return None if listed is None else {each["name"]: each["holds"] for each in listed}


def add(stage: Stage, *operations: JsonObject) -> None:
    spec = stage.cluster.get("scenarios", "s")["spec"]
    listed = [*spec["operations"], *operations]
    stage.cluster.patch("scenarios", "s", {"spec": {"operations": listed}})


def expect(stage: Stage, **expected: str) -> None:
    listed = [{"name": name, "expression": text} for name, text in expected.items()]
    stage.cluster.patch("scenarios", "s", {"spec": {"expectations": listed or None}})


def test_outcomes_are_in_the_status(stage: Stage) -> None:
    stage.cluster.create(two_pods().done().expect("one waits", WAITS).expect("none", "false"))
    stage.settle()
    assert stage.phase("s") == "Succeeded"
    assert held(stage) == {"one waits": True, "none": False}


def test_a_pause_is_looked_at_and_the_end_again(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS).expect("over", "phase != 'Paused'"))
    stage.settle()
    assert stage.phase("s") == "Paused"
    assert held(stage) == {"one waits": True, "over": False}
    room = {"object": make_node("n2").cpu("1").memory("1Gi").pods("9").build()}
    add(stage, {"step": 2, "createOperation": room}, {"step": 2, "doneOperation": {}})
    stage.settle()
    assert stage.phase("s") == "Succeeded"
    assert held(stage) == {"one waits": False, "over": True}


def test_what_was_found_at_a_pause_is_not_told_while_it_goes_on(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS))
    stage.settle()
    run = stage.live.run_named("s")
    assert run is not None
    assert len(run.summary().expectations) == 1
    add(stage, {"step": 2, "createOperation": {"object": make_pod("q").cpu("1").build()}})
    moments = stage.begin()
    next(moments)
    assert stage.phase("s") == "Running"
    assert held(stage) is None
    assert run.summary().expectations == []
    for _ in moments:
        pass
    assert held(stage) == {"one waits": False}


def test_expectations_can_be_changed_while_it_is_paused(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS))
    stage.settle()
    expect(stage, none="pending.size() == 0", placed="pods.exists(p, p.node == 'n')")
    stage.settle()
    assert stage.phase("s") == "Paused"
    assert held(stage) == {"none": False, "placed": True}
    expect(stage)
    stage.settle()
    assert held(stage) is None


def test_an_edit_of_something_else_does_not_look_again(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS))
    stage.settle()
    run = stage.live.run_named("s")
    assert run is not None
    facts = len(run.log)
    stage.cluster.patch("scenarios", "s", {"metadata": {"labels": {"a": "b"}}})
    stage.settle()
    assert len(run.log) == facts


def test_expectations_changed_while_they_are_looked_at_count(stage: Stage) -> None:
    stage.cluster.create(two_pods().done().expect("one waits", WAITS))
    moments = stage.begin()
    run = stage.live.run_named("s")
    assert run is not None
    while not any(name.__name__ == "conclude" for name, _ in run.engine._tasks):
        next(moments)
    expect(stage, other="true")
    for _ in moments:
        pass
    assert held(stage) == {"other": True}


def test_operations_added_while_a_pause_is_looked_at_are_played(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS))
    moments = stage.begin()
    run = stage.live.run_named("s")
    assert run is not None
    while not any(name.__name__ == "conclude" for name, _ in run.engine._tasks):
        next(moments)
    add(stage, {"step": 2, "doneOperation": {}})
    for _ in moments:
        pass
    assert stage.phase("s") == "Succeeded"
    assert [fact.phase for fact in run.log if hasattr(fact, "phase")] == ["Succeeded"]


def test_a_scenario_that_fails_after_a_pause_tells_no_outcomes(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS))
    stage.settle()
    add(stage, {"step": 2, "createOperation": {"object": make_node("n").build()}})
    stage.settle()
    assert stage.phase("s") == "Failed"
    assert held(stage) is None


def test_an_expression_that_does_not_compile_is_refused_at_the_door(stage: Stage) -> None:
    with pytest.raises(InvalidError) as refused:
        stage.cluster.create(two_pods().expect("fine", "true").expect("x", "pods.all(p, p.nod)"))
    (cause,) = refused.value.causes
    assert cause.field == "spec.expectations[1].expression"
    assert "undefined field 'nod': did you mean 'node'? (column 14 of" in cause.message


def test_so_is_an_edit_that_brings_one(stage: Stage) -> None:
    stage.cluster.create(two_pods().expect("one waits", WAITS))
    stage.settle()
    with pytest.raises(InvalidError, match="it must be true or false, but its type is int"):
        expect(stage, x="pods.size()")
    assert held(stage) == {"one waits": True}


def test_one_that_is_not_even_an_expectation_fails_as_other_faults_do(stage: Stage) -> None:
    scenario = two_pods().build()
    scenario["spec"]["expectations"] = [{"name": "x"}]
    stage.cluster.create(scenario)
    stage.settle()
    assert stage.phase("s") == "Failed"
    message = stage.cluster.get("scenarios", "s")["status"]["message"]
    assert message == "spec.expectations[0]: needs expression"
