"""A Scenario from the first to the last command, with kubectl."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from conformance.kubectl import Kubectl
from kubescene.cli.app import app
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.fields.definition import scenario_definition
from kubescene.testing import make_node, make_pod

pytestmark = pytest.mark.conformance


def scenario(name: str = "walk") -> str:
    builder = ScenarioBuilder(name).create(make_node("n").cpu("4").memory("8Gi").pods("9"))
    return builder.create(make_pod("p-$(INDEX)").cpu("1"), count=2).to_yaml()


def appended(*operations: object) -> str:
    patch = [{"op": "add", "path": "/spec/operations/-", "value": each} for each in operations]
    return json.dumps(patch)


def wait(kubectl: Kubectl, name: str, phase: str) -> None:
    kubectl("wait", f"scn/{name}", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=100s")


def test_create_watch_patch_read_and_delete(kubectl: Kubectl) -> None:
    with kubectl.start("get", "scn", "-w", "--no-headers") as watching:
        assert "scenario.simulation" in kubectl("create", "-f", "-", stdin=scenario())
        wait(kubectl, "walk", "Paused")
        late = {"id": "late", "step": 1, "createOperation": {"object": make_pod("late").build()}}
        said = kubectl("patch", "scenario", "walk", "--type=json", "-p", appended(late))
        assert "Warning: operation 'late' is ignored: its step 1 has passed" in said
        worst = make_pod("worst").cpu("3").build()
        more = [
            {"id": "worst", "step": 2, "createOperation": {"object": worst}},
            {"step": 3, "doneOperation": {}},
        ]
        kubectl("patch", "scenario", "walk", "--type=json", "-p", appended(*more))
        wait(kubectl, "walk", "Succeeded")
        assert watching.stdout is not None
        rows: list[list[str]] = []
        while not rows or rows[-1][1] != "Succeeded":
            rows.append(watching.stdout.readline().split())
        watching.terminate()
    phases = [row[1] for row in rows if len(row) > 1]
    for phase in ("Running", "Paused", "Succeeded"):
        assert phase in phases
    assert any("ControllerPaused" in row and "kube-scheduler" in row for row in rows)

    timeline = kubectl.json("get", "scn", "walk")["status"]["scenarioResult"]["timeline"]
    assert list(timeline) == ["1", "2", "3"]
    assert timeline["2"][0]["id"] == "worst"
    assert timeline["2"][-1]["operation"] == "PodUnscheduled"
    path = "jsonpath={.status.ignoredOperations[0].id}"
    assert kubectl("get", "scn", "walk", "-o", path) == "late"

    table = kubectl("get", "scn").splitlines()
    assert table[0].split() == ["NAME", "PHASE", "STEP", "STEPPHASE", "CONTROLLER", "AGE"]
    assert table[1].split()[:4] == ["walk", "Succeeded", "3.0", "Finished"]
    assert "deleted" in kubectl("delete", "scenario", "walk")
    assert "No resources found" in kubectl("get", "scn")


def test_outsiders_are_told_whose_world_it_is(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=scenario())
    wait(kubectl, "walk", "Paused")
    said = kubectl("create", "configmap", "c", fails=True)
    assert 'scenario "walk" is Paused' in said
    said = kubectl("label", "node", "n", "a=b", fails=True)
    assert 'scenario "walk" is Paused' in said


def test_an_edit_of_what_has_started_is_refused(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=scenario())
    wait(kubectl, "walk", "Paused")
    changed = scenario().replace("count: 2", "count: 3")
    said = kubectl("replace", "-f", "-", stdin=changed, fails=True)
    assert "has started and is part of what happened: it cannot be changed" in said


def test_explain_describes_the_fields(kubectl: Kubectl) -> None:
    said = " ".join(kubectl("explain", "scenario.spec.operations").split())
    assert "createOperation" in said
    assert "The major step at which it is carried out." in said
    said = " ".join(kubectl("explain", "scn.status.stepStatus.phase").split())
    assert "ControllerPaused" in said
    said = " ".join(kubectl("explain", "scn.spec.simulation", "--recursive").split())
    assert "startDelay" in said


def test_the_definition_can_be_applied_again(kubectl: Kubectl) -> None:
    document = CliRunner().invoke(app, ["schema", "--crd"]).stdout
    assert yaml.safe_load(document) == scenario_definition()
    kubectl("apply", "-f", "-", stdin=document)
    name = "crd/scenarios.simulation.kube-scheduler-simulator.x-k8s.io"
    kubectl("wait", name, "--for=condition=Established")


def test_describe_shows_where_it_stands(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=scenario())
    wait(kubectl, "walk", "Paused")
    said = kubectl("describe", "scn", "walk")
    assert "Phase:" in said
    assert "Running Simulation Controller" in said


def test_expectations_are_refused_explained_and_read(kubectl: Kubectl) -> None:
    builder = ScenarioBuilder("judged").create(make_pod("p"))
    wrong = builder.expect("x", "pods.all(p, p.nod == '')").to_yaml()
    said = kubectl("create", "-f", "-", stdin=wrong, fails=True)
    assert "spec.expectations[0].expression: Invalid value" in said
    assert "undefined field 'nod': did you mean 'node'? (column 14 of the expression" in said

    fine = ScenarioBuilder("judged").create(make_pod("p")).expect("placed", "pending.size() == 0")
    kubectl("create", "-f", "-", stdin=fine.to_yaml())
    wait(kubectl, "judged", "Paused")
    path = "jsonpath={.status.expectations[?(@.holds==false)].name}"
    assert kubectl("get", "scn", "judged", "-o", path) == "placed"

    room = {"step": 2, "createOperation": {"object": make_node("n").pods("9").build()}}
    more = appended(room, {"step": 2, "doneOperation": {}})
    kubectl("patch", "scenario", "judged", "--type=json", "-p", more)
    wait(kubectl, "judged", "Succeeded")
    (outcome,) = kubectl.json("get", "scn", "judged")["status"]["expectations"]
    assert outcome == {"name": "placed", "expression": "pending.size() == 0", "holds": True}

    assert "messageExpression" in kubectl("explain", "scenario.spec.expectations")
    assert "Whether its expression is true" in kubectl("explain", "scenario.status.expectations")
