"""Of what a history shows, what others than controllers did: case by case."""

from pathlib import Path

import pytest

import kubescene
from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import Scheme
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.histories.history import RecordedEvent
from kubescene.histories.recordings import RecordingWriter
from kubescene.histories.survey import survey
from kubescene.histories.table import history_at
from kubescene.runs import Run
from kubescene.scenario.build import ScenarioBuilder
from kubescene.scenario.operations.intents import Intent, Intents
from kubescene.types import JsonObject

T0 = 1_772_442_000 * SECOND
ADD, UPDATE, DELETE = RecordedEvent.ADD, RecordedEvent.UPDATE, RecordedEvent.DELETE
READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-03-02T09:00:00Z"}
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node(*taints: str, **status: object) -> JsonObject:
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
    told = {"capacity": ROOM, "allocatable": ROOM, "conditions": [READY], **status}
    metadata = {"name": "n", "uid": "node-n"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": told}


def pod(name: str, owner: str = "", **metadata: object) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    of = {"kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            **({"ownerReferences": [of]} if owner else {}),
            **metadata,
        },
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def replica_set(name: str, replicas: int) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def ended(obj: JsonObject, seconds: int, code: int = 0) -> JsonObject:
    over = {
        "startedAt": format_time(T0),
        "finishedAt": format_time(T0 + seconds * SECOND),
        "exitCode": code,
    }
    statuses = [{"name": "c", "state": {"terminated": over}}]
    phase = "Failed" if code else "Succeeded"
    return {**obj, "status": {"phase": phase, "containerStatuses": statuses}}


def recorded(
    folder: Path, first: list[JsonObject], *changes: tuple[int, RecordedEvent, JsonObject]
) -> Path:
    file = folder / "day.jsonl"
    writer = RecordingWriter(file)
    writer.begin(T0, first)
    for second, event, obj in changes:
        writer.add(T0 + second * SECOND, event, obj)
    writer.end(T0 + 3600 * SECOND)
    return file


def intents(file: Path) -> list[Intent]:
    return [*Intents(history_at(file), Scheme(builtin_scheme()), survey(file))]


def told(found: list[Intent]) -> list[str]:
    return [f"{each.kind} {each.ref.name} {(each.at - T0) // SECOND}" for each in found]


def played(file: Path, *more: JsonObject) -> Run:
    scenario = ScenarioBuilder("again").settings(snapshot=file.name).step(1)
    for obj in more:
        scenario.create(obj)
    scenario.step(2).replay(file.name).advance("1h").step(3).done()
    run = kubescene.run(scenario, folder=file.parent)
    assert run.phase == "Succeeded", run.message
    return run


def test_pods_of_a_controller_that_is_here_are_its_own(tmp_path: Path) -> None:
    placed = pod("web-a", "web")
    placed["spec"]["nodeName"] = "n"
    file = recorded(
        tmp_path,
        [node()],
        (1, ADD, replica_set("web", 1)),
        (2, ADD, pod("web-a", "web")),
        (3, UPDATE, placed),
        (4, UPDATE, replica_set("web", 2)),
        (5, ADD, pod("of-a-stranger", "rollout")),
        (6, DELETE, placed),
        (7, DELETE, replica_set("web", 2)),
    )
    assert told(intents(file)) == [
        "Create web 1",
        "Patch web 4",
        "Create of-a-stranger 5",
        "Delete web 7",
    ]
    assert intents(file)[1].body == {"spec": {"replicas": 2}}


def test_a_pod_may_be_heard_of_before_the_workload_that_made_it(tmp_path: Path) -> None:
    file = recorded(
        tmp_path, [node()], (1, ADD, pod("web-a", "web")), (1, ADD, replica_set("web", 1))
    )
    assert told(intents(file)) == ["Create web 1"]


@pytest.mark.parametrize(
    ("reason", "deleted"),
    [
        ("PreemptionByScheduler", []),
        ("EvictionByEvictionAPI", ["Delete a 9"]),
        ("", ["Delete a 9"]),
    ],
)
def test_a_pod_that_a_controller_ended_is_not_deleted_again(
    tmp_path: Path, reason: str, deleted: list[str]
) -> None:
    going = pod("a", deletionTimestamp=format_time(T0 + 40 * SECOND), deletionGracePeriodSeconds=31)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    going["status"] = {"conditions": [condition] if reason else []}
    file = recorded(tmp_path, [node(), pod("a")], (9, UPDATE, going), (40, DELETE, going))
    found = intents(file)
    assert told(found) == deleted
    assert [each.body for each in found] == [{"gracePeriodSeconds": 31}] * len(deleted)


def test_a_pod_that_came_again_while_nobody_looked_is_another_one(tmp_path: Path) -> None:
    other = pod("a", uid="uid-other")
    file = recorded(tmp_path, [node(), pod("a")], (9, UPDATE, other))
    assert told(intents(file)) == ["Delete a 9", "Create a 9"]


def test_what_a_node_has_and_how_it_fares_is_played_and_heartbeats_are_not(tmp_path: Path) -> None:
    beat = {**READY, "lastHeartbeatTime": "2026-03-02T09:05:00Z"}
    lost = {**READY, "status": "Unknown"}
    file = recorded(
        tmp_path,
        [node()],
        (1, UPDATE, node(conditions=[beat])),
        (2, UPDATE, node("dedicated")),
        (3, UPDATE, node("dedicated", "node.kubernetes.io/unreachable", conditions=[lost])),
        (4, UPDATE, node("dedicated", "node.kubernetes.io/unreachable", conditions=[lost])),
    )
    found = intents(file)
    assert told(found) == ["Patch n 2", "Patch n 3"]
    assert found[0].body == {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
    assert found[1].subresource == "status"
    assert found[1].body["status"]["conditions"] == [lost]


def test_between_two_changes_of_one_instant_controllers_act_if_they_did_there(
    tmp_path: Path,
) -> None:
    placed = pod("a")
    placed["spec"]["nodeName"] = "n"
    file = recorded(
        tmp_path,
        [node()],
        (1, ADD, pod("a")),
        (1, UPDATE, placed),
        (1, ADD, pod("b")),
        (1, ADD, pod("c")),
    )
    at = [each.at - T0 - SECOND for each in intents(file)]
    assert at == [0, 1, 1]


def test_a_pod_runs_as_long_as_it_ran_from_when_it_gets_its_place_here(tmp_path: Path) -> None:
    file = recorded(
        tmp_path,
        [node(), pod("there")],
        (10, ADD, pod("good")),
        (10, ADD, pod("bad")),
        (70, UPDATE, ended(pod("good"), 60)),
        (130, UPDATE, ended(pod("bad"), 120, code=3)),
        (300, UPDATE, ended(pod("there"), 290)),
    )
    run = played(file)
    pods = {each["metadata"]["name"]: each for each in run.cluster.list("pods")}
    phases = {name: each["status"]["phase"] for name, each in pods.items()}
    assert phases == {"good": "Succeeded", "bad": "Failed", "there": "Succeeded"}
    lasted = {"good": 60, "bad": 120, "there": 290}
    for name, seconds in lasted.items():
        (over,) = [
            each["state"]["terminated"] for each in pods[name]["status"]["containerStatuses"]
        ]
        assert lasted_for(over) == seconds, name


def lasted_for(over: JsonObject) -> int:
    return (parse_time(over["finishedAt"]) - parse_time(over["startedAt"])) // SECOND


def test_what_comes_to_nothing_here_is_counted(tmp_path: Path) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    file = recorded(
        tmp_path,
        [node()],
        (1, ADD, space),
        (2, ADD, pod("a")),
        (3, UPDATE, pod("a", labels={"x": "y"})),
        (4, DELETE, pod("a")),
    )
    again = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    run = played(file, again)
    (row,) = run.tables["outcomes"].rows
    assert row.state == "Completed"
    assert row.message == "4 changes played, 1 changed, 1 created, 1 deleted, 1 there already"
