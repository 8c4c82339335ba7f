"""The ledger by itself: entries in, the cluster out."""

from typing import NamedTuple

import msgspec
import pytest

from kubescene.clock import SECOND, ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.states import NodeState, PodAsk, PodState, States


def asking(cpu: int) -> PodAsk:
    return PodAsk({"cpu": cpu})


def pod(cpu: int, node: str = "", phase: str = "Pending") -> PodState:
    return PodState(node, phase, asking(cpu))


def node(cpu: int) -> NodeState:
    return NodeState({"cpu": cpu, "pods": 110}, {})


@pytest.fixture
def ledger() -> Ledger:
    """A node of 4 cpu with a pod of 1, at step 1."""
    ledger = Ledger()
    ledger.at(ScenarioStep(1, 0), 0)
    ledger.node_written("n", node(4000))
    ledger.pod_created("default", "a", "uid-a", pod(1000))
    ledger.pod_bound("default", "a", "n")
    return ledger


def requested(ledger: Ledger) -> tuple[int, int]:
    return ledger.totals.requested.get("cpu", 0), ledger.totals.requested["pods"]


def test_a_bound_pod_takes_its_room(ledger: Ledger) -> None:
    assert requested(ledger) == (1000, 1)


def test_a_pod_is_bound_once(ledger: Ledger) -> None:
    ledger.pod_bound("default", "a", "n")
    ledger.pod_written("default", "a", "uid-a", pod(1000, "n", "Running"))
    assert requested(ledger) == (1000, 1)


def test_a_resized_pod_takes_what_it_asks_for_now(ledger: Ledger) -> None:
    ledger.pod_written("default", "a", "uid-a", pod(3000, "n"))
    assert requested(ledger) == (3000, 1)


def test_a_pod_that_waits_may_ask_for_something_else(ledger: Ledger) -> None:
    ledger.pod_created("default", "b", "uid-b", pod(500))
    ledger.pod_written("default", "b", "uid-b", pod(700))
    assert requested(ledger) == (1000, 1)
    ledger.pod_bound("default", "b", "n")
    assert requested(ledger) == (1700, 2)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_takes_nothing(ledger: Ledger, phase: str) -> None:
    ledger.pod_written("default", "a", "uid-a", pod(1000, "n", phase))
    assert requested(ledger) == (0, 0)
    ledger.pod_deleted("default", "a", marked=True)
    assert ledger.states["Finished"] == 1
    ledger.pod_ended("default", "a")
    assert requested(ledger) == (0, 0)
    assert ledger.states["Deleted"] == 1


def test_a_deletion_that_is_marked_twice_counts_once(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.pod_deleted("default", "a", marked=True)
    assert ledger.states["Terminating"] == 1
    assert requested(ledger) == (1000, 1)
    ledger.pod_ended("default", "a")
    ledger.pod_ended("default", "a")
    assert (ledger.states["Deleted"], requested(ledger)) == (1, (0, 0))


def test_a_pod_that_waits_and_is_held_takes_no_room(ledger: Ledger) -> None:
    ledger.pod_created("default", "b", "uid-b", pod(500))
    ledger.pod_deleted("default", "b", marked=True)
    assert (ledger.states["Terminating"], ledger.states["Pending"]) == (1, 0)
    assert requested(ledger) == (1000, 1)
    ledger.pod_ended("default", "b")
    assert requested(ledger) == (1000, 1)


def test_a_pod_that_goes_when_its_finalizer_does_is_not_a_new_one(ledger: Ledger) -> None:
    """The write that lets it go is told after its end."""
    ledger.pod_deleted("default", "a", marked=True)
    ledger.pod_ended("default", "a")
    ledger.pod_written("default", "a", "uid-a", pod(1000, "n"))
    assert len(ledger.pods) == 1
    assert requested(ledger) == (0, 0)


def test_another_pod_of_the_name_takes_the_place_of_the_first(ledger: Ledger) -> None:
    ledger.pod_created("default", "a", "uid-2", pod(2000, "n"))
    assert [each.state for each in ledger.pods] == ["Deleted", "Bound"]
    assert requested(ledger) == (2000, 1)


def test_pods_may_be_bound_to_a_node_that_comes_later() -> None:
    ledger = Ledger()
    ledger.at(ScenarioStep(1, 0), 0)
    ledger.pod_created("default", "early", "uid", pod(1000, "n"))
    assert requested(ledger) == (0, 0)
    ledger.node_written("n", node(4000))
    assert requested(ledger) == (1000, 1)


def test_a_node_may_offer_something_else(ledger: Ledger) -> None:
    ledger.node_written("n", node(2000))
    assert ledger.totals.allocatable["cpu"] == 2000
    ledger.node_removed("n")
    assert (ledger.totals.allocatable["cpu"], requested(ledger)) == (0, (0, 0))


def test_what_nobody_knows_changes_nothing(ledger: Ledger) -> None:
    ledger.pod_deleted("default", "stranger", marked=False)
    ledger.pod_ended("default", "stranger")
    ledger.pod_bound("default", "stranger", "n")
    ledger.node_removed("stranger")
    assert requested(ledger) == (1000, 1)
    assert sum(ledger.states.values()) == 1


def test_a_peak_is_what_was_at_the_end_of_a_moment_though_more_came_before_it_went(
    ledger: Ledger,
) -> None:
    """One pod comes in the moment in which a larger one goes: both are never there together."""
    ledger.at(ScenarioStep(1, 1), 0)
    ledger.pod_created("default", "b", "uid-b", pod(300, "n"))
    ledger.pod_ended("default", "a")
    ledger.close()
    [step] = ledger.steps
    assert (step.peak.requested["cpu"], step.peaks["n"].requested["cpu"]) == (1000, 1000)
    assert ledger.nodes[0].peak.requested["cpu"] == 1000


def test_time_is_weighed_by_what_was_there(ledger: Ledger) -> None:
    ledger.at(ScenarioStep(1, 1), 10 * SECOND)
    ledger.pod_created("default", "b", "uid-b", pod(1000, "n"))
    ledger.at(ScenarioStep(2, 0), 30 * SECOND)
    ledger.close()
    assert ledger.requested_time["cpu"] == (10 * 1000 + 20 * 2000) * SECOND
    assert ledger.allocatable_time["cpu"] == 30 * 4000 * SECOND
    assert ledger.node_time == 30 * SECOND


def test_a_step_is_as_it_was_left(ledger: Ledger) -> None:
    ledger.at(ScenarioStep(2, 0), 5 * SECOND)
    ledger.pod_deleted("default", "a", marked=False)
    ledger.node_written("m", node(1000))
    ledger.close()
    first, second = ledger.steps
    assert (first.totals.requested["cpu"], second.totals.requested["cpu"]) == (1000, 0)
    assert (first.bound, second.bound, first.ended_time) == (1, 0, 5 * SECOND)
    assert (list(first.nodes), list(second.nodes)) == (["n"], ["n", "m"])


def test_a_ledger_that_was_closed_may_go_on(ledger: Ledger) -> None:
    """A scenario that paused goes on in the step that it paused in, or in a later one."""
    ledger.close()
    ledger.pod_deleted("default", "a", marked=False)
    ledger.close()
    (step,) = ledger.steps
    use = step.nodes["n"]
    assert use is not None
    assert (step.bound, use.requested["cpu"]) == (0, 0)


def test_a_scenario_that_goes_on_after_a_pause_has_not_ended(ledger: Ledger) -> None:
    ledger.end("Paused", "")
    ledger.close()
    assert ledger.phase == "Paused"
    ledger.at(ScenarioStep(2, 0), 0)
    assert ledger.phase == ""


# -- devices -------------------------------------------------------------------------------


def slice_text(node: str | None, *names: str) -> bytes:
    spec = {"driver": "gpu.example.com", "pool": {"name": node or "shared"}}
    if node:
        spec["nodeName"] = node
    return msgspec.json.encode({"spec": {**spec, "devices": [{"name": name} for name in names]}})


def claim_text(*held: tuple[str, str], admin: bool = False) -> bytes:
    results = [
        {"driver": "gpu.example.com", "pool": pool, "device": name, "adminAccess": admin}
        for pool, name in held
    ]
    return msgspec.json.encode({"status": {"allocation": {"devices": {"results": results}}}})


GPUS = "devices/gpu.example.com"


def devices(ledger: Ledger) -> tuple[int, int]:
    return ledger.totals.requested.get(GPUS, 0), ledger.totals.allocatable.get(GPUS, 0)


def test_devices_are_offered_by_their_node_and_taken_by_claims(ledger: Ledger) -> None:
    ledger.slice_written("s", slice_text("n", "gpu-0", "gpu-1"))
    ledger.claim_written("default", "c", claim_text(("n", "gpu-1")))
    assert devices(ledger) == (1, 2)
    found = ledger.node("n")
    assert found is not None
    assert (found.room.requested[GPUS], found.allocatable[GPUS]) == (1, 2)
    ledger.node_written("n", node(4000))
    assert devices(ledger) == (1, 2), "a heartbeat takes no devices away"
    ledger.claim_written("default", "c", b'{"status":{}}')
    assert devices(ledger) == (0, 2)


def test_a_device_that_claims_share_is_taken_once_and_administrators_take_none(
    ledger: Ledger,
) -> None:
    ledger.slice_written("s", slice_text("n", "gpu-0", "gpu-1"))
    for name in ("one", "two"):
        ledger.claim_written("default", name, claim_text(("n", "gpu-0")))
    ledger.claim_written("default", "root", claim_text(("n", "gpu-1"), admin=True))
    assert devices(ledger) == (1, 2)
    ledger.claim_removed("default", "one")
    assert devices(ledger) == (1, 2)
    ledger.claim_removed("default", "two")
    assert devices(ledger) == (0, 2)


def test_devices_come_and_go_with_their_slice_and_their_node(ledger: Ledger) -> None:
    ledger.claim_written("default", "c", claim_text(("m", "gpu-0")))
    ledger.slice_written("s", slice_text("m", "gpu-0"))
    assert devices(ledger) == (0, 0), "there is no such node yet"
    ledger.node_written("m", node(4000))
    assert devices(ledger) == (1, 1)
    ledger.slice_written("s", slice_text("m", "gpu-0", "gpu-1", "gpu-2"))
    assert devices(ledger) == (1, 3)
    ledger.node_removed("m")
    assert devices(ledger) == (0, 0)
    ledger.node_written("m", node(4000))
    assert devices(ledger) == (1, 3)
    ledger.slice_removed("s")
    assert devices(ledger) == (0, 0)


def test_devices_of_no_single_node_count_for_the_cluster(ledger: Ledger) -> None:
    ledger.slice_written("s", slice_text(None, "nic-0", "nic-1"))
    ledger.claim_written("default", "c", claim_text(("shared", "nic-0")))
    assert devices(ledger) == (1, 2)
    ledger.close()
    assert ledger.steps[-1].peak.requested[GPUS] == 1
    assert "" not in ledger.steps[-1].nodes


# -- what keeps pods away ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "conditions", "marks"),
    [
        ({}, [], ""),
        ({}, [("Ready", "True"), ("DiskPressure", "Unknown")], ""),
        ({}, [("Ready", "False")], "NotReady"),
        ({"unschedulable": True}, [("Ready", "Unknown")], "unreachable, cordoned"),
        (
            {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
            [("Ready", "Unknown")],
            "unreachable",
        ),
        (
            {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]},
            [("Ready", "True")],
            "tainted node.kubernetes.io/unreachable:NoExecute",
        ),
        (
            {"taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}]},
            [],
            "tainted team=ml:NoSchedule",
        ),
    ],
)
def test_a_node_says_what_keeps_pods_away(
    spec: dict[str, object], conditions: list[tuple[str, str]], marks: str
) -> None:
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions]}
    text = msgspec.json.encode({"metadata": {"name": "n"}, "spec": spec, "status": status})
    assert node_state(text).marks == marks


def node_state(text: bytes) -> NodeState:
    class Told(NamedTuple):
        object: bytes

    return States().node(Told(text))  # type: ignore[arg-type]


def test_a_step_names_nodes_whose_marks_changed(ledger: Ledger) -> None:
    ledger.at(ScenarioStep(2, 0), 0)
    ledger.node_written("n", NodeState({"cpu": 4000, "pods": 110}, {}, "cordoned"))
    ledger.at(ScenarioStep(3, 0), 0)
    ledger.close()
    first, second, third = ledger.steps
    assert (first.nodes["n"].marks, second.nodes["n"].marks) == ("", "cordoned")  # type: ignore[union-attr]
    assert "n" not in third.nodes


def test_pods_that_wait_are_counted_once_however_often_they_are_tried(ledger: Ledger) -> None:
    ledger.pod_created("default", "b", "uid-b", pod(9000))
    ledger.pod_created("default", "c", "uid-c", pod(500))
    for name in ("b", "b", "c"):
        ledger.attempted("default", name, "")
    ledger.pod_bound("default", "c", "n")
    ledger.close()
    assert (ledger.steps[-1].unschedulable, ledger.steps[-1].failed_attempts) == (1, 3)
