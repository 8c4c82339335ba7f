"""The table "What counts" of the Scenario API: which writes move the minor step, which are told.

A scripted controller makes one write when it sees the ConfigMap ``go``; the tests compare what
the timeline says of it when it is simulated and when it only settles.
"""

import json
from collections.abc import Callable
from functools import partial

import pytest

import kubescene
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import Client, ObjectRef
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
POD = GroupVersionKind("", "v1", "Pod")
NODE = GroupVersionKind("", "v1", "Node")
GO = ObjectRef(CONFIG_MAP, "go", "default")

Script = Callable[[Client], object]


def config_map(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Scripted:
    """Makes one write, once ``go`` exists."""

    name = "scripted"

    def __init__(self, context: ControllerContext, script: Script) -> None:
        self._client = context.client
        self._script = script
        self._told = False
        context.client.watch(CONFIG_MAP, self._changed)

    def _changed(self, change: Change) -> None:
        if change.record.name == "go" and change.previous is None:
            self._told = True

    def run_once(self) -> Progress:
        if not self._told:
            return IDLE
        self._told = False
        self._script(self._client)
        return Progress(wrote=True, more=False)


def play(script: Script, *simulated: str) -> list[JsonObject]:
    """What the timeline tells of the scripted controller."""
    scenario = (
        ScenarioBuilder("s")
        .simulate(*simulated)
        .create(make_node("n"), make_pod("gated").gate("wait"), config_map("old", a="b"))
        .step(2)
        .create(config_map("go"))
    )
    run = kubescene.run(scenario, controllers={"scripted": partial(Scripted, script=script)})
    assert run.ok, run.message
    return [event for event in run.timeline if event["actor"] == "scripted"]


def create(client: Client) -> None:
    client.create(config_map("new"))


def update(client: Client) -> None:
    old = client.get(ObjectRef(CONFIG_MAP, "old", "default"))
    client.update({**old, "data": {"c": "d"}})


def patch(client: Client) -> None:
    client.patch(ObjectRef(CONFIG_MAP, "old", "default"), {"data": {"e": "f"}})


def delete(client: Client) -> None:
    client.delete(ObjectRef(CONFIG_MAP, "old", "default"))


WRITES = pytest.mark.parametrize(
    ("script", "operation", "body"),
    [
        (create, "Create", "create"),
        (update, "Patch", "patch"),
        (patch, "Patch", "patch"),
        (delete, "Delete", "delete"),
    ],
    ids=["create", "update", "patch", "delete"],
)


@WRITES
def test_a_write_of_a_simulation_controller_moves_the_step_and_is_told(
    script: Script, operation: str, body: str
) -> None:
    (event,) = play(script, "scripted")
    assert (event["step"], event["operation"]) == ({"major": 2, "minor": 1}, operation)
    assert set(event) == {"id", "step", "time", "actor", "operation", body}
    assert event["id"] == "@2.1-1"


@WRITES
def test_the_same_by_a_presimulation_controller_is_told_at_the_current_step(
    script: Script, operation: str, body: str
) -> None:
    (event,) = play(script, "kube-scheduler")
    assert (event["step"], event["operation"]) == ({"major": 2, "minor": 0}, operation)
    assert body in event


def test_an_update_is_told_as_its_merge_patch() -> None:
    (event,) = play(update, "scripted")
    told = event["patch"]
    assert told["operation"]["typeMeta"] == {"apiVersion": "v1", "kind": "ConfigMap"}
    assert told["operation"]["objectMeta"] == {"name": "old", "namespace": "default"}
    assert "merge" in told["operation"]["patchType"]
    assert json.loads(told["operation"]["patch"]) == {"data": {"a": None, "c": "d"}}
    assert told["result"]["data"] == {"c": "d"}


def event_object(client: Client) -> None:
    involved = {"kind": "Pod", "namespace": "default", "name": "gated"}
    metadata = {"name": "e", "namespace": "default"}
    client.create(
        {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": involved}
    )


def lease(client: Client) -> None:
    metadata = {"name": "l", "namespace": "default"}
    client.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})


def node_status(client: Client) -> None:
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    client.patch(ObjectRef(NODE, "n"), patch, subresource="status")


@pytest.mark.parametrize("script", [event_object, lease, node_status])
@pytest.mark.parametrize("simulated", ["scripted", "kube-scheduler"])
def test_bookkeeping_moves_nothing_and_is_not_told(script: Script, simulated: str) -> None:
    assert play(script, simulated) == []


def pod_status(client: Client) -> None:
    ref = ObjectRef(POD, "gated", "default")
    client.patch(ref, {"status": {"message": "seen"}}, subresource="status")


def test_a_pods_status_written_by_anyone_but_a_scheduler_counts() -> None:
    (event,) = play(pod_status, "scripted")
    assert (event["operation"], event["step"]) == ("Patch", {"major": 2, "minor": 1})


def test_bookkeeping_moves_no_minor_step() -> None:
    def both(client: Client) -> None:
        lease(client)
        create(client)

    (event,) = play(both, "scripted")
    assert event["step"] == {"major": 2, "minor": 1}


# -- the scheduler and the kubelet -------------------------------------------------------------


def told(scenario: ScenarioBuilder) -> list[tuple[str, str, str]]:
    return [
        (f"{e['step']['major']}.{e['step']['minor']}", e["actor"], e["operation"])
        for e in kubescene.run(scenario).timeline
        if e["actor"] != "scenario-engine"
    ]


def test_a_bind_is_told_as_patch_and_pod_scheduled() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_pod("a").cpu("1"))
    assert told(scenario) == [
        ("1.1", "kube-scheduler", "Patch"),
        ("1.1", "kube-scheduler", "PodScheduled"),
    ]


def test_a_failed_attempt_is_told_as_pod_unscheduled_and_moves_nothing() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_pod("a").cpu("2"))
    assert told(scenario) == [("1.0", "kube-scheduler", "PodUnscheduled")]


def test_what_the_kubelet_writes_is_not_told() -> None:
    scenario = (
        ScenarioBuilder("s").disable("replicaset").create(make_node("n"), make_pod("a").on("n"))
    )
    run = kubescene.run(scenario)
    assert run.cluster.get("pods", "a")["status"]["phase"] == "Running"
    assert [e["actor"] for e in run.timeline] == ["scenario-engine"] * 2


def test_a_delete_is_told_once_when_it_is_accepted() -> None:
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n"), make_pod("a").on("n"))
        .step(2)
        .delete("v1", "Pod", "a", namespace="default", id="away")
    )
    run = kubescene.run(scenario)
    assert run.cluster.list("pods") == []
    assert [e["id"] for e in run.timeline if "delete" in e] == ["away"]


# -- events ------------------------------------------------------------------------------------


def test_an_event_has_the_fields_of_the_contract() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_pod("a").cpu("1"))
    node, _, bind, scheduled = kubescene.run(scenario).timeline
    assert list(node) == ["id", "step", "time", "actor", "operation", "create"]
    assert node["time"] == "2026-01-01T00:00:00.000000Z"
    assert node["create"]["operation"]["object"]["metadata"]["name"] == "n"
    assert node["create"]["result"]["metadata"]["uid"]
    assert json.loads(bind["patch"]["operation"]["patch"]) == {"spec": {"nodeName": "n"}}
    result = scheduled["podScheduled"]
    assert result["boundTo"] == "n"
    assert result["createdAt"] == {"major": 1, "minor": 0}
    assert result["boundAt"] == {"major": 1, "minor": 1}
    assert result["pod"]["spec"]["nodeName"] == "n"


def test_results_hold_no_resource_versions() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_pod("a").cpu("1"))
    run = kubescene.run(scenario.create(make_pod("b").cpu("1")))
    assert all(b"resourceVersion" not in line for line in run.timeline.lines)
    assert "resourceVersion" not in json.dumps(run.scenario)


def test_ids_are_unique_and_count_within_their_step() -> None:
    pods = [make_pod(name).cpu("1") for name in "abc"]
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("2"), *pods)
    ids = [e["id"] for e in kubescene.run(scenario).timeline]
    assert ids == [
        *(f"op-{n}" for n in range(1, 5)),
        "@1.1-1",
        "@1.1-2",
        "@1.2-1",
        "@1.2-2",
        "@1.2-3",
    ]
    assert len(set(ids)) == len(ids)


def test_done_and_advance_are_told_with_their_operation() -> None:
    events = list(kubescene.run(ScenarioBuilder("s").advance("5s", id="t").done(id="d")).timeline)
    assert [(e["id"], e["operation"]) for e in events] == [("t", "Advance"), ("d", "Done")]
    assert events[0]["advance"] == {"operation": {"duration": "5s"}}
    assert events[1]["done"] == {"operation": {}}
