"""What `kubescene validate` finds without playing: all of it, with line and column."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubescene.cli.validate.faults import validate_files
from kubescene.runs.local import run
from kubescene.scenario import ScenarioBuilder, parse_spec
from kubescene.scenario.conversion import scenario_from
from kubescene.scenario.validation.objects import object_faults
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from widgets import widget_definition

BAD_POD: dict[str, Any] = {**make_pod("p").build(), "spec": {"contayners": []}}
VERSIONED = make_pod("p").build()
VERSIONED = {**VERSIONED, "metadata": {**VERSIONED["metadata"], "resourceVersion": "7"}}

REFUSED = [
    pytest.param(
        ScenarioBuilder("s").create(BAD_POD), 'unknown field "spec.contayners"', id="unknown field"
    ),
    pytest.param(
        ScenarioBuilder("s").create(make_pod("p").cpu("lots")), "quantities must", id="quantity"
    ),
    pytest.param(
        ScenarioBuilder("s").create(make_pod("No Good")), "metadata.name: Invalid", id="name"
    ),
    pytest.param(
        ScenarioBuilder("s").create(make_pod("p").label(app="no good")),
        "metadata.labels: Invalid value",
        id="label",
    ),
    pytest.param(
        ScenarioBuilder("s").create({**BAD_POD, "kind": "Pot"}),
        'no kind "Pot" is registered',
        id="kind",
    ),
    pytest.param(
        ScenarioBuilder("s").patch("v1", "Pot", "p", {}), 'no kind "Pot"', id="kind of a patch"
    ),
    pytest.param(
        ScenarioBuilder("s").delete("v1", "Pot", "p"), 'no kind "Pot"', id="kind of a delete"
    ),
    pytest.param(
        ScenarioBuilder("s").create(VERSIONED),
        "resourceVersion should not be set",
        id="resourceVersion of a create",
    ),
]


@pytest.mark.parametrize(("scenario", "complaint"), REFUSED)
def test_what_a_run_refuses_is_found_with_its_operation(
    scenario: ScenarioBuilder, complaint: str
) -> None:
    (fault,) = object_faults(parse_spec(scenario.build()))
    assert complaint in str(fault.error)
    assert str(fault.error).startswith("step 1, operation 'op-1': ")
    assert complaint in run(scenario).message


def test_several_objects_of_one_name_are_found() -> None:
    (fault,) = object_faults(
        parse_spec(ScenarioBuilder("s").create(make_node("n"), count=2).build())
    )
    assert "put $(INDEX) into it" in fault.message


def test_all_faults_of_an_object_are_found() -> None:
    pod = make_pod("No Good").label(app="no good")
    found = object_faults(parse_spec(ScenarioBuilder("s").create(pod).build()))
    assert {fault.path[-1] for fault in found} == {"name", "labels"}


def test_what_depends_on_the_moment_is_left_for_the_run() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n-$(INDEX)"), count=2)
    scenario.patch("v1", "Pod", "later", {"metadata": {}})
    assert list(object_faults(parse_spec(scenario.build()))) == []


def named(kind: str, version: str, name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


CLASS = named("PriorityClass", "scheduling.k8s.io/v1", "high", value=7)
RUNTIME = named("RuntimeClass", "node.k8s.io/v1", "gvisor", handler="runsc")
ACCOUNT = named("ServiceAccount", "v1", "robot")
SPACE = named("Namespace", "v1", "team")


def pod_with(**spec: Any) -> dict[str, Any]:
    pod = make_pod("p").build()
    return {**pod, "spec": {**pod["spec"], **spec}}


REFERENCES = [
    pytest.param(
        pod_with(priorityClassName="high"),
        CLASS,
        ("spec", "priorityClassName"),
        "no PriorityClass with name high was found",
        id="priority class",
    ),
    pytest.param(
        pod_with(runtimeClassName="gvisor"),
        RUNTIME,
        ("spec", "runtimeClassName"),
        'RuntimeClass "gvisor" not found',
        id="runtime class",
    ),
    pytest.param(
        pod_with(serviceAccountName="robot"),
        ACCOUNT,
        ("spec", "serviceAccountName"),
        'serviceaccount "robot" not found',
        id="service account",
    ),
    pytest.param(
        make_pod("p").namespace("team").build(),
        SPACE,
        ("metadata", "namespace"),
        'namespaces "team" not found',
        id="namespace",
    ),
]


@pytest.mark.parametrize(("pod", "needs", "place", "complaint"), REFERENCES)
def test_what_a_pod_refers_to_must_have_been_created(
    pod: dict[str, Any], needs: dict[str, Any], place: tuple[str, ...], complaint: str
) -> None:
    too_late = ScenarioBuilder("s").create(pod, needs)
    (fault,) = object_faults(parse_spec(too_late.build()))
    assert fault.path[-len(place) :] == place
    assert complaint in fault.message
    assert complaint in run(too_late).message
    in_time = ScenarioBuilder("s").create(needs).next_step().create(pod)
    assert list(object_faults(parse_spec(in_time.build()))) == []
    assert run(in_time).ok


def test_what_is_wrong_besides_a_missing_namespace_is_found_too() -> None:
    pods = [make_pod(name).namespace("team") for name in ("No Good", "b")]
    found = object_faults(parse_spec(ScenarioBuilder("s").create(*pods).build()))
    assert [fault.path[-1] for fault in found] == ["namespace", "name"]


def test_a_dump_that_needs_a_missing_priority_class_is_not_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = make_pod("p").build()
    pod["spec"] = {**pod["spec"], "priorityClassName": "gone", "priority": 100}
    file = tmp_path / "dump.yaml"
    file.write_text(json.dumps(scenario_from([pod], "dump").scenario))
    assert validate_files([file]) == 2
    assert "no PriorityClass with name gone was found: create it" in capsys.readouterr().err


def test_nothing_is_missing_for_certain_while_other_operations_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = ScenarioBuilder("s").create(CLASS, pod_with(priorityClassName="high")).build()
    scenario["spec"]["operations"][0]["stepp"] = 1
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(scenario))
    assert validate_files([file]) == 2
    assert "PriorityClass" not in capsys.readouterr().err


def test_kinds_that_the_scenario_defines_before_are_known() -> None:
    definition = widget_definition("Cluster")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    scenario = ScenarioBuilder("s").step(2).create(widget).step(1).create(definition)
    assert list(object_faults(parse_spec(scenario.build()))) == []


def test_unknown_fields_pass_if_the_author_says_so() -> None:
    operation = {
        "step": 1,
        "createOperation": {
            "object": {**make_node("n").build(), "extra": 1},
            "createOptions": {"fieldValidation": "Ignore"},
        },
    }
    scenario = ScenarioBuilder("s").build()
    scenario["spec"]["operations"] = [operation]
    assert list(object_faults(parse_spec(scenario))) == []


FAULTY = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: faulty}
spec:
  operations:
  - id: a
    step: 1
    createOperation:
      object:
        apiVersion: v1
        kind: Pod
        metadata:
          name: No Good
        spec:
          containers:
          - name: main
            image: i
            imagePullPolicy: Sometimes
  - id: b
    step: 1
    deleteOperation:
      typeMeta: {apiVersion: v1, kind: Pot}
      objectMeta: {name: p}
"""


def lines(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    assert validate_files([file]) == 2
    return [
        line.removeprefix(f"{file}:").split(": ")[0]
        for line in capsys.readouterr().err.splitlines()
    ]


def test_every_fault_has_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines(FAULTY, tmp_path, capsys) == ["13:11", "18:13", "22:34"]


def test_faults_of_form_have_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        FAULTY.replace("    step: 1\n    delete", "    stepp: 1\n    delete")
        + "  controllerz: {}\n"
    )
    text = text.replace("- id: a\n", "- id: '@a'\n")
    assert lines(text, tmp_path, capsys) == ["6:5", "13:11", "18:13", "19:5", "20:5", "24:3"]


def test_what_is_posted_to_a_pod_is_left_for_the_run() -> None:
    for kind, version in (("Eviction", "policy/v1"), ("Binding", "v1")):
        posted = {"apiVersion": version, "kind": kind, "metadata": {"name": "p"}}
        scenario = ScenarioBuilder("s").create(make_pod("p")).create(posted)
        assert list(object_faults(parse_spec(scenario.build()))) == []


@pytest.mark.parametrize(
    ("subresource", "said"), [("scale", []), ("", ['no kind "Scale" is registered'])]
)
def test_a_scale_is_known_where_it_is_written(subresource: str, said: list[str]) -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}}
    written: JsonObject = {"object": {**scale, "spec": {"replicas": 3}}}
    if subresource:
        written["subresource"] = subresource
    scenario = ScenarioBuilder("s").build()
    scenario["spec"]["operations"] = [{"step": 1, "createOperation": written}]
    found = [fault.message for fault in object_faults(parse_spec(scenario), is_whole=False)]
    assert len(found) == len(said)
    assert all(each in text for each, text in zip(said, found, strict=True))


@pytest.mark.parametrize("spec", ["", "spec:\n", "spec: {}\n"], ids=["none", "null", "empty"])
def test_a_scenario_without_spec_waits_for_operations_wherever_it_is_read(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The KEP has it ``omitempty``: operations may be added later."""
    file = tmp_path / "s.yaml"
    head = "apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1\nkind: Scenario\n"
    file.write_text(f"{head}metadata: {{name: s}}\n{spec}", encoding="utf-8")
    assert run(file).phase == "Paused"
    assert validate_files([file]) == 0
    assert capsys.readouterr().out == f"{file}: fine, 0 operations in 0 steps\n"
