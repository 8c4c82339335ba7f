"""The form of the KEP's earlier drafts is accepted, and stays as its author wrote it."""

import kubescene
from kubescene.scenario import ScenarioPhase, parse_spec
from kubescene.scenario.phases import DRAFT_STEP_PHASE, StepPhase
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

TARGET = {"typeMeta": {"apiVersion": "v1", "kind": "Pod"}, "objectMeta": {"name": "a"}}
EVENTS = [
    {
        "id": "1",
        "step": 1,
        "operation": "Create",
        "createOperation": {"object": make_node("n").cpu("4").build()},
    },
    {
        "id": "2",
        "step": 1,
        "operation": "Create",
        "createOperation": {"object": make_pod("a").cpu("1").build()},
    },
    {
        "id": "3",
        "step": 2,
        "operation": "Patch",
        "patchOperation": {**TARGET, "patch": '{"metadata":{"labels":{"a":"b"}}}'},
    },
    {"id": "4", "step": 3, "operation": "Delete", "deleteOperation": TARGET},
    {"id": "5", "step": 3, "operation": "Done", "doneOperation": {"done": True}},
]


def draft(**controllers: JsonObject) -> JsonObject:
    spec: JsonObject = {"events": EVENTS}
    return {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "draft"},
        "spec": spec | ({"controllers": controllers} if controllers else {}),
    }


def test_events_are_played_like_operations() -> None:
    run = kubescene.run(draft())
    assert (run.phase, run.message) == (ScenarioPhase.SUCCEEDED, "")
    engine = [e for e in run.timeline if e["actor"] == "scenario-engine"]
    assert [(e["id"], e["operation"]) for e in engine] == [
        (event["id"], event["operation"]) for event in EVENTS
    ]


def test_events_stay_verbatim_in_the_object() -> None:
    spec = kubescene.run(draft()).scenario["spec"]
    assert spec["events"] == EVENTS
    assert "operations" not in spec


def test_the_drafts_names_of_the_controllers_are_read() -> None:
    spec = parse_spec(
        draft(
            simulationControllers={"enabled": [{"Name": "kube-scheduler"}]},
            preSimulationControllers={"disabled": [{"name": "kubelet"}]},
        )
    )
    assert spec.simulation_controllers == ("kube-scheduler",)
    assert spec.presimulation_controllers(["replicaset", "kubelet", "kube-scheduler"]) == [
        "replicaset"
    ]


def test_the_drafts_name_of_the_patch_type_is_read() -> None:
    patch = {**TARGET, "patch": '{"metadata":{"labels":{"a":"b"}}}', "PatchType": "merge"}
    operations = [
        {"step": 1, "createOperation": {"object": make_pod("a").build()}},
        {"step": 1, "patchOperation": patch},
    ]
    run = kubescene.run({**draft(), "spec": {"operations": operations}})
    assert run.ok, run.message
    assert run.cluster.pod("a").labels == {"a": "b"}


def test_the_status_is_also_told_in_the_drafts_words() -> None:
    """The first draft has the major step, the second phases of its own; only drafts' files do."""
    status = kubescene.run(draft()).scenario["status"]
    assert (status["step"], status["stepPhase"]) == (3, "Finished")
    assert status["stepStatus"]["phase"] == "Finished"
    operations = [{"step": 1, "createOperation": {"object": make_pod("a").build()}}]
    status = kubescene.run({**draft(), "spec": {"operations": operations}}).scenario["status"]
    assert "step" not in status
    assert "stepPhase" not in status


def test_every_phase_has_a_word_of_the_second_draft() -> None:
    assert list(DRAFT_STEP_PHASE) == list(StepPhase)


def test_a_target_is_an_object_meta_with_labels_and_annotations() -> None:
    named = {"name": "a", "labels": {"app": "x"}, "annotations": {"who": "me"}}
    operations = [
        {"step": 1, "createOperation": {"object": make_pod("a").build()}},
        {"step": 2, "deleteOperation": {**TARGET, "objectMeta": named}},
    ]
    run = kubescene.run({**draft(), "spec": {"operations": operations}})
    assert run.ok, run.message
    assert run.cluster.list("pods") == []
