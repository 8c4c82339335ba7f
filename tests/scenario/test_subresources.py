"""Operations through parts of objects: bind, evict, fail a node, finish a pod, scale; and files."""

import os
from pathlib import Path
from typing import Any

import pytest

import kubescene
from kubescene.errors import ScenarioError
from kubescene.runs.local import Run
from kubescene.scenario import ScenarioBuilder, ScenarioPhase
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

NODE, POD = ("v1", "Node"), ("v1", "Pod")


def binding(pod: str, node: str) -> JsonObject:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}


def eviction(pod: str) -> JsonObject:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}


def play(scenario: ScenarioBuilder) -> Run:
    run = kubescene.run(scenario)
    assert run.ok, run.message
    return run


def event(run: Run, name: str) -> dict[str, Any]:
    (found,) = [each for each in run.timeline if each["id"] == name]
    return found


@pytest.mark.parametrize("subresource", ["", "binding"])
def test_a_binding_binds(subresource: str) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_node("m"))
    scenario.create(make_pod("p"), binding("p", "m"), id="")
    built = scenario.build()
    built["spec"]["operations"][-1]["id"] = "by-hand"
    if subresource:
        built["spec"]["operations"][-1]["createOperation"]["subresource"] = subresource
    run = kubescene.run(built)
    assert run.ok, run.message
    assert run.cluster.pod("p").node == "m"
    assert run.cluster.get("pods", "p")["status"]["phase"] == "Running"
    told = event(run, "by-hand")
    assert (told["operation"], told["patch"]["result"]["spec"]["nodeName"]) == ("Patch", "m")
    assert run.summary.pending == []


def test_a_binding_to_a_pod_that_is_bound_fails_the_scenario() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_pod("p"))
    run = kubescene.run(scenario.next_step().create(binding("p", "n"), id="again"))
    assert run.phase is ScenarioPhase.FAILED
    assert "step 2, operation 'again': create was refused" in run.message
    assert 'already assigned to node "n"' in run.message


def test_an_eviction_deletes_the_pod_and_is_told_under_its_id() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_pod("p"))
    run = play(scenario.next_step().create(eviction("p"), id="drain"))
    assert run.cluster.list("pods") == []
    assert event(run, "drain")["operation"] == "Delete"


def test_an_eviction_that_a_budget_forbids_fails_the_scenario() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
    }
    scenario = ScenarioBuilder("s").create(make_node("n"), make_pod("p").label(app="p"), budget)
    run = kubescene.run(scenario.next_step().create(eviction("p"), id="drain"))
    assert run.phase is ScenarioPhase.FAILED
    assert "Cannot evict pod" in run.message


def test_a_node_fails_and_no_pod_goes_there() -> None:
    not_ready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    taint = {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}}
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("4"))
        .next_step()
        .patch(*NODE, "n", not_ready, subresource="status", id="down")
        .patch(*NODE, "n", taint, id="tainted")
        .create(make_pod("p"))
    )
    run = play(scenario)
    (condition,) = [
        each
        for each in run.cluster.get("nodes", "n")["status"]["conditions"]
        if each["type"] == "Ready"
    ]
    assert condition["status"] == "False"
    assert event(run, "down")["patch"]["operation"]["subresource"] == "status"
    assert [pod.pod for pod in run.summary.pending] == ["default/p"]


def test_a_pod_is_finished_and_its_room_is_free() -> None:
    done = {"status": {"phase": "Succeeded"}}
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("1"), make_pod("a").cpu("1"), make_pod("b").cpu("1"))
        .next_step()
        .patch(*POD, "a", done, subresource="status")
    )
    assert play(scenario).cluster.pod("b").node == "n"


def test_a_status_is_replaced() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4"))
    node = make_node("n").cpu("8").build()
    scenario.next_step().create(node, id="grown", subresource="status")
    run = play(scenario)
    assert run.cluster.get("nodes", "n")["status"]["allocatable"]["cpu"] == "8"
    assert event(run, "grown")["operation"] == "Patch"


@pytest.mark.parametrize(
    ("patch", "patch_type"),
    [
        ({"spec": {"replicas": 3}}, ""),
        ([{"op": "replace", "path": "/spec/replicas", "value": 3}], "json"),
    ],
    ids=["merge", "json"],
)
def test_a_deployment_is_scaled(patch: Any, patch_type: str) -> None:
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n"), make_deployment("web").replicas(1))
        .next_step()
        .patch("apps/v1", "Deployment", "web", patch, subresource="scale", patch_type=patch_type)
    )
    assert len(play(scenario).cluster.list("pods")) == 3


SCALE = ("autoscaling/v1", "Scale")
DEPLOYMENT, REPLICA_SET = ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet")


def scale(kind: tuple[str, str], replicas: int) -> JsonObject:
    version, name = kind
    spec = {"replicas": replicas}
    return {"apiVersion": version, "kind": name, "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize("kind", [SCALE, DEPLOYMENT], ids=["a Scale", "its own kind"])
@pytest.mark.parametrize("replicas", [0, 3])
def test_a_deployment_is_scaled_by_a_create(kind: tuple[str, str], replicas: int) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_deployment("web").replicas(1))
    scenario.next_step().create(scale(kind, replicas), subresource="scale", id="more")
    run = play(scenario)
    assert len(run.cluster.list("pods")) == replicas
    told = event(run, "more")
    assert (told["operation"], told["step"]["major"]) == ("Patch", 2)
    assert told["patch"]["operation"]["typeMeta"]["kind"] == "Deployment"
    assert told["patch"]["result"]["spec"]["replicas"] == replicas


@pytest.mark.parametrize(
    ("others", "complaint"),
    [
        ([], 'nothing that can be scaled is called "default/web"'),
        (
            [make_deployment("web"), {**make_deployment("web").build(), "kind": "ReplicaSet"}],
            "is the name of several objects (Deployment, ReplicaSet)",
        ),
    ],
    ids=["none", "two"],
)
def test_a_scale_must_name_one_object(others: list[Any], complaint: str) -> None:
    for each in others[1:]:
        each["spec"].pop("strategy", None)
    scenario = ScenarioBuilder("s").create(make_node("n"), *others)
    scenario.next_step().create(scale(SCALE, 3), subresource="scale")
    run = kubescene.run(scenario)
    assert run.phase is ScenarioPhase.FAILED
    assert complaint in run.message


def test_scaling_writes_nothing_but_the_number() -> None:
    body = scale(DEPLOYMENT, 3)
    body["spec"]["paused"] = True
    run = kubescene.run(ScenarioBuilder("s").create(body, subresource="scale"))
    assert run.bad_input
    assert "the subresource scale writes replicas alone, not paused" in run.message


# -- objectFrom ----------------------------------------------------------------------------------

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: b}
  spec: {containers: [{name: c, image: i}]}
"""


def from_file(name: str) -> JsonObject:
    scenario = ScenarioBuilder("s").create(make_node("n")).build()
    operation = {"id": "file", "step": 1, "createOperation": {"objectFrom": name}}
    scenario["spec"]["operations"].append(operation)
    return scenario


def test_objects_are_read_from_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "pods.yaml").write_text(PODS)
    run = kubescene.run(from_file("more/pods.yaml"), folder=tmp_path)
    assert run.ok, run.message
    assert [pod["metadata"]["name"] for pod in run.cluster.list("pods")] == ["a", "b"]
    created = event(run, "file[1]")["create"]
    assert created["operation"]["object"]["metadata"]["name"] == "b"
    assert created["result"]["metadata"]["name"] == "b"


def test_a_scenario_file_has_its_folder(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(PODS)
    import yaml

    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(from_file("pods.yaml")))
    assert kubescene.run(tmp_path / "scenario.yaml").ok


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("../secret.yaml", "must be a path inside the folder"),
        ("/etc/passwd", "must be a path inside the folder"),
        ("a/../../secret.yaml", "must be a path inside the folder"),
        ("out.yaml", "leads out of the folder"),
        ("folder", "there is no file"),
        ("none.yaml", "there is no file"),
        ("empty.yaml", "holds no object"),
        ("text.yaml", "object 0 of text.yaml needs apiVersion and kind"),
        ("broken.yaml", "not valid YAML"),
        ("pipe", "there is no file"),
        ("loop.yaml", "cannot be followed"),
        ("a\0b", "must be a path inside the folder"),
    ],
)
def test_nothing_outside_the_folder_is_read(tmp_path: Path, name: str, complaint: str) -> None:

    folder = tmp_path / "scenario"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "secret.yaml").write_text(PODS)
    (folder / "out.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "empty.yaml").write_text("")
    (folder / "text.yaml").write_text("hello")
    (folder / "broken.yaml").write_text("a: [")
    os.mkfifo(folder / "pipe")
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    with pytest.raises(ScenarioError) as caught:
        ScenarioFolder(folder).read(name)
    assert complaint in str(caught.value)
    for out in (None, tmp_path / "results"):
        run = kubescene.run(from_file(name), folder=folder, out=out)
        assert run.bad_input
        assert complaint in run.message
