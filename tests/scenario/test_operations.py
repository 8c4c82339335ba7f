"""What operations do, and how a scenario ends when one of them cannot be carried out."""

import json
from typing import Any

import pytest

import kubescene
from kubescene.errors import BadRequestError
from kubescene.scenario import ScenarioBuilder, ScenarioPhase
from kubescene.scenario.reading.patch_text import decode_patch
from kubescene.testing import make_node, make_pod, make_replica_set

NODE = make_node("n").cpu("4")


def ids(run: kubescene.Run) -> list[str]:
    return [event["id"] for event in run.timeline]


# -- operations that fail ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        pytest.param(
            ScenarioBuilder("s").create(NODE).step(2).create(NODE, id="x"),
            'nodes "n" already exists',
            id="exists",
        ),
        pytest.param(
            ScenarioBuilder("s").create(NODE).step(2).delete("v1", "Node", "m", id="x"),
            'nodes "m" not found',
            id="delete what is not there",
        ),
        pytest.param(
            ScenarioBuilder("s").create(NODE).step(2).patch("v1", "Node", "m", {}, id="x"),
            'nodes "m" not found',
            id="patch what is not there",
        ),
        pytest.param(
            ScenarioBuilder("s").create(NODE).step(2).create(make_pod("A_b"), id="x"),
            'Pod "A_b" is invalid: metadata.name',
            id="refused by validation",
        ),
        pytest.param(
            ScenarioBuilder("s")
            .create(NODE)
            .step(2)
            .create(make_pod("a").priority_class("none"), id="x"),
            "no PriorityClass with name none was found",
            id="refused by admission",
        ),
        pytest.param(
            ScenarioBuilder("s")
            .create(NODE)
            .step(2)
            .patch("v1", "Node", "n", [{"op": "remove", "path": "/a"}], patch_type="json", id="x"),
            "patch was refused",
            id="patch does not apply",
        ),
        pytest.param(
            ScenarioBuilder("s").create(NODE).step(2).delete("v1", "Nod", "n", id="x"),
            'no kind "Nod" is registered',
            id="unknown kind",
        ),
    ],
)
def test_a_failing_operation_fails_the_scenario(scenario: ScenarioBuilder, reason: str) -> None:
    run = kubescene.run(scenario.step(3).create(make_node("never")))
    assert run.phase is ScenarioPhase.FAILED
    assert not run.bad_input
    assert run.message.startswith("step 2, operation 'x': ")
    assert reason in run.message
    assert run.scenario["status"]["message"] == run.message


def test_what_was_recorded_before_the_failure_stays() -> None:
    scenario = (
        ScenarioBuilder("s")
        .create(NODE, id="first")
        .step(2)
        .create(make_pod("a"), id="second")
        .create(NODE, id="third")
        .create(make_pod("b"), id="never")
    )
    run = kubescene.run(scenario)
    timeline = run.scenario["status"]["scenarioResult"]["timeline"]
    assert {major: [e["id"] for e in events] for major, events in timeline.items()} == {
        "1": ["first"],
        "2": ["second"],
    }
    assert ids(run) == ["first", "second"]
    assert [pod["metadata"]["name"] for pod in run.cluster.list("pods")] == ["a"]


# -- ids, count, order -------------------------------------------------------------------------


def test_missing_ids_are_assigned_from_the_place_in_the_list() -> None:
    scenario = ScenarioBuilder("s").create(NODE).create(make_node("m"), id="mine").done()
    assert ids(kubescene.run(scenario)) == ["op-1", "mine", "op-3"]


def test_an_assigned_id_is_never_one_that_is_given() -> None:
    scenario = ScenarioBuilder("s").create(NODE, id="op-2").create(make_node("m"))
    first, second = ids(kubescene.run(scenario))
    assert first == "op-2"
    assert second != first


def test_count_creates_that_many_with_the_index_filled_in() -> None:
    node = make_node("n-$(INDEX)").labels({"rack": "r$(INDEX)", "key-$(INDEX)": "x"})
    run = kubescene.run(ScenarioBuilder("s").create(node, count=3, id="nodes"))
    found = run.cluster.list("nodes")
    assert [n["metadata"]["name"] for n in found] == ["n-0", "n-1", "n-2"]
    assert [n["metadata"]["labels"]["rack"] for n in found] == ["r0", "r1", "r2"]
    assert "key-2" in found[2]["metadata"]["labels"]
    assert ids(run) == ["nodes[0]", "nodes[1]", "nodes[2]"]


@pytest.mark.parametrize(("count", "argument"), [(None, "$(INDEX)"), (1, "0")])
def test_without_a_count_the_index_is_a_variable_of_the_container(
    count: int | None, argument: str
) -> None:
    pod = make_pod("a").build()
    container = {**pod["spec"]["containers"][0], "args": ["$(INDEX)"]}
    scenario = ScenarioBuilder("s").create(
        {**pod, "spec": {"containers": [container]}}, count=count
    )
    (found,) = kubescene.run(scenario).cluster.get("pods", "a")["spec"]["containers"]
    assert found["args"] == [argument]


def test_operations_of_a_step_run_in_list_order() -> None:
    scenario = (
        ScenarioBuilder("s")
        .step(2)
        .create(make_node("late"), id="late")
        .step(1)
        .create(make_node("z"), id="z")
        .create(make_node("a"), id="a")
    )
    assert ids(kubescene.run(scenario)) == ["z", "a", "late"]


# -- patches and deletions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "patch_type", "taints"),
    [
        pytest.param(
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}, "", ["b"], id="default"
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
            "merge",
            ["b"],
            id="merge",
        ),
        pytest.param([{"op": "remove", "path": "/spec/taints/0"}], "json", [], id="json"),
        pytest.param("spec:\n  taints: []\n", "merge", [], id="yaml text"),
    ],
)
def test_a_patch_changes_the_object(patch: object, patch_type: str, taints: list[str]) -> None:
    scenario = ScenarioBuilder("s").create(NODE.taint("a"))
    run = kubescene.run(scenario.patch("v1", "Node", "n", patch, patch_type=patch_type))
    assert run.ok, run.message
    found = run.cluster.get("nodes", "n").get("spec", {}).get("taints", [])
    assert [taint["key"] for taint in found] == taints


def test_built_in_kinds_are_patched_strategically_by_default() -> None:
    container = {"name": "main", "image": "other"}
    patch = {"spec": {"containers": [container]}}
    scenario = (
        ScenarioBuilder("s")
        .create(make_pod("a").cpu("1"))
        .patch("v1", "Pod", "a", patch, namespace="default")
    )
    run = kubescene.run(scenario)
    assert run.ok, run.message
    (found,) = run.cluster.get("pods", "a")["spec"]["containers"]
    # A merge patch would have replaced the list and with it the request.
    assert (found["image"], found["resources"]["requests"]) == ("other", {"cpu": "1"})


def test_a_namespace_may_be_left_out() -> None:
    scenario = ScenarioBuilder("s").create(make_pod("a")).delete("v1", "Pod", "a")
    assert kubescene.run(scenario).cluster.list("pods") == []


# -- how it ends -------------------------------------------------------------------------------


def test_done_succeeds_and_later_steps_are_not_played() -> None:
    scenario = (
        ScenarioBuilder("s")
        .create(NODE, make_pod("a").cpu("1"))
        .done(id="end")
        .create(make_pod("b").cpu("1"))
        .step(2)
        .create(make_pod("never"))
    )
    run = kubescene.run(scenario)
    assert run.phase is ScenarioPhase.SUCCEEDED
    # The step that holds the done operation is completed first.
    assert [pod["spec"].get("nodeName") for pod in run.cluster.list("pods")] == ["n", "n"]
    assert "2" not in run.scenario["status"]["scenarioResult"]["timeline"]


def test_without_done_it_is_paused() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(NODE))
    assert (run.phase, run.message, run.ok) == (ScenarioPhase.PAUSED, "", True)


def test_a_scenario_without_operations_is_paused() -> None:
    assert kubescene.run(ScenarioBuilder("s")).phase is ScenarioPhase.PAUSED


# -- who plays ---------------------------------------------------------------------------------


def test_without_controllers_the_scheduler_is_simulated_and_the_rest_settle() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(NODE, make_replica_set("web").replicas(2)))
    pods = run.cluster.list("pods")
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]


def test_a_star_turns_every_presimulation_controller_off() -> None:
    scenario = ScenarioBuilder("s").disable("*").create(NODE, make_replica_set("web"))
    run = kubescene.run(scenario.create(make_pod("a").cpu("1")))
    (pod,) = run.cluster.list("pods")
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("a", "n")
    assert pod["status"]["phase"] == "Pending"
    assert "conditions" not in run.cluster.get("nodes", "n")["status"]


def test_one_controller_can_be_disabled_by_name() -> None:
    scenario = ScenarioBuilder("s").disable("kubelet").create(NODE, make_replica_set("web"))
    (pod,) = kubescene.run(scenario).cluster.list("pods")
    assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("n", "Pending")


BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        pytest.param("metadata: {labels: {1: x}}", "the key 1 is not text", id="integer key"),
        pytest.param('{"data": "\\ud800"}', "Unicode", id="lone surrogate"),
        pytest.param('{"data": ' + "9" * 5000 + "}", "not a number", id="5,000 digits"),
        pytest.param(BOMB, "its aliases stand for more than 100000 values", id="bomb"),
        pytest.param('{"a": 1, "a": 2}', "the patch gives the key 'a' twice", id="JSON twice"),
        pytest.param("a: 1\na: 2\n", "the patch gives the key 'a' twice", id="YAML twice"),
        pytest.param("a: 1\n---\nb: 2\n", "must be one JSON or YAML document", id="two"),
        pytest.param("", "must be one JSON or YAML document", id="none"),
        pytest.param("[" * 300 + "]" * 300, "nested deeper than 200 levels", id="deep"),
    ],
)
def test_a_patch_that_cannot_be_read_is_refused_in_words(patch: str, problem: str) -> None:
    with pytest.raises(BadRequestError, match=problem):
        decode_patch(patch)


@pytest.mark.parametrize(("options", "phase"), [({"force": True}, "Succeeded"), ({}, "Failed")])
def test_an_applied_patch_may_take_fields_by_force(options: dict[str, bool], phase: str) -> None:
    def applied(manager: str, value: str, **more: bool) -> dict[str, Any]:
        labels = {"metadata": {"labels": {"a": value}}}
        return {
            "typeMeta": {"apiVersion": "v1", "kind": "Node"},
            "objectMeta": {"name": "n"},
            "patch": json.dumps({"apiVersion": "v1", "kind": "Node", **labels}),
            "patchType": "application/apply-patch+yaml",
            "patchOptions": {"fieldManager": manager, **more},
        }

    scenario = ScenarioBuilder("s").create(NODE).build()
    scenario["spec"]["operations"] += [
        {"id": "one", "step": 2, "patchOperation": applied("one", "1")},
        {"id": "two", "step": 3, "patchOperation": applied("two", "2", **options)},
        {"id": "done", "step": 4, "doneOperation": {}},
    ]
    assert kubescene.run(scenario).phase.value == phase
