"""Agreement with what happened is arithmetic over places that are known."""

from pathlib import Path

from commands import kubescene as command
from kubescene.clock import SECOND, Streams
from kubescene.histories.history import RecordedEvent
from kubescene.histories.placements import RecordedPlace, RecordedPlaces
from kubescene.histories.recordings import RecordingWriter
from kubescene.histories.table import history_at
from kubescene.results.agreement import compared
from kubescene.types import JsonObject

T0 = 1_772_442_000 * SECOND
LABELS = {
    "a1": {"topology.kubernetes.io/zone": "a"},
    "a2": {"topology.kubernetes.io/zone": "a"},
    "b1": {"topology.kubernetes.io/zone": "b"},
}


def pods(*places: str) -> list[RecordedPlace]:
    """``web@a1``: a pod of web on a1."""
    return [RecordedPlace(*each.split("@")) for each in places]


def test_pods_of_a_workload_are_counted_by_node() -> None:
    there = pods("web@a1", "web@a1", "web@b1", "bare@a1")
    here = pods("web@a1", "web@a2", "web@b1", "bare@b1", "new@a1")
    found = compared(there, here, LABELS)
    assert (found.recorded, found.played, found.nodes, found.zones, found.pools) == (
        4,
        5,
        2,
        3,
        None,
    )
    assert found.apart == [("bare", 0, 1), ("web", 2, 3)]
    assert found.lines()[1] == "on the same node: 2 of 4 (50.0 %)"
    assert found.lines()[2] == "in the same zone: 3 of 4 (75.0 %)"


def test_what_is_alike_agrees_whatever_the_order() -> None:
    stream = Streams(7).stream("places")
    there = [
        RecordedPlace(f"g{stream.below(5)}", ("a1", "a2", "b1")[stream.below(3)]) for _ in range(99)
    ]
    found = compared(there, sorted(there), LABELS)
    assert (found.nodes, found.zones, found.apart) == (99, 99, [])
    assert compared(there, [], LABELS).nodes == 0
    assert compared([], there, LABELS).lines()[1] == "on the same node: 0 of 0"


def obj(kind: str, name: str, owner: str = "", **parts: JsonObject) -> JsonObject:
    api = "v1" if kind in ("Pod", "Node") else "apps/v1"
    metadata: JsonObject = {"name": name, "uid": f"{kind}/{name}"}
    if kind != "Node":
        metadata["namespace"] = "default"
    if owner:
        of, _, called = owner.partition("/")
        reference = {"kind": of, "name": called, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def test_placements_are_those_that_happened_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    writer = RecordingWriter(file)
    room = {"cpu": "4", "pods": "10"}
    first = [
        obj("Node", "n", status={"capacity": room, "allocatable": room}),
        obj("Deployment", "web"),
        obj("ReplicaSet", "web-1", "Deployment/web"),
        obj("Pod", "old", spec={"nodeName": "n"}),
    ]
    writer.begin(T0, first)
    for number, (name, owner) in enumerate(
        (
            ("web-1-x", "ReplicaSet/web-1"),
            ("db-0", "StatefulSet/db"),
            ("bare", ""),
            ("static", "Node/n"),
        )
    ):
        at = T0 + number * SECOND
        writer.add(at, RecordedEvent.ADD, obj("Pod", name, owner, spec={}))
        placed = obj("Pod", name, owner, spec={"nodeName": "n"})
        for _ in range(2):
            writer.add(at, RecordedEvent.UPDATE, placed)
    writer.add(T0 + 5 * SECOND, RecordedEvent.UPDATE, obj("Pod", "old", spec={"nodeName": "n"}))
    writer.add(T0 + 5 * SECOND, RecordedEvent.DELETE, obj("Pod", "bare", spec={}))
    writer.add(T0 + 5 * SECOND, RecordedEvent.ADD, obj("Pod", "bare", spec={"nodeName": "n"}))
    writer.end(T0 + 9 * SECOND)
    groups = [each.group for each in RecordedPlaces(history_at(file))]
    expected = ["default/Deployment/web", "default/db-0", "default/bare", "default/bare"]
    assert groups == expected


def test_a_pod_that_is_heard_of_before_its_workload_is_one_of_it(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl"
    writer = RecordingWriter(file)
    writer.begin(T0, [])
    placed = obj("Pod", "web-1-x", "ReplicaSet/web-1", spec={"nodeName": "n"})
    writer.add(T0, RecordedEvent.ADD, placed)
    writer.add(T0 + SECOND, RecordedEvent.ADD, obj("ReplicaSet", "web-1", "Deployment/web"))
    writer.add(T0 + SECOND, RecordedEvent.ADD, obj("Deployment", "web"))
    writer.add(T0 + SECOND, RecordedEvent.ADD, obj("ReplicaSet", "own", "ReplicaSet/own"))
    cycle = obj("Pod", "own-x", "ReplicaSet/own", spec={"nodeName": "n"})
    writer.add(T0 + SECOND, RecordedEvent.ADD, cycle)
    writer.end(T0 + 9 * SECOND)
    assert [*RecordedPlaces(history_at(file))] == [
        RecordedPlace("default/Deployment/web", "n"),
        RecordedPlace("default/ReplicaSet/own", "n"),
    ]


def test_who_replays_nothing_has_nothing_to_compare(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "01-first-scenario" / "scenario.yaml"
    done = command("run", example, "--compare-recorded")
    assert done.returncode == 2
    assert "--compare-recorded is for scenarios with a replayOperation" in done.stderr
